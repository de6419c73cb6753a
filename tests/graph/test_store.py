"""A graph saves to JSON and comes back byte for byte; a wrong file is one sentence with the
path."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze import documents
from phaze.errors import InputError
from phaze.graph import store
from phaze.graph.ir import Call, Edge, Layer, Model, Parameter, Recompute, Tie
from tests.graph.made import EMPTY, graph, models, operator


def small_model() -> Model:
    """Two equal blocks and a head: a product, GELU, all-reduce; the weight of the first is tied to
    the last."""
    product, act = operator(0, "product", [0, 1], [10]), operator(1, "gelu", [10], [11])
    reduced = operator(2, "all_reduce", [11], [12])
    forward = graph([product, act, reduced], [10, 12])
    back = [operator(3, "gelu_backward", [13, 10], [14]), operator(4, "product", [14, 0], [15])]
    backward = graph([*back, operator(5, "product", [14, 1], [16])], [15, 16])
    block = Layer(
        name="h.*",
        forward=forward,
        backward=backward,
        parameters=(Parameter("weight", 1, 8, 2, True, True),),
        none=Recompute((0, 10), 32, EMPTY),
        selective=Recompute((0,), 16, graph([product])),
        full=Recompute((0,), 16, forward),
        shared_bytes=4,
        input_bytes=16,
        output_bytes=16,
        sharded=True,
    )
    return Model(
        name="small",
        tensor=2,
        microbatch=1,
        sequence=8,
        sequence_parallel=False,
        attention="eager",
        layers=(block,),
        calls=(Call(0, "h.0"), Call(0, "h.1")),
        edges=(Edge(0, 1, 16, 16),),
        ties=(Tie("weight", (0, 1), 8, 2),),
        approximations=("nothing is left out",),
    )


def test_summary_of_a_small_model() -> None:
    found = store.document_of(small_model())["summary"]
    assert found["parameters"] == 8
    assert (found["forward_flops"], found["backward_flops"]) == (2 * 2 * 8**4, 4 * 2 * 8**4)
    assert found["saved_bytes"] == 64
    assert found["collectives"] == [
        {"kind": "all_reduce", "pass": "forward", "bytes": 8, "count": 2}
    ]
    (layer,) = found["layers"]
    assert (layer["name"], layer["count"], layer["parameters"], layer["saved_bytes"]) == (
        "h.*",
        2,
        8,
        32,
    )


@given(models())
@settings(max_examples=40, deadline=None)
def test_a_model_comes_back_byte_for_byte(model: Model) -> None:
    text = store.dumps(model)
    back = store.loads(text, "file")
    assert back == model
    assert store.dumps(back) == text
    assert back.layers[0].full.rerun is back.layers[0].forward


def test_summary_may_be_left_out_but_not_be_wrong() -> None:
    raw = store.document_of(small_model())
    assert store.model_of({k: v for k, v in raw.items() if k != "summary"}, "file") == small_model()
    raw["summary"]["parameters"] = 7
    with pytest.raises(InputError, match="file: summary"):
        store.model_of(raw, "file")


def test_an_inconsistent_graph_is_not_written() -> None:
    model = small_model()
    wrong = Recompute((), 0, type(EMPTY)((), model.layers[0].forward.operators, (), ()))
    layer = model.layers[0]
    with pytest.raises(ValueError, match="follow from its operators"):
        store._recompute_out(wrong, layer, store._tensors(layer))


FAULTS: tuple[tuple[str, tuple[str | int, ...], Any], ...] = (
    (
        r"layers\[0\]\.forward\.operators\[0\]",
        ("layers", 0, "forward", "operators", 0, 1),
        "prodct",
    ),
    ("did you mean 'product'", ("layers", 0, "forward", "operators", 0, 1), "prodct"),
    ("runs on core 'tensor'", ("layers", 0, "forward", "operators", 0, 2), "vector"),
    (
        "product has the sizes batch, m, n, k",
        ("layers", 0, "forward", "operators", 0, 3),
        {"elements": 1},
    ),
    ("there is no tensor 99", ("layers", 0, "forward", "operators", 0, 4, 0, 0), 99),
    ("tensor 10 is written twice", ("layers", 0, "forward", "operators", 1, 5, 0, 0), 10),
    (
        "tensor 12 is read before it is written",
        ("layers", 0, "forward", "operators", 0, 4, 0, 0),
        12,
    ),
    ("operator number 0 appears twice", ("layers", 0, "forward", "operators", 1, 0), 0),
    (r"layers\[0\]\.backward\.outputs", ("layers", 0, "backward", "outputs"), [11]),
    (r"layers\[0\]\.none\.saved", ("layers", 0, "none", "saved"), [77]),
    (r"layers\[0\]\.full\.rerun", ("layers", 0, "full", "rerun"), "backward"),
    (r"layers\[0\]\.tensors", ("layers", 0, "tensors", 1, 0), 0),
    (r"layers\[0\]\.parameters", ("layers", 0, "parameters", 0, 1), 55),
    (r"layers\[0\]\.shared_bytes", ("layers", 0, "shared_bytes"), -1),
    (r"calls\[1\]", ("calls", 1, 0), 3),
    (r"edges\[0\]", ("edges", 0, 1), 0),
    (r"ties\[0\]", ("ties", 0, 1), [0, 9]),
    ("tensor: 0 is out of range", ("tensor",), 0),
    ("microbatch: True|microbatch: true", ("microbatch",), True),
    ("attention", ("attention",), "flash"),
    ("schema", ("schema",), "phaze.chip/1"),
    ("unknown key 'extra'", ("extra",), 1),
)


@pytest.mark.parametrize(("sentence", "path", "value"), FAULTS)
def test_a_fault_is_told_with_its_path(
    sentence: str, path: tuple[str | int, ...], value: Any
) -> None:
    raw = copy.deepcopy(store.document_of(small_model()))
    place: Any = raw
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(InputError, match=sentence):
        store.model_of(json.loads(json.dumps(raw)), "file")


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [path] if path else []
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, member in inner:
        found.extend(_places(member, (*path, key)))
    return found


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.integers(), max_size=3),
)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_junk_anywhere_is_an_input_error_or_a_model_that_round_trips(data: st.DataObject) -> None:
    raw: Any = copy.deepcopy(store.document_of(small_model()))
    del raw["summary"]
    path = data.draw(st.sampled_from(_places(raw)))
    place = raw
    for step in path[:-1]:
        place = place[step]
    if data.draw(st.booleans()):
        place[path[-1]] = data.draw(JUNK)
    else:
        del place[path[-1]]
    try:
        model = store.model_of(raw, "file")
    except InputError as fault:
        assert str(fault).startswith("file")
    else:
        assert store.loads(store.dumps(model), "again") == model


def test_files_that_are_no_documents(tmp_path: Path) -> None:
    for name, content in (
        ("a.json", "[]"),
        ("b.json", "{"),
        ("c.json", "{}"),
        ("d.json", "[" * 100_000),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError, match=name):
            store.load(str(tmp_path / name))
    with pytest.raises(InputError, match="no such file"):
        store.load(str(tmp_path / "none.json"))
    (tmp_path / "good.json").write_text(store.dumps(small_model()))
    assert store.load(str(tmp_path / "good.json")) == small_model()


def test_documents_spell_the_same_bytes() -> None:
    assert documents.dumps(store.document_of(small_model())) == store.dumps(small_model())

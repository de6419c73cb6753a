"""A model without a tensor-parallel plan gets one from its code, and it is used only where two
ranks train like one."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from phaze.errors import InputError
from phaze.graph.ir import Model
from phaze.graph.refusals import REFUSED, refusals
from phaze.graph.supply.point import Facts
from phaze.graph.tensor_plan import INFERRED, plan_document, plan_text, read_plan
from phaze.graph.torch import proof
from phaze.graph.torch.fake import without_weights
from phaze.graph.torch.infer import Inferred, infer_plan
from phaze.graph.torch.planned import planned, with_known_plan
from phaze.graph.torch.plans import ShardCut
from phaze.graph.torch.program import Source
from phaze.graph.torch.source import source_of
from phaze.graph.torch.trace import trace_model

WORDS = {"table.weight", "head.weight", "head.bias"}
MLP = {"up.weight": 0, "up.bias": 0, "down.weight": 1}


def _source(name: str) -> Source:
    return source_of(f"tests.graph.torch.own_models:{name}")


def _inferred(name: str) -> tuple[Inferred, dict[str, ShardCut]]:
    found = infer_plan(_source(name))
    assert found.plan is not None, found.whole
    assert not {cut.pattern for cut in found.plan.cuts if cut.tokens} - WORDS
    return found, {
        cut.pattern.removeprefix("blocks.*."): cut for cut in found.plan.cuts if not cut.tokens
    }


@pytest.mark.parametrize(
    ("name", "dims", "heads"),
    [
        (
            "plain",
            {"qkv.weight": 0, "qkv.bias": 0, "out.weight": 1, **MLP},
            {"qkv.weight": (8, (32, 32, 32))},
        ),
        ("by_head", {}, {"qkv.weight": (24, ()), "gated.weight": (1, (48, 48))}),
        (
            "grouped",
            {"q.weight": 0, "kv.weight": 0, "o.weight": 1, **MLP},
            {"kv.weight": (8, (16, 16))},
        ),
        ("raw", {"wq": 1, "wk": 1, "wv": 1, "wo": 0, "w1": 1, "w2": 0}, {"wq": (1, ())}),
        (
            "latent",
            {"q_up.weight": 0, "kv_up.weight": 0, "o.weight": 1},
            {"q_up.weight": (12, ()), "o.weight": (8, ())},
        ),
        (
            "experts",
            {"w1": 2, "w2": 1, "shared.0.weight": 0, "shared.2.weight": 1},
            {"w1": (1, (24, 24))},
        ),
        (
            "library",
            {"layer.self_attn.out_proj.weight": 1},
            {"layer.self_attn.in_proj_weight": (8, (32, 32, 32))},
        ),
        ("lists", {f"experts.*.{key}": dim for key, dim in MLP.items()}, {}),
        ("one_key", {"q.weight": 0, "q.bias": 0, "o.weight": 1, **MLP}, {"q.weight": (8, ())}),
    ],
)
def test_columns_and_rows_heads_and_stacked_matrices_are_found_in_the_code(
    name: str, dims: dict[str, int], heads: dict[str, tuple[int, tuple[int, ...]]]
) -> None:
    found, cuts = _inferred(name)
    assert {key: cut.dim for key, cut in cuts.items() if key in dims} == dims
    assert {key: (cuts[key].unit, cuts[key].parts) for key in heads} == heads
    assert found.whole == ()
    assert bool(found.unsharded) == (name in ("latent", "experts", "one_key", "library"))


@pytest.mark.parametrize("name", ["rotary", "rotary_wide", "rotary_like", "rotary_mixed"])
def test_positions_that_are_rotated_in_32_bit_do_not_hinder_a_split(name: str) -> None:
    """What a model rounds by itself, or mixes, is no difference between two ranks and one."""
    found, cuts = _inferred(name)
    assert {key: cut.dim for key, cut in cuts.items()} == {
        **dict.fromkeys(("q.weight", "k.weight", "v.weight"), 0),
        "o.weight": 1,
        **MLP,
    }
    assert found.whole == () and not found.unsharded


def test_two_ranks_are_compared_in_double_precision() -> None:
    with without_weights():
        bench = proof.open_bench(_source("rotary"))
    proved = proof.prove(bench, {}, {})
    assert isinstance(proved, proof.Proof)
    assert {gradient.dtype for gradient in proved.whole.gradients.values()} == {torch.float64}


def test_what_is_not_split_is_said_first_of_the_graph() -> None:
    source, _, document = planned(_source("over_all"), None)
    first = trace_model(source).approximations[0]
    assert refusals([first]) and "blocks.*.o (rms_norm runs over what would be split" in first
    assert document is not None
    known = with_known_plan(
        _source("over_all"), Facts("own", 16, None, False, (1, 2), (), INFERRED, document)
    )
    assert trace_model(known).approximations[0] == first, "a second process says the same"
    whole = with_known_plan(
        _source("plain"), Facts("own", 16, None, False, (1,), (), "none: because", None)
    )
    assert refusals(trace_model(whole).approximations) == [
        f"{REFUSED}, and nothing above TP 1 was planned: because"
    ]
    assert not refusals(trace_model(planned(_source("plain"), None)[0]).approximations)


def test_what_cannot_be_split_is_named_with_the_line_and_the_rest_is_split() -> None:
    found, cuts = _inferred("over_all")
    assert set(cuts) == set(MLP)
    ((module, why),) = found.whole
    assert module == "blocks.*.o" and why.startswith(
        "rms_norm runs over what would be split (own_models.py:"
    )
    assert found.unsharded, "attention of a part of the sequence is another attention"


def _work(model: Model) -> int:
    return sum(
        op.size("batch") * op.size("m") * op.size("n") * op.size("k")
        for call in model.calls
        for op in model.layers[call.layer].forward.operators
        if op.kind == "product"
    )


def test_ranks_share_the_work_and_communicate_as_megatron_does() -> None:
    source = _source("grouped")
    plan = infer_plan(source).plan
    whole, part = trace_model(source), trace_model(replace(source, plan=plan), tensor=2)
    assert _work(whole) == 2 * _work(part)
    block = next(layer for layer in part.layers if layer.name == "blocks.0")
    kinds = [
        [op.kind for op in side.operators].count("all_reduce")
        for side in (block.forward, block.backward)
    ]
    assert kinds == [
        2,
        3,
    ]  # the third sums the gradient of the norm that every rank has for its heads
    with pytest.raises(
        InputError, match=r"2 pieces \(heads\) of 8 do not divide by 4; TP degrees: 1, 2"
    ):
        trace_model(replace(source, plan=plan), tensor=4)


def test_a_model_on_the_meta_device_gets_the_same_plan_and_trace() -> None:
    first, second = (_source(name) for name in ("plain", "on_meta"))
    plans = [infer_plan(source).plan for source in (first, second)]
    assert plans[0] == plans[1]
    planned_sources = [replace(source, plan=plans[0]) for source in (first, second)]
    graphs = [trace_model(source, tensor=2, sequence_parallel=True) for source in planned_sources]
    assert graphs[0].layers == graphs[1].layers


def test_a_wide_model_is_proved_on_a_copy_with_fewer_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = infer_plan(_source("stacked")).plan
    monkeypatch.setattr(proof, "MANY", 1)
    monkeypatch.setattr(proof, "FEATURES", 8)
    monkeypatch.setattr(proof, "MOST", 1)
    assert infer_plan(_source("stacked")).plan == expected


def test_a_plan_is_written_edited_and_proved_again(tmp_path: Path) -> None:
    source, file = _source("stacked"), tmp_path / "plan.toml"
    plan = infer_plan(source).plan
    assert plan is not None
    text = plan_text(plan_document(source.name, "inferred", plan, [("blocks.*.o", "a reason")]))
    file.write_text(text, encoding="utf-8")
    assert read_plan(str(file)) == plan
    found, basis, document = planned(source, str(file))
    assert found.plan == plan and basis == f"{file}, proved on two ranks" and document is not None
    file.write_text(
        text.replace("parts = [32, 32, 32]\n", ""), encoding="utf-8"
    )  # whole queries on the first rank
    with pytest.raises(InputError, match="two ranks do not train like one"):
        planned(source, str(file))

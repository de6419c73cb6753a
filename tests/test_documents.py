"""Documents: any text becomes a value or one sentence with the path."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze import documents
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.hardware.core_chip import CoreChip
from phaze.hardware.dies import Die
from phaze.hardware.ownership import Terms
from phaze.hardware.stack import Stack
from phaze.hardware.technology import CoreTechnology
from phaze.search.core_space import CoreSpace

MODELS = (CoreChip, Cluster, Stack, CoreTechnology, Terms, Die, CoreSpace)
KINDS: dict[str, type[documents.Document]] = {
    "chips": CoreChip,
    "clusters": Cluster,
    "stacks": Stack,
    "technologies": CoreTechnology,
    "ownership": Terms,
    "dies": Die,
}
PRESETS = Path(__file__).parent.parent / "src" / "phaze" / "hardware" / "presets"


def chip(**changes: Any) -> dict[str, Any]:
    """The TPU v4 file as plain values, with keys replaced by path."""
    raw = documents.parse((PRESETS / "chips" / "tpu-v4.toml").read_text(), "toml", "tpu-v4")
    for path, value in changes.items():
        *tables, key = path.split("__")
        table = raw
        for name in tables:
            table = table[name]
        if value is ...:
            del table[key]
        else:
            table[key] = value
    return raw


def fault(raw: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        documents.check(CoreChip, raw, "chip.toml")
    return str(caught.value)


def test_a_misspelt_key_points_to_the_right_one() -> None:
    said = fault(chip(hbm__sise="32 GiB", hbm__size=...))
    assert said.startswith("chip.toml: hbm: unknown key 'sise'; did you mean 'size'?")


def test_a_negative_size_says_the_path_and_the_bound() -> None:
    assert (
        fault(chip(hbm__size=-3))
        == "chip.toml: hbm.size: -3 is out of range; it must be greater than 0."
    )


def test_the_path_of_a_chip_inside_a_die_is_as_the_file_spells_it() -> None:
    raw = documents.parse((PRESETS / "dies" / "gh100.toml").read_text(), "toml", "gh100")
    with pytest.raises(InputError, match=r"^die: chip\.hbm\.size: -3 is out of range"):
        documents.check(Die, raw | {"chip": chip(hbm__size=-3)}, "die")


def test_a_missing_key_is_named() -> None:
    assert (
        fault(chip(tensor_cores__rows=...))
        == "chip.toml: tensor_cores.rows: this key is missing; add it."
    )


def test_a_wrong_type_says_what_to_give() -> None:
    assert "tensor_cores.count: 'eight' is of the wrong type; give a whole number" in fault(
        chip(tensor_cores__count="eight")
    )
    assert "give a whole number" in fault(chip(tensor_cores__count=8.5))
    assert "give a table of keys" in fault(chip(hbm="large"))
    assert "is of the wrong type" in fault(chip(tensor_cores__count=True))


def test_a_wrong_choice_lists_the_right_ones() -> None:
    assert "did you mean 'sourced'? allowed: derived, recalled, sourced" in fault(
        chip(clock_basis="sourcd")
    )


def test_a_wrong_unit_lists_the_right_ones() -> None:
    assert "clock: '1.05 GB' cannot be used; give the unit as one of Hz" in fault(
        chip(clock="1.05 GB")
    )


def test_infinity_is_refused() -> None:
    assert "clock" in fault(chip(clock=float("inf")))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' appears twice"),
        ('{"a": NaN}', "a: NaN is not a number"),
        (
            '{"a": [1, {"b": -Infinity}]}',
            "a[1].b: -Infinity is not a number that can be used; give a finite number",
        ),
        ("[1]", "the document is list"),
        ("{", "this is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "9" * 5000 + "}", "this is not JSON"),
    ],
)
def test_bad_json_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"x\.json") as caught:
        documents.parse(text, "json", "x.json")
    assert said in str(caught.value)


def test_a_missing_file_a_folder_and_binary_are_one_sentence_each(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, said in (
        (tmp_path / "no.toml", "no such file"),
        (tmp_path, "this is a folder"),
        (binary, "not UTF-8"),
    ):
        with pytest.raises(InputError, match=said):
            documents.load(CoreChip, str(path))


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["32 GiB", "-1 GiB", "phaze.chip/1", "n7", "torus"])
)
keys = st.text(max_size=6) | st.sampled_from(
    [
        *CoreChip.model_fields,
        *Cluster.model_fields,
        *CoreSpace.model_fields,
        "schema",
        "size",
        "count",
        "levels",
    ]
)
trees = st.recursive(
    leaves, lambda t: st.lists(t, max_size=3) | st.dictionaries(keys, t, max_size=6), max_leaves=20
)


@given(st.dictionaries(keys, trees, max_size=8))
@settings(max_examples=150)
def test_any_document_gives_a_value_or_one_sentence(raw: dict[str, Any]) -> None:
    for model in MODELS:
        try:
            checked = documents.check(model, raw, "fuzz")
            if isinstance(checked, CoreChip):
                checked.chip()
        except InputError as caught:
            assert "\n" not in str(caught)
            assert str(caught).startswith("fuzz")


@given(st.data())
@settings(max_examples=300)
def test_any_damage_to_a_good_file_gives_a_value_or_one_sentence(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    path = data.draw(st.sampled_from(sorted((PRESETS / kind).glob("*.toml"))))
    raw = documents.parse(path.read_text(), "toml", path.name)
    table: Any = raw
    while True:
        key = data.draw(
            st.sampled_from(sorted(table) if isinstance(table, dict) else range(len(table)))
        )
        below = table[key]
        if isinstance(below, dict | list) and below and data.draw(st.booleans()):
            table = below
            continue
        table[key] = data.draw(trees)
        break
    try:
        checked = documents.check(KINDS[kind], raw, path.name)
        if isinstance(checked, CoreChip):
            checked.chip()
    except InputError as caught:
        assert "\n" not in str(caught)


@given(st.text(max_size=60), st.sampled_from(["json", "toml"]))
def test_any_text_parses_or_is_one_sentence(text: str, notation: documents.Notation) -> None:
    try:
        documents.parse(text, notation, "fuzz")
    except InputError as caught:
        assert str(caught).startswith("fuzz")


@given(trees)
def test_the_same_value_has_the_same_bytes_and_digest(value: Any) -> None:
    try:
        text = documents.dumps(value)
    except ValueError:
        return
    again = json.loads(text)
    assert documents.dumps(again) == text
    assert documents.digest(again) == documents.digest(value)


@pytest.mark.parametrize("pretty", [False, True])
def test_a_name_that_is_no_utf8_is_written_as_json_that_is(pretty: bool) -> None:
    document = {"out": b"caf\xe9".decode("utf-8", "surrogateescape")}
    text = documents.dumps(document, pretty)
    assert json.loads(text.encode("utf-8")) == document


def test_a_key_that_an_answer_lacks_is_a_sentence_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text('{"stages": [{"memory": {"weights": 1}}]}')
    tables, text, where = documents.read_answer(str(path))
    assert (json.loads(text), where) == (tables, str(path))
    assert tables["stages"][0]["memory"]["weights"] == 1
    with pytest.raises(
        InputError,
        match=r"answer\.json: stages\[0\]\.memory: the key 'state' is missing; make it again",
    ):
        tables["stages"][0]["memory"]["state"]
    with pytest.raises(KeyError):  # for whoever expects that a lookup may fail
        tables["chip"]

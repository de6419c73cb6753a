"""Every key of every format with a wrong type, out of range or misspelt is refused: its place, what
was seen, what is allowed. The keys and their types come from the models that files are checked
against."""

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.schema import formats
from phaze.document_faults import spell_path
from phaze.documents import check
from phaze.errors import InputError
from tests.keys.derived import field_kinds
from tests.keys.small import written
from tests.keys.test_every_key import ANSWERS, BASES, LABELS, folder

assert folder  # the fixture

Steps = tuple[int | str, ...]
READ = [name for name in BASES if name not in ANSWERS]
# Rows of graphs are checked as they are read, not key by key.
ROWS = {"phaze.graph/1": ("layers", "calls", "edges", "ties", "summary")}
BEYOND = 10**40
# Numbers that only name something.
UNBOUNDED = ("id", "from", "to")


def places(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Every key of a document with its value; of a list of tables the keys of the first."""
    if steps:
        yield steps, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*steps, key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from places(value[0], (*steps, 0))


def with_value(document: dict[str, Any], steps: Steps, value: Any, key: str = "") -> dict[str, Any]:
    """A copy with another value at a place, or its ``key`` spelled otherwise."""
    changed = deepcopy(document)
    table: Any = changed
    for step in steps[:-1]:
        table = table[step]
    if key:
        table[key] = table.pop(steps[-1])
    else:
        table[steps[-1]] = value
    return changed


def refusal(name: str, document: dict[str, Any]) -> InputError | None:
    try:
        check(formats()[name].model, document, "file")
    except InputError as fault:
        return fault
    return None


def keys_in(name: str, where: Path) -> Iterator[tuple[dict[str, Any], Steps, Any]]:
    """Each key of the documents of a format once, with a document that has it."""
    seen: set[Steps] = set()
    for base in BASES[name]:
        document = base.document(where)
        if refusal(name, document) is not None:  # it rests on another file
            continue
        for steps, value in places(document):
            if steps not in seen and steps != ("schema",) and steps[0] not in ROWS.get(name, ()):
                seen.add(steps)
                yield document, steps, value


@pytest.mark.parametrize("name", READ)
def test_a_value_of_another_type_is_refused_at_its_place(name: str, folder: Path) -> None:
    count = 0
    for document, steps, value in keys_in(name, folder):
        other = 7 if isinstance(value, dict | list) else [{"no": "such"}]
        fault = refusal(name, with_value(document, steps, other))
        assert fault is not None, (name, steps)
        assert str(steps[0]) in fault.where and fault.problem, (name, steps, str(fault))
        assert fault.exit_code == 2
        count += 1
    assert count > 3


@pytest.mark.parametrize("name", READ)
def test_a_number_beyond_its_range_is_refused_with_the_range(name: str, folder: Path) -> None:
    for document, steps, value in keys_in(name, folder):
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        beyond = (-BEYOND, BEYOND) if isinstance(value, int) else (-1e39, 1e39)
        faults = [refusal(name, with_value(document, steps, number)) for number in beyond]
        refused = [fault for fault in faults if fault is not None]
        assert refused or steps[-1] in UNBOUNDED, (name, steps)
        for fault in refused:
            assert spell_path(steps) in str(fault) and fault.remedy, (name, steps, str(fault))


@pytest.mark.parametrize("name", READ)
def test_a_misspelt_key_is_refused_with_the_nearest(name: str, folder: Path) -> None:
    for document, steps, _ in keys_in(name, folder):
        key = str(steps[-1])
        if isinstance(steps[-1], int):
            continue
        misspelt = with_value(document, steps, None, f"{key}z")
        if refusal(name, misspelt) is None:  # any name may stand there
            continue
        sentence = str(refusal(name, misspelt))
        assert f"'{key}z'" in sentence or key in sentence, (name, steps, sentence)


@pytest.mark.parametrize("name", READ)
def test_a_word_that_is_no_choice_is_refused_with_the_choices(name: str, folder: Path) -> None:
    schema = formats()[name].model.model_json_schema(by_alias=True)
    for document, steps, value in keys_in(name, folder):
        kinds = (
            field_kinds(schema, schema.get("$defs", {}), ".".join(map(str, steps)))
            if 0 not in steps
            else []
        )
        if not isinstance(value, str) or not kinds or any("enum" not in kind for kind in kinds):
            continue
        fault = refusal(name, with_value(document, steps, f"{value}z"))
        assert fault is not None and f"'{value}z'" in str(fault), (name, steps)
        assert any(str(choice) in fault.remedy for choice in kinds[0]["enum"]), str(fault)


@pytest.mark.parametrize("name", READ)
def test_a_required_key_that_is_missing_is_refused_at_its_place(name: str, folder: Path) -> None:
    required = formats()[name].model.model_json_schema(by_alias=True).get("required", [])
    document = next(document for document, _, _ in keys_in(name, folder))
    for key in required:
        fault = refusal(name, {other: value for other, value in document.items() if other != key})
        assert fault is not None and f"{key}: this key is missing" in str(fault), (name, key)


@pytest.mark.parametrize("name", sorted(set(READ) & set(LABELS)))
def test_a_command_that_reads_a_misspelt_key_ends_with_exit_code_2(
    name: str, folder: Path, phaze: Any
) -> None:
    document = BASES[name][0].document(folder)
    place = written(folder, "misspelt.json", document | {"nmae": "x"})
    ran = phaze(*(place if word == "FILE" else word for word in LABELS[name][0]))
    assert ran.code == 2 and "nmae" in ran.err, ran.err

"""A plan's document that was edited is loaded and shown, or refused in one sentence."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze.api.values import Planned
from phaze.errors import InputError
from tests.cli.fuzz_cases import RUN
from tests.cli.mutate import places
from tests.keys.walk import changed

LEFT = "alternatives/1/plan/memory_left"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """A plan with alternatives, as plain JSON."""
    sizes = {"hidden": 1024, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 512}
    plan = phaze.plan(
        gpt=sizes, chip="a100-80gb", devices=8, batch=128, microbatch=[8, 16], tensor=[1, 2]
    )
    found: dict[str, Any] = json.loads(json.dumps(plan.document))
    return found


def shown(document: dict[str, Any], folder: Path) -> None:
    """Everything that can be done with a document that is loaded."""
    path = folder / "plan.json"
    path.write_text(json.dumps(document))
    plan = phaze.load(path)
    assert isinstance(plan, Planned)
    assert repr(plan)
    assert plan._repr_html_()
    assert plan.frame()


def without(document: dict[str, Any], *steps: int | str) -> dict[str, Any]:
    found = copy.deepcopy(document)
    inside: Any = found
    for step in steps[:-1]:
        inside = inside[step]
    del inside[steps[-1]]
    return found


def test_a_stage_without_a_term_of_memory_is_refused(tmp_path: Path) -> None:
    document = json.loads(json.dumps(phaze.price(RUN).document))
    (term, *_) = document["stages"][0]["memory"]
    with pytest.raises(
        InputError, match=rf"plan\.json: stages\[1\]\.memory: the key '{term}' is missing"
    ):
        shown(without(document, "stages", 1, "memory", term), tmp_path)


@pytest.mark.parametrize(
    ("path", "value"), [(f"{LEFT}/left_share", "x"), (LEFT, {}), ("stages/0/memory", {})]
)
def test_a_table_that_lacks_what_is_shown_is_refused(
    path: str, value: Any, document: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"plan\.json: "):
        shown(changed(document, path, value), tmp_path)


def test_a_plan_may_say_that_it_has_no_alternatives(
    document: dict[str, Any], tmp_path: Path
) -> None:
    shown(document | {"alternatives": None}, tmp_path)


@pytest.mark.slow
def test_a_plan_without_any_one_of_its_keys_is_shown_or_refused(
    document: dict[str, Any], tmp_path: Path
) -> None:
    for steps in places(document):
        if not isinstance(steps[-1], int) and not any(
            isinstance(step, int) and step > 1 for step in steps
        ):
            try:
                shown(without(document, *steps), tmp_path)
            except InputError as fault:
                assert "plan.json" in str(fault), steps

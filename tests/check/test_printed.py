"""Every plan and schedule that a command prints has passed the checker, as the document that is
printed."""

import copy
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze.check.printed import plan_faults
from phaze.errors import PhazeError
from tests.check.documents import plain

Stated = list[tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture(scope="module")
def printed() -> Stated:
    """The questions and documents of all plans of one answer: the best, its alternatives, the rules
    of thumb."""
    found: Stated = []

    def recorded(question: Any, document: Any) -> list[str]:
        found.append((plain(question), plain(document)))
        return plan_faults(question, document)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("phaze.placement.answer.plan_faults", recorded)
        answer = phaze.plan("bert-large", chip="a100-80gb", devices=16, batch=64, sequence=128)
    shown = [row["plan"] for row in answer["alternatives"] if row["plan"] is not None]
    assert len(found) >= 1 + len(shown) > 1
    return found


def test_a_figure_that_follows_from_the_step_time_is_checked(printed: Stated) -> None:
    for question, document in printed:
        assert plan_faults(question, document) == []
        for name in (
            "tokens_per_s",
            "tokens_per_s_per_device",
            "devices_used",
            "batch_s",
            "devices",
            "microbatch",
        ):
            lie = copy.deepcopy(document)
            lie[name] *= 2
            assert plan_faults(question, lie), name


def test_a_plan_is_checked_in_less_than_50_ms(printed: Stated) -> None:
    seconds = []
    for question, document in printed * 3:
        start = time.process_time()
        plan_faults(question, document)
        seconds.append(time.process_time() - start)
    assert sorted(seconds)[len(seconds) // 2] < 0.05


OPERATORS = {
    "schema": "phaze.operators/1",
    "tensor_cores": 1,
    "vector_cores": 1,
    "operators": [{"id": "a", "core": "tensor", "one_core_s": 1.0, "all_cores_s": 1.0}],
    "edges": [],
}


def test_nothing_is_printed_that_the_checker_objects_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "phaze.placement.answer.plan_faults", lambda question, document: ["it is not so"]
    )
    solve = import_module("phaze.schedule.solve")
    monkeypatch.setattr(solve, "schedule_faults", lambda operators, schedule: ["it is not so"])
    with pytest.raises(PhazeError, match="it is not so"):
        phaze.plan(
            "bert-large",
            chip="a100-80gb",
            devices=2,
            batch=8,
            sequence=128,
            tensor=[1],
            microbatch=[1],
        )
    with pytest.raises(PhazeError, match="it is not so"):
        phaze.place(Path(__file__).parents[2] / "examples" / "profile.json")
    with pytest.raises(AssertionError, match="it is not so"):
        phaze.schedule(OPERATORS)

"""examples/instances: every one is read and its claim checked; ``python -m
examples.instances.make`` writes them."""

import json
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.instances.make import HERE, PLACEMENTS, SCHEDULES

from phaze.check.verdict import check
from phaze.placement.profile import problem_of
from phaze.placement.solve import fastest_plan
from phaze.schedule.files import load_problem
from phaze.schedule.problem import Effort, Schedule, ScheduleProblem, Slot
from phaze.schedule.solve import solve
from tests.check.documents import faults

REMAKE = "run python -m examples.instances.make"


def _instance(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text())
    assert found["schema"] == "phaze.instance/1" and found["name"] == name
    return found


def _slots(problem: ScheduleProblem, rows: list[list[Any]]) -> tuple[Slot, ...]:
    found = []
    for one, (start, tensor, vector) in zip(problem.operators, rows, strict=True):
        spread = tensor is None and vector is None
        length = one.all_cores_s if spread else one.one_core_s
        found.append(
            Slot(one.id, spread, start, start + (0.0 if one.free else length), tensor, vector)
        )
    return tuple(found)


@pytest.mark.parametrize("name", [row[0] for row in SCHEDULES])
def test_a_schedule_is_one_and_nothing_is_shorter(name: str, tmp_path: Path) -> None:
    instance = _instance(name)
    (tmp_path / "operators.json").write_text(json.dumps(instance["problem"]))
    problem, optimum = load_problem(str(tmp_path / "operators.json")), instance["optimum_s"]
    slots = _slots(problem, instance["certificate"]["slots"])
    schedule = Schedule(
        problem.rules, optimum, instance["bound_s"], slots, Effort("none", 0, 0, 0, 0)
    )
    assert not faults(problem, schedule)
    assert max(slot.end_s for slot in slots) == pytest.approx(optimum, rel=1e-9)
    found = solve(problem)
    assert found.makespan_s == pytest.approx(optimum, rel=1e-9)
    assert found.lower_bound_s >= optimum * (1 - 1e-9) <= instance["bound_s"] * (1 + 1e-9)


@pytest.mark.parametrize("name", [row[0] for row in PLACEMENTS])
def test_a_plan_is_found_again(name: str) -> None:
    instance = _instance(name)
    found = fastest_plan(problem_of(instance["problem"], name))
    assert found is not None
    assert found.batch_s == pytest.approx(instance["optimum_s"], rel=1e-12)
    assert (
        instance["certificate"]["plan"]["batch_s"] == instance["optimum_s"] == instance["bound_s"]
    )


def test_no_plan_of_the_small_placement_is_faster() -> None:
    """Every cut of the chain over its four devices, every number of replicas, by the formula of
    docs/placement.md; all fits, so nothing is recomputed."""
    instance = _instance("placement-small")
    problem = instance["problem"]
    table, link, batch = (
        problem["widths"]["1"],
        problem["link_bytes_per_s"],
        problem["microbatches"],
    )
    forward, backward = (
        np.array([one[key] for one in table["layers"]]) for key in ("forward_s", "backward_s")
    )
    sent = {edge["from"]: edge["bytes"] for edge in table["edges"]}
    size, best = len(forward), float("inf")
    for stages in range(1, problem["devices"] + 1):
        for cut in combinations(range(1, size), stages - 1):
            ends = (0, *cut, size)
            spans = list(pairwise(ends))
            times = [
                forward[a:b].sum() + backward[a:b].sum()
                + (sent[a - 1] / link if a else 0.0) + (sent[b - 1] / link if b < size else 0.0)
                for a, b in spans
            ]  # fmt: skip
            first = sum(one["parameter_bytes"] for one in table["layers"][: ends[1]])
            for data in range(1, problem["devices"] // stages + 1):
                rounds = -(-batch // data)
                taken = max(times) * (rounds + stages - 1) + 4 * (data - 1) / data * first / link
                best = min(best, taken)
    assert best == pytest.approx(instance["optimum_s"], rel=1e-9)


def test_the_small_joint_problem_holds() -> None:
    found = check(HERE / "joint-small")
    assert found.holds, f"{found.sentence()} ({REMAKE})"


@pytest.mark.slow
def test_the_middle_joint_problem_holds_and_against_a_space_of_a_billion() -> None:
    from phaze.search.spaces import load_space
    from phaze.study.problem import space_document

    found = check(HERE / "joint-middle")
    assert found.holds, f"{found.sentence()} ({REMAKE})"
    fine = space_document(load_space(str(HERE.parent / "fine-space.toml")))
    large = check(HERE / "joint-middle", wider=0.015, larger=fine)
    assert large.holds and large.chips == 921_600_000, large.sentence()

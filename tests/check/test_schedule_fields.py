"""The checker accepts what the solvers print and objects to every field that is changed."""

from dataclasses import replace
from typing import Any

import pytest

from phaze.schedule.problem import Schedule, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import solve
from tests.check.documents import faults
from tests.schedule.cases import OPTIMA, problem_of, random_problem

CASE = next(case for case in OPTIMA if case["name"].endswith("093"))


def _with_slot(schedule: Schedule, at: int, **changes: Any) -> Schedule:
    slots = list(schedule.slots)
    slots[at] = replace(slots[at], **changes)
    return replace(schedule, slots=tuple(slots))


@pytest.mark.parametrize("rules", ["serial", "icml24", "overlap"])
def test_every_answer_passes(rules: Rules) -> None:
    for seed in range(30):
        problem = random_problem(seed, 10, rules)
        assert faults(problem, solve(problem)) == []


def test_the_checker_objects_to_each_changed_field() -> None:
    problem = problem_of(CASE["operators"])
    good = solve(problem)
    assert faults(problem, good) == []
    costly = [at for at, operator in enumerate(problem.operators) if not operator.free]
    for at in costly:
        slot = good.slots[at]
        assert faults(problem, _with_slot(good, at, id="other"))
        assert faults(problem, _with_slot(good, at, spread=not slot.spread))
        assert faults(problem, _with_slot(good, at, end_s=slot.end_s * 1.01))
        assert faults(problem, _with_slot(good, at, start_s=slot.start_s + 1e-7))
        for name in ("tensor_core", "vector_core"):
            core = getattr(slot, name)
            assert faults(problem, _with_slot(good, at, **{name: 99 if core is not None else 0}))
            if core is not None:
                assert faults(problem, _with_slot(good, at, **{name: None}))
                assert faults(problem, _with_slot(good, at, **{name: -1}))
    assert faults(problem, replace(good, makespan_s=good.makespan_s * 0.99))
    assert faults(problem, replace(good, makespan_s=good.makespan_s * 1.01))
    assert faults(problem, replace(good, makespan_s=float("nan")))
    assert faults(problem, replace(good, lower_bound_s=good.makespan_s * 1.01))
    assert faults(problem, replace(good, lower_bound_s=-1.0))
    assert faults(problem, replace(good, rules="overlap"))
    assert faults(problem, replace(good, slots=good.slots[1:]))
    assert faults(problem, replace(good, slots=(good.slots[1], good.slots[0], *good.slots[2:])))


def test_the_checker_objects_to_a_moved_operator() -> None:
    """Whatever slot is moved to time 0 (length kept) either clashes or was there already."""
    problem = problem_of(CASE["operators"])
    good = solve(problem)
    for at, slot in enumerate(good.slots):
        moved = _with_slot(good, at, start_s=0.0, end_s=slot.end_s - slot.start_s)
        if slot.start_s > 0 and not problem.operators[at].free:
            assert faults(problem, moved)


@pytest.mark.parametrize(
    ("rules", "cores", "said"),
    [
        ("icml24", ("tensor", "vector"), "runs alone"),
        ("overlap", ("tensor", "vector"), ""),
        ("overlap", ("tensor", "both"), "to itself"),
        ("serial", ("tensor", "vector"), "at the same time"),
        ("icml24", ("none", "none"), "runs alone"),
        ("overlap", ("none", "none"), "network"),
        ("overlap", ("none", "tensor"), ""),
        ("icml24", ("none", "tensor"), "runs alone"),
    ],
)
def test_what_may_run_together_depends_on_the_rules(
    rules: Rules, cores: tuple[Any, Any], said: str
) -> None:
    operators = tuple(ScheduledOperator(f"o{i}", core, 1.0, 1.0) for i, core in enumerate(cores))
    apart = solve(ScheduleProblem(rules, 2, 2, operators, ((0, 1),)))
    slots = tuple(
        replace(s, start_s=0.0, end_s=1.0, spread=True, tensor_core=None, vector_core=None)
        for s in apart.slots
    )
    found = faults(
        ScheduleProblem(rules, 2, 2, operators, ()),
        replace(apart, slots=slots, makespan_s=1.0, lower_bound_s=1.0),
    )
    assert bool(found) == bool(said)
    assert not said or said in found[0]


def test_two_operators_on_one_core_clash() -> None:
    operators = (
        ScheduledOperator("a", "tensor", 1.0, 1.0),
        ScheduledOperator("b", "tensor", 1.0, 1.0),
    )
    problem = ScheduleProblem("icml24", 2, 1, operators, ())
    good = solve(problem)
    assert {slot.tensor_core for slot in good.slots} == {0, 1}
    same = replace(good, slots=tuple(replace(slot, tensor_core=0) for slot in good.slots))
    assert "same tensor core" in faults(problem, same)[0]

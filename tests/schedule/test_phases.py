"""Phases: the same optimum as a brute force that knows only the rules, and as labels on problems
too large for it."""

import random

import pytest

from phaze.schedule.ideals import ideals_of
from phaze.schedule.list_schedule import Decisions
from phaze.schedule.order import contract, series
from phaze.schedule.part import Component, part_of
from phaze.schedule.phases import Phased, by_phases
from phaze.schedule.problem import Core, ScheduledOperator, ScheduleProblem
from phaze.schedule.replay import makespan_of
from phaze.schedule.solve import SchedulingLimits, solve, solve_part
from tests.schedule.cases import brute_force, random_problem


def phased(part: Component, effort: int = 2_000_000) -> Phased:
    """Phases alone, from all operators one after another."""
    tables = part.tables()
    ideals = ideals_of(part, tables, 100_000)
    assert ideals is not None
    ways = tuple((i, 1 if part.least(i) == part.times[i][1] else 0) for i in range(len(part)))
    return by_phases(
        part,
        tables,
        ideals,
        Decisions(ways, sum(part.least(i) for i in range(len(part)))),
        0,
        effort,
    )


def parts_of(problem: ScheduleProblem) -> list[Component]:
    return [part_of(problem, order) for order in series(contract(problem))]


def packing_problem(seed: int, count: int = 14) -> ScheduleProblem:
    """Few different times, four cores of one kind and some chains: what makes a layer's phases
    hard."""
    dice = random.Random(seed)
    sizes = [dice.randint(3, 40) for _ in range(4)]
    kinds: tuple[Core, ...] = ("tensor", "tensor", "tensor", "vector", "both")
    operators = []
    for i in range(count):
        one = dice.choice(sizes)
        operators.append(
            ScheduledOperator(
                f"o{i}", dice.choice(kinds), float(one), one * dice.choice((0.25, 0.26, 0.3))
            )
        )
    edges = [(i, j) for i in range(count) for j in range(i + 1, count) if dice.random() < 0.12]
    return ScheduleProblem(
        "icml24", dice.choice((2, 3, 4)), dice.choice((1, 2, 4)), tuple(operators), tuple(edges)
    )


@pytest.mark.parametrize("seed", range(60))
def test_phases_equal_brute_force(seed: int) -> None:
    problem = random_problem(seed, 4 + seed % 3)
    found = [(part, phased(part)) for part in parts_of(problem)]
    assert all(answer.bound == answer.best.makespan for _, answer in found)
    assert all(
        makespan_of(part, answer.best.steps) == answer.best.makespan for part, answer in found
    )
    total = sum(answer.best.makespan * part.unit_s for part, answer in found)
    assert total == pytest.approx(brute_force(problem), rel=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_phases_equal_labels_where_packing_is_hard(seed: int) -> None:
    for part in parts_of(packing_problem(seed)):
        labels = solve_part(part, limits=SchedulingLimits(cpsat=0.0, most_paired=0))
        answer = phased(part)
        assert answer.bound <= labels.best.makespan
        assert labels.bound <= answer.best.makespan
        assert answer.bound == answer.best.makespan == labels.best.makespan
        assert makespan_of(part, answer.best.steps) == answer.best.makespan


def test_what_effort_leaves_open_is_still_a_bound_and_a_schedule() -> None:
    for seed in range(10):
        for part in parts_of(packing_problem(seed, 18)):
            little, much = phased(part, 1), phased(part)
            assert little.bound <= much.best.makespan <= little.best.makespan
            assert makespan_of(part, little.best.steps) == little.best.makespan


def test_solve_goes_on_to_phases_when_labels_are_not_enough() -> None:
    limits = SchedulingLimits(label_effort=0, cpsat=0.0, list_work=1)
    methods = set()
    for seed in range(12):
        problem = packing_problem(seed)
        found = solve(problem, limits=limits)
        assert found.optimal and found.makespan_s == pytest.approx(
            solve(problem).makespan_s, rel=1e-9
        )
        methods.add(found.effort.method)
    assert "phases" in methods

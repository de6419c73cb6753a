"""Bounds never exceed the optimum, each can be left out, and the array version agrees with the
scalar one."""

import numpy as np
import pytest

from phaze.schedule.bounds import BOUNDS, Bound, chip_bounds, lower_bound
from phaze.schedule.dual import antichain, load_credits, maximal_antichains
from phaze.schedule.order import Order, contract, series
from phaze.schedule.part import Component, incomparable, longest_paths, part_of
from phaze.schedule.problem import ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import SchedulingLimits, solve, solve_part
from tests.schedule.cases import OPTIMA, SHAPES, problem_of, random_problem


def _parts(problem: ScheduleProblem) -> list[Component]:
    return [
        part
        for part in (part_of(problem, order) for order in series(contract(problem)))
        if len(part) > 1
    ]


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
def test_no_bound_exceeds_the_optimum(rules: Rules) -> None:
    for seed in range(60):
        for part in _parts(random_problem(seed, 9, rules)):
            optimum = solve_part(part).best.makespan
            for name in BOUNDS:
                assert lower_bound(part, (name,)) <= optimum, (seed, name)


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
def test_the_linear_program_is_at_least_as_good_as_path_and_load(rules: Rules) -> None:
    for seed in range(60):
        for part in _parts(random_problem(seed, 10, rules)):
            bound, credits = antichain(part, part.tables())
            assert bound == pytest.approx(credits.sum())
            assert (credits >= 0).all()
            assert bound >= max(longest_paths(part)) * (1 - 1e-6)
            for resource in range(3):
                assert bound >= load_credits(part, resource).sum() * (1 - 1e-6)


def test_credits_satisfy_every_antichain_that_the_cores_hold() -> None:
    """The condition (*) of ``dual.py``, by enumeration of all sets of operators on one core and
    each one spread."""
    for seed in range(25):
        for part in _parts(random_problem(seed, 8)):
            _, credits = antichain(part, part.tables())
            beside = incomparable(part)
            for mask in range(1, 1 << len(part)):
                members = [i for i in range(len(part)) if mask >> i & 1]
                apart = all(beside[i] >> j & 1 for i in members for j in members if i != j)
                held = [sum(part.holds[i][0][kind] for i in members) for kind in range(2)]
                single = all(part.times[i][0] for i in members)
                if apart and single and held[0] <= part.cores[0] and held[1] <= part.cores[1]:
                    assert sum(credits[i] / part.times[i][0] for i in members) <= 1 + 1e-9
            for i, (_, spread) in enumerate(part.times):
                assert not spread or credits[i] <= spread * (1 + 1e-9)


@pytest.mark.parametrize("left_out", [(), ("antichain",), ("load", "antichain"), BOUNDS])
def test_the_optimum_does_not_depend_on_the_bounds_used(left_out: tuple[Bound, ...]) -> None:
    use = tuple(name for name in BOUNDS if name not in left_out)
    for case in OPTIMA[:8]:
        problem = problem_of(case["operators"])
        if len(problem.operators) <= 22 or "antichain" in use:
            found = solve(problem, limits=SchedulingLimits(bounds=use))
            assert found.makespan_s == pytest.approx(case["makespan_s"], rel=1e-9)
            assert found.optimal


def test_maximal_antichains_are_all_there() -> None:
    for seed in range(20):
        beside = incomparable(part) if (part := _whole(random_problem(seed, 8))) else []
        found = maximal_antichains(beside)
        assert found is not None
        expected = set()
        for mask in range(1, 1 << len(beside)):
            members = [i for i in range(len(beside)) if mask >> i & 1]
            common = (1 << len(beside)) - 1
            for i in members:
                common &= beside[i]
            if all(beside[i] >> j & 1 for i in members for j in members if i != j) and not common:
                expected.add(mask)
        assert {sum(1 << i for i in one) for one in found} == expected
        assert maximal_antichains(beside, 0) is None


def _whole(problem: ScheduleProblem) -> Component:
    return part_of(problem, contract(problem))


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
def test_bounds_of_all_chips_at_once_hold_for_each(rules: Rules) -> None:
    for seed in range(12):
        problem = random_problem(seed, 9, rules)
        order = contract(problem)
        costly = [problem.operators[i] for i in order.operators]
        dice = np.random.default_rng(seed)
        speeds = dice.uniform(0.2, 1.0, (len(costly), len(SHAPES)))
        one = np.array([[o.one_core_s] * len(SHAPES) for o in costly])
        spread = np.where([[o.core == "none"] for o in costly], one, one * speeds)
        tensor, vector = (np.array([shape[k] for shape in SHAPES]) for k in range(2))
        found = chip_bounds(
            rules, [o.core for o in costly], order.below, one, spread, tensor, vector
        )
        best = np.max(list(found.values()), axis=0)
        for chip, (t, v) in enumerate(SHAPES):
            operators = tuple(
                ScheduledOperator(o.id, o.core, one[k, chip], spread[k, chip])
                for k, o in enumerate(costly)
            )
            edges = tuple(
                (i, j) for j, mask in enumerate(order.below) for i in range(j) if mask >> i & 1
            )
            optimum = solve(ScheduleProblem(rules, t, v, operators, edges)).makespan_s
            assert best[chip] <= optimum * (1 + 1e-9)
            assert best[chip] >= optimum * 0.4


def test_under_serial_the_bound_of_all_chips_is_the_makespan() -> None:
    ones = np.ones((3, 2))
    cores = np.ones(2, np.int64)
    assert chip_bounds("serial", ["tensor"] * 3, [0, 0, 0], ones, ones, cores, cores)[
        "sum"
    ].tolist() == [3, 3]


def test_series_components_tighten_the_bound() -> None:
    """Two diamonds in a row: bounded as one, the load of the first can hide behind the path of the
    second."""
    times = [(1.0, 1.0), (8.0, 8.0), (1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (9.0, 9.0)]
    operators = tuple(ScheduledOperator(f"o{i}", "tensor", *pair) for i, pair in enumerate(times))
    edges = tuple((i, j) for i in range(3) for j in range(3, 6))
    whole = contract(ScheduleProblem("icml24", 2, 1, operators, edges))
    problem = ScheduleProblem("icml24", 2, 1, operators, edges)
    as_one = part_of(problem, Order(whole.operators, whole.below))
    parts = _parts(problem)
    assert [len(part) for part in parts] == [3, 3]
    total = sum(lower_bound(part) * part.unit_s for part in parts)
    assert total >= lower_bound(as_one, ("critical_path", "load")) * as_one.unit_s
    assert total == pytest.approx(solve(problem).makespan_s)

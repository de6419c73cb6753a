"""Bounds for many chips at once under every rule: never above a schedule; for links as good as the
linear program."""

from dataclasses import replace

import numpy as np
import pytest

from phaze.schedule.bounds import chip_bounds, lower_bound
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.schedule.problem import ScheduleProblem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import solve_part
from tests.schedule.cases import ruled_problem


def _seconds(problem: ScheduleProblem) -> list[tuple[dict[str, float], float, float]]:
    """Of every series component the array bounds by name, the bound of the linear program, and the
    least length."""
    found = []
    for order in series(contract(problem)):
        own = [problem.operators[i] for i in order.operators]
        part = part_of(problem, order)
        bounds = chip_bounds(
            problem.rules,
            [o.core for o in own],
            order.below,
            np.array([[o.one_core_s] for o in own]),
            np.array([[o.all_cores_s] for o in own]),
            np.array([problem.tensor_cores]),
            np.array([problem.vector_cores]),
            network=[o.network for o in own],
            hbm_s=np.array([[o.hbm_s] for o in own]),
        )
        least = max(part.hbm_s, solve_part(part).best.makespan * part.unit_s)
        by_name = {name: float(bound[0]) for name, bound in bounds.items()}
        found.append((by_name, lower_bound(part) * part.unit_s, least))
    return found


@pytest.mark.parametrize("rules", ["links", "icml24", "overlap"])
@pytest.mark.parametrize("count", [4, 8, 12])
def test_no_array_bound_is_above_the_least_makespan(rules: Rules, count: int) -> None:
    for seed in range(40):
        for bounds, _, least in _seconds(ruled_problem(seed, count, rules, 0.25)):
            assert all(bound <= least * (1 + 1e-9) for bound in bounds.values()), (
                seed,
                bounds,
                least,
            )


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["links", "icml24", "overlap"])
@pytest.mark.parametrize("count", [6, 9, 14])
@pytest.mark.parametrize("part", range(8))
def test_no_array_bound_is_above_the_least_makespan_of_many_problems(
    rules: Rules, count: int, part: int
) -> None:
    for seed in range(1000 + 150 * part, 1150 + 150 * part):
        for bounds, _, least in _seconds(ruled_problem(seed, count, rules, 0.2)):
            assert all(bound <= least * (1 + 1e-9) for bound in bounds.values()), (
                seed,
                bounds,
                least,
            )


def test_the_sets_of_rules_links_are_the_linear_program() -> None:
    """What collectives can hide is a flow, so whole credits reach the linear program over all
    configurations."""
    for seed in range(80):
        for bounds, program, _ in _seconds(ruled_problem(seed, 10, "links", 0.2)):
            assert max(bounds.values()) == pytest.approx(program, rel=1e-6), (seed, bounds, program)


def test_credits_of_rules_overlap_are_never_worse_than_the_longest_path() -> None:
    for seed in range(60):
        problem = ruled_problem(seed, 9, "overlap", 0.3)
        bare = replace(
            problem, operators=tuple(replace(o, network=False) for o in problem.operators)
        )
        for bounds, _, _ in _seconds(bare):
            if "antichain" in bounds:
                assert bounds["antichain"] >= bounds["critical_path"] * (1 - 1e-9), (seed, bounds)

"""What the boundaries of a shape cross bounds its plans: never above one of them, and no less than
sending takes."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from phaze.cost.network_prices import NetworkPrices
from phaze.pipeline.families import ONE_F_ONE_B, interleaved
from phaze.pipeline.family import Family
from phaze.placement.layout import Shape, boundary_levels
from phaze.placement.paces import sent_bound
from phaze.placement.pipeline import fits
from phaze.placement.plan import Plan
from phaze.placement.prepared_width import prepared
from phaze.placement.problem import PlacementProblem
from phaze.placement.shapes import WidthCase, cases_of, least_end
from phaze.placement.solve import fastest_plan
from phaze.values import replace
from tests.placement.brute_force import every_plan
from tests.placement.placement_cases import (
    hybrid_problem,
    mixed_problem,
    sharing_problem,
    split_problem,
)
from tests.placement.test_transfers import chain, equal_cut, levels_of

Random = Callable[[int, bool, int], PlacementProblem]
KINDS: dict[str, Random] = {
    "mixed": mixed_problem,
    "split": split_problem,
    "hybrid": hybrid_problem,
    "sharing": sharing_problem,
}


def slowed(problem: PlacementProblem, seed: int) -> PlacementProblem:
    """The problem with one level slower and farther than it was."""
    rng, levels = random.Random(seed), list(problem.cluster.levels)
    level = rng.randrange(len(levels))
    slow = rng.choice([1.0, 10.0, 1e4])
    levels[level] = replace(
        levels[level],
        bandwidth_bytes_per_s=levels[level].bandwidth_bytes_per_s / slow,
        latency_s=levels[level].latency_s + rng.choice([0.0, 3.0]),
    )
    return replace(problem, cluster=replace(problem.cluster, levels=tuple(levels)))


def cases(problem: PlacementProblem) -> dict[tuple[int, str | None, int], WidthCase]:
    """The cases of a problem of which some stage fits, by width, family and chunks."""
    prices = NetworkPrices(problem.cluster)
    widths = [prepared(problem, graph, prices) for graph in problem.graphs]
    every = [
        case
        for width in widths
        for case in cases_of(problem, width, problem.rules.families, prices)
    ]
    fitting = [case for case in every if len(case.table.rest)]
    return {
        (case.width.graph.width, case.family.name, case.family.chunks): case for case in fitting
    }


def shape_of(plan: Plan) -> Shape:
    return Shape(plan.tensor, len(plan.stages), plan.data, plan.order, plan.chunks, plan.family)


def bound_s(case: WidthCase, shape: Shape) -> float:
    return sent_bound(case, shape) + least_end(case, shape)


@pytest.mark.parametrize("kind", KINDS)
def test_no_plan_of_a_small_problem_is_below_what_its_boundaries_cross(kind: str) -> None:
    bounded, near = 0, 0.0
    for seed in range(40):
        problem = slowed(KINDS[kind](seed, seed % 3 > 0, 3 + seed % 2), seed)
        fastest, best_s, least_s = fastest_plan(problem), np.inf, dict[Shape, float]()
        for plan in every_plan(problem):
            shape = shape_of(plan)
            least_s[shape] = min(plan.batch_s, least_s.get(shape, np.inf))
            if fits(problem, plan):
                best_s = min(best_s, plan.batch_s)
        assert (np.inf if fastest is None else fastest.batch_s) == pytest.approx(best_s, rel=1e-9)
        by_family = cases(problem)
        for shape, batch_s in least_s.items():
            case = by_family.get((shape.tensor, shape.family, shape.chunks))
            if case is not None:
                assert bound_s(case, shape) <= batch_s * (1 + 1e-12), (seed, shape)
                bounded, near = bounded + 1, max(near, bound_s(case, shape) / batch_s)
    assert bounded > 200 and near > 0.99


@pytest.mark.parametrize("order", ["pipeline", "data"])
@pytest.mark.parametrize("family", [ONE_F_ONE_B, interleaved(2), interleaved(4)])
def test_a_shape_that_crosses_a_slow_level_is_bounded_by_what_sending_takes(
    family: Family, order: str
) -> None:
    problem = chain(levels_of(640.0, 320.0, 0.01))
    rules = replace(problem.rules, families=(family,), overlapped_transfers=True)
    problem = replace(problem, rules=rules, microbatches=8)
    case = cases(problem)[1, family.name, family.chunks]
    plan = equal_cut(problem, family, 2, 2 if order == "pipeline" else 4, order)
    shape = shape_of(plan)
    crossed = 2 in boundary_levels(problem.cluster, shape).tolist()
    assert crossed == (order == "data")
    sent_s = problem.rounds(plan.data) * family.chunks * 64.0 / 0.01
    assert (sent_bound(case, shape) > 0.99 * sent_s) == crossed
    assert bound_s(case, shape) <= plan.batch_s

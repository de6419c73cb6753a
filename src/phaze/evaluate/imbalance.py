"""What a plan takes where the fullest rank of experts gets more tokens than the mean: the same
stages, priced again."""

from dataclasses import replace
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.parallel_rank import MOST_ROWS, Parallel
from phaze.evaluate.plan import PlanRequest
from phaze.evaluate.plan_order import PlannedChoice, problem_of
from phaze.graph.split_context import way_named
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.structure import StageCut

# By how much more than planned the fullest rank may get.
STEPS = (1.1, 1.25, 1.5)


def imbalance_sensitivity(request: PlanRequest, planned: PlannedChoice) -> list[dict[str, Any]]:
    """Rows of the fullest rank over the mean, and how much slower the best plan is then; none where
    no experts are sharded."""
    request, best = request.sharded_over(0), planned.best
    plan, model = best.plan, best.model
    if plan is None or model.expert == 1 or request.rank_at is None:
        return []
    shape = Shape(plan.tensor, len(plan.stages), plan.data, plan.order, plan.chunks, plan.family)
    cuts = tuple(StageCut(stage.layers, stage.recompute) for stage in plan.stages)
    choice = model.tensor, model.microbatch, model.sequence_parallel, model.attention
    way = way_named(model.context_way or "ring")
    parallel = Parallel(model.tensor, model.context, model.expert, model.expert_tensor, way)
    slowdowns = []
    for step in STEPS:
        rows = min(MOST_ROWS, request.rows * step)
        try:
            problem = problem_of(
                request, request.rank_at(choice, replace(parallel, rows=rows)), planned.costed
            )
            again = price(
                problem.at_zero(best.problem.zero), shape, cuts, planned.prices, simulated=False
            )
        except InputError:
            return []
        slowdowns.append(
            {"rows": rows, "batch_s": again.batch_s, "slower": again.batch_s / plan.batch_s - 1}
        )
    return slowdowns

"""The splits that people choose (:mod:`phaze.evaluate.baselines`) beside the best plan of a job.

Each is the fastest over the microbatches, sequence parallelism and stages of ZeRO of the job at its
width, without context and expert parallelism. A choice whose passes alone take longer than that is
left out.
"""

from collections.abc import Callable, Iterable
from math import inf

from phaze.evaluate.baselines import (
    experts_plan,
    rule_of_thumb,
    simple_problem,
    usual_width,
)
from phaze.evaluate.plan import Candidate, PlanRequest, choices
from phaze.evaluate.plan_order import PlannedChoice, passes_bound, problem_of
from phaze.graph.ir import Model
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem

# The plan of a problem, or None if there is none; slower than so many seconds it need not be found.
Split = Callable[[PlacementProblem, Model, float], Plan | None]


def heuristic_plans(
    request: PlanRequest, planned: PlannedChoice
) -> tuple[Candidate | None, Candidate | None]:
    """The rule of thumb and the experts' split, each at the best choice that it allows; None if
    none fits; state is sharded over all ranks with the same weights."""
    request = request.sharded_over(0)
    width, prices, split = (
        usual_width(request.widths, request.setting.cluster),
        planned.prices,
        request.experts,
    )
    thumb = _fastest(
        request,
        planned,
        [width],
        lambda problem, model, below_s: rule_of_thumb(problem, model, prices, below_s),
    )
    if split is None:
        return thumb, None
    return thumb, _fastest(
        request,
        planned,
        [split[2]],
        lambda problem, model, below_s: experts_plan(problem, model, split, prices, below_s),
    )


def _fastest(
    request: PlanRequest, planned: PlannedChoice, widths: Iterable[int | None], cut: Split
) -> Candidate | None:
    costed, zeros = planned.costed, sorted(set(request.job.zeros))
    models = [
        (choice, request.model_at(*choice)) for choice in choices(request) if choice[0] in widths
    ]
    bounds = [passes_bound(request, model, costed) for _, model in models]
    best: Candidate | None = None
    for bound_s, ((_, microbatch, spread, _), model) in sorted(
        zip(bounds, models, strict=True), key=lambda entry: entry[0]
    ):
        if best is not None and bound_s >= best.rank[0]:
            break
        problem = simple_problem(problem_of(request, model, costed))
        for zero in zeros:
            at_stage = problem.at_zero(zero)
            plan = cut(at_stage, model, inf if best is None else best.rank[0])
            if plan is not None and (best is None or plan.batch_s < best.rank[0]):
                best = Candidate(microbatch, spread, model, at_stage, plan)
    return best

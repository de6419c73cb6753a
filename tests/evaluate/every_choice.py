"""Every choice of a job solved to the end: what the order of plans is compared with."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from phaze.evaluate.costed_layers import CostedLayers
from phaze.evaluate.plan import Candidate, PlanRequest, problem_at
from phaze.evaluate.plan_order import PlannedChoice, ranks_of, unbeaten
from phaze.pipeline.family import Family
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import fastest_at, fastest_plan


def _with(problem: PlacementProblem, families: tuple[Family, ...]) -> PlacementProblem:
    return replace(problem, rules=replace(problem.rules, families=families))


def _problems(request: PlanRequest) -> Iterator[Candidate]:
    for (_, microbatch, spread, _), models in ranks_of(request):
        for (model, _), shard in product(
            unbeaten([(m, problem_at(request.sharded_over(0), m)) for m in models]),
            request.job.shards,
        ):
            yield Candidate(
                microbatch, spread, model, problem_at(request.sharded_over(shard), model), None
            )


def candidates(request: PlanRequest) -> Iterator[Candidate]:
    """The fastest plan of every choice without chunks (where these are not all), at the request's
    own stage of ZeRO."""
    for own in _problems(request):
        few = own.problem.rules.families[: 2 if own.problem.rules.families[0].most_stages else 1]
        yield replace(own, plan=fastest_plan(_with(own.problem, few), request.prices))


def every_choice(request: PlanRequest) -> list[Candidate]:
    """The fastest plan of every choice, best first."""
    found = []
    for own in _problems(request):
        fastest = fastest_at(own.problem, request.job.zeros, request.prices)
        found.append(own if fastest is None else replace(own, problem=fastest[0], plan=fastest[1]))
    return sorted(found, key=lambda candidate: candidate.rank)


def as_planned(request: PlanRequest, found: Sequence[Candidate]) -> PlannedChoice:
    """Candidates as an order of plans gives them."""
    return PlannedChoice(
        tuple(found), len(found), len(found), CostedLayers(request.setting), request.prices
    )

r"""In which order the choices of a job are planned, so that few of them are solved and the best are
exact all the same.

A *choice* is a rank: tensor width, microbatch, sequence parallelism, attention, context degree and
way, expert and expert-tensor degree, ranks that shard state. It has a lower bound that is
sharpened step by step, each dearer:

    passes      min over S of  m(S) max(C / S, longest layer)       C = forward and backward of all
                layers of one rank,
                                                                    m(S) = microbatches of the most
                                                                    replicas
    memory      the least bound of its placement problem over stages of ZeRO, families and depths,
                each with the paces
                that fit into memory           (:attr:`phaze.placement.solve.OpenPlacement.bound_s`)
    solved      its fastest plan below a limit, or none
                (:meth:`phaze.placement.solve.OpenPlacement.fastest`)

m max(C / S, longest) is no more than any family's batch time: alpha P + beta sum D >= m P, as P is
at least both. The choice with the least bound is sharpened next (:mod:`phaze.evaluate.best_first`).
A choice is solved below a limit a little above the best plan so far, and returns with that limit as
its bound if it has no plan below it. The end: the least bound exceeds the last plan that is shown,
or :data:`ALTERNATIVES_WITHIN` times the best: a plan so much slower is no alternative to it. So the
best of those are exact, with every plan of theirs that is no slower; of the others it is known that
they are slower.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import inf

import numpy as np

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.best_first import BoundedCandidate, best_first, in_steps
from phaze.evaluate.costed_layers import CostedLayers
from phaze.evaluate.flow import rank_problem
from phaze.evaluate.parallel_rank import Parallel, Refusals, parallels
from phaze.evaluate.plan import (
    ALTERNATIVES_SHOWN,
    ALTERNATIVES_WITHIN,
    Candidate,
    Choosing,
    PlanRequest,
    choices,
)
from phaze.graph.ir import Model
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import OpenPlacement

# Sums of the same seconds in another order differ by less.
ROUNDING = 1e-9
# The solver and the price of a plan differ by less; so near to each other two plans tie.
TIE = 1e-12

Watch = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PlannedChoice:
    """The choices that were solved, best first, then those that fit nowhere; how many there were,
    and how many placement problems were solved. ``costed``: their layers; ``prices``: what their
    collectives and transfers take."""

    candidates: tuple[Candidate, ...]
    bounded: int
    solved: int
    costed: CostedLayers
    prices: NetworkPrices

    @property
    def best(self) -> Candidate:
        """The fastest; its plan is None where nothing fits."""
        return self.candidates[0]


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Choices that differ in how a sequence is shared alone."""

    number: int
    choice: Choosing
    models: tuple[Model, ...]


def ranks_of(request: PlanRequest) -> Iterator[tuple[Choosing, tuple[Model, ...]]]:
    """Every choice of a request; those that differ in how a sequence is shared together."""
    refusals = Refusals()
    for choice in choices(request):
        every = parallels(choice[0], request.contexts, request.expert, request.ways, request.rows)
        for _, alike in groupby(every, key=lambda parallel: replace(parallel, way=request.ways[0])):
            ranks = [
                refusals.attempted(way, partial(rank_of, request, choice, way)) for way in alike
            ]
            models = tuple(rank for rank in ranks if rank is not None)
            if models:
                yield choice, models
    if not request.free_degrees:
        refusals.require()


def rank_of(request: PlanRequest, choice: Choosing, parallel: Parallel) -> Model:
    """The rank of a choice under further degrees."""
    if (parallel.context, parallel.expert) == (1, 1) or request.rank_at is None:
        return request.model_at(*choice)
    return request.rank_at(choice, parallel)


def passes_bound(request: PlanRequest, model: Model, costed: CostedLayers) -> float:
    """What no plan of a rank undercuts, whatever memory there is."""
    each = costed.passes_s(model)
    calls = [each[call.layer] for call in model.calls]
    # Stages as the paper times them may take one device each.
    width = 1 if request.setting.stack.stages == "icml24" else model.tensor * model.context
    microbatches = -(-request.job.batch // model.microbatch)
    stages = np.arange(1, min(len(calls), request.job.devices // width) + 1)
    replicas = np.minimum(microbatches, request.job.devices // (stages * width))
    bounds_s = -(-microbatches // replicas) * np.maximum(
        sum(calls) / stages, max(calls, default=0.0)
    )
    return float(np.min(bounds_s, initial=inf)) * (1 - ROUNDING)


def problem_of(request: PlanRequest, model: Model, costed: CostedLayers) -> PlacementProblem:
    """The placement problem of a rank."""

    def build() -> PlacementProblem:
        return rank_problem(request.job, model, request.setting, costed.table(model))

    return costed.problem(model, request.job, build)


class _Planning:
    """The choices of a request as they are planned, best bound first
    (:func:`phaze.evaluate.best_first.best_first`)."""

    def __init__(self, request: PlanRequest, below_s: float = inf) -> None:
        self.request, self.below_s = request, below_s
        self.costed = CostedLayers(request.setting)
        self.prices = request.prices
        self.solved: list[tuple[int, Candidate]] = []
        self.short: list[tuple[int, Candidate]] = []
        self.tried: set[tuple[int, ...]] = set()

    @property
    def last_s(self) -> float:
        """What a plan may take to be among those that are shown."""
        times = sorted(candidate.rank[0] for _, candidate in self.solved)
        if len(times) < ALTERNATIVES_SHOWN:
            return min(self.below_s, self.near_s)
        return min(self.below_s, self.near_s, times[ALTERNATIVES_SHOWN - 1] * (1 + TIE))

    @property
    def near_s(self) -> float:
        """What a plan may take to be an alternative to the best so far."""
        return ALTERNATIVES_WITHIN * self.best_s

    @property
    def best_s(self) -> float:
        """The seconds of the best plan so far."""
        return min((candidate.rank[0] for _, candidate in self.solved), default=inf)

    def ranks(self, ranks: _Ranks) -> BoundedCandidate:
        """Choices by what no plan of theirs undercuts whatever memory there is; then by their
        placement problems."""

        def examine(bound_s: float) -> Iterator[BoundedCandidate]:
            zeros = self.request.job.zeros
            for index, candidate in enumerate(_problems(self.request, ranks, self.costed)):
                placement = OpenPlacement(candidate.problem, zeros, self.prices)
                place, memory_s = (ranks.number, index), placement.bound_s
                if memory_s < inf:
                    solve = partial(self.solve, candidate, placement, place)
                    yield in_steps(max(bound_s, memory_s), place, self.limits, solve)
                else:
                    yield BoundedCandidate(inf, place, partial(self.leave_out, candidate, place))

        least_s = min(passes_bound(self.request, model, self.costed) for model in ranks.models)
        return BoundedCandidate(least_s, (ranks.number, 0), examine)

    def limits(self) -> tuple[float, float]:
        """The seconds of the best plan so far, and what a plan may take to be shown."""
        return min(self.below_s, self.best_s), self.last_s

    def solve(
        self, candidate: Candidate, placement: OpenPlacement, place: tuple[int, int], limit_s: float
    ) -> bool:
        """Whether a choice has a plan below a limit; the plan is kept."""
        self.tried.add(place)
        fastest = placement.fastest(limit_s)
        if fastest is not None:
            problem, plan = fastest
            self.solved.append((place[0], replace(candidate, problem=problem, plan=plan)))
        elif limit_s == inf:
            self.leave_out(candidate, place, inf)
        return fastest is not None

    def leave_out(self, candidate: Candidate, place: tuple[int, int], _: float) -> tuple[()]:
        """Keep a choice that fits nowhere, for what it lacks."""
        self.short.append((place[0], candidate))
        return ()


def planned(
    request: PlanRequest, watch: Watch | None = None, below_s: float = inf
) -> PlannedChoice:
    """The best choices of a job, each with its fastest plan, of those that take less than
    ``below_s``; ``watch`` hears how many of all are bounded."""
    planning = _Planning(request, below_s)
    every = [_Ranks(number, *alike) for number, alike in enumerate(ranks_of(request))]
    planning.costed.time_passes(model for ranks in every for model in ranks.models)
    candidates = []
    for ranks in every:
        candidates.append(planning.ranks(ranks))
        if watch is not None:
            watch(ranks.number + 1, len(every))
    best_first(candidates, lambda bound_s: bound_s > planning.last_s)
    near = [pair for pair in planning.solved if pair[1].rank[0] <= planning.near_s]
    order = [
        *sorted(near, key=lambda pair: (pair[1].rank, pair[0])),
        *sorted(planning.short, key=lambda pair: (pair[1].rank, pair[0])),
    ]
    bounded = sum(len(ranks.models) for ranks in every) * len(request.job.shards)
    shown = tuple(candidate for _, candidate in order)
    return PlannedChoice(shown, bounded, len(planning.tried), planning.costed, planning.prices)


def _problems(request: PlanRequest, ranks: _Ranks, costed: CostedLayers) -> Iterator[Candidate]:
    """The placement problems of choices, but of those that another one beats."""
    _, microbatch, spread, _ = ranks.choice
    requests = [request.sharded_over(ranks) for ranks in request.job.shards]
    problems = [problem_of(requests[0], model, costed) for model in ranks.models]
    for model, first in unbeaten(list(zip(ranks.models, problems, strict=True))):
        yield Candidate(microbatch, spread, model, first, None)
        for other in requests[1:]:
            yield Candidate(microbatch, spread, model, problem_of(other, model, costed), None)


def unbeaten(
    ranks: Sequence[tuple[Model, PlacementProblem]],
) -> list[tuple[Model, PlacementProblem]]:
    """Ranks that differ in how their sequence is shared, but those that another beats: no layer of
    that takes longer or keeps more in any mode of recompute, so no plan of it is slower or needs
    more memory."""
    left: list[tuple[Model, PlacementProblem]] = []
    for model, problem in ranks:
        if not any(_beats(other, problem) for _, other in left):
            left = [
                (rank_model, other) for rank_model, other in left if not _beats(problem, other)
            ] + [(model, problem)]
    return left


def _beats(problem: PlacementProblem, other: PlacementProblem) -> bool:
    """Whether no layer of one problem takes or keeps more than the same one of the other; their
    gradients of weights take as long, as a family may count these against others."""
    alike = [(a.weight_s, a.parameter_bytes) for a in problem.graphs[0].layers]
    if alike != [(b.weight_s, b.parameter_bytes) for b in other.graphs[0].layers]:
        return False
    layers = zip(_amounts(problem), _amounts(other), strict=True)
    return all(
        len(a) == len(b) and all(x <= y for x, y in zip(a, b, strict=True)) for a, b in layers
    )


def _amounts(problem: PlacementProblem) -> Iterator[tuple[float, ...]]:
    """What the layers of a problem take and hold, in an order of its own."""
    for layer in problem.graphs[0].layers:
        selective = (
            layer.selective_bytes if layer.selective_bytes is not None else layer.activation_bytes
        )
        full_s = layer.full_s if layer.full_s is not None else layer.forward_s
        yield (
            layer.forward_s,
            layer.backward_s,
            layer.activation_bytes,
            selective,
            layer.selective_s,
            full_s,
            layer.live_bytes,
            layer.beside_s,
            *(amount for x in layer.more for amount in (x.bytes, x.live_bytes, x.again_s)),
        )

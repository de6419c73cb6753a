r"""In which order the choices of a job are planned, so that few of them are solved and the best are exact all the same.

A *choice* is a rank: tensor width, microbatch, sequence parallelism, attention, context degree and way, expert and
expert-tensor degree, ranks that share out state. It has a lower bound that is sharpened step by step, each dearer:

    passes      min over S of  m(S) max(C / S, longest layer)       C = forward and backward of all layers of one rank,
                                                                    m(S) = microbatches of the most replicas
    memory      the least bound of its placement problem over stages of ZeRO, families and depths, each with the paces
                that fit into memory                     (:attr:`phaze.placement.solve.OpenPlacement.bound_s`)
    solved      its fastest plan below a limit, or none  (:meth:`phaze.placement.solve.OpenPlacement.fastest`)

m max(C / S, longest) is no more than any family's batch time: alpha P + beta sum D >= m P, as P is at least both. One
heap holds all choices by their bounds; the least is sharpened next. A choice is solved below a limit a little above
what is known, and returns with that limit as its bound if it has no plan below it. The end: the least bound exceeds the
last plan that is shown. So the best of those are exact, with every plan of theirs that is no slower; nothing is said of
the others but that they are slower.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from math import inf

import numpy as np

from phaze.evaluate.costed_layers import CostedLayers
from phaze.evaluate.flow import rank_problem
from phaze.evaluate.parallel_rank import Parallel, Refusals, parallels
from phaze.evaluate.plan import ALTERNATIVES_SHOWN, Candidate, Choosing, PlanRequest, choices
from phaze.evaluate.prices import KnownPrices
from phaze.graph.ir import Model
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import OpenPlacement

# A choice is solved for plans up to these factors above its bound, or above the best plan, one after another: the first
# finds most, and the last says that nothing fits.
STEPS = (1.1, 1.2, 1.5, 2.5, inf)
# Sums of the same seconds in another order differ by less.
ROUNDING = 1e-9
# The solver and the price of a plan differ by less; so near to each other two plans tie.
TIE = 1e-12

Watch = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PlannedChoice:
    """The choices that were solved, best first, then those that fit nowhere; how many there were, and how many
    placement problems were solved. ``costed``: their layers; ``prices``: what their collectives and transfers take."""

    candidates: tuple[Candidate, ...]
    bounded: int
    solved: int
    costed: CostedLayers
    prices: KnownPrices

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


@dataclass(frozen=True, slots=True)
class _Open:
    """A choice with its placement problem, and how often it was solved below a limit."""

    candidate: Candidate
    placement: OpenPlacement
    steps: int = 0


def ranks_of(request: PlanRequest) -> Iterator[tuple[Choosing, tuple[Model, ...]]]:
    """Every choice of a request; those that differ in how a sequence is shared together."""
    refusals = Refusals()
    for choice in choices(request):
        every = parallels(choice[0], request.contexts, request.expert, request.ways, request.rows)
        for _, alike in groupby(every, key=lambda parallel: replace(parallel, way=request.ways[0])):
            ranks = [refusals.attempted(own, partial(rank_of, request, choice, own)) for own in alike]
            models = tuple(rank for rank in ranks if rank is not None)
            if models:
                yield choice, models
    if not request.offered:
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
    found = -(-microbatches // replicas) * np.maximum(sum(calls) / stages, max(calls, default=0.0))
    return float(np.min(found, initial=inf)) * (1 - ROUNDING)


def problem_of(request: PlanRequest, model: Model, costed: CostedLayers) -> PlacementProblem:
    """The placement problem of a rank."""

    def build() -> PlacementProblem:
        costs, rate = costed.costs(model), costed.hbm_bytes_per_s
        return rank_problem(request.job, model, request.setting, costs, hbm_bytes_per_s=rate)

    return costed.problem(model, request.job, build)


def planned(request: PlanRequest, watch: Watch | None = None) -> PlannedChoice:
    """The best choices of a job, each with its fastest plan; ``watch`` hears how many of all are bounded."""
    costed, prices = CostedLayers(request.setting), KnownPrices(request.prices)
    ranks = [_Ranks(number, *own) for number, own in enumerate(ranks_of(request))]
    costed.time_passes(model for alike in ranks for model in alike.models)
    heap: list[tuple[float, int, int, _Ranks | _Open]] = []
    for alike in ranks:
        least_s = min(passes_bound(request, model, costed) for model in alike.models)
        heapq.heappush(heap, (least_s, alike.number, 0, alike))
        if watch is not None:
            watch(alike.number + 1, len(ranks))
    zeros, bounded = (request.job.zero, *request.zeros), sum(len(alike.models) for alike in ranks) * len(request.shards)
    solved: list[tuple[int, Candidate]] = []
    short: list[tuple[int, Candidate]] = []
    tried: set[tuple[int, int]] = set()
    while heap:
        bound_s, number, place, own = heapq.heappop(heap)
        told_s = _told(solved) * (1 + TIE)
        if bound_s > told_s:
            break
        if isinstance(own, _Ranks):
            for at, candidate in enumerate(_problems(request, own, costed)):
                placement = OpenPlacement(candidate.problem, zeros, prices)
                sharper_s = max(bound_s, placement.bound_s)
                heapq.heappush(heap, (sharper_s, number, at, _Open(candidate, placement)))
            continue
        best_s = min((one.rank[0] for _, one in solved), default=bound_s)
        limit_s = min(told_s, STEPS[own.steps] * max(bound_s, best_s))
        fastest = own.placement.fastest(limit_s) if bound_s < inf else None
        tried |= {(number, place)} if bound_s < inf else set()
        if fastest is not None:
            solved.append((number, replace(own.candidate, problem=fastest[0], plan=fastest[1])))
        elif limit_s < told_s:
            heapq.heappush(heap, (limit_s, number, place, replace(own, steps=own.steps + 1)))
        elif told_s == inf:
            short.append((number, own.candidate))
    solved.sort(key=lambda pair: (pair[1].rank, pair[0]))
    short.sort(key=lambda pair: (pair[1].rank, pair[0]))
    return PlannedChoice(tuple(one for _, one in (*solved, *short)), bounded, len(tried), costed, prices)


def _told(solved: Sequence[tuple[int, Candidate]]) -> float:
    """What a plan may take to be among the best."""
    times = sorted(candidate.rank[0] for _, candidate in solved)
    return times[ALTERNATIVES_SHOWN - 1] if len(times) >= ALTERNATIVES_SHOWN else inf


def _problems(request: PlanRequest, own: _Ranks, costed: CostedLayers) -> Iterator[Candidate]:
    """The placement problems of choices, but of those that another one beats."""
    _, microbatch, spread, _ = own.choice
    requests = [request.sharded_over(ranks) for ranks in request.shards]
    problems = [problem_of(requests[0], model, costed) for model in own.models]
    for model, first in unbeaten(list(zip(own.models, problems, strict=True))):
        yield Candidate(microbatch, spread, model, first, None)
        for other in requests[1:]:
            yield Candidate(microbatch, spread, model, problem_of(other, model, costed), None)


def unbeaten(ranks: Sequence[tuple[Model, PlacementProblem]]) -> list[tuple[Model, PlacementProblem]]:
    """Ranks that differ in how their sequence is shared, but those that another beats: no layer of that takes longer or
    keeps more in any mode of recompute, so no plan of it is slower or needs more memory."""
    found: list[tuple[Model, PlacementProblem]] = []
    for model, problem in ranks:
        if not any(_beats(other, problem) for _, other in found):
            found = [(own, other) for own, other in found if not _beats(problem, other)] + [(model, problem)]
    return found


def _beats(one: PlacementProblem, other: PlacementProblem) -> bool:
    """Whether no layer of one problem takes or keeps more than the same one of the other; their gradients of weights
    take as long, as a family may count these against others."""
    alike = [(a.weight_s, a.parameter_bytes) for a in one.graphs[0].layers]
    if alike != [(b.weight_s, b.parameter_bytes) for b in other.graphs[0].layers]:
        return False
    layers = zip(_amounts(one), _amounts(other), strict=True)
    return all(len(a) == len(b) and all(x <= y for x, y in zip(a, b, strict=True)) for a, b in layers)


def _amounts(problem: PlacementProblem) -> Iterator[tuple[float, ...]]:
    """What the layers of a problem take and hold, in an order of its own."""
    for layer, extra in zip(problem.graphs[0].layers, problem.extras[0], strict=True):
        selective = extra.selective_bytes if extra.selective_bytes is not None else layer.activation_bytes
        full_s = extra.full_s if extra.full_s is not None else layer.forward_s
        yield (
            layer.forward_s,
            layer.backward_s,
            layer.activation_bytes,
            selective,
            extra.selective_s,
            full_s,
            extra.live_bytes,
            *(amount for own in extra.more for amount in (own.bytes, own.live_bytes, own.again_s)),
        )

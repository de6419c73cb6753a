"""The fastest split of a job over the devices of a cluster (``phaze plan``).

    for every microbatch, tensor width, with or without sequence parallelism, kind of attention that is requested:
        trace of one rank -> layer costs on the chip -> placement problem -> its fastest plan            (candidates)
    each at its best stage of ZeRO and number of chunks, as far as that is among the best               (best_first)

The least batch time of all is the answer; the others say what they lose by. It is proved: no split with these
microbatches, widths and sequence parallelism, any number of stages and replicas, any cuts, recompute chosen stage by
stage, either order of stages and replicas, any pipeline family that the stack runs with any number of chunks, any stage
of ZeRO unless one is given, has a shorter batch time by the formula. Ties go to the smaller width, then the larger
microbatch, then without sequence parallelism.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, product

from phaze.evaluate.baselines import experts_plan, rule_of_thumb, usual_width
from phaze.evaluate.flow import PlacementJob, rank_problem
from phaze.evaluate.layers import Setting
from phaze.evaluate.parallel_rank import Parallel, Refusals, parallels
from phaze.evaluate.prices import KnownPrices, LevelPrices
from phaze.graph.ir import Attention, Model
from phaze.graph.split_context import Way
from phaze.hardware.formats import Precision
from phaze.hardware.stack import Optimizer
from phaze.placement.plan import Plan
from phaze.placement.problem import Problem, RecomputeChoice
from phaze.placement.rules import Family
from phaze.placement.sharing import REPLICAS
from phaze.placement.solve import fastest_at, fastest_plan

# So many of the best choices are told apart; what could not be among them is not looked at closely.
TOLD = 5
ModelAt = Callable[[int, int, bool, Attention], Model]
Choosing = tuple[int, int, bool, Attention]
# The rank of a choice under further degrees.
RankAt = Callable[[Choosing, Parallel], Model]


@dataclass(frozen=True, slots=True)
class Request:
    """A job to plan: ``model_at`` gives the trace of one rank at (width, microbatch, sequence parallel, attention);
    ``attentions`` are those to try, ``headroom`` is the share of memory to leave free. ``experts`` is the published
    split (pipeline, data, tensor) of 1024 devices, where there is one. ``chunks`` to try beside 1; None: all that
    divide the blocks. ``zeros``: stages of ZeRO to try beside ``zero``, where it is free.
    ``wider``: usual widths that need more devices than there are. ``refused``: choices that the model cannot run, and
    why. ``contexts`` and ``expert``: how many ranks may share a sequence, in which ``ways``, or share out the experts,
    of whose tokens the fullest rank gets ``rows`` times the mean; ``rank_at`` gives the rank of a choice then.
    ``shards``: how many of the ranks with the same weights may share out state, 0: all."""

    model_at: ModelAt
    setting: Setting
    devices: int
    batch: int
    widths: tuple[int, ...]
    microbatches: tuple[int, ...]
    sequence_parallel: tuple[bool, ...]
    precision: Precision
    optimizer: Optimizer
    zero: int
    recompute: RecomputeChoice = "best"
    experts: tuple[int, int, int] | None = None
    chunks: tuple[int, ...] | None = None
    zeros: tuple[int, ...] = ()
    wider: tuple[int, ...] = ()
    refused: tuple[tuple[Choosing, str], ...] = ()
    attentions: tuple[Attention, ...] = ("eager",)
    headroom: float = 0.0
    contexts: tuple[int, ...] = (1,)
    expert: tuple[int, ...] = (1,)
    ways: tuple[Way, ...] = ("ring",)
    rows: float = 1.0
    rank_at: RankAt | None = None
    shards: tuple[int, ...] = (0,)

    @property
    def job(self) -> PlacementJob:
        """What all its placement problems have in common."""
        return PlacementJob(
            machine=self.setting.machine,
            devices=self.devices,
            batch=self.batch,
            precision=self.precision,
            optimizer=self.optimizer,
            zero=self.zero,
            recompute=self.recompute,
            chunks=self.chunks,
            headroom=self.headroom,
        )

    @property
    def prices(self) -> LevelPrices:
        """What collectives and transfers take."""
        return LevelPrices(self.setting.cluster, self.setting.basis)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fastest plan at one width, microbatch and kind of parallelism; None if nothing fits."""

    microbatch: int
    sequence_parallel: bool
    model: Model
    problem: Problem
    plan: Plan | None

    @property
    def rank(self) -> tuple[float, int, int, bool, str]:
        """What candidates are ordered by."""
        batch_s = float("inf") if self.plan is None else self.plan.batch_s
        return batch_s, self.model.tensor, -self.microbatch, self.sequence_parallel, self.model.attention


def problem_at(request: Request, model: Model, shard: int = 0) -> Problem:
    """The placement problem of a traced rank."""
    return rank_problem(replace(request.job, shard=shard), model, request.setting)


def choices(request: Request) -> Iterator[Choosing]:
    """Every (width, microbatch, sequence parallel, attention) to try, in order."""
    refused = {choice for choice, _ in request.refused}
    for width in request.widths:
        for microbatch in request.microbatches:
            for spread in request.sequence_parallel if width > 1 else (False,):
                for attention in request.attentions:
                    if (width, microbatch, spread, attention) not in refused:
                        yield width, microbatch, spread, attention


def _with(problem: Problem, families: tuple[Family, ...]) -> Problem:
    return replace(problem, rules=replace(problem.rules, families=families))


def candidates(request: Request) -> Iterator[Candidate]:
    """The fastest plan of every choice without chunks (where these are not all), at the request's own stage of ZeRO."""
    prices = KnownPrices(request.prices)
    refusals = Refusals()
    for choice in choices(request):
        every = parallels(choice[0], request.contexts, request.expert, request.ways, request.rows)
        for _, alike in groupby(every, key=lambda parallel: replace(parallel, way=request.ways[0])):
            ranks = [refusals.attempted(own, partial(_rank, request, choice, own)) for own in alike]
            unbeaten = _unbeaten(request, [rank for rank in ranks if rank is not None])
            for model, shard in product(unbeaten, request.shards):
                problem = problem_at(request, model, shard)
                few = problem.rules.families[: 2 if problem.rules.families[0].most_stages else 1]
                plan = fastest_plan(_with(problem, few), prices)
                yield Candidate(choice[1], choice[2], model, problem, plan)
    refusals.require()


def _unbeaten(request: Request, ranks: Sequence[Model]) -> list[Model]:
    """Ranks that differ in how their sequence is shared, but those that another beats: no layer of that takes longer or
    keeps more in any mode of recompute, so no plan of it is slower or needs more memory."""
    if len(ranks) < 2:
        return list(ranks)
    found: list[tuple[Model, Problem]] = []
    for model in ranks:
        problem = problem_at(request, model)
        if not any(_beats(other, problem) for _, other in found):
            found = [(own, other) for own, other in found if not _beats(problem, other)] + [(model, problem)]
    return [model for model, _ in found]


def _beats(one: Problem, other: Problem) -> bool:
    """Whether no layer of one problem takes or keeps more than the same one of the other; their gradients of weights
    take as long, as a family may count these against others."""
    alike = [(a.weight_s, a.parameter_bytes) for a in one.graphs[0].layers]
    if alike != [(b.weight_s, b.parameter_bytes) for b in other.graphs[0].layers]:
        return False
    layers = zip(_amounts(one), _amounts(other), strict=True)
    return all(len(a) == len(b) and all(x <= y for x, y in zip(a, b, strict=True)) for a, b in layers)


def _amounts(problem: Problem) -> Iterator[tuple[float, ...]]:
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


def _rank(request: Request, choice: Choosing, parallel: Parallel) -> Model:
    if (parallel.context, parallel.expert) == (1, 1) or request.rank_at is None:
        return request.model_at(*choice)
    return request.rank_at(choice, parallel)


def best_first(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, best first, each with the chunks and at the stage of ZeRO that are fastest, where that is among
    the best told: all are solved exactly, but only as far as they could be."""
    ranked, prices = sorted(found, key=lambda candidate: candidate.rank), KnownPrices(request.prices)
    for index, candidate in enumerate(ranked):
        told_s = sorted(other.rank[0] for other in ranked)[:TOLD][-1]
        zeros = (request.zero, *request.zeros)
        better = fastest_at(candidate.problem, zeros, prices, min(candidate.rank[0], told_s))
        if better is not None:
            ranked[index] = replace(candidate, problem=better[0], plan=better[1])
    return sorted(ranked, key=lambda candidate: candidate.rank)


def usual_plans(request: Request, found: Sequence[Candidate]) -> tuple[Candidate | None, Candidate | None]:
    """The rule of thumb and the experts' split, each at the best candidate that it allows; None if none fits."""
    width, prices = usual_width(request.widths, request.setting.cluster), request.prices
    found = [c for c in found if c.problem.sharing == REPLICAS]
    usual = [c for c in found if c.model.tensor == width]
    by_thumb = [replace(c, plan=rule_of_thumb(c.problem, c.model, prices)) for c in usual]
    split = request.experts
    experts = [] if split is None else [replace(c, plan=experts_plan(c.problem, c.model, split, prices)) for c in found]
    return _fastest(by_thumb), _fastest(experts)


def _fastest(plans: Sequence[Candidate]) -> Candidate | None:
    fitting = [candidate for candidate in plans if candidate.plan is not None]
    return min(fitting, key=lambda candidate: candidate.rank[0], default=None)

"""From what a person asks (names, counts) to a job that can be planned."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from phaze import units
from phaze.errors import InputError, unknown_name
from phaze.evaluate.families import stack_with_families
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.evaluate.layers import Setting
from phaze.evaluate.memo import Memo
from phaze.evaluate.parallel_rank import (
    Parallel,
    fullest_rows,
    parallel_rank,
    parallels,
    require_shared_out,
    traces_of,
    usual_context_degrees,
    usual_expert_degrees,
)
from phaze.evaluate.plan import Choosing, PlanRequest, choices
from phaze.evaluate.recomputing import mode_named, require_host, stack_recomputing
from phaze.evaluate.stated_overlap import stack_exchanging
from phaze.evaluate.training_run import Budget
from phaze.graph.ir import Attention, Model
from phaze.graph.mixture import experts_of
from phaze.graph.split_context import WAYS, Way
from phaze.graph.supply.point import RankPoint
from phaze.graph.supply.supply import GraphFamily, SuppliedGraph, Supply, supply_of
from phaze.graph.supply.tracing import Watch, silent
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import grown
from phaze.hardware.formats import known_precision
from phaze.hardware.library import load_built_stack, load_chip, load_cluster, require_links
from phaze.hardware.stack import Stack, require_priced
from phaze.options.arguments import share
from phaze.options.parallel import MICROBATCHES
from phaze.options.values import AttentionChoice
from phaze.placement.job import TrainingJob
from phaze.placement.problem import RecomputeChoice
from phaze.placement.rules import ZEROS

ATTENTIONS: tuple[Attention, ...] = ("eager", "fused")


@dataclass(frozen=True, slots=True)
class Job:
    """A training job to plan, by the names of its options; None stands for what is usual."""

    model: str
    sizes: Mapping[str, Any] | None
    chip: str
    devices: int
    batch: units.Batch
    cluster: str | None = None
    stack: str | None = None
    sequence: int | None = None
    microbatch: tuple[int, ...] | None = None
    tensor: tuple[int, ...] | None = None
    zero: int | None = None
    recompute: RecomputeChoice = "best"
    attention: AttentionChoice | None = None
    basis: Basis = "calibrated"
    chunks: tuple[int, ...] | None = None
    headroom: float = USUAL_HEADROOM
    budget: Budget | None = None
    fresh: bool = False
    allow_code: bool = False
    supply: Supply | None = None
    context: tuple[int, ...] | None = None
    expert: tuple[int, ...] | None = None
    precision: str | None = None
    shard: tuple[int, ...] | None = None
    family: tuple[str, ...] | None = None
    context_way: tuple[Way, ...] | None = None
    imbalance: float | None = None
    capacity: float | None = None
    expert_overlap: bool | None = None

    @property
    def rows(self) -> float:
        """Routed tokens of the fullest rank over the mean."""
        return fullest_rows(self.imbalance, self.capacity, "--")


def sequences_of(batch: units.Batch, sequence: int, where: str) -> int:
    """The sequences of a batch, which may be stated in tokens."""
    try:
        return units.sequences_in(batch, sequence)
    except ValueError as fault:
        raise InputError(where, str(fault), "give a larger batch") from None


def usual_microbatches(batch: int) -> tuple[int, ...]:
    """Those that are tried where none are given, and divide the batch."""
    return tuple(size for size in MICROBATCHES if size <= batch and batch % size == 0)


def attentions_of(requested: str | None, stack: Stack, where: str) -> tuple[Attention, ...]:
    """The kinds of attention to try: as the stack runs it if nothing is said, both for ``best``."""
    if requested is None:
        return (stack.attention,)
    if requested == "best":
        return ATTENTIONS
    if requested not in ATTENTIONS:
        raise unknown_name(where, "attention", requested, (*ATTENTIONS, "best"))
    return tuple(kind for kind in ATTENTIONS if kind == requested)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Ranks of a model at one sequence, each traced and split once."""

    supply: Supply
    length: int
    models: Memo = field(default_factory=Memo)
    split: Memo = field(default_factory=Memo)

    def point(self, choice: Choosing) -> RankPoint:
        """What a choice is traced as."""
        width, microbatch, spread, attention = choice
        return RankPoint(width, microbatch, self.length, attention, spread)

    def model(self, point: RankPoint) -> Model:
        """A rank as it is traced."""
        return self.models.take(point, lambda: self.supply.model(point))

    def at(self, choice: Choosing, parallel: Parallel) -> Model:
        """The rank of a choice under further degrees."""
        _, microbatch, spread, attention = choice
        common = self.split.take((microbatch, attention), Memo)

        def load(tensor: int, sequence: int, split: bool) -> Model:
            return self.model(RankPoint(tensor, microbatch, sequence, attention, split))

        return parallel_rank(load, parallel, self.length, spread, common)

    def prepared(self, request: PlanRequest, watch: Watch) -> PlanRequest:
        """The request with every choice at hand; what the model refuses is left out, with its
        reason."""
        points = {self.point(choice): choice for choice in choices(request)}
        failed = self.supply.prepare(list(points), watch)
        if len(failed) == len(points):
            raise failed[min(failed)]
        return replace(
            request, refused=tuple((points[point], str(failed[point])) for point in sorted(failed))
        )

    def prepare_degrees(self, request: PlanRequest, watch: Watch) -> None:
        """Have what the request's further degrees are made of at hand; what the model refuses is
        refused again where it is asked for."""
        points = [
            traced
            for choice in choices(request)
            for parallel in parallels(choice[0], request.contexts, request.expert)
            for traced in traces_of(self.point(choice), parallel)
        ]
        self.supply.prepare(list(dict.fromkeys(points)), watch)


def _require_ranges(job: Job) -> None:
    for option, count in (("--devices", job.devices), ("--batch", job.batch)):
        if isinstance(count, int) and count < 1:
            raise InputError(option, f"{count} is out of range", "it must be at least 1")
    if job.zero is not None and job.zero not in ZEROS:
        raise InputError("--zero", f"{job.zero} is out of range", "use 0, 1, 2 or 3")
    if job.shard and job.zero == 0:
        raise InputError(
            "--shard", "ZeRO 0 shards no state", "use --zero 1, 2 or 3, or leave --zero out"
        )
    if any(ranks < 0 or ranks == 1 for ranks in job.shard or ()):  # 0: all with the same weights
        raise InputError(
            "--shard", f"{min(job.shard or ())} is out of range", "give 2 ranks or more, or all"
        )


def _setting(job: Job, recompute: RecomputeChoice) -> Setting:
    """Chip, cluster and stack of a job, which must suit each other and what is recomputed."""
    chip = load_chip(job.chip)
    name = job.cluster or chip.cluster
    if name is None:
        raise InputError(
            "--cluster",
            f"the chip '{chip.name}' names no default cluster",
            "name one: phaze clusters",
        )
    cluster = grown(load_cluster(name, chip=chip), job.devices, "--devices")
    require_links(chip, job.chip, cluster, "--chip")
    stack = stack_recomputing(
        load_built_stack(job.stack or cluster.stack), recompute, "--recompute"
    )
    require_host(recompute, chip, "--recompute")
    stack = stack_with_families(stack, job.family, "--family")
    stack = stack_exchanging(stack, job.expert_overlap, "expert_overlap")
    where = "--precision" if job.precision is not None else f"the stack {stack.name}: precision"
    precision = require_priced(
        known_precision(job.precision or stack.precision, where), stack, chip, where
    )
    return Setting(chip, cluster, stack, job.basis, precision=precision)


def _supply(job: Job) -> Supply:
    if job.supply is not None:
        return job.supply
    if job.sizes is not None:
        return GraphFamily(job.model, job.sizes)
    return supply_of(job.model, allow_code=job.allow_code, fresh=job.fresh)


def _attentions(job: Job, supply: Supply, stack: Stack) -> tuple[Attention, ...]:
    """The kinds of attention to try; a graph that was traced before states its own."""
    if isinstance(supply, SuppliedGraph) and job.attention in (None, "best"):
        return (supply.graph.attention,)
    return attentions_of(job.attention, stack, "--attention")


def _zeros(job: Job) -> tuple[int, ...]:
    """The stages of ZeRO to choose from; state is sharded where ranks that shard it are given."""
    if job.zero is not None:
        return (job.zero,)
    return ZEROS[1:] if job.shard else ZEROS


def request_of(job: Job, watch: Watch = silent) -> PlanRequest:
    """The request with every name looked up; a model that is not built in is traced, and ``watch``
    sees how far."""
    _require_ranges(job)
    recompute = mode_named(job.recompute, "--recompute")
    setting, supply = _setting(job, recompute), _supply(job)
    stack = setting.stack
    widths = job.tensor or supply.facts.widths
    fitting = tuple(width for width in widths if width <= job.devices)
    if not fitting:
        raise InputError(
            "--tensor",
            f"none of {list(widths)} fits {job.devices} devices",
            "give a smaller degree",
        )
    ranks = Ranks(supply, supply.facts.length(job.sequence))
    batch = sequences_of(job.batch, ranks.length, "--batch")
    microbatches, spreads = supply.options(usual_microbatches(batch))
    placed = TrainingJob(
        setting.machine,
        job.devices,
        batch,
        stack.optimizer,
        _zeros(job),
        recompute,
        job.chunks,
        share("--headroom", job.headroom),
        job.shard or (0,),
    )
    request = PlanRequest(
        model_at=lambda *choice: ranks.model(ranks.point(choice)),
        setting=setting,
        job=placed,
        widths=fitting,
        microbatches=job.microbatch or microbatches,
        sequence_parallel=spreads,
        wider_widths=tuple(width for width in widths if width > job.devices),
        experts=supply.experts,
        attentions=_attentions(job, supply, stack),
        contexts=job.context or (1,),
        expert=job.expert or (1,),
        ways=job.context_way or WAYS,
        rows=job.rows,
        rank_at=ranks.at,
    )
    with supply.kept_open():
        request = ranks.prepared(request, watch)
        if stack.stages != "icml24" and not job.shard:
            request = _with_usual_degrees(request, job, ranks.length)
        ranks.prepare_degrees(request, watch)
    require_shared_out(job.rows, request.expert, "--imbalance")
    return request


def _with_usual_degrees(request: PlanRequest, job: Job, length: int) -> PlanRequest:
    """The request with the degrees that are tried where none are said; none beside those of the
    other kind that are."""
    with_degrees = request
    if job.context is None:
        with_degrees = replace(
            with_degrees, contexts=usual_context_degrees(length, request.job.devices)
        )
    first = next(choices(request), None)
    if job.expert is None and first is not None:
        experts = experts_of(request.model_at(*first).layers)
        with_degrees = replace(
            with_degrees, expert=usual_expert_degrees(experts, request.job.devices)
        )
    if with_degrees == request:
        return request
    return replace(with_degrees, free_degrees=job.context is None and job.expert is None)

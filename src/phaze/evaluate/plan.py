"""The fastest split of a job over the devices of a cluster (``phaze plan``).

    for every microbatch, tensor width, with or without sequence parallelism, kind of attention that is asked for:
        trace of one rank -> layer costs on the chip -> exact placement under rules ``cluster``
    the least batch time of all is the answer; the others say what they lose by

What is proved: no split with these microbatches, widths and sequence parallelism, any number of stages and copies, any
cuts, recompute chosen stage by stage, either order of stages and copies, any stage of ZeRO unless one is asked for, has
a shorter batch time by the formula without interleaving. Chunks are then evaluated
(:mod:`phaze.evaluate.interleave`). Ties go to the smaller width, then the larger microbatch, then without sequence
parallelism.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from phaze.cost.memory import stack_state
from phaze.errors import InputError
from phaze.evaluate.fixed import SENT_BYTES, even_cuts, placed_layers
from phaze.evaluate.headroom import to_fill
from phaze.evaluate.layers import Setting, layer_costs
from phaze.evaluate.prices import LevelPrices
from phaze.graph.ir import Attention, Model
from phaze.hardware.stack import Optimizer, Precision
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import fits, price
from phaze.placement.cluster_problem import MODES, Choice, ClusterProblem, Mode
from phaze.placement.cluster_solve import fastest_plan
from phaze.placement.problem import Plan

# So many of the best choices are told apart; what could not be among them is not looked at closely.
TOLD = 5
ModelAt = Callable[[int, int, bool, Attention], Model]
Choosing = tuple[int, int, bool, Attention]


@dataclass(frozen=True, slots=True)
class Request:
    """A job to plan: ``model_at`` gives the trace of one rank at (width, microbatch, sequence parallel, attention);
    ``attentions`` are those to try, ``headroom`` is the share of memory to leave free. ``experts`` is the published
    split (pipeline, data, tensor) of 1024 devices, where there is one. ``chunks`` to evaluate beside 1; None: all that
    divide. ``zeros``: stages of ZeRO to try beside ``zero``, where it is free.
    ``wider``: usual widths that need more devices than there are. ``refused``: choices that the model cannot run, and
    why."""

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
    recompute: Choice = "best"
    experts: tuple[int, int, int] | None = None
    chunks: tuple[int, ...] | None = None
    zeros: tuple[int, ...] = ()
    wider: tuple[int, ...] = ()
    refused: tuple[tuple[Choosing, str], ...] = ()
    attentions: tuple[Attention, ...] = ("eager",)
    headroom: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fastest plan at one width, microbatch and kind of parallelism; None if nothing fits. Where an interleaved one
    is faster, ``proved`` is the fastest without chunks."""

    microbatch: int
    sequence_parallel: bool
    model: Model
    problem: ClusterProblem
    plan: Plan | None
    proved: Plan | None = None

    @property
    def proved_s(self) -> float:
        """What no plan of this choice without chunks undercuts."""
        found = self.proved or self.plan
        return float("inf") if found is None else found.batch_s

    @property
    def rank(self) -> tuple[float, int, int, bool, str]:
        """What candidates are ordered by."""
        batch_s = float("inf") if self.plan is None else self.plan.batch_s
        return batch_s, self.model.tensor, -self.microbatch, self.sequence_parallel, self.model.attention


def problem_at(request: Request, model: Model) -> ClusterProblem:
    """The placement problem of a traced rank."""
    setting = request.setting
    graph, extras = placed_layers(model, layer_costs(model, setting))
    return ClusterProblem(
        devices=request.devices,
        hbm_bytes=to_fill(setting.chip.hbm.size_bytes, request.headroom),
        microbatches=-(-request.batch // model.microbatch),
        recompute=request.recompute,
        schedule="1f1b",
        zero=request.zero,
        state=stack_state(request.precision, request.optimizer, setting.stack),
        sent_bytes=SENT_BYTES,
        hbm_bytes_per_s=setting.hbm_bytes_per_s,
        cluster=setting.cluster,
        stack=setting.stack,
        graphs=(graph,),
        extras=(extras,),
    )


def choices(request: Request) -> Iterator[Choosing]:
    """Every (width, microbatch, sequence parallel, attention) to try, in order."""
    refused = {choice for choice, _ in request.refused}
    for width in request.widths:
        for microbatch in request.microbatches:
            for spread in request.sequence_parallel if width > 1 else (False,):
                for attention in request.attentions:
                    if (width, microbatch, spread, attention) not in refused:
                        yield width, microbatch, spread, attention


def candidates(request: Request) -> Iterator[Candidate]:
    """The fastest plan of every choice."""
    prices = LevelPrices(request.setting.cluster, request.setting.basis)
    for width, microbatch, spread, attention in choices(request):
        model = request.model_at(width, microbatch, spread, attention)
        problem = problem_at(request, model)
        yield Candidate(microbatch, spread, model, problem, fastest_plan(problem, prices))


def with_zeros(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, best first, each at the stage of ZeRO that is fastest, where that is among the best told: every
    other stage is solved exactly too, but only as far as it could be."""
    prices = LevelPrices(request.setting.cluster, request.setting.basis)
    ranked = sorted(found, key=lambda one: one.rank)
    for zero in request.zeros:
        for at, candidate in enumerate(ranked):
            told_s = sorted(one.rank[0] for one in ranked)[:TOLD][-1]
            problem = replace(candidate.problem, zero=zero)
            plan = fastest_plan(problem, prices, min(candidate.rank[0], told_s))
            if plan is not None:
                ranked[at] = replace(candidate, problem=problem, plan=plan)
    return sorted(ranked, key=lambda one: one.rank)


def rule_of_thumb(request: Request, found: list[Candidate]) -> Plan | None:
    """Tensor groups as wide as a node, the fewest stages that fit, copies with the rest; recompute only if it must."""
    node = request.setting.cluster.levels[0].size
    widths = [width for width in request.widths if width <= node]
    if not widths:
        return None
    prices = LevelPrices(request.setting.cluster, request.setting.basis)
    usual = [c for c in found if c.model.tensor == max(widths) and c.microbatch == min(request.microbatches)]
    for candidate in usual[:1]:
        problem = candidate.problem
        for mode in MODES:
            plan = _shallowest(replace(problem, recompute=mode), candidate.model, mode, prices)
            if plan is not None:
                return plan
    return None


def experts_plan(request: Request, found: list[Candidate]) -> Plan | None:
    """The experts' split of a named model: its pipeline and width, as many copies as the devices allow, blocks cut
    evenly; the best microbatch and the best one mode of recompute that fit. None if there is none or none fits."""
    if request.experts is None:
        return None
    pipeline, _, tensor = request.experts
    prices = LevelPrices(request.setting.cluster, request.setting.basis)
    best: Plan | None = None
    for candidate in found:
        data = min(request.devices // (pipeline * tensor), candidate.problem.microbatches)
        if candidate.model.tensor != tensor or data < 1:
            continue
        for mode in MODES:
            problem = replace(candidate.problem, recompute=mode)
            shape = Shape(tensor, pipeline, data, "pipeline")
            plan = price(problem, shape, even_cuts(candidate.model, pipeline, mode), prices)
            if fits(problem, plan) and (best is None or plan.batch_s < best.batch_s):
                best = plan
    return best


def _shallowest(problem: ClusterProblem, model: Model, mode: Mode, prices: LevelPrices) -> Plan | None:
    stages = 1
    while True:
        data = min(problem.devices // (stages * model.tensor), problem.microbatches)
        if data < 1:
            return None
        try:
            cuts = even_cuts(model, stages, mode)
        except InputError:
            return None
        plan = price(problem, Shape(model.tensor, stages, data, "pipeline"), cuts, prices)
        if fits(problem, plan):
            return plan
        stages *= 2

"""The price of a plan: every figure that follows from its stages, and the rules that it must keep
(docs/placement.md).

    work       W = sum f, or sum b + sum g (what runs again); under the published rules no less than
               |e| / link + f_k + ... + f_n of an edge that enters at the k-th layer, or + b_1 + ...
               + b_k of one that leaves there (:func:`.stages.stage_passes`)
    exposed    of ZeRO's collectives v: v - min(h v, W), h what does not slow the work, of the
               whole stage or layer by layer
    pass       F or R = W + exposed + transfer + (chunks - 1) chunk start
    time       F + R - what other chunks hide of transfers
               (:func:`.plans.sent_behind`)
    pace       greatest time; where all forwards run first the greatest F + the greatest R
    batch      laps pace + share sum D + synchronisation + optimizer step + ties
               (:mod:`.families`)

Synchronisation and step are those of the stage where both together take longest, or of the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from .job import Job, Shape, Size, between_steps, step_bytes, synchronised
from .plan_graph import LayerSeconds, PlanGraph
from .plans import (
    StageBytes,
    gathered,
    moves,
    reduced_block,
    sent_behind,
    stage_bytes,
    tied_seconds,
)
from .stages import stage_of, stage_passes

Floats = NDArray[np.float64]
NOT_ONCE = "the stages do not hold every layer once, or one is empty"


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan as it is stated: its degrees, and of each stage the calls and the mode; microbatches
    of a replica."""

    shape: Shape
    stages: tuple[tuple[tuple[int, ...], str], ...]
    rounds: int

    @property
    def owner(self) -> dict[int, int]:
        """The stage of every call."""
        return {call: at for at, (calls, _) in enumerate(self.stages) for call in calls}


@dataclass(frozen=True, slots=True)
class StagePrice:
    """A stage: seconds of a microbatch, bytes of a device, devices.

    ``layers``: forward, backward and what runs again; ``exposed`` of ZeRO's collectives; ``passes``
    with all that they wait for, ``hidden``: what other chunks hide of that; ``sent``: transfers
    that run behind other chunks; ``unmet``: what exchanges of experts' tokens add to the time with
    no other microbatch beside them.
    """

    layers: tuple[float, float, float]
    exposed: float
    passes: tuple[float, float]
    sent: tuple[float, float]
    hidden: float
    weight: float
    unmet: float
    held: StageBytes
    memory: Mapping[str, float]
    devices: int

    @property
    def time(self) -> float:
        """Seconds at the pace of the pipeline."""
        return fsum([*self.passes, -self.hidden])

    @property
    def need(self) -> float:
        """Bytes of a device."""
        return fsum(self.memory.values())


@dataclass(frozen=True, slots=True)
class PlanPrice:
    """A plan: its stages, and seconds of the pipeline and of the end of a batch."""

    stages: tuple[StagePrice, ...]
    pipeline: float
    synchronisation: float
    step: float
    tied: float

    @property
    def end(self) -> float:
        """Seconds after the last backward pass."""
        return fsum([self.synchronisation, self.step, self.tied])

    @property
    def batch(self) -> float:
        """Seconds of a batch."""
        return fsum([self.pipeline, self.synchronisation, self.step, self.tied])

    def breakdown(self, rounds: int, stage: StagePrice) -> dict[str, float]:
        """The seconds of a batch by what they are spent on, seen from one of the slowest stages."""
        forward, backward, again = stage.layers
        waited = fsum([stage.time, -forward, -backward, -again, -stage.exposed])
        return {
            "forward_s": rounds * forward,
            "backward_s": rounds * backward,
            "recompute_s": rounds * again,
            "transfer_s": rounds * waited,
            "synchronisation_s": self.synchronisation + rounds * stage.exposed,
            "optimizer_s": self.step,
            "tied_s": self.tied,
            "bubble_s": self.pipeline - rounds * stage.time,
        }


def holds_all(graph: PlanGraph, stages: Sequence[tuple[tuple[int, ...], str]]) -> bool:
    """Whether the stages hold every call once, and none is empty."""
    every = sorted(call for calls, _ in stages for call in calls)
    return every == list(range(len(graph.calls))) and all(calls for calls, _ in stages)


def broken_rules(graph: PlanGraph, job: Job, plan: Plan, modes: Sequence[str]) -> Iterator[str]:
    """What a plan may not do; ``modes`` that a stage may have."""
    shape, owner = plan.shape, plan.owner
    if not holds_all(graph, plan.stages):
        yield NOT_ONCE
        return
    if any(owner[tail] > owner[head] for tail, head, _ in graph.edges):
        yield "an edge runs backwards"
    for at, (_, mode) in enumerate(plan.stages):
        may = ("none",) if at == shape.stages - 1 and not job.stack.last_recomputes else modes
        if not job.stack.keeps(mode, graph.group):
            yield f"stage {at + 1} would exchange experts' tokens again"
        if mode not in may or mode not in graph.names or (shape.family.split and mode != "none"):
            yield f"stage {at + 1} may not have the mode {mode[:40]!r}"
    if shape.data > job.microbatches(graph.microbatch):
        yield "a replica has no microbatch"
    if not shape.allowed:
        yield "the ranks of a stage cannot shard experts, or state, in such groups"
    if not shape.family.runs(plan.rounds, shape.stages):
        yield f"{shape.family.name} cannot run so many microbatches in so many stages"


def in_even_chunks(graph: PlanGraph, plan: Plan) -> bool:
    """Whether every chunk of a stage has as many blocks."""
    chunks = plan.shape.family.chunks
    counts = [sum(graph.block[call] for call in calls) for calls, _ in plan.stages]
    return chunks == 1 or all(count > 0 and count % chunks == 0 for count in counts)


def _exposed(job: Job, work: Sequence[float], whole: float, waits: Sequence[float]) -> float:
    """What a pass does not hide of ZeRO's collectives: layer by layer where they run ahead, else of
    the stage."""
    hidden = 1 - job.stack.sharding
    if job.stack.paired:
        return fsum(wait - min(hidden * wait, own) for own, wait in zip(work, waits, strict=True))
    return fsum(waits) - min(hidden * fsum(waits), whole)


def _stage(
    graph: PlanGraph, job: Job, plan: Plan, at: int, times: LayerSeconds, moved: Sequence[float],
    gathers: tuple[Floats, Floats],
) -> StagePrice:  # fmt: skip
    shape, family = plan.shape, plan.shape.family
    calls, name = sorted(plan.stages[at][0]), plan.stages[at][1]
    mode, kinds = graph.names.index(name), [graph.calls[call] for call in calls]
    forward = [float(times.forward[kind, 0]) for kind in kinds]
    backward = [float(times.backward[kind, 0]) for kind in kinds]
    again = [
        float(times.again[mode, graph.calls[call], 0]) if graph.recomputes(call) else 0.0
        for call in calls
    ]
    layers = fsum(forward), fsum(backward), fsum(again)
    ahead, behind = layers[0], layers[1] + layers[2]
    if job.stack.arriving:
        rows = times.forward, times.backward, times.again[mode]
        ahead, behind = (
            float(own[0]) for own in stage_passes(stage_of(graph, calls), *rows, job.stack.link)
        )
    both = [own + more for own, more in zip(backward, again, strict=True)]
    waits = [[float(own[kind]) for kind in kinds] for own in gathers]
    exposed = _exposed(job, forward, ahead, waits[0]), _exposed(job, both, behind, waits[1])
    unmet = fsum(float(times.waited[kind, 0]) for kind in kinds)
    alone = family.unmet(plan.rounds, shape.stages)
    behind += alone * unmet
    first, saved = sent_behind(job, shape, plan.rounds, ahead + exposed[0], moved[at])
    last, more_saved = sent_behind(job, shape, plan.rounds, behind + exposed[1], moved[at + 1])
    beside = family.hides(job.stack.overlapped)
    held = stage_bytes(graph, job, calls, mode)
    flying = family.flying(plan.rounds, shape.stages - at, shape.stages)
    whole = not job.stack.unsplit or any(graph.layers[kind].sharded for kind in kinds)
    return StagePrice(
        layers=layers,
        exposed=fsum(exposed),
        passes=(float(first), float(last)),
        sent=(moved[at], moved[at + 1]) if beside else (0.0, 0.0),
        hidden=float(saved + more_saved),
        weight=fsum(float(times.weight[kind, 0]) for kind in kinds),
        unmet=(1 - alone) * unmet,
        held=held,
        memory={term: float(size) for term, size in held.terms(job, shape, flying).items()},
        devices=graph.width if whole else 1,
    )


def _ends(
    graph: PlanGraph,
    job: Job,
    shape: Shape,
    stages: Sequence[StagePrice],
    times: LayerSeconds,
    hbm_rate: float,
) -> tuple[float, float]:
    """Synchronisation and optimizer step of the stage whose end counts."""
    counted = stages[:1] if job.stack.first_end else stages
    pairs = [stage.held.size(job) for stage in counted]
    size: Size = (
        np.array([float(dense) for dense, _ in pairs]),
        np.array([float(experts) for _, experts in pairs]),
    )
    seconds = synchronised(job, shape, size, graph.low, reduced_block(graph, job, times))
    steps = step_bytes(job, shape, size) / hbm_rate + between_steps(job, shape)
    longest = int(np.argmax(seconds + steps))
    return float(seconds[longest]), float(steps[longest])


def price_of(
    graph: PlanGraph, job: Job, plan: Plan, times: LayerSeconds, hbm_rate: float
) -> PlanPrice:
    """Every figure of a plan on one chip; ``hbm_rate``: bytes a second that an optimizer step
    reaches."""
    shape, family = plan.shape, plan.shape.family
    moved, gathers = moves(graph, job, shape, plan.owner), gathered(graph, job, shape)
    stages = tuple(
        _stage(graph, job, plan, at, times, moved, gathers) for at in range(shape.stages)
    )
    forward = np.array([stage.passes[0] for stage in stages])
    backward = np.array([stage.passes[1] for stage in stages])
    weight = np.array([stage.weight for stage in stages])
    pace = max(stage.time for stage in stages)
    if family.apart:
        pace = float(forward.max() + backward.max())
    filled = fsum(family.filled(forward, backward, weight, shape.stages).tolist())
    filled += fsum(stage.unmet for stage in stages)
    pipeline = family.laps(plan.rounds, shape.stages) * pace + family.share(shape.stages) * filled
    synchronisation, step = _ends(graph, job, shape, stages, times, hbm_rate)
    return PlanPrice(
        stages, pipeline, synchronisation, step, tied_seconds(graph, job, shape, plan.owner)
    )

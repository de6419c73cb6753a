"""The price of a plan under rules cluster, after every rule has been checked (docs/placement.md, Rules cluster)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .families import Family, families_of
from .job import Job, Shape, Size, boundary_levels, over_replicas, step_bytes, synchronised
from .layers import LayerJoules, LayerSeconds, RunGraph
from .network import collective, transfer
from .reading import listed, require, whole

Floats = NDArray[np.float64]
PLAN = ("graph", "recompute", "zero", "data", "order", "family", "chunks", "stages")


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Parameters of a stage, those of experts among them, the most dense ones that are held whole at once and the most
    experts of a layer; bytes of buffers, kept and live ones of a mode; weights that are not trained, dense ones and the
    most of them that are whole at once, experts and the most of a layer; of one stage or of several."""

    parameters: float | Floats
    experts: float | Floats
    largest: float | Floats
    most_experts: float | Floats
    buffers: float | Floats
    kept: float | Floats
    live: float | Floats
    frozen: float | Floats
    frozen_largest: float | Floats
    frozen_experts: float | Floats
    frozen_most: float | Floats

    def needed(self, job: Job, shape: Shape, flying: float | Floats) -> Floats:
        """Bytes on a device beside the reserve."""
        total, held = np.zeros(()), job.held
        dense = self.parameters - self.experts
        parts = (dense, self.largest, shape.sharers), (self.experts, self.most_experts, max(1.0, shape.experts_alike))
        for each, stage, working in ((held.weight, 3, True), (held.gradient, 2, True), (held.optimizer, 1, False)):
            for count, largest, ranks in parts:
                shared = ranks if shape.zero >= stage else 1
                total = total + each * (count / shared + (largest * (1 - 1 / shared) if working else 0.0))
        still = (self.frozen, self.frozen_largest), (self.frozen_experts, self.frozen_most)
        for (count, largest), (_, _, ranks) in zip(still, parts, strict=True):
            total = total + held.weight * (largest + (count - largest) / (ranks if shape.zero == 3 else 1))
        return np.asarray(total + self.buffers + flying * self.kept + self.live)

    def size(self, job: Job) -> Size:
        """Bytes of dense parameters and of experts."""
        return np.asarray(job.held.sent * (self.parameters - self.experts)), np.asarray(job.held.sent * self.experts)


def layer_bytes(graph: RunGraph, call: int, mode: int) -> tuple[float, float]:
    """What a call keeps for each microbatch, and holds beside that while its backward runs. Only blocks recompute; a
    full recompute keeps what enters."""
    layer, last = graph.layers[graph.calls[call]], len(graph.names) - 1
    every = float(layer.modes[0].kept)
    if mode == last:
        kept = sum(size for _, head, size in graph.edges if head == call)
        return kept, max(0.0, every - kept) + layer.logit_bytes
    if mode == 0 or not graph.block[call]:
        return every, float(layer.logit_bytes)
    own = layer.modes[mode]
    kept = min(float(own.kept), every)
    return kept, (every - kept if mode == 1 else float(own.live)) + layer.logit_bytes


def stage_bytes(graph: RunGraph, job: Job, calls: Sequence[int], mode: int) -> StageBytes:
    """The bytes of a stage, its calls in the order in which they run."""
    inside, own = set(calls), [graph.layers[graph.calls[call]] for call in calls]
    twice = sum(tie.elements * max(0, len(inside & set(tie.calls)) - 1) for tie in graph.ties)
    dense, experts = [layer.parameters - layer.experts for layer in own], [layer.experts for layer in own]
    largest = max(dense)
    paired = job.stack.paired and not any(layer.experts or layer.frozen_experts for layer in graph.layers)
    if paired:
        largest = max(a + b for a, b in zip(dense, [*dense[1:], 0], strict=True))
    still = [layer.frozen - layer.frozen_experts for layer in own]
    again = sum(tie.elements * max(0, len(inside & set(tie.calls)) - 1) for tie in graph.still)
    frozen = sum(still) - again
    held = [layer_bytes(graph, call, mode) for call in calls]
    buffers = sum(graph.layers[kind].buffer_bytes for kind in {graph.calls[call] for call in calls})
    return StageBytes(
        sum(dense) + sum(experts) - twice, sum(experts), largest, max(experts), buffers,
        sum(kept for kept, _ in held), max(live for _, live in held),
        frozen, min(frozen, max(still) * (2 if paired else 1)),
        sum(layer.frozen_experts for layer in own), max(layer.frozen_experts for layer in own),
    )  # fmt: skip


def crossing_bytes(graph: RunGraph, owner: Mapping[int, int], boundary: int) -> float:
    """Bytes of all edges from before a boundary to behind it."""
    return sum(size for tail, head, size in graph.edges if owner[tail] <= boundary < owner[head])


def around_bytes(graph: RunGraph) -> float:
    """The most bytes between two blocks in the order of calls."""
    blocks = [at for at, own in enumerate(graph.block) if own and graph.equal]
    first, last = (blocks[0], blocks[-1]) if blocks else (0, len(graph.calls) - 1)
    cuts = [sum(s for tail, head, s in graph.edges if tail <= at < head) for at in range(first, max(last, 1))]
    return max(cuts, default=0.0)


def moves(graph: RunGraph, job: Job, shape: Shape, owner: Mapping[int, int]) -> list[float]:
    """Seconds of a microbatch's transfers at every boundary, a pass; first and last the way around."""
    lanes, levels = shape.tensor if job.stack.scatters else 1, boundary_levels(job.network, shape)
    chunks = shape.family.chunks

    def seconds(level: int, size: float) -> float:
        return float(transfer(job.network, level, np.array([size / lanes]))[0])

    inner = [chunks * seconds(level, crossing_bytes(graph, owner, at)) for at, level in enumerate(levels)]
    goes = chunks > 1 and not shape.family.folded
    around = (chunks - 1) * seconds(max([0, *levels]), around_bytes(graph)) if goes else 0.0
    return [around, *inner, around]


def sent_behind(
    job: Job, shape: Shape, rounds: int, work: float | Floats, sent: float | Floats
) -> tuple[Floats, Floats]:
    """A pass that waits for its transfers and for its chunks to start, and what of that other chunks hide: of work and
    transfers the shorter, as often as there are other chunks."""
    shown = shape.family.shown(job.stack.overlapped, rounds, shape.stages)
    waited = work + (sent + (shape.family.chunks - 1) * job.stack.chunk_start)
    return np.asarray(waited), np.asarray((1 - shown) * np.minimum(work, sent))


def reduced_block(graph: RunGraph, job: Job, seconds: LayerSeconds) -> tuple[float, float, Floats]:
    """Bytes, those of experts among them, and backward seconds of the layers in which a reduction is counted: a block,
    or the mean of all."""
    blocks = [graph.calls[at] for at, own in enumerate(graph.block) if own and graph.equal][:1] or list(graph.calls)
    sizes, experts = (
        job.held.sent * sum(getattr(graph.layers[kind], name) for kind in blocks) / len(blocks)
        for name in ("parameters", "experts")
    )
    return sizes, experts, sum(seconds.backward[kind] for kind in blocks) / len(blocks)


def gathered(graph: RunGraph, job: Job, shape: Shape) -> tuple[Floats, Floats]:
    """Seconds of ZeRO's collectives of each distinct layer's parameters for a microbatch, forward and backward."""
    nothing = np.zeros(len(graph.layers))
    if shape.zero < 2:
        return nothing, nothing
    size = (
        np.array([job.held.sent * (layer.parameters - layer.experts) for layer in graph.layers]),
        np.array([job.held.sent * float(layer.experts) for layer in graph.layers]),
    )
    scattered = over_replicas(job, shape, "all_gather", size, job.held.wire)
    if shape.zero == 2:
        return nothing, scattered
    whole_size = (
        size[0] + np.array([job.held.sent * (layer.frozen - layer.frozen_experts) for layer in graph.layers]),
        size[1] + np.array([job.held.sent * float(layer.frozen_experts) for layer in graph.layers]),
    )
    weights = over_replicas(job, shape, "all_gather", whole_size, graph.low)
    return weights, weights + scattered


def exposed(job: Job, work: Sequence[float], waits: Sequence[float]) -> float:
    """A pass of layers with the collectives of ZeRO that it does not hide, layer by layer where they run ahead."""
    rows = zip(work, waits, strict=True) if job.stack.paired else [(sum(work), sum(waits))]
    return sum(max(own + (1 - job.stack.hidden) * wait, wait) for own, wait in rows)


def tied_seconds(graph: RunGraph, job: Job, shape: Shape, owner: Mapping[int, int]) -> float:
    """All-reduces of parameters that calls of several stages share."""
    outer, total = max([0, *boundary_levels(job.network, shape)]), 0.0
    for tie in graph.ties:
        if len({owner[call] for call in tie.calls}) > 1:
            members = tuple(len(tie.calls) if at == outer else 1 for at in range(len(job.network.levels)))
            size = np.array([job.held.wire * job.held.sent * tie.elements])
            total += float(collective(job.network, "all_reduce", members, size)[0])
    return total


def plan_joules(graph: RunGraph, job: Job, plan: Mapping[str, Any], spent: LayerJoules, hbm_j: float) -> float:
    """The joules of a batch of a plan on one chip, beyond static power; its rules are checked elsewhere."""
    layers, size = 0.0, [0.0, 0.0]
    for calls, name in plan["stages"]:
        mode = graph.names.index(name)
        for call in calls:
            kind = graph.calls[call]
            layers += float(spent.both[kind, 0]) + (float(spent.again[mode, kind, 0]) if graph.block[call] else 0.0)
        held = stage_bytes(graph, job, sorted(calls), mode)
        size = [size[0] + float(held.parameters - held.experts), size[1] + float(held.experts)]
    degrees = int(plan["zero"]), int(plan["data"]), int(plan.get("shard", 0))
    stepped = stepped_parameters(graph, degrees, size[0], size[1])
    return job.microbatches(graph.microbatch) * graph.width * layers + stepped * job.held.update * hbm_j


def stepped_parameters(graph: RunGraph, degrees: tuple[int, int, int], dense: float, experts: float) -> float:
    """Parameters that all devices together step, at a stage of ZeRO with so many replicas and ranks that share out."""
    zero, data, shard = degrees
    groups = max(1.0, graph.context * data / shard) if shard else 1.0
    return graph.tensor * groups * dense + graph.group * experts if zero else graph.width * data * (dense + experts)


def allowed_families(graph: RunGraph, job: Job) -> list[Family]:
    """Families that plans may have."""
    return families_of(job.stack.families, sum(graph.block) if graph.equal else 0, job.chunks)


def _shape(graph: RunGraph, job: Job, plan: Mapping[str, Any], zeros: Sequence[int], rounds: int) -> Shape:
    name, chunks = plan["family"], whole(plan["chunks"], "answer.chunks", 1)
    own = [family for family in allowed_families(graph, job) if (family.name, family.chunks) == (name, chunks)]
    require(bool(own), "answer.family: the stack has no such one with so many chunks")
    shape = Shape(
        graph.tensor, len(plan["stages"]), whole(plan["data"], "answer.data", 1), str(plan["order"]), own[0],
        whole(plan["zero"], "answer.zero", 0, 3), graph.context, graph.group,
        whole(plan.get("shard", 0), "answer.shard"),
    )  # fmt: skip
    used = shape.width * shape.stages * shape.data
    require(used <= job.devices, f"answer: it takes {used} of {job.devices} devices")
    require(shape.data <= job.microbatches(graph.microbatch), "answer: a replica has no microbatch")
    require(shape.order in ("pipeline", "data"), "answer.order: neither pipeline nor data")
    require(shape.zero in zeros, "answer.zero: the problem has no such configuration")
    require(shape.allowed, "answer: the ranks of a stage cannot shard experts, or state, so")
    require(own[0].runs(rounds, shape.stages), f"answer.family: {name} cannot run so many microbatches")
    return shape


def plan_batch(
    graph: RunGraph, job: Job, plan: Mapping[str, Any], way: tuple[str, Sequence[int]], hbm: tuple[float, float],
    times: LayerSeconds,
) -> float:  # fmt: skip
    """The batch time of a plan on one chip; ``way``: its recompute and stages of ZeRO, ``hbm``: bytes, and bytes a
    second that vector work reaches."""
    stages = listed(plan["stages"], "answer.stages")
    data = whole(plan["data"], "answer.data", 1)
    rounds = -(-job.microbatches(graph.microbatch) // data)
    shape = _shape(graph, job, plan, way[1], rounds)
    family, count = shape.family, shape.stages
    calls = [[whole(c, "answer.stages", 0, len(graph.calls) - 1) for c in listed(s[0], "stages")] for s in stages]
    flat = [call for own in calls for call in own]
    require(sorted(flat) == list(range(len(graph.calls))) and all(calls), "answer: a layer is in no stage, or in two")
    owner = {call: at for at, own in enumerate(calls) for call in own}
    require(all(owner[a] <= owner[b] for a, b, _ in graph.edges), "answer: an edge leads to a stage before it")
    moved, waits = moves(graph, job, shape, owner), gathered(graph, job, shape)
    passes, hidden, held = np.zeros((3, count)), np.zeros(count), list[StageBytes]()
    for at, (own, (_, name)) in enumerate(zip(calls, stages, strict=True)):
        may = name in graph.names and (way[0] == "best" or name == way[0]) and (name == "none" or not family.split)
        require(may, f"answer: stage {at + 1} may not have the mode {str(name)[:40]!r}")
        mode, kinds = graph.names.index(name), [graph.calls[call] for call in own]
        held.append(stage_bytes(graph, job, sorted(own), mode))
        blocks = sum(graph.block[call] for call in own)
        even = family.chunks == 1 or (blocks > 0 and blocks % family.chunks == 0)
        require(even, "answer.chunks: a stage has uneven ones")
        need = held[-1].needed(job, shape, family.flying(rounds, count - at, count))
        fits = float(need) <= job.room(hbm[0])
        require(fits, f"answer: stage {at + 1} does not fit into {hbm[0] / 2**30:g} GiB")
        again = [float(times.again[mode, graph.calls[call], 0]) if graph.block[call] else 0.0 for call in own]
        forward = [float(times.forward[kind, 0]) for kind in kinds]
        backward = [float(times.backward[kind, 0]) + more for kind, more in zip(kinds, again, strict=True)]
        for side, work in enumerate((forward, backward)):
            own_work = exposed(job, work, [float(waits[side][kind]) for kind in kinds])
            passes[side, at], saved = sent_behind(job, shape, rounds, own_work, moved[at + side])
            hidden[at] += saved
        passes[2, at] = sum(float(times.weight[kind, 0]) for kind in kinds)
    own_block = reduced_block(graph, job, times)
    sizes = [own.size(job) for own in held]
    size = np.array([float(dense) for dense, _ in sizes]), np.array([float(experts) for _, experts in sizes])
    ends = synchronised(job, shape, size, graph.low, (*own_block[:2], float(own_block[2][0])))
    ends = ends + step_bytes(job, shape, size) / hbm[1]
    pace = passes[0].max() + passes[1].max() if family.apart else (passes[0] + passes[1] - hidden).max()
    filled = float(family.filled(passes[0], passes[1], passes[2], count).sum())
    total = family.laps(rounds) * float(pace) + family.share(count) * filled
    return total + float(ends.max()) + tied_seconds(graph, job, shape, owner)

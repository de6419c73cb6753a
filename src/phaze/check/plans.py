"""The price of a plan under rules cluster, after every rule has been checked (docs/placement.md, Rules cluster)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .job import Job, Shape, boundary_levels, replicas_by_level, step_bytes, synchronised
from .layers import LayerSeconds, RunGraph
from .network import collective, transfer
from .reading import listed, require, whole
from .stages import SENT_BYTES

Floats = NDArray[np.float64]
GATHERS = MappingProxyType({2: (0, 1), 3: (1, 2)})
"""By stage of ZeRO: gathers or scatters of a layer's parameters a microbatch, forward and backward."""
PLAN = ("graph", "recompute", "zero", "data", "order", "chunks", "stages")


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Parameters of a stage in bytes, those of its largest layer, buffers, kept and live bytes of a mode; of one stage
    or of several."""

    parameters: float | Floats
    largest: float | Floats
    buffers: float | Floats
    kept: float | Floats
    live: float | Floats

    def needed(self, job: Job, shape: Shape, flying: float | Floats) -> Floats:
        """Bytes on a device beside the reserve."""
        count, largest, total = self.parameters / SENT_BYTES, self.largest / SENT_BYTES, np.zeros(())
        for each, stage, working in ((job.weight, 3, True), (job.gradient, 2, True), (job.optimizer, 1, False)):
            shared = shape.data if shape.zero >= stage else 1
            total = total + each * (count / shared + (largest * (1 - 1 / shared) if working else 0.0))
        return np.asarray(total + self.buffers + flying * self.kept + self.live)


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


def stage_bytes(graph: RunGraph, calls: Sequence[int], mode: int) -> StageBytes:
    """The bytes of a stage."""
    inside, sizes = set(calls), [SENT_BYTES * graph.layers[graph.calls[call]].parameters for call in calls]
    twice = sum(SENT_BYTES * tie.elements * max(0, len(inside & set(tie.calls)) - 1) for tie in graph.ties)
    held = [layer_bytes(graph, call, mode) for call in calls]
    buffers = sum(graph.layers[kind].buffer_bytes for kind in {graph.calls[call] for call in calls})
    return StageBytes(
        sum(sizes) - twice, max(sizes), buffers, sum(kept for kept, _ in held), max(live for _, live in held)
    )


def in_flight(shape: Shape, rounds: int, number: int) -> float:
    """Microbatches that the stage of a number, from the end, holds at once."""
    if shape.chunks == 1:
        return float(min(rounds, number))
    return min(float(rounds), (2 * (number - 1) + (shape.chunks - 1) * shape.stages + 1) / shape.chunks)


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
    """Exposed seconds of a microbatch at every boundary, a pass; first and last the way around."""
    lanes, levels = shape.tensor if job.stack.scatters else 1, boundary_levels(job.network, shape)
    more, covered = shape.chunks - 1, shape.chunks > 1 and job.stack.overlapped

    def seconds(level: int, size: float) -> float:
        return float(transfer(job.network, level, np.array([size / lanes]))[0])

    starts = more * job.stack.chunk_start
    inner = [
        (0.0 if covered else shape.chunks * seconds(level, crossing_bytes(graph, owner, at))) + starts
        for at, level in enumerate(levels)
    ]
    around = 0.0 if covered or not more else more * seconds(max([0, *levels]), around_bytes(graph))
    return [around + starts, *inner, around + starts]


def reduced_block(graph: RunGraph, seconds: LayerSeconds) -> tuple[float, Floats]:
    """Bytes and backward seconds of the layers in which a reduction is counted: a block, or the mean of all."""
    blocks = [graph.calls[at] for at, own in enumerate(graph.block) if own and graph.equal][:1] or list(graph.calls)
    sizes = [SENT_BYTES * graph.layers[kind].parameters for kind in blocks]
    return sum(sizes) / len(blocks), sum(seconds.backward[kind] for kind in blocks) / len(blocks)


def gathered(graph: RunGraph, job: Job, shape: Shape) -> Floats:
    """Seconds of a gather of each distinct layer's parameters over the replicas."""
    sizes = np.array([SENT_BYTES * layer.parameters for layer in graph.layers])
    return collective(job.network, "all_gather", replicas_by_level(job.network, shape), sizes)


def exposed(work: float, waits: float, hidden: float) -> float:
    """A pass with the collectives of ZeRO that it does not hide."""
    return max(work + (1 - hidden) * waits, waits)


def tied_seconds(graph: RunGraph, job: Job, shape: Shape, owner: Mapping[int, int]) -> float:
    """All-reduces of parameters that calls of several stages share."""
    outer, total = max([0, *boundary_levels(job.network, shape)]), 0.0
    for tie in graph.ties:
        if len({owner[call] for call in tie.calls}) > 1:
            members = tuple(len(tie.calls) if at == outer else 1 for at in range(len(job.network.levels)))
            total += float(collective(job.network, "all_reduce", members, np.array([SENT_BYTES * tie.elements]))[0])
    return total


def allowed_chunks(graph: RunGraph, job: Job) -> set[int]:
    """Numbers of chunks that plans may have."""
    blocks = sum(graph.block) if graph.equal else 0
    return {1} | {v for v in range(2, blocks // 2 + 1) if job.chunks is None or v in job.chunks}


def _shape(graph: RunGraph, job: Job, plan: Mapping[str, Any], zeros: Sequence[int], rounds: int) -> Shape:
    shape = Shape(
        graph.width, len(plan["stages"]), whole(plan["data"], "answer.data", 1), str(plan["order"]),
        whole(plan["chunks"], "answer.chunks", 1), whole(plan["zero"], "answer.zero", 0, 3),
    )  # fmt: skip
    used = shape.tensor * shape.stages * shape.data
    require(used <= job.devices, f"answer: it takes {used} of {job.devices} devices")
    require(shape.data <= job.microbatches(graph.microbatch), "answer: a replica has no microbatch")
    require(shape.order in ("pipeline", "data"), "answer.order: neither pipeline nor data")
    require(shape.zero in zeros, "answer.zero: the problem has no such configuration")
    require(shape.chunks in allowed_chunks(graph, job), "answer.chunks: the stack has no such number")
    fits = shape.chunks == 1 or rounds % shape.stages == 0
    require(fits, "answer.chunks: microbatches are no multiple of the stages")
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
    calls = [[whole(c, "answer.stages", 0, len(graph.calls) - 1) for c in listed(s[0], "stages")] for s in stages]
    flat = [call for own in calls for call in own]
    require(sorted(flat) == list(range(len(graph.calls))) and all(calls), "answer: a layer is in no stage, or in two")
    owner = {call: at for at, own in enumerate(calls) for call in own}
    require(all(owner[a] <= owner[b] for a, b, _ in graph.edges), "answer: an edge leads to a stage before it")
    moved, waits = moves(graph, job, shape, owner), np.zeros(len(graph.layers))
    if shape.zero >= 2:
        waits = gathered(graph, job, shape)
    totals, sizes = list[float](), list[float]()
    for at, (own, (_, name)) in enumerate(zip(calls, stages, strict=True)):
        may = name in graph.names and (way[0] == "best" or name == way[0])
        require(may, f"answer: stage {at + 1} may not have the mode {str(name)[:40]!r}")
        mode, kinds = graph.names.index(name), [graph.calls[call] for call in own]
        held = stage_bytes(graph, own, mode)
        blocks = sum(graph.block[call] for call in own)
        even = shape.chunks == 1 or (blocks > 0 and blocks % shape.chunks == 0)
        require(even, "answer.chunks: a stage has uneven ones")
        need = held.needed(job, shape, in_flight(shape, rounds, shape.stages - at))
        fits = float(need) <= job.room(hbm[0])
        require(fits, f"answer: stage {at + 1} does not fit into {hbm[0] / 2**30:g} GiB")
        again = sum(float(times.again[mode, graph.calls[call], 0]) for call in own if graph.block[call])
        forward = sum(float(times.forward[kind, 0]) for kind in kinds)
        backward = sum(float(times.backward[kind, 0]) for kind in kinds) + again
        once, gathers = float(sum(waits[kind] for kind in kinds)), GATHERS.get(shape.zero, (0, 0))
        forward = exposed(forward, gathers[0] * once, job.stack.hidden) + moved[at]
        backward = exposed(backward, gathers[1] * once, job.stack.hidden) + moved[at + 1]
        totals.append(forward + backward)
        sizes.append(float(held.parameters))
    block = reduced_block(graph, times)
    members, bytes_ = replicas_by_level(job.network, shape), np.array(sizes)
    ends = synchronised(job, members, shape.zero, bytes_, (block[0], float(block[1][0])))
    ends = ends + step_bytes(job, shape.data, shape.zero, bytes_) / hbm[1]
    pace, v = max(totals), shape.chunks
    return (rounds - 1 / v) * pace + sum(totals) / v + float(ends.max()) + tied_seconds(graph, job, shape, owner)

"""The job of a model (docs/placement.md): devices, batch, state of a parameter, ends of a batch.

A stage is t c devices wide: t of its tensor group, c that share a sequence; its replicas are d.
Dense weights are held alike by c d ranks, experts that g ranks share out by e = t c d / g. Under
hybrid sharding state is shared out over the nearest n of the c d ranks, and what each holds of the
gradients is reduced over the c d / n groups once a batch. In what follows a size is a pair of
arrays: bytes of dense parameters, bytes of experts.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .families import Family
from .formats import Held, held_of
from .network import Members, Network, collective, network_of, strided
from .reading import cover, listed, number, require, whole
from .stack import TRAINING, Stack, stack_of

Floats = NDArray[np.float64]
Size = tuple[Floats, Floats]
MACHINE = frozenset({"cluster", "stack", "basis", "residency", "precision", "host_bytes_per_s"})
CLUSTER = frozenset(
    {"name", "title", "devices", "levels", "chip", "stack", "limit", "enlarged_from", "library"}
)
FLAT_REDUCTION = 4.0
"""Bytes sent for each byte of parameters over a flat link: docs/placement.md."""
ROUNDING = 1e-12
"""Bytes summed in another order differ in the last bits."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Degrees of a plan: tensor width, stages, replicas, stages or replicas as neighbours, family,
    stage of ZeRO, ranks that share a sequence, ranks that share out experts; ranks that share out
    state, 0: all that hold the same."""

    tensor: int
    stages: int
    data: int
    order: str
    family: Family
    zero: int
    context: int = 1
    group: int = 1
    shard: int = 0

    @property
    def apart(self) -> bool:
        """Whether the replicas of a stage are no neighbours."""
        return self.order == "pipeline" and self.stages > 1

    @property
    def sharers(self) -> int:
        """Ranks that share out the state of dense weights."""
        return min(self.shard or self.alike, self.alike)

    @property
    def width(self) -> int:
        """Devices of a stage."""
        return self.tensor * self.context

    @property
    def alike(self) -> int:
        """Ranks with the same dense weights."""
        return self.context * self.data

    @property
    def experts_alike(self) -> float:
        """Ranks with the same experts."""
        return self.width * self.data / self.group

    @property
    def allowed(self) -> bool:
        """Whether the ranks of a stage can share out experts, and state over the nearest of
        them."""
        near = self.width if self.apart else self.width * self.data
        if self.shard and self.apart and self.context % self.shard and self.shard % self.context:
            return False
        return near % self.group == 0 and (not self.shard or self.alike % self.shard == 0)


@dataclass(frozen=True, slots=True)
class Job:
    """What plans of a model depend on beside its layers; ``chunks`` None: all that blocks allow."""

    devices: int
    batch: int
    stack: Stack
    network: Network
    held: Held
    headroom: float
    chunks: tuple[int, ...] | None
    precision: str = "bf16"
    host_rate: float | None = None
    shards: tuple[int, ...] | None = None

    def microbatches(self, microbatch: int) -> int:
        return -(-self.batch // microbatch)

    def at_links(self, bandwidth: float) -> "Job":
        """On another innermost level."""
        link = bandwidth if isfinite(self.stack.link) else self.stack.link
        return replace(
            self, network=self.network.at_links(bandwidth), stack=replace(self.stack, link=link)
        )

    def room(self, hbm_bytes: float) -> float:
        """Bytes that a device may fill beside the reserve."""
        return hbm_bytes * (1 - self.headroom) * (1 + ROUNDING) - self.stack.reserve


def job_of(table: Mapping[str, Any]) -> Job:
    """The job of a model."""
    machine, precision = table["machine"], str(table["precision"])
    cluster, stated = machine["cluster"], machine["stack"]
    for part, keys in ((table, TRAINING | {"shards"}), (machine, MACHINE), (cluster, CLUSTER)):
        more = sorted(set(part) - keys)
        cover(not more, f"the key {more[0] if more else ''}, which this checker does not know")
    require(machine["precision"] == precision, "problem.json: it says two things of precision")
    devices, network = whole(table["devices"], "devices", 1), network_of(cluster, machine["basis"])
    require(devices <= network.groups()[-1], "devices: the cluster has fewer")
    stack = stack_of(stated, network.levels[0].bandwidth, len(network.levels))
    host_rate = None
    if stack.offload is not None and machine["host_bytes_per_s"] is not None:
        host_rate = number(machine["host_bytes_per_s"], "host_bytes_per_s", 1e-9)
    chunks = None
    if table["chunks"] is not None:
        chunks = tuple(whole(count, "chunks", 1) for count in table["chunks"])
    return Job(
        devices=devices,
        batch=whole(table["batch"], "batch", 1),
        stack=replace(stack, keeping=replace(stack.keeping, offload=host_rate is not None)),
        network=network,
        held=held_of(precision, str(table["optimizer"]), stated),
        headroom=number(table["headroom"], "headroom", 0, 0.999999),
        chunks=chunks,
        precision=precision,
        host_rate=host_rate,
        shards=_shards(table),
    )


def _shards(table: Mapping[str, Any]) -> tuple[int, ...] | None:
    """How many ranks may share out state, None where nothing is said of it."""
    if "shards" not in table:
        return None
    found = tuple(whole(shard, "shards") for shard in listed(table["shards"], "shards"))
    require(1 not in found, "shards: one rank shards nothing")
    return found


def _axes(shape: Shape, stride: int) -> tuple[tuple[int, int], ...]:
    if shape.apart:
        return (stride, shape.width // stride), (shape.width * shape.stages, shape.data)
    return ((stride, shape.width * shape.data // stride),)


def replicas_by_level(network: Network, shape: Shape) -> Members:
    """How many ranks with the same dense weights meet at each level."""
    return (
        (shape.alike,) if len(network.levels) == 1 else strided(network, _axes(shape, shape.tensor))
    )


def sharers_by_level(network: Network, shape: Shape) -> tuple[Members, Members]:
    """How many ranks that share out dense state meet at each level, and how many that hold the same
    part of it."""
    count, n, c, stride = shape.alike, shape.sharers, shape.context, shape.tensor
    if len(network.levels) == 1:
        return (n,), (count // n,)
    if not shape.apart:
        return strided(network, [(stride, n)]), strided(network, [(stride * n, count // n)])
    far = shape.width * shape.stages
    if n <= c:
        return strided(network, [(stride, n)]), strided(
            network, [(stride * n, c // n), (far, shape.data)]
        )
    near = n // c
    return strided(network, [(stride, c), (far, near)]), strided(
        network, [(far * near, shape.data // near)]
    )


def experts_by_level(network: Network, shape: Shape) -> Members:
    """How many ranks with the same experts meet at each level."""
    if len(network.levels) == 1:
        return (shape.width * shape.data // shape.group,)
    return strided(network, _axes(shape, shape.group))


def boundary_levels(network: Network, shape: Shape) -> list[int]:
    """The innermost level that holds both sides of each boundary, in every replica."""
    every = shape.width * shape.stages * shape.data
    sizes = [min(size, every) for size in network.groups()]
    if len(sizes) == 1:
        return [0] * (shape.stages - 1)
    wide = shape.width * (shape.data if shape.order == "data" else 1)
    found = []
    for boundary in range(shape.stages - 1):
        starts = np.array([boundary * wide])
        if shape.order != "data":
            starts = (np.arange(shape.data) * shape.stages + boundary) * shape.width
        ends = starts + 2 * wide - 1
        found.append(int(max(sum(starts // size != ends // size for size in sizes))))
    return found


def outermost_level(network: Network, shape: Shape) -> int:
    """The outermost level that a boundary crosses in some replica: outside it all lie in one group
    each."""
    if shape.stages == 1 or len(network.levels) == 1:
        return 0
    near, far = (shape.data, 1) if shape.order == "data" else (1, shape.data)
    wide, boundaries = shape.width * near, np.arange(shape.stages - 1)
    starts = wide * (np.arange(far)[:, None] * shape.stages + boundaries)
    sizes = [min(size, shape.width * shape.stages * shape.data) for size in network.groups()]
    return sum(bool((starts // size != (starts + 2 * wide - 1) // size).any()) for size in sizes)


def over_replicas(job: Job, shape: Shape, kind: str, size: Size, wire: float) -> Floats:
    """Seconds of a collective of parameters over the ranks that hold the same; ``wire``: what is
    sent of a byte."""
    dense, experts = size
    shared = shape.shard > 0 and shape.zero > 0
    members = (
        sharers_by_level(job.network, shape)[0] if shared else replicas_by_level(job.network, shape)
    )
    found = collective(job.network, kind, members, wire * dense)
    if shape.group > 1:
        found = found + collective(
            job.network, kind, experts_by_level(job.network, shape), wire * experts
        )
    return found


def across_groups(job: Job, shape: Shape, size: Size) -> Floats:
    """Seconds of reducing what a rank holds of the gradients over the groups that share out
    state."""
    if shape.shard == 0 or shape.zero == 0:
        return np.zeros_like(size[0])
    members, own = (
        sharers_by_level(job.network, shape)[1],
        job.held.wire * (size[0] + size[1]) / shape.sharers,
    )
    return collective(job.network, "all_reduce", members, own)


@dataclass(frozen=True, slots=True)
class Block:
    """What is reduced at once behind the work of a batch's end: bytes of a block, those of experts
    among them, its forward and backward seconds; bytes of the layer that starts a model, and those
    of experts; bytes of all layers, 0 where pieces are blocks."""

    bytes: float
    experts: float
    ahead: float
    behind: float
    first: float
    first_experts: float
    total: float

    def pieces(self, job: Job, shape: Shape) -> float:
        """Bytes of a piece: a block, or as much more as a bucket and a mean chunk both hold."""
        stated = job.stack.bucket
        bucket = max(4e7, 1e6 * shape.sharers) if stated is None else stated
        chunk = self.total / (shape.stages * shape.family.chunks)
        return max(self.bytes, min(chunk, bucket * job.held.sent))


Seconds = Callable[[Size], Floats]


def _sent_at_end(job: Job, shape: Shape, low: float) -> Iterator[tuple[Seconds, float, bool]]:
    """Communications of the end of a batch, what a second of them adds, and whether they follow the
    last backward pass and not precede the first forward pass."""
    wire, zero = job.held.wire, shape.zero

    def weights(size: Size) -> Floats:
        return over_replicas(job, shape, "all_gather", size, low)

    def gradients(size: Size) -> Floats:
        kind = "all_gather" if zero else "all_reduce"
        return over_replicas(job, shape, kind, size, wire) + across_groups(job, shape, size)

    def across(size: Size) -> Floats:
        return across_groups(job, shape, size)

    if zero < 2:
        yield gradients, job.stack.reducing, True
    elif shape.shard:
        yield across, job.stack.reducing, True
    if zero in (1, 2):
        yield weights, job.stack.gathering, False


def unaccompanied(job: Job, shape: Shape, low: float, block: Block) -> float:
    """Seconds of ZeRO's collectives of a microbatch beside which nothing runs, once a step: the
    longest scatter of a layer's gradients after all work, the longest gather before it."""
    layers = (
        np.array([block.bytes - block.experts, block.first - block.first_experts]),
        np.array([block.experts, block.first_experts]),
    )
    each = [job.held.wire] * (shape.zero >= 2) + [low] * (shape.zero >= 3)
    longest = [over_replicas(job, shape, "all_gather", layers, sent).max() for sent in each]
    return (1.0 - job.stack.sharding) * float(sum(longest))


def synchronised(job: Job, shape: Shape, size: Size, low: float, block: Block) -> Floats:
    """Seconds of synchronisation that stages with so many bytes of parameters expose; ``low``: what
    is sent of a weight. Of each communication that runs beside work no more is hidden than what
    does not follow it: all but the last piece, less what every other one is late by."""
    if job.stack.flat and shape.zero < 2 and not size[1].any():
        ranks = shape.sharers
        return np.asarray(FLAT_REDUCTION * (ranks - 1) * size[0] / (ranks * job.stack.link))
    total = np.full_like(size[0], unaccompanied(job, shape, low, block))
    piece, chunks = block.pieces(job, shape), shape.family.chunks
    part = piece / block.bytes if block.bytes else 0.0
    dense = np.array([(block.bytes - block.experts) * part, block.first - block.first_experts])
    samples = dense, np.array([block.experts * part, block.first_experts])
    others = np.maximum(0.0, (size[0] + size[1]) / piece - 1.0) if piece else 0.0
    rounds = (1.0 + (chunks - 1.0) * shape.stages) / chunks
    for seconds, adds, backwards in _sent_at_end(job, shape, low):
        every = seconds(size)
        if adds < 1.0:
            once, last = seconds(samples)
            beside = (block.behind if backwards else block.ahead) * part * rounds
            late = max(once - beside, 0.0)
            follows = max(once, last) + others * late
            every = every - (1.0 - adds) * np.maximum(every - follows, 0.0)
        total = total + every
    return total


def between_steps(job: Job, shape: Shape) -> float:
    """What all stages wait for between two steps: the host, and one number from every device."""
    if not job.stack.agrees:
        return job.stack.pause
    members = strided(job.network, [(1, shape.width * shape.stages * shape.data)])
    agreed = collective(job.network, "all_reduce", members, np.array([8.0]))
    return job.stack.pause + float(agreed[0])


def step_bytes(job: Job, shape: Shape, size: Size) -> Floats:
    """HBM bytes of zeroing and of the optimizer's step of stages with so many bytes of
    parameters."""
    shares = (shape.sharers, shape.experts_alike)
    whole, shard = size[0] + size[1], size[0] / shares[0] + size[1] / shares[1]
    updated, cleared = shard if shape.zero >= 1 else whole, shard if shape.zero >= 2 else whole
    return np.asarray((updated * job.held.update + cleared * job.held.cleared) / job.held.sent)

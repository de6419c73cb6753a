"""The job of a model under rules cluster (docs/placement.md): devices, batch, state of a parameter, ends of a batch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .network import Members, Network, collective, network_of, strided
from .reading import cover, number, require, whole
from .stack import Stack, stack_of
from .stages import SENT_BYTES, STATES, TRAINING

Floats = NDArray[np.float64]
MACHINE = frozenset({"cluster", "stack", "basis", "residency", "precision", "host_bytes_per_s"})
CLUSTER = frozenset({"name", "title", "devices", "levels", "chip", "stack", "limit", "enlarged_from"})
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Shape:
    """Degrees of a plan: tensor width, stages, replicas, stages or replicas as neighbours, chunks, stage of ZeRO."""

    tensor: int
    stages: int
    data: int
    order: str
    chunks: int
    zero: int


@dataclass(frozen=True, slots=True)
class Job:
    """What plans of a model depend on beside its layers; ``chunks`` None: all that blocks allow."""

    devices: int
    batch: int
    stack: Stack
    network: Network
    weight: float
    gradient: float
    optimizer: float
    headroom: float
    chunks: tuple[int, ...] | None

    def microbatches(self, microbatch: int) -> int:
        return -(-self.batch // microbatch)

    def at_links(self, bandwidth: float) -> "Job":
        """On another innermost level."""
        return replace(self, network=self.network.at_links(bandwidth))

    def room(self, hbm_bytes: float) -> float:
        """Bytes that a device may fill beside the reserve."""
        return hbm_bytes * (1 - self.headroom) * (1 + ROUNDING) - self.stack.reserve


def _state(table: Mapping[str, Any], stack: Mapping[str, Any]) -> tuple[float, float, float]:
    """Bytes of weight, gradient and optimizer a parameter; what a stack says is of its own precision and optimizer."""
    usual = STATES((table["precision"], table["optimizer"]))
    cover(usual is not None, f"precision {table['precision']} with {table['optimizer']}")
    weight, gradient, optimizer = usual or (0.0, 0.0, 0.0)
    if (table["precision"], table["optimizer"]) != (stack["precision"], stack["optimizer"]):
        return weight, gradient, optimizer
    gradient = number(stack["gradient_bytes"] or gradient, "gradient_bytes")
    total = number(stack["state_bytes"] or weight + gradient + optimizer, "state_bytes")
    require(total >= weight, "state_bytes: they do not hold a weight")
    if total >= weight + gradient:
        return weight, gradient, total - weight - gradient
    return weight, total - weight, 0.0


def job_of(table: Mapping[str, Any]) -> Job:
    """The job of a model, where its rules are those of a cluster."""
    machine = table["machine"]
    for own, known in ((table, TRAINING), (machine, MACHINE), (machine["cluster"], CLUSTER)):
        more = sorted(set(own) - known)
        cover(not more, f"the key {more[0] if more else ''}, which this checker does not know")
    hosted = machine["host_bytes_per_s"] is not None and machine["stack"]["hidden_offload"] is not None
    cover(not hosted, "activations in the memory of the host")
    cover(machine["precision"] == table["precision"] == "bf16", f"products in {machine['precision']}")
    devices, network = whole(table["devices"], "devices", 1), network_of(machine["cluster"], machine["basis"])
    require(devices <= network.groups()[-1], "devices: the cluster has fewer")
    stack, chunks = stack_of(machine["stack"]), table["chunks"]
    found = None if chunks is None else tuple(whole(v, "chunks", 1) for v in chunks)
    return Job(
        devices, whole(table["batch"], "batch", 1), stack, network, *_state(table, machine["stack"]),
        number(table["headroom"], "headroom", 0, 0.999999), found if stack.interleaves else (),
    )  # fmt: skip


def replicas_by_level(network: Network, shape: Shape) -> Members:
    """How many ranks with the same weights meet at each level."""
    if len(network.levels) == 1:
        return (shape.data,)
    if shape.order == "pipeline" and shape.stages > 1:
        return strided(network, ((shape.tensor * shape.stages, shape.data),))
    return strided(network, ((shape.tensor, shape.data),))


def boundary_levels(network: Network, shape: Shape) -> list[int]:
    """The innermost level that holds both sides of each boundary, in every replica."""
    sizes = network.groups()
    if len(sizes) == 1:
        return [0] * (shape.stages - 1)
    wide = shape.tensor * (shape.data if shape.order == "data" else 1)
    found = []
    for boundary in range(shape.stages - 1):
        starts = np.array([boundary * wide])
        if shape.order != "data":
            starts = (np.arange(shape.data) * shape.stages + boundary) * shape.tensor
        ends = starts + 2 * wide - 1
        found.append(int(max(sum(starts // size != ends // size for size in sizes))))
    return found


def synchronised(job: Job, members: Members, zero: int, size: Floats, block: tuple[float, Floats | float]) -> Floats:
    """Seconds of synchronisation that stages with so many bytes of parameters expose, ``size`` [sizes] or [sizes, 1];
    ``block``: bytes and backward seconds of a block, by which gradients may be reduced."""
    if zero == 3:
        return np.zeros_like(size)
    exposed = 1 - job.stack.hidden
    if zero == 2:
        return exposed * collective(job.network, "all_gather", members, size)
    whole_s = collective(job.network, "all_reduce", members, size)
    own, behind = block
    if not job.stack.by_layer or own == 0:
        return exposed * whole_s
    once = float(collective(job.network, "all_reduce", members, np.array([own]))[0])
    many = np.maximum(1.0, size / own)
    return np.minimum(whole_s, once + (many - 1) * np.maximum(0.0, once - behind))


def step_bytes(job: Job, shape_data: int, zero: int, size: Floats) -> Floats:
    """HBM bytes of the optimizer's step of stages with so many bytes of parameters."""
    return size / (shape_data if zero else 1) / SENT_BYTES * job.stack.traffic

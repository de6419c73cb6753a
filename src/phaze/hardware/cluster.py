"""A cluster: devices joined level by level, innermost first.

Level l joins ``size`` groups of the level below (devices, for the first) into one group, so a cluster of levels
1..L has ``size_1 * ... * size_L`` devices. A level's bandwidth is what one device can send through it, one
direction, when all devices of its group do so at once; its latency is that of one message between neighbours, a step of
a ring or a hop of a torus. What a collective costs to start is the software's, not the network's.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from phaze.errors import InputError
from phaze.hardware.calibration import UNMEASURED, LinkCalibration
from phaze.hardware.chip import require_positive

LevelKind = Literal["switch", "ring", "torus"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the network; ``shape`` is the extent of each axis of a torus and empty for other kinds."""

    name: str
    kind: LevelKind
    size: int
    bandwidth_bytes_per_s: float
    latency_s: float
    shape: tuple[int, ...] = ()
    calibration: LinkCalibration = UNMEASURED

    def __post_init__(self) -> None:
        where = f"level {self.name}"
        require_positive(where, size=self.size, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)
        if not 0 <= self.latency_s < float("inf"):
            raise InputError(f"{where}.latency_s", f"{self.latency_s!r} is out of range", "it must be at least 0")
        if self.kind == "torus" and prod(self.shape) != self.size:
            raise InputError(
                f"{where}.shape",
                f"a torus of {self.shape} has {prod(self.shape)} members and the level has {self.size}",
                "let the product of the shape be the size",
            )
        if self.kind != "torus" and self.shape:
            raise InputError(f"{where}.shape", f"a {self.kind} has no shape", "remove it or let the kind be torus")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Devices and the levels that join them, with the chip and the software stack that it usually runs."""

    name: str
    title: str
    devices: int
    levels: tuple[Level, ...]
    chip: str | None = None
    stack: str = "ideal"

    def __post_init__(self) -> None:
        require_positive(self.name, devices=self.devices)
        if not self.levels:
            raise InputError(f"{self.name}.levels", "there is no level", "give at least one")
        joined = prod(level.size for level in self.levels)
        if joined != self.devices:
            raise InputError(
                f"{self.name}.devices",
                f"the levels join {joined} devices and the cluster has {self.devices}",
                "let the product of the sizes be the number of devices",
            )


def grown(cluster: Cluster, devices: int, where: str) -> Cluster:
    """The cluster with its outermost level made large enough; a torus keeps its size and is refused beyond it."""
    if devices <= cluster.devices:
        return cluster
    *inner, outer = cluster.levels
    if outer.kind == "torus":
        raise InputError(where, f"{cluster.name} has {cluster.devices} devices", "ask for at most as many")
    group = prod(level.size for level in inner)
    size = -(-devices // group)
    return replace(cluster, devices=size * group, levels=(*inner, replace(outer, size=size)))

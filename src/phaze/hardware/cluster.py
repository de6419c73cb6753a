"""A cluster: devices joined level by level, innermost first.

Level l joins ``size`` groups of the level below (devices, for the first) into one group, so a cluster of levels
1..L has ``size_1 * ... * size_L`` devices. A level's bandwidth is what one device can send through it, one
direction, when all devices of its group do so at once; its latency is that of one message between neighbours, a step of
a ring or a hop of a torus. What a collective costs to start is the software's, not the network's.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Literal

from phaze.errors import InfeasibleError, InputError
from phaze.hardware.calibration import UNMEASURED, LinkCalibration
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import require_positive
from phaze.units import show

LevelKind = Literal["switch", "ring", "torus"]
# Which ways of a collective the communication library has (:mod:`phaze.cost.collective`).
Library = Literal["any", "nccl"]
# Data sheets round: 4 GiB/s and 4.3 GB/s are the same links.
SAME_LINKS = 0.01


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the network; ``shape`` is the extent of each axis of a torus and empty for other kinds.

    ``of_chip``: the bandwidth is that of the chip's own links (``bandwidth = "chip"`` in a file).
    """

    name: str
    kind: LevelKind
    size: int
    bandwidth_bytes_per_s: float
    latency_s: float
    shape: tuple[int, ...] = ()
    calibration: LinkCalibration = UNMEASURED
    of_chip: bool = False

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
    """Devices and the levels that join them, with the chip and the software stack that it usually runs.

    ``limit``: its devices are all there are (a user's own file); a bundled cluster grows to the devices requested, and
    ``enlarged_from`` is then what it had. ``library``: the communication library, which decides on the ways of
    collectives.
    """

    name: str
    title: str
    devices: int
    levels: tuple[Level, ...]
    chip: str | None = None
    stack: str = "ideal"
    limit: bool = False
    enlarged_from: int | None = None
    library: Library = "any"

    @property
    def label(self) -> str:
        """The name, and how far it was enlarged."""
        if self.enlarged_from is None:
            return self.name
        *inner, outer = self.levels
        unit = "devices" if not inner else "pods" if inner[-1].kind == "torus" else f"{inner[-1].name}s"
        return f"{self.name}, enlarged to {outer.size:,} {unit}"

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
    """The cluster with its outermost level made large enough; a limit or a torus keeps its size and is refused."""
    if devices <= cluster.devices:
        return cluster
    *inner, outer = cluster.levels
    group = prod(level.size for level in inner)
    size = -(-devices // group)
    if cluster.limit or outer.kind == "torus":
        raise _too_few(cluster, devices, None if outer.kind == "torus" else size, where)
    enlarged = replace(cluster, devices=size * group, levels=(*inner, replace(outer, size=size)))
    return replace(enlarged, enlarged_from=cluster.enlarged_from or cluster.devices)


def _too_few(cluster: Cluster, devices: int, size: int | None, where: str) -> InfeasibleError:
    """What to say of more devices than a cluster has, with what would help."""
    outer, has = cluster.levels[-1], f"{cluster.name} has {cluster.devices:,} devices"
    larger = f", or let its level {outer.name} join {size:,} (now {outer.size:,})" if size is not None else ""
    sentence = f"{where}: {devices:,} devices are requested and {has}; request at most as many{larger}."
    levers = {"devices": cluster.devices, "level": outer.name if size is not None else None, "level_size": size}
    counts = {"needed_devices": devices, "available_devices": cluster.devices}
    shortage = {"short_of": "devices", "sentence": sentence, **counts, "levers": levers}
    return InfeasibleError(sentence, {"feasible": False, "shortage": shortage})


def same_links(chip: Chip, cluster: Cluster) -> bool:
    """Whether the chip's own links have the bandwidth of the innermost level."""
    own, level = chip.links.bandwidth_bytes_per_s, cluster.levels[0].bandwidth_bytes_per_s
    return abs(own - level) <= SAME_LINKS * level


def links_words(chip: Chip, cluster: Cluster) -> str:
    """Both bandwidths in words."""
    own, level = chip.links.bandwidth_bytes_per_s, cluster.levels[0]
    joined = f"level {level.name} of {cluster.name} runs at {show(level.bandwidth_bytes_per_s, 'B/s')}"
    return f"the links of {chip.name} have {show(own, 'B/s')} and {joined}"


def cluster_document(cluster: Cluster, chip: Chip) -> dict[str, Any]:
    """The cluster of an answer: its label, what it was enlarged from, and whose links times are of."""
    unused = None if same_links(chip, cluster) else f"{links_words(chip, cluster)}: times are of the level"
    return {
        "name": cluster.name,
        "label": cluster.label,
        "devices": cluster.devices,
        "enlarged_from": cluster.enlarged_from,
        "link_bytes_per_s": cluster.levels[0].bandwidth_bytes_per_s,
        "links": unused,
    }

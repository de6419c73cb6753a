"""A cluster: devices joined level by level, innermost first.

Level l joins ``size`` groups of the level below (devices, for the first) into one group, so a
cluster of levels 1..L has ``size_1 * ... * size_L`` devices. A level's bandwidth is what one device
can send through it, one direction, when all devices of its group do so at once; its latency is that
of one message between neighbours, a step of a ring or a hop of a torus. What a collective costs to
start is the software's, not the network's.

``bandwidth``: as the file states it, ``chip`` where it is that of the chip's own links. ``shape``:
the extent of each axis of a torus, empty for other kinds. The rest was measured, None where nothing
was: ``share``: of the bandwidth that large messages reach. ``start_s``: what an all-reduce takes
beside its steps, twice that of a gather. ``local_bytes_per_s``: rate at which a device copies and
adds its own bytes in an all-reduce, beside sending them. ``small_start_s``, ``small_share``,
``small_step_s``: start, share and seconds a step of the low-latency way that small messages go.
``piece_s``: what each of the pieces that a message is cut into costs beside its bytes.
``in_switch_share``: of the bandwidth at which a tensor streams through a switch that adds it up.
"""

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import BytesPerSecond, Count, Document, Format, Seconds, Share
from phaze.errors import InfeasibleError, InputError
from phaze.hardware.calibration import (
    DATASHEET_LINK,
    IDEAL_LINK,
    LINK_FIELDS,
    Basis,
    LinkConstants,
    require_measured,
)
from phaze.hardware.chip import Chip
from phaze.hardware.keys import Name, Sources, Text
from phaze.units import show
from phaze.values import FrozenTable, Listed, replace

LevelKind = Literal["switch", "ring", "torus"]
# Which ways of a collective the communication library has (:mod:`phaze.cost.collective`).
Library = Literal["any", "nccl"]
# Data sheets round: 4 GiB/s and 4.3 GB/s are the same links.
SAME_LINKS = 0.01


class Level(Document):
    """One level of a cluster, innermost first."""

    name: Name
    kind: LevelKind
    size: Count
    bandwidth: BytesPerSecond | Literal["chip"]
    latency_s: Annotated[Seconds, Field(alias="latency")]
    shape: Listed[Annotated[int, Field(gt=0)]] = Field(default_factory=tuple)
    share: Share | None = None
    start_s: Annotated[Seconds | None, Field(alias="start")] = None
    local_bytes_per_s: Annotated[BytesPerSecond | None, Field(alias="local")] = None
    small_start_s: Annotated[Seconds | None, Field(alias="small_start")] = None
    small_share: Share | None = None
    small_step_s: Annotated[Seconds | None, Field(alias="small_step")] = None
    piece_s: Annotated[Seconds | None, Field(alias="piece")] = None
    in_switch_share: Share | None = None
    _bandwidth_bytes_per_s: float | None = None
    _of_chip: bool = False

    @model_validator(mode="after")
    def _possible(self) -> "Level":
        where = f"level {self.name}"
        if self.kind == "torus" and prod(self.shape) != self.size:
            raise InputError(
                f"{where}.shape",
                (
                    f"a torus of {self.shape} has {prod(self.shape)} members and the level "
                    f"has {self.size}"
                ),
                "let the product of the shape be the size",
            )
        if self.kind != "torus" and self.shape:
            raise InputError(
                f"{where}.shape",
                f"a {self.kind} has no shape",
                "remove it or let the kind be torus",
            )
        for name in LINK_FIELDS:
            require_measured("level", name, getattr(self, name))
        return self

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """What one device can send through it, one direction."""
        if self._bandwidth_bytes_per_s is not None:
            return self._bandwidth_bytes_per_s
        if self.bandwidth == "chip":
            raise AssertionError(f"the links of level {self.name} are those of no chip yet")
        return self.bandwidth

    @property
    def of_chip(self) -> bool:
        """Whether the bandwidth is that of the chip's own links."""
        return self._of_chip

    def constants(self, basis: Basis = "calibrated") -> LinkConstants:
        """What its collectives are computed with: measured figures first, the data sheet's 0.8 and
        20 us otherwise."""
        if basis == "ideal":
            return IDEAL_LINK
        if basis == "datasheet":
            return DATASHEET_LINK
        measured = {name: getattr(self, name) for name in LINK_FIELDS}
        return replace(
            DATASHEET_LINK, **{name: value for name, value in measured.items() if value is not None}
        )

    def as_read(self) -> dict[str, Any]:
        """The level as answers and certificates state it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "size": self.size,
            "bandwidth_bytes_per_s": self.bandwidth_bytes_per_s,
            "latency_s": self.latency_s,
            "shape": self.shape,
            "calibration": {name: getattr(self, name) for name in LINK_FIELDS},
            "of_chip": self.of_chip,
        }


class Cluster(Document):
    """A cluster (``phaze.cluster/1``)."""

    schema_: Annotated[Literal["phaze.cluster/1"], Field(alias="schema")]
    name: Name
    title: Text
    devices: Count
    chip: Name | None = None
    stack: Name = "ideal"
    library: Library = "any"
    levels: Annotated[Listed[Level], Field(min_length=1, max_length=8)]
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)
    _limit: bool = False
    _enlarged_from: int | None = None

    @model_validator(mode="after")
    def _joined(self) -> "Cluster":
        if any(level.bandwidth == "chip" for level in self.levels[1:]):
            raise ValueError("let only the innermost level have bandwidth 'chip'")
        joined = prod(level.size for level in self.levels)
        if joined != self.devices:
            raise InputError(
                f"{self.name}.devices",
                f"the levels join {joined} devices and the cluster has {self.devices}",
                "let the product of the sizes be the number of devices",
            )
        return self

    @property
    def limit(self) -> bool:
        """Whether its devices are all there are (a user's own file); a bundled cluster grows to
        those requested."""
        return self._limit

    @property
    def enlarged_from(self) -> int | None:
        """The devices that it had before it grew."""
        return self._enlarged_from

    @property
    def label(self) -> str:
        """The name, and how far it was enlarged."""
        if self.enlarged_from is None:
            return self.name
        *inner, outer = self.levels
        unit = (
            "devices"
            if not inner
            else "pods"
            if inner[-1].kind == "torus"
            else f"{inner[-1].name}s"
        )
        return f"{self.name}, enlarged to {outer.size:,} {unit}"

    def on_chip(self, link_bytes_per_s: float | None) -> "Cluster":
        """The cluster whose innermost level, where it says ``chip``, is as fast as these links."""
        inner, *outer = self.levels
        if inner.bandwidth != "chip":
            return self
        if link_bytes_per_s is None:
            raise InputError(
                f"level {inner.name}: bandwidth", "'chip' and no chip is named", "give a bandwidth"
            )
        linked = replace(inner, bandwidth_bytes_per_s=link_bytes_per_s, of_chip=True)
        return replace(self, levels=(linked, *outer))

    def as_read(self) -> dict[str, Any]:
        """The cluster as answers and certificates state it."""
        names = (
            "name",
            "title",
            "devices",
            "levels",
            "chip",
            "stack",
            "limit",
            "enlarged_from",
            "library",
        )
        return {name: getattr(self, name) for name in names}


CLUSTER = Format("phaze.cluster/1", Cluster, "devices and the network that joins them")


def switch_level(name: str, size: int, bandwidth_bytes_per_s: float, latency_s: float) -> Level:
    """A level of switches without measurements."""
    return Level.model_construct(
        name=name, kind="switch", size=size, bandwidth=bandwidth_bytes_per_s, latency_s=latency_s
    )


def cluster_of(name: str, title: str, levels: Sequence[Level]) -> Cluster:
    """A cluster of levels that stand in no file."""
    if not levels:
        raise InputError(f"{name}.levels", "there is no level", "give at least one")
    devices = prod(level.size for level in levels)
    return Cluster.model_construct(
        schema_="phaze.cluster/1", name=name, title=title, devices=devices, levels=tuple(levels)
    )


def grown(cluster: Cluster, devices: int, where: str) -> Cluster:
    """The cluster with its outermost level made large enough; a limit or a torus keeps its size and
    is refused."""
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
    larger = (
        f", or let its level {outer.name} join {size:,} (now {outer.size:,})"
        if size is not None
        else ""
    )
    sentence = (
        f"{where}: {devices:,} devices are requested and {has}; request at most as many{larger}."
    )
    levers = {
        "devices": cluster.devices,
        "level": outer.name if size is not None else None,
        "level_size": size,
    }
    counts = {"needed_devices": devices, "available_devices": cluster.devices}
    shortage = {"short_of": "devices", "sentence": sentence, **counts, "levers": levers}
    return InfeasibleError(sentence, {"feasible": False, "shortage": shortage})


def same_links(chip: Chip, cluster: Cluster) -> bool:
    """Whether the chip's own links have the bandwidth of the innermost level."""
    links, level = chip.links.bandwidth_bytes_per_s, cluster.levels[0].bandwidth_bytes_per_s
    return abs(links - level) <= SAME_LINKS * level


def links_words(chip: Chip, cluster: Cluster) -> str:
    """Both bandwidths in words."""
    links, level = chip.links.bandwidth_bytes_per_s, cluster.levels[0]
    joined = (
        f"level {level.name} of {cluster.name} runs at {show(level.bandwidth_bytes_per_s, 'B/s')}"
    )
    return f"the links of {chip.name} have {show(links, 'B/s')} and {joined}"


def cluster_document(cluster: Cluster, chip: Chip) -> dict[str, Any]:
    """The cluster of an answer: its label, what it was enlarged from, and whose links times are
    of."""
    unused = (
        None
        if same_links(chip, cluster)
        else f"{links_words(chip, cluster)}: times are of the level"
    )
    return {
        "name": cluster.name,
        "label": cluster.label,
        "devices": cluster.devices,
        "enlarged_from": cluster.enlarged_from,
        "link_bytes_per_s": cluster.levels[0].bandwidth_bytes_per_s,
        "links": unused,
    }

"""What a chip is made of: clusters of arrays, vector units, the global buffer, HBM, links, and what
lies on the dies.

A cluster (SM, compute unit, tensor core) holds arrays of R x C multiply-accumulate units behind one
port. A core is a cluster of one array whose port has no limit, beside vector units that stand
alone. Every bandwidth is in one direction, for the whole device, in bytes per second, unless a
field says otherwise. Each part is a table of a chip's file (``phaze.chip/2``); what a file of cores
states otherwise, or what follows from other tables, is a private attribute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Document, Positive, Watts
from phaze.hardware.keys import Name, Units

Interfaces = Literal["ga100", "aldebaran"]
"""The die photo whose HBM and link interfaces a maker's chips are priced by."""
Pair = tuple[int, int]
"""Units on the die, units in use: real chips switch some off so that more of them can be sold."""
UnitPair = Annotated[tuple[Units, Units], Field(strict=False)]
Side = Annotated[int, Field(gt=0, le=65536)]
Lanes = Annotated[int, Field(gt=0, le=2**24)]
MemoryKind = Literal["scratchpad", "cache"]
T = TypeVar("T", float, NDArray[np.float64])
GIB = 2**30
MULTICAST = 16
"""Cores that one read reaches along one operand: the widest multicast of shipping chips."""
SUSTAINED_SHARE = 0.95
"""Of its cycles that an array of a cluster works while it has a tile, on every chip: zeros on A100
reach 0.9455 of peak, Gaudi 2 0.969, and AMD states up to 0.94 at the clock measured."""
LATENCY_CYCLES = 1000.0
"""From a cluster's first request for a tile to its first operand, and back (assumed; between 500
and 2000 nothing moves)."""


def on_die(in_use: T, pair: Pair) -> T:
    """What lies on the die of something of which so much is in use."""
    built, used = pair
    return in_use * built / used


def array_feed_bytes_per_cycle(rows: int, columns: int) -> int:
    """Bytes a cycle that keep an array busy: 2 a row and a column in, 4 a column out (16-bit in,
    32-bit out)."""
    return 2 * rows + 2 * columns + 4 * columns


def lane_feed_bytes_per_cycle(lanes: int) -> int:
    """Bytes a cycle that keep lanes busy: two 16-bit operands in and one out for each."""
    return 6 * lanes


def port_of(bytes_per_cycle: float, clusters: int) -> float:
    """The port of a cluster where nothing is published: the least power of two that is its share of
    the buffer."""
    port = 1.0
    while port < bytes_per_cycle / clusters:
        port *= 2.0
    return port


class Clusters(Document):
    """The clusters in use; without ``port`` each gets its share of the global buffer, rounded up to
    a power of two.

    ``buffer_bytes_per_s``: of one cluster's operand buffer; None: it feeds its arrays fully.
    ``latency_cycles``: before the first operand of a tile. ``sustained_share``: of the cycles in
    which arrays have a tile that they work in; None: what was measured of the chip, with all else
    that it leaves of its peak.
    """

    count: Units
    arrays: Units
    rows: Side
    columns: Side
    lanes: Annotated[Lanes, Field(description="of one cluster")]
    operand_bytes: Annotated[Bytes, Field(alias="operand_buffer", description="of one cluster")]
    register_bytes: Annotated[
        Bytes, Field(alias="registers", description="of one cluster; half of them may hold sums")
    ]
    port: Annotated[
        Positive | None, Field(description="bytes a cycle, each way, of one cluster")
    ] = None
    broadcast: Annotated[
        bool, Field(description="arrays of a cluster share the operands they read")
    ] = False
    _port_bytes_per_cycle: float = inf
    _buffer_bytes_per_s: float | None = None
    _latency_cycles: float = LATENCY_CYCLES
    _sustained_share: float | None = SUSTAINED_SHARE

    @property
    def port_bytes_per_cycle(self) -> float:
        """The port, stated or derived; without limit on a chip of cores."""
        return self._port_bytes_per_cycle

    @property
    def buffer_bytes_per_s(self) -> float | None:
        return self._buffer_bytes_per_s

    @property
    def latency_cycles(self) -> float:
        return self._latency_cycles

    @property
    def sustained_share(self) -> float | None:
        return self._sustained_share

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle of one cluster."""
        return self.arrays * self.rows * self.columns

    def feed_bytes_per_cycle(self, clock_hz: float) -> float:
        """What one cluster's operand buffer delivers a cycle of a clock."""
        if self.buffer_bytes_per_s is not None:
            return self.buffer_bytes_per_s / clock_hz
        return float(self.arrays * array_feed_bytes_per_cycle(self.rows, self.columns))


@dataclass(frozen=True, slots=True)
class VectorUnits:
    """``count`` units of ``lanes`` that work on one instruction, and the registers that feed them:
    those of the clusters, or units that stand alone. ``buffer_bytes_per_s``: of one unit; None: its
    lanes are fed fully."""

    count: int
    lanes: int
    register_bytes: int
    buffer_bytes_per_s: float | None = None

    def feed_bytes_per_s(self, clock_hz: float) -> float:
        """What one unit's registers deliver at a clock."""
        return self.buffer_bytes_per_s or lane_feed_bytes_per_cycle(self.lanes) * clock_hz

    def feed_bytes_per_cycle(self, clock_hz: float) -> float:
        """The same a cycle."""
        if self.buffer_bytes_per_s is not None:
            return self.buffer_bytes_per_s / clock_hz
        return float(lane_feed_bytes_per_cycle(self.lanes))


class GlobalBuffer(Document):
    """The memory that all clusters share; one read reaches ``fan_out`` of them.

    ``bandwidth_bytes_per_s`` is that at the rated clock. A cache carries tags and coherence beside
    the data.
    """

    size_bytes: Annotated[Bytes, Field(alias="size")]
    width: Annotated[Positive, Field(description="bytes a cycle")]
    fan_out: Annotated[Units, Field(description="clusters that one read reaches")] = 1
    kind: MemoryKind = "scratchpad"
    _bandwidth_bytes_per_s: float = 0.0
    _multicast: int | None = None

    @property
    def bandwidth_bytes_per_s(self) -> float:
        return self._bandwidth_bytes_per_s

    @property
    def multicast(self) -> int:
        """Clusters that one read reaches along one operand; all that it reaches, where nothing else
        limits it."""
        return self._multicast or self.fan_out

    @property
    def cache(self) -> bool:
        return self.kind == "cache"


@dataclass(frozen=True, slots=True)
class Generation:
    """One stack of a generation of HBM."""

    bandwidth_bytes_per_s: float
    size_bytes: int
    usd: float


Generations = Literal["hbm2", "hbm2e", "hbm3", "hbm3e"]
GENERATIONS: Mapping[str, Generation] = MappingProxyType(
    {
        # Rates: 1024 bits at 2.0, 3.6, 6.4 and 9.6 Gb/s (JEDEC, recalled). Prices: one estimator
        # page (legitlads.com) for HBM2e, HBM3 and HBM3e; HBM2 assumed.
        "hbm2": Generation(256.0e9, 8 * GIB, 120.0),
        "hbm2e": Generation(460.8e9, 16 * GIB, 160.0),
        "hbm3": Generation(819.2e9, 16 * GIB, 198.0),
        "hbm3e": Generation(1228.8e9, 24 * GIB, 238.0),
    }
)


def _bandwidth_of_stacks(stated: dict[str, Any]) -> float:
    generation = stated.get("generation")
    return (
        0.0
        if generation is None
        else stated["stacks"] * GENERATIONS[generation].bandwidth_bytes_per_s
    )


def _size_of_stacks(stated: dict[str, Any]) -> int:
    generation = stated.get("generation")
    return 0 if generation is None else stated["stacks"] * GENERATIONS[generation].size_bytes


class Hbm(Document):
    """HBM; ``bandwidth`` and ``size`` of all stacks, where they are not the generation's, and with
    no stacks: DDR, GDDR or LPDDR beside the package, whose interface has no area here, or stacks
    that are not stated."""

    stacks: Annotated[int, Field(ge=0, le=64)]
    generation: Generations | None = None
    bandwidth_bytes_per_s: Annotated[BytesPerSecond, Field(alias="bandwidth")] = Field(
        default_factory=_bandwidth_of_stacks
    )
    size_bytes: Annotated[Bytes, Field(alias="size")] = Field(default_factory=_size_of_stacks)

    @model_validator(mode="after")
    def _complete(self) -> "Hbm":
        if (self.stacks > 0) != (self.generation is not None):
            raise ValueError("give a generation with stacks, and none without")
        if not self.bandwidth_bytes_per_s or not self.size_bytes:
            raise ValueError("without stacks give bandwidth and size")
        return self


class Links(Document):
    """Links to other devices, all together, one way; ``lane`` is the rate of one SerDes lane, None:
    that of the technology."""

    bandwidth_bytes_per_s: Annotated[BytesPerSecond, Field(alias="bandwidth")]
    lane_bytes_per_s: Annotated[BytesPerSecond | None, Field(alias="lane")] = None
    _count: int = 1

    @property
    def count(self) -> int:
        return self._count


class SiliconKeys(Document):
    """What lies on the die(s): pairs [units on the die, units in use], where some are switched
    off."""

    dies: Annotated[int, Field(gt=0, le=64)] = 1
    global_buffer: UnitPair = (1, 1)
    hbm: UnitPair = (1, 1)

    @property
    def units(self) -> tuple[str, Pair]:
        """What its clusters or cores are called, and their pair."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _all_in_use_lie_on_the_die(self) -> Self:
        pairs = (self.units, ("global_buffer", self.global_buffer), ("hbm", self.hbm))
        for name, (on_die, in_use) in pairs:
            if on_die < in_use:
                raise ValueError(
                    f"let {name} have at least as many units on the die as in use "
                    f"({on_die} and {in_use})"
                )
        return self


class Built(SiliconKeys):
    """What lies on the dies, spare parts included: pairs [on the die, in use].

    Compute dies hold the clusters; with ``base_dies`` the global buffer and all interfaces lie on
    dies of ``base_technology`` below them. ``second_cache_bytes``: a cache on the compute dies
    beside the global buffer. ``die_link_bytes_per_s``: links between dies of the package that are
    SerDes too.
    """

    # Those in use are all, where the file says nothing else (:class:`phaze.hardware.chip.Chip`).
    clusters: UnitPair = Field(default_factory=lambda: (1, 1))
    base_dies: Annotated[int, Field(ge=0, le=64)] = 0
    base_technology: Name | None = None
    interfaces: Interfaces = "ga100"
    second_cache_bytes: Annotated[Bytes, Field(alias="second_cache")] = 0
    die_link_bytes_per_s: Annotated[BytesPerSecond, Field(alias="die_links")] = 0.0

    @property
    def units(self) -> tuple[str, Pair]:
        return "clusters", self.clusters

    @model_validator(mode="after")
    def _a_process_of_base_dies(self) -> "Built":
        if (self.base_dies > 0) != (self.base_technology is not None):
            raise ValueError("give base_dies and base_technology together")
        return self


class PowerLimit(Document):
    """The power that the chip may draw for long; it sets the clock."""

    sustained_w: Annotated[Watts, Field(alias="sustained")]


class Host(Document):
    """What joins the device to the memory of its host."""

    bandwidth_bytes_per_s: Annotated[
        BytesPerSecond, Field(alias="bandwidth", description="one way, of one device")
    ]


def power_limit(sustained_w: float | None) -> PowerLimit | None:
    """A limit that stands in no file."""
    return None if sustained_w is None else PowerLimit.model_construct(sustained_w=sustained_w)


ALL_IN_USE = Built()

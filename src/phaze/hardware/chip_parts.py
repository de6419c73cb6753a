"""What a chip is made of: clusters of arrays, vector units, the global buffer, HBM, links, and what lies on the dies.

A cluster (SM, compute unit, tensor core) holds arrays of R x C multiply-accumulate units behind one port. A core is a
cluster of one array whose port has no limit, beside vector units that stand alone. Every bandwidth is in one direction,
for the whole device, in bytes per second, unless a field says otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, FlopPerSecond, Hertz, Mm2, Seconds, Share, Watts
from phaze.errors import InputError
from phaze.hardware.attention import known_family
from phaze.hardware.calibration import Calibration, require_measured
from phaze.hardware.keys import Text, Units
from phaze.values import replace

ClockBasis = Literal["sourced", "derived", "recalled"]
Interfaces = Literal["ga100", "aldebaran"]
"""The die photo whose HBM and link interfaces a maker's chips are priced by."""
Pair = tuple[int, int]
"""Units on the die, units in use: real chips switch some off so that more of them can be sold."""
T = TypeVar("T", float, NDArray[np.float64])
GIB = 2**30
MULTICAST = 16
"""Clusters that one read reaches on a chip of cores, whose mapping shares reads among 16 cores each way."""


def require_positive(where: str, **fields: float) -> None:
    """Refuse a value whose named fields are not finite numbers above zero."""
    for name, value in fields.items():
        if not 0 < value < inf:
            raise InputError(f"{where}.{name}", f"{value!r} is out of range", "it must be greater than 0")


def on_die(in_use: T, pair: Pair) -> T:
    """What lies on the die of something of which so much is in use."""
    built, used = pair
    return in_use * built / used


def array_feed_bytes_per_cycle(rows: int, columns: int) -> int:
    """Bytes a cycle that keep an array busy: 2 a row and a column in, 4 a column out (16-bit in, 32-bit out)."""
    return 2 * rows + 2 * columns + 4 * columns


def lane_feed_bytes_per_cycle(lanes: int) -> int:
    """Bytes a cycle that keep lanes busy: two 16-bit operands in and one out for each."""
    return 6 * lanes


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters in use: ``arrays`` of ``rows`` x ``columns`` in each, the operand buffer that feeds them, the port.

    ``broadcast``: arrays of a cluster share the operands they read. ``buffer_bytes_per_s``: of one cluster's operand
    buffer; None: it feeds its arrays fully.
    """

    count: int
    rows: int
    columns: int
    operand_bytes: int
    arrays: int = 1
    port_bytes_per_cycle: float = inf
    broadcast: bool = False
    buffer_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require_positive(
            "clusters",
            count=self.count,
            arrays=self.arrays,
            rows=self.rows,
            columns=self.columns,
            operand_bytes=self.operand_bytes,
        )

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle of one cluster."""
        return self.arrays * self.rows * self.columns

    def feed_bytes_per_s(self, clock_hz: float) -> float:
        """What one cluster's operand buffer delivers at a clock."""
        feed = self.arrays * array_feed_bytes_per_cycle(self.rows, self.columns) * clock_hz
        return self.buffer_bytes_per_s or feed


@dataclass(frozen=True, slots=True)
class VectorUnits:
    """``count`` units of ``lanes`` that work on one instruction, and the registers that feed them: those of the
    clusters, or units that stand alone. ``buffer_bytes_per_s``: of one unit; None: its lanes are fed fully."""

    count: int
    lanes: int
    register_bytes: int
    buffer_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require_positive("vectors", count=self.count, lanes=self.lanes, register_bytes=self.register_bytes)

    def feed_bytes_per_s(self, clock_hz: float) -> float:
        """What one unit's registers deliver at a clock."""
        return self.buffer_bytes_per_s or lane_feed_bytes_per_cycle(self.lanes) * clock_hz


@dataclass(frozen=True, slots=True)
class GlobalBuffer:
    """The memory that all clusters share; one read reaches ``fan_out`` of them.

    ``bandwidth_bytes_per_s`` is that at the rated clock. A ``cache`` carries tags and coherence beside the data.
    """

    size_bytes: int
    bandwidth_bytes_per_s: float
    cache: bool = False
    fan_out: int = MULTICAST

    def __post_init__(self) -> None:
        require_positive("global_buffer", size_bytes=self.size_bytes, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Generation:
    """One stack of a generation of HBM."""

    bandwidth_bytes_per_s: float
    size_bytes: int
    usd: float


GENERATIONS: Mapping[str, Generation] = MappingProxyType(
    {
        # Rates: 1024 bits at 2.0, 3.6, 6.4 and 9.6 Gb/s (JEDEC, recalled). Prices: one estimator page (legitlads.com)
        # for HBM2e, HBM3 and HBM3e; HBM2 assumed.
        "hbm2": Generation(256.0e9, 8 * GIB, 120.0),
        "hbm2e": Generation(460.8e9, 16 * GIB, 160.0),
        "hbm3": Generation(819.2e9, 16 * GIB, 198.0),
        "hbm3e": Generation(1228.8e9, 24 * GIB, 238.0),
    }
)


@dataclass(frozen=True, slots=True)
class Hbm:
    """All stacks together; without stacks they are not stated, or it is another memory beside the package."""

    size_bytes: int
    bandwidth_bytes_per_s: float
    stacks: int = 0
    generation: str | None = None

    def __post_init__(self) -> None:
        require_positive("hbm", size_bytes=self.size_bytes, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Links:
    """The chip's own links to its neighbours, all together; ``lane_bytes_per_s``: of one SerDes lane, None: that of the
    technology."""

    bandwidth_bytes_per_s: float
    count: int = 1
    lane_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require_positive("links", count=self.count, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Built:
    """What lies on the dies, spare parts included, as pairs (on the die, in use).

    Compute dies hold the clusters; with ``base_dies`` the global buffer and all interfaces lie on dies of
    ``base_technology`` below them. ``second_cache_bytes``: a cache on the compute dies beside the global buffer.
    ``die_link_bytes_per_s``: links between dies of the package that are SerDes too.
    """

    clusters: Pair = (1, 1)
    global_buffer: Pair = (1, 1)
    hbm: Pair = (1, 1)
    dies: int = 1
    base_dies: int = 0
    base_technology: str | None = None
    interfaces: Interfaces = "ga100"
    second_cache_bytes: int = 0
    die_link_bytes_per_s: float = 0.0

    def __post_init__(self) -> None:
        require_positive("silicon", dies=self.dies)
        for name in ("clusters", "global_buffer", "hbm"):
            on_die, in_use = getattr(self, name)
            if not 0 < in_use <= on_die:
                seen = f"{on_die} built and {in_use} in use"
                raise InputError(f"silicon.{name}", seen, "build at least as many as are in use")


class Published(Document):
    """The maker's own figures, or those of a die photo, to hold ours against."""

    peak_flops: Annotated[FlopPerSecond | None, Field(alias="peak")] = None
    die_mm2: Annotated[Mm2 | None, Field(alias="die")] = None
    die_is_upper_bound: bool = False
    tdp_w: Annotated[Watts | None, Field(alias="tdp")] = None
    process: Text | None = None


class ChipMeasurements(Document):
    """What was measured, used by plans and never by a search: the rate of a long run of one product and its m, n, k,
    else the clock, of which single products are priced at any rate; power; start-ups, shares of HBM, rows kept.

    ``rate_fp8_flops``: the greatest in 8 bits. ``clock_hz``: held by single products, and in training where no rate is
    stated. ``power_w``: the mean of a load that keeps the arrays busy. The rest as in
    :mod:`phaze.hardware.calibration`.
    """

    rate_flops: Annotated[FlopPerSecond | None, Field(alias="rate")] = None
    rate_shape: Annotated[Annotated[tuple[Units, Units, Units], Field(strict=False)] | None, Field(alias="shape")] = (
        None
    )
    power_w: Annotated[Watts | None, Field(alias="power")] = None
    clock_hz: Annotated[Hertz | None, Field(alias="clock")] = None
    start_up_s: Annotated[Seconds | None, Field(alias="start_up")] = None
    vector_start_up_s: Annotated[Seconds | None, Field(alias="vector_start_up")] = None
    hbm_share: Share | None = None
    vector_hbm_share: Share | None = None
    kept_row_bytes: Annotated[Bytes | None, Field(alias="kept_row")] = None
    attention: Annotated[str | None, Field(description="the family whose measured attention kernels it runs")] = None
    rate_fp8_flops: Annotated[FlopPerSecond | None, Field(alias="rate_fp8")] = None

    @model_validator(mode="after")
    def _of_a_product(self) -> "ChipMeasurements":
        if (self.rate_flops is None) != (self.rate_shape is None):
            raise ValueError("give rate and shape together")
        if self.rate_fp8_flops is not None and self.rate_flops is None:
            raise ValueError("give rate with rate_fp8, which is relative to it")
        for name in CALIBRATED:
            require_measured("calibration", name, getattr(self, name))
        if self.attention is not None:
            known_family(self.attention, "measured.attention")
        return self

    @property
    def calibration(self) -> Calibration | None:
        """Its shares and start-ups, None where none was measured: arrays have no share of their own here."""
        gain = None if not self.rate_flops or not self.rate_fp8_flops else self.rate_fp8_flops / self.rate_flops
        measured = {name: getattr(self, name) for name in (*CALIBRATED, "attention")}
        calibration = replace(Calibration(), **measured, fp8_gain=gain)
        return None if calibration == Calibration() else calibration


CALIBRATED = ("hbm_share", "vector_hbm_share", "start_up_s", "vector_start_up_s", "kept_row_bytes")
UNPUBLISHED, UNMEASURED, ALL_IN_USE = Published(), ChipMeasurements(), Built()

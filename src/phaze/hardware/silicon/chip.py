"""An accelerator as clusters of arrays: what ``phaze.chip/2`` describes.

N clusters (SM, compute unit, TensorCore) each hold c arrays of R x C multiply-accumulate units, l lanes, an operand
buffer of U bytes, registers of A bytes, and one port of p bytes a cycle each way. The global buffer delivers w bytes a
cycle; one of its reads reaches up to F clusters. HBM comes in stacks, links in SerDes lanes.

    peak FLOP/s = 2 N c R C clock
    p           = the least power of two that is at least w / N, where a file gives none        (:func:`port_of`)

A chip of version 1 (T tensor cores, V vector cores) is N = gcd(T, V) clusters (:func:`accelerator_of`): V of them where
V divides T, as on every GPU and TPU. :func:`chip_of` is the way back, exact in that case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType
from typing import Literal

from phaze.errors import InputError
from phaze.hardware.calibration import Calibration
from phaze.hardware.chip import (
    Chip,
    ClockBasis,
    Links,
    Memory,
    Published,
    Silicon,
    TensorCore,
    VectorCore,
    array_feed_bytes_per_cycle,
    lane_feed_bytes_per_cycle,
    require_positive,
)
from phaze.hardware.formats import Ratios

Interfaces = Literal["ga100", "aldebaran"]
"""The die photo whose HBM and link interfaces a maker's chips are priced by."""
GIB = 2**30
MULTICAST = 16
"""Clusters that one read reaches on a chip of version 1, whose mapping shares reads among 16 cores each way."""


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
class Clusters:
    """The clusters of a chip that are in use."""

    count: int
    arrays: int
    rows: int
    columns: int
    lanes: int
    operand_bytes: int
    register_bytes: int
    port_bytes_per_cycle: float
    broadcast: bool

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle of one cluster."""
        return self.arrays * self.rows * self.columns

    @property
    def sum_bytes(self) -> int:
        """The half of the registers that may hold partial sums; the other half feeds lanes and the next tile."""
        return self.register_bytes // 2


@dataclass(frozen=True, slots=True)
class GlobalBuffer:
    """The memory that all clusters share: bytes a cycle, and how many clusters one read reaches."""

    size_bytes: int
    bytes_per_cycle: float
    fan_out: int
    cache: bool


@dataclass(frozen=True, slots=True)
class Hbm:
    """All stacks together; without stacks another memory beside the package."""

    stacks: int
    generation: str | None
    size_bytes: int
    bandwidth_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class SerialLinks:
    """Links to other devices, one way, and the rate of one SerDes lane; None: that of the technology."""

    bandwidth_bytes_per_s: float
    lane_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """What lies on the dies, spare parts included. Compute dies hold the clusters; with ``base_dies`` the global buffer
    and all interfaces lie on dies of ``base_technology`` below them. ``second_cache_bytes``: a cache on the compute
    dies beside the global buffer. ``die_link_bytes_per_s``: links between dies of the package that are SerDes too."""

    clusters: int
    global_buffer_bytes: int
    hbm_sites: int
    dies: int = 1
    base_dies: int = 0
    base_technology: str | None = None
    interfaces: Interfaces = "ga100"
    second_cache_bytes: int = 0
    die_link_bytes_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ChipMeasurements:
    """What was measured of a chip, used to plan for it and to judge the model, never by a search.

    ``rate_flops``: of the product ``rate_shape`` (m, n, k), run for long; ``rate_fp8_flops``: the greatest in 8 bits.
    ``clock_hz``: held by single products, and in training where no rate is stated. ``power_w``: the mean of a load that
    keeps the arrays busy. Start-up times, HBM shares, the row that lanes keep and the family of attention kernels as in
    :mod:`phaze.hardware.calibration`.
    """

    rate_flops: float | None = None
    rate_shape: tuple[int, int, int] | None = None
    power_w: float | None = None
    clock_hz: float | None = None
    start_up_s: float | None = None
    vector_start_up_s: float | None = None
    hbm_share: float | None = None
    vector_hbm_share: float | None = None
    kept_row_bytes: float | None = None
    attention: str | None = None
    rate_fp8_flops: float | None = None

    @property
    def calibration(self) -> Calibration | None:
        """Its shares and start-ups, None where none was measured: arrays have no share of their own here."""
        found = Calibration(
            hbm_share=self.hbm_share,
            vector_hbm_share=self.vector_hbm_share,
            start_up_s=self.start_up_s,
            vector_start_up_s=self.vector_start_up_s,
            kept_row_bytes=self.kept_row_bytes,
            attention=self.attention,
            fp8_gain=None if not self.rate_flops or not self.rate_fp8_flops else self.rate_fp8_flops / self.rate_flops,
        )
        return None if found == Calibration() else found


UNPUBLISHED, UNMEASURED = Published(), ChipMeasurements()


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device. ``sustained_w`` is the power it may draw for long; None: no limit is known, the clock is held."""

    name: str
    title: str
    clock_hz: float
    technology: str | None
    clusters: Clusters
    global_buffer: GlobalBuffer
    hbm: Hbm
    links: SerialLinks
    built: Built
    sustained_w: float | None = None
    cluster: str | None = None
    clock_basis: ClockBasis = "sourced"
    published: Published = UNPUBLISHED
    measured: ChipMeasurements = UNMEASURED
    formats: Ratios = ()
    host_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require_positive(self.name, clock_hz=self.clock_hz)
        if self.built.clusters < self.clusters.count:
            seen = f"{self.built.clusters} clusters are built and {self.clusters.count} in use"
            raise InputError(f"{self.name}: silicon.clusters", seen, "build at least as many")

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle of all clusters in use."""
        return self.clusters.count * self.clusters.macs

    @property
    def peak_flops(self) -> float:
        """FLOP/s at the rated clock."""
        return 2.0 * self.macs * self.clock_hz


def port_of(bytes_per_cycle: float, clusters: int) -> float:
    """The port of a cluster where nothing is published: the least power of two that is its share of the buffer."""
    port = 1.0
    while port < bytes_per_cycle / clusters:
        port *= 2.0
    return port


def _generation_of(bandwidth_bytes_per_s: float, technology: str | None) -> tuple[int, str]:
    """Stacks and generation of a chip that states neither: of its process's time, as many as its rate needs."""
    name = {"n5": "hbm3", "n3": "hbm3e", "n22": "hbm2", "paper-22nm": "hbm2"}.get(technology or "", "hbm2e")
    return max(1, round(bandwidth_bytes_per_s / GENERATIONS[name].bandwidth_bytes_per_s)), name


def accelerator_of(chip: Chip) -> Accelerator:
    """A chip of version 1 as clusters."""
    count = gcd(chip.tensor_cores, chip.vector_cores)
    arrays, vectors = chip.tensor_cores // count, chip.vector_cores // count
    width = chip.global_buffer.bandwidth_bytes_per_s / chip.clock_hz
    stacks, generation = _generation_of(chip.hbm.bandwidth_bytes_per_s, chip.technology)
    core, silicon = chip.tensor_core, chip.silicon
    clusters = Clusters(
        count=count,
        arrays=arrays,
        rows=core.rows,
        columns=core.columns,
        lanes=vectors * chip.vector_core.lanes,
        operand_bytes=arrays * core.buffer.size_bytes,
        register_bytes=vectors * chip.vector_core.buffer.size_bytes,
        port_bytes_per_cycle=port_of(width, count),
        broadcast=False,
    )
    built = Built(
        clusters=round(count * silicon.cores_built),
        global_buffer_bytes=round(chip.global_buffer.size_bytes * silicon.global_buffer_built),
        hbm_sites=round(stacks * silicon.hbm_built),
        dies=silicon.dies,
    )
    return Accelerator(
        name=chip.name,
        title=chip.title,
        clock_hz=chip.clock_hz,
        technology=chip.technology,
        clusters=clusters,
        global_buffer=GlobalBuffer(chip.global_buffer.size_bytes, width, MULTICAST, chip.global_buffer.cache),
        hbm=Hbm(stacks, generation, chip.hbm.size_bytes, chip.hbm.bandwidth_bytes_per_s),
        links=SerialLinks(chip.links.bandwidth_bytes_per_s),
        built=built,
        sustained_w=chip.published.tdp_w,
        cluster=chip.cluster,
        clock_basis=chip.clock_basis,
        published=chip.published,
    )


def chip_of(accelerator: Accelerator, clock_hz: float | None = None) -> Chip:
    """The accelerator as a chip of version 1 at a clock (the rated one): arrays and lanes that their buffers feed."""
    clusters, clock = accelerator.clusters, clock_hz or accelerator.clock_hz
    rows, columns, lanes = clusters.rows, clusters.columns, clusters.lanes
    operands = Memory(clusters.operand_bytes // clusters.arrays, array_feed_bytes_per_cycle(rows, columns) * clock)
    registers = Memory(clusters.register_bytes, lane_feed_bytes_per_cycle(lanes) * clock)
    shared, hbm, built = accelerator.global_buffer, accelerator.hbm, accelerator.built
    return Chip(
        name=accelerator.name,
        title=accelerator.title,
        clock_hz=clock,
        tensor_cores=clusters.count * clusters.arrays,
        tensor_core=TensorCore(rows, columns, operands),
        vector_cores=clusters.count,
        vector_core=VectorCore(lanes, registers),
        global_buffer=Memory(shared.size_bytes, shared.bytes_per_cycle * clock, shared.cache),
        hbm=Memory(hbm.size_bytes, hbm.bandwidth_bytes_per_s),
        links=Links(1, accelerator.links.bandwidth_bytes_per_s),
        cluster=accelerator.cluster,
        clock_basis=accelerator.clock_basis,
        silicon=Silicon(
            built.dies, built.clusters / clusters.count, built.global_buffer_bytes / shared.size_bytes,
            max(1.0, built.hbm_sites / max(1, hbm.stacks)),
        ),
        published=accelerator.published,
        formats=accelerator.formats,
        host_bytes_per_s=accelerator.host_bytes_per_s,
    )  # fmt: skip

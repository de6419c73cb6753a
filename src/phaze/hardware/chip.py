"""A chip: clusters of arrays and vector units around a global buffer and HBM.

N clusters each hold c arrays of R x C multiply-accumulate units behind a port of p bytes a cycle; V vector units have l
lanes each; one read of the global buffer, w bytes a cycle, reaches up to F clusters.

    peak FLOP/s     = 2 N c R C x rated clock                         (a multiply and an add)
    of a precision  = peak FLOP/s x how many times faster than in 16 bits the arrays are in its format
    vector rate /s  = V l x rated clock                               (one operation a lane and cycle)

A chip of cores (``phaze.chip/1``) has c = 1 and ports without limit, and runs at its rated clock. On a chip of clusters
(``phaze.chip/2``) V = N, and the clock that it holds is set by its power limit (:mod:`phaze.hardware.clocked`).
"""

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from phaze.hardware.calibration import Calibration
from phaze.hardware.chip_parts import (
    ALL_IN_USE,
    UNMEASURED,
    UNPUBLISHED,
    Built,
    ChipMeasurements,
    ClockBasis,
    Clusters,
    GlobalBuffer,
    Hbm,
    Links,
    Published,
    VectorUnits,
    array_feed_bytes_per_cycle,
    on_die,
    require_positive,
)
from phaze.hardware.formats import Precision, Ratios, times_faster

if TYPE_CHECKING:
    from phaze.hardware.technology import Technology


@dataclass(frozen=True, slots=True)
class Chip:
    """One accelerator device.

    ``clock_hz`` is the clock that it runs at, ``rated_hz`` that of its data sheet, which peaks and the global buffer's
    bandwidth are stated at; None: the same. ``sustained_w``: the power that it may draw for long; None: no limit is
    known. ``technology`` names its process, ``process`` is that process as it was read, ``base_process`` that of base
    dies. ``software_of``: the process whose generation of chips a stack's software share is taken from; None: its own.
    ``formats``: how many times faster than in 16 bits its arrays are in fp8, mxfp8, fp4, fp32. ``host_bytes_per_s``: to
    the memory of its host, one way; None where nothing is known of it.
    """

    name: str
    title: str
    clock_hz: float
    clusters: Clusters
    vectors: VectorUnits
    global_buffer: GlobalBuffer
    hbm: Hbm
    links: Links
    technology: str | None = None
    cluster: str | None = None
    clock_basis: ClockBasis = "sourced"
    built: Built = ALL_IN_USE
    published: Published = UNPUBLISHED
    calibration: Calibration | None = None
    measured: ChipMeasurements = UNMEASURED
    process: "Technology | None" = None
    base_process: "Technology | None" = None
    software_of: str | None = None
    sustained_w: float | None = None
    rated_hz: float | None = None
    formats: Ratios = ()
    host_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require_positive(self.name, clock_hz=self.clock_hz)

    @property
    def of_clusters(self) -> bool:
        """Whether its arrays share ports; else it is a chip of cores."""
        return isfinite(self.clusters.port_bytes_per_cycle)

    @property
    def tensor_cores(self) -> int:
        """Arrays in use."""
        return self.clusters.count * self.clusters.arrays

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle of all clusters in use."""
        return self.clusters.count * self.clusters.macs

    @property
    def rated_clock_hz(self) -> float:
        """The clock of its data sheet, which peaks are stated at; a chip of clusters may hold less."""
        return max(self.rated_hz or self.clock_hz, self.clock_hz)

    @property
    def peak_flops(self) -> float:
        """FLOP/s of all arrays at the rated clock."""
        return 2.0 * self.macs * self.rated_clock_hz

    def peak_flops_in(self, precision: Precision) -> float:
        """FLOP/s of all arrays in the format that a precision's products run in."""
        return self.peak_flops * times_faster(precision, self.formats)

    @property
    def lanes(self) -> int:
        """Lanes of all vector units."""
        return self.vectors.count * self.vectors.lanes

    @property
    def vector_flops(self) -> float:
        """Operations per second of all lanes, one a cycle each."""
        return self.lanes * self.rated_clock_hz

    @property
    def global_bytes_per_cycle(self) -> float:
        """The width of the global buffer."""
        return self.global_buffer.bandwidth_bytes_per_s / (self.rated_hz or self.clock_hz)

    @property
    def global_bytes_per_s(self) -> float:
        """The global buffer's bandwidth at the clock that the chip runs at."""
        if self.rated_hz is None:
            return self.global_buffer.bandwidth_bytes_per_s
        return self.global_bytes_per_cycle * self.clock_hz

    def as_read(self) -> dict[str, Any]:
        """The chip as documents have it: cores, and beside them the clusters of a chip that has them."""
        clusters, vectors, built, clock = self.clusters, self.vectors, self.built, self.clock_hz
        feed = array_feed_bytes_per_cycle(clusters.rows, clusters.columns) * clock
        operands = _memory(clusters.operand_bytes // clusters.arrays, clusters.buffer_bytes_per_s or feed)
        return {
            "name": self.name,
            "title": self.title,
            "clock_hz": clock,
            "tensor_cores": self.tensor_cores,
            "tensor_core": {"rows": clusters.rows, "columns": clusters.columns, "buffer": operands},
            "vector_cores": vectors.count,
            "vector_core": {
                "lanes": vectors.lanes,
                "buffer": _memory(vectors.register_bytes, vectors.feed_bytes_per_s(clock)),
            },
            "global_buffer": _memory(self.global_buffer.size_bytes, self.global_bytes_per_s, self.global_buffer.cache),
            "hbm": _memory(self.hbm.size_bytes, self.hbm.bandwidth_bytes_per_s),
            "links": {"count": self.links.count, "bandwidth_bytes_per_s": self.links.bandwidth_bytes_per_s},
            "technology": self.technology,
            "cluster": self.cluster,
            "clock_basis": self.clock_basis,
            "silicon": {
                "dies": built.dies,
                "cores_built": built.clusters[0] / built.clusters[1],
                "global_buffer_built": built.global_buffer[0] / built.global_buffer[1],
                "hbm_built": built.hbm[0] / built.hbm[1],
            },
            "published": self.published,
            "calibration": self.calibration,
            "process": None if self.of_clusters else self.process,
            "clusters": _cluster_document(self) if self.of_clusters else None,
            "rated_hz": self.rated_hz,
            "formats": self.formats,
            "host_bytes_per_s": self.host_bytes_per_s,
        }


def _memory(size_bytes: int, bandwidth_bytes_per_s: float, cache: bool = False) -> dict[str, Any]:
    return {"size_bytes": size_bytes, "bandwidth_bytes_per_s": bandwidth_bytes_per_s, "cache": cache}


def _cluster_document(chip: Chip) -> dict[str, Any]:
    """What a chip of clusters is priced by: the accelerator at its rated clock and the nodes of its dies."""
    clusters, vectors, hbm, built = chip.clusters, chip.vectors, chip.hbm, chip.built
    accelerator = {
        "name": chip.name,
        "title": chip.title,
        "clock_hz": chip.rated_hz,
        "technology": chip.technology,
        "clusters": {
            "count": clusters.count,
            "arrays": clusters.arrays,
            "rows": clusters.rows,
            "columns": clusters.columns,
            "lanes": vectors.lanes,
            "operand_bytes": clusters.operand_bytes,
            "register_bytes": vectors.register_bytes,
            "port_bytes_per_cycle": clusters.port_bytes_per_cycle,
            "broadcast": clusters.broadcast,
        },
        "global_buffer": {
            "size_bytes": chip.global_buffer.size_bytes,
            "bytes_per_cycle": chip.global_bytes_per_cycle,
            "fan_out": chip.global_buffer.fan_out,
            "cache": chip.global_buffer.cache,
        },
        "hbm": {
            "stacks": hbm.stacks,
            "generation": hbm.generation,
            "size_bytes": hbm.size_bytes,
            "bandwidth_bytes_per_s": hbm.bandwidth_bytes_per_s,
        },
        "links": {
            "bandwidth_bytes_per_s": chip.links.bandwidth_bytes_per_s,
            "lane_bytes_per_s": chip.links.lane_bytes_per_s,
        },
        "built": {
            "clusters": built.clusters[0],
            "global_buffer_bytes": round(on_die(float(chip.global_buffer.size_bytes), built.global_buffer)),
            "hbm_sites": round(on_die(float(hbm.stacks), built.hbm)),
            "dies": built.dies,
            "base_dies": built.base_dies,
            "base_technology": built.base_technology,
            "interfaces": built.interfaces,
            "second_cache_bytes": built.second_cache_bytes,
            "die_link_bytes_per_s": built.die_link_bytes_per_s,
        },
        "sustained_w": chip.sustained_w,
        "cluster": chip.cluster,
        "clock_basis": chip.clock_basis,
        "published": chip.published,
        "measured": chip.measured,
        "formats": chip.formats,
        "host_bytes_per_s": chip.host_bytes_per_s,
    }
    return {
        "accelerator": accelerator,
        "node": chip.process,
        "base_node": chip.base_process,
        "software_of": chip.software_of,
    }

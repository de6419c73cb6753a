"""A chip as the template sees it: arrays of tensor cores and vector cores around a global buffer and HBM.

    peak FLOP/s     = 2 * tensor_cores * rows * columns * rated clock      (a multiply and an add)
    of a precision  = peak FLOP/s * how many times faster than in 16 bits the arrays are in its format
    vector rate /s  = vector_cores * lanes * rated clock                    (one operation a lane and cycle)

Every bandwidth is in one direction, for the whole device, in bytes per second.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from phaze.errors import InputError
from phaze.hardware.calibration import Calibration
from phaze.hardware.formats import Precision, Ratios, times_faster

if TYPE_CHECKING:
    from phaze.hardware.silicon.design import ClusterDesign
    from phaze.hardware.technology import Technology

ClockBasis = Literal["sourced", "derived", "recalled"]


def require_positive(where: str, **fields: float) -> None:
    """Refuse a value whose named fields are not finite numbers above zero."""
    for name, value in fields.items():
        if not 0 < value < float("inf"):
            raise InputError(f"{where}.{name}", f"{value!r} is out of range", "it must be greater than 0")


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory level; a ``cache`` carries tags and coherence beside the data, a scratchpad does not."""

    size_bytes: int
    bandwidth_bytes_per_s: float
    cache: bool = False

    def __post_init__(self) -> None:
        require_positive("memory", size_bytes=self.size_bytes, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class TensorCore:
    """An array of ``rows`` x ``columns`` multiply-accumulate units and the buffer that feeds it."""

    rows: int
    columns: int
    buffer: Memory

    def __post_init__(self) -> None:
        require_positive("tensor_core", rows=self.rows, columns=self.columns)

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class VectorCore:
    """``lanes`` arithmetic units that work on one instruction, and the buffer that feeds them."""

    lanes: int
    buffer: Memory

    def __post_init__(self) -> None:
        require_positive("vector_core", lanes=self.lanes)


@dataclass(frozen=True, slots=True)
class Links:
    """The chip's own links to its neighbours: how many, and the bytes per second of all together, one direction."""

    count: int
    bandwidth_bytes_per_s: float

    def __post_init__(self) -> None:
        require_positive("links", count=self.count, bandwidth_bytes_per_s=self.bandwidth_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Silicon:
    """What lies on the die(s), spare units included: real chips switch some off so that more of them can be sold.

    Each ``*_built`` is units on the die over units that work, at least 1.
    """

    dies: int = 1
    cores_built: float = 1.0
    global_buffer_built: float = 1.0
    hbm_built: float = 1.0

    def __post_init__(self) -> None:
        require_positive("silicon", dies=self.dies)
        for name in ("cores_built", "global_buffer_built", "hbm_built"):
            if not 1 <= getattr(self, name) < float("inf"):
                raise InputError(f"silicon.{name}", f"{getattr(self, name)!r} is out of range", "it must be at least 1")


@dataclass(frozen=True, slots=True)
class Published:
    """What the maker or a die photo says, to hold our own figures against; None where nothing is said."""

    peak_flops: float | None = None
    die_mm2: float | None = None
    die_is_upper_bound: bool = False
    tdp_w: float | None = None
    process: str | None = None


@dataclass(frozen=True, slots=True)
class Chip:
    """One accelerator device; ``technology`` names its process, ``process`` is what a file read with it says of it.

    ``clusters``: what a chip of clusters is priced by (:mod:`phaze.hardware.silicon.design`); its clock is that held,
    and ``rated_hz`` that of its data sheet, which its peak is stated at; None: the same. ``formats``: how many times
    faster than in 16 bits its arrays are in fp8, mxfp8, fp4, fp32. ``host_bytes_per_s``: to the memory of its host, one
    way; None where nothing is known of it.
    """

    name: str
    title: str
    clock_hz: float
    tensor_cores: int
    tensor_core: TensorCore
    vector_cores: int
    vector_core: VectorCore
    global_buffer: Memory
    hbm: Memory
    links: Links
    technology: str | None = None
    cluster: str | None = None
    clock_basis: ClockBasis = "sourced"
    silicon: Silicon = Silicon()
    published: Published = Published()
    calibration: Calibration | None = None
    process: "Technology | None" = None
    clusters: "ClusterDesign | None" = None
    rated_hz: float | None = None
    formats: Ratios = ()
    host_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        require_positive(
            self.name, clock_hz=self.clock_hz, tensor_cores=self.tensor_cores, vector_cores=self.vector_cores
        )

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle of all tensor cores."""
        return self.tensor_cores * self.tensor_core.macs

    @property
    def rated_clock_hz(self) -> float:
        """The clock of its data sheet, which peaks are stated at; a chip of clusters may hold less."""
        stated = self.rated_hz if self.clusters is None else self.clusters.accelerator.clock_hz
        return max(stated or self.clock_hz, self.clock_hz)

    @property
    def peak_flops(self) -> float:
        """FLOP/s of all tensor cores: ``2 * tensor_cores * rows * columns * rated clock``."""
        return 2.0 * self.macs * self.rated_clock_hz

    def peak_flops_in(self, precision: Precision) -> float:
        """FLOP/s of all tensor cores in the format that a precision's products run in."""
        return self.peak_flops * times_faster(precision, self.formats)

    @property
    def lanes(self) -> int:
        """Lanes of all vector cores."""
        return self.vector_cores * self.vector_core.lanes

    @property
    def vector_flops(self) -> float:
        """Operations per second of all lanes, one a cycle each."""
        return self.lanes * self.rated_clock_hz


def array_feed_bytes_per_cycle(rows: int, columns: int) -> int:
    """Bytes a cycle that keep an array busy: 2 a row and a column in, 4 a column out (16-bit in, 32-bit out)."""
    return 2 * rows + 2 * columns + 4 * columns


def lane_feed_bytes_per_cycle(lanes: int) -> int:
    """Bytes a cycle that keep lanes busy: two 16-bit operands in and one out for each."""
    return 6 * lanes

"""A chip: clusters of arrays and vector units around a global buffer and HBM.

N clusters each hold c arrays of R x C multiply-accumulate units behind a port of p bytes a cycle; V
vector units have l lanes each; one read of the global buffer, w bytes a cycle, reaches up to F
clusters.

    peak FLOP/s     = 2 N c R C x rated clock                         (a multiply and an add)
    of a precision  = peak FLOP/s x how many times faster than in 16 bits the arrays are in its
                    format
    vector rate /s  = V l x rated clock                               (one operation a lane and
                    cycle)

A chip is its file (``phaze.chip/2``): V = N, and the clock that it holds is set by its power limit
(:mod:`phaze.hardware.clocked`). A file of cores (``phaze.chip/1``, :mod:`phaze.hardware.core_chip`)
is read as a chip of c = 1 and ports without limit, whose V vector units stand alone, which runs at
its rated clock, and of whose peak one measured share is left.

A file's ``sources`` table names, for the path of a number, where the number comes from; a source
that begins with ``assumed:``, ``recalled:`` or ``derived:`` says that it is not a published
reading.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import Document, Format, Hertz
from phaze.hardware.calibration import Calibration
from phaze.hardware.chip_measurements import UNMEASURED, UNPUBLISHED, ChipMeasurements, Published
from phaze.hardware.chip_parts import (
    ALL_IN_USE,
    Built,
    Clusters,
    GlobalBuffer,
    Hbm,
    Host,
    Links,
    PowerLimit,
    VectorUnits,
    port_of,
)
from phaze.hardware.chip_record import chip_record
from phaze.hardware.formats import FormatsTable, Precision, Ratios, times_faster
from phaze.hardware.keys import Name, Place, Sources, Text
from phaze.values import FrozenTable, replace

if TYPE_CHECKING:
    from phaze.hardware.technology import Technology

ClockBasis = Literal["sourced", "derived", "recalled"]


class ChipKeys(Document):
    """What files of chips have in common, of cores and of clusters."""

    schema_: Annotated[str, Field(alias="schema")]
    name: Name
    title: Text
    stated_hz: Annotated[Hertz, Field(alias="clock")]
    clock_basis: ClockBasis
    technology: Place | None = None
    cluster: Name | None = None
    published: Published = UNPUBLISHED
    format_rates: Annotated[FormatsTable, Field(alias="formats")] = FormatsTable()
    host: Host | None = None
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)


class Chip(ChipKeys):
    """An accelerator device as clusters of arrays (``phaze.chip/2``).

    ``clock_hz`` is the clock that it runs at, ``rated_hz`` that of its data sheet, which peaks and
    the global buffer's bandwidth are stated at. ``sustained_w``: the power that it may draw for
    long; None: no limit is known. ``technology`` names its process, ``process`` is that process as
    it was read, ``base_process`` that of base dies. ``die``: what its dies are called; stacks know
    chips of the same die by it (:attr:`generation`). ``software_of``: the process whose generation
    of chips a stack's software share is taken from; None: its own. ``formats``: how many times
    faster than in 16 bits its arrays are in fp8, mxfp8, fp4, fp32. ``host_bytes_per_s``: to the
    memory of its host, one way; None where nothing is known of it. ``calibration``: what counts of
    what was measured.
    """

    schema_: Annotated[Literal["phaze.chip/2"], Field(alias="schema")]
    stated_hz: Annotated[
        Hertz,
        Field(alias="clock", description="the most it may run; the power limit sets what it holds"),
    ]
    clock_basis: ClockBasis = "sourced"
    technology: Annotated[
        Place | None, Field(description="a process by name, or the path of a file")
    ] = None
    die: Annotated[
        Name | None,
        Field(description="what its dies are called, by which stacks know chips of the same"),
    ] = None
    clusters: Clusters
    global_buffer: GlobalBuffer
    hbm: Hbm
    links: Links
    built: Annotated[Built, Field(alias="silicon")] = ALL_IN_USE
    power: PowerLimit | None = None
    measured: ChipMeasurements = UNMEASURED
    _clock_hz: float | None = None
    _power_sets_clock: bool = True
    _vectors: VectorUnits | None = None
    _calibration: Calibration | None = None
    _process: "Technology | None" = None
    _base_process: "Technology | None" = None
    _software_of: str | None = None

    @model_validator(mode="after")
    def _with_what_follows(self) -> "Chip":
        """The chip with what follows from other tables: ports, the global buffer's bandwidth,
        clusters built."""
        count, shared, built = self.clusters.count, self.global_buffer, self.built
        if "clusters" not in built.model_fields_set:
            built = replace(built, clusters=(count, count))
        elif built.clusters[1] != count:
            raise ValueError(f"let silicon.clusters end with the clusters in use, {count}")
        return replace(
            self,
            clusters=replace(
                self.clusters,
                port_bytes_per_cycle=self.clusters.port or port_of(shared.width, count),
            ),
            global_buffer=replace(shared, bandwidth_bytes_per_s=shared.width * self.stated_hz),
            built=built,
            calibration=self.measured.calibration,
        )

    @property
    def clock_hz(self) -> float:
        """The clock that it runs at."""
        return self.stated_hz if self._clock_hz is None else self._clock_hz

    @property
    def rated_hz(self) -> float:
        """The clock of its data sheet."""
        return self.stated_hz

    @property
    def power_sets_clock(self) -> bool:
        """Whether it may hold less than its rated clock, as its power limit allows; else it runs at
        that."""
        return self._power_sets_clock

    @property
    def lumped_share(self) -> bool:
        """Whether one measured share of its peak stands for all that clock, arrays and software
        leave of it."""
        return self.clusters.sustained_share is None

    @property
    def vectors(self) -> VectorUnits:
        """Its vector units: those of its clusters, or units that stand alone."""
        clusters = self.clusters
        return self._vectors or VectorUnits(clusters.count, clusters.lanes, clusters.register_bytes)

    @property
    def sums_in_registers(self) -> bool:
        """Whether a cluster's registers, which are beside its arrays, hold their sums; vector units
        that stand alone leave them to the operand buffer."""
        return self._vectors is None

    @property
    def sustained_w(self) -> float | None:
        """The power that it may draw for long."""
        return None if self.power is None else self.power.sustained_w

    @property
    def formats(self) -> Ratios:
        """How many times faster than in 16 bits its arrays are in each number format that they
        have."""
        return self.format_rates.ratios

    @property
    def host_bytes_per_s(self) -> float | None:
        """To the memory of its host, one way."""
        return None if self.host is None else self.host.bandwidth_bytes_per_s

    @property
    def calibration(self) -> Calibration | None:
        """What counts of what was measured."""
        return self._calibration

    @property
    def process(self) -> "Technology | None":
        """The process that it names, as it was read."""
        return self._process

    @property
    def base_process(self) -> "Technology | None":
        """The process of its base dies."""
        return self._base_process

    @property
    def software_of(self) -> str | None:
        """The process whose generation of chips a stack's software share is taken from."""
        return self._software_of

    @property
    def generation(self) -> tuple[str | None, ...]:
        """The names by which a stack may know what it reaches on the chip, nearest first."""
        return (self.software_of,) if self.software_of else (self.name, self.die, self.technology)

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
        """The clock that peaks are stated at: that of its data sheet, or the one it runs at where
        that is greater."""
        return max(self.rated_hz, self.clock_hz)

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
        return self.global_buffer.bandwidth_bytes_per_s / self.rated_hz

    @property
    def global_bytes_per_s(self) -> float:
        """The global buffer's bandwidth at the clock that the chip runs at."""
        if self.clock_hz == self.rated_hz:
            return self.global_buffer.bandwidth_bytes_per_s
        return self.global_bytes_per_cycle * self.clock_hz

    def as_read(self) -> dict[str, Any]:
        """The chip as documents have it."""
        return chip_record(self)


CHIP = Format("phaze.chip/2", Chip, "an accelerator device as clusters of arrays")

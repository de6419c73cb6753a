"""The tables of a process: areas and energies of parts, memory curves; each is the table of its
file, in SI units.

Areas are of a unit, a byte/s, a byte a cycle, or a byte a cycle and mm of distance. A coefficient
that a format does not have is a constant of its class, zero where it stands for an area or an
energy, so :mod:`phaze.hardware.area` and :mod:`phaze.hardware.power` have one formula for all.

Memory areas and energies are curves over the size: straight lines between the points, areas through
the origin below the first, the last slope beyond the last. All are non-decreasing, so a chip with
more of anything is never smaller. A curve is given by sizes and values, in mm2 or pJ a byte. With a
``reference`` areas count as ratios only, scaled so that the curve meets the reference: area(size) =
reference.area * values(size) / values(reference.size).
"""

from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, Field, PlainSerializer, model_validator

from phaze.documents import Bytes, Document, Mm2, NonNegative, Positive, Share
from phaze.values import Listed, replace

Array = NDArray[np.float64]
PJ, GB = 1e-12, 1e9
REGISTER_FILE_BYTES = 8 * 2**20
"""Beyond this, storage beside lanes is a banked SRAM: no register file shipped is larger, TPU VMEM
begins at 16 MiB."""


def _per(units: float) -> tuple[AfterValidator, PlainSerializer]:
    """What a file states in a unit of which so many make one of ours: read as ours, written as the
    file has it."""
    return AfterValidator(lambda value: value / units), PlainSerializer(lambda value: value * units)


def _times(unit: float) -> tuple[AfterValidator, PlainSerializer]:
    """What a file states in a unit that is so much of ours."""
    return AfterValidator(lambda value: value * unit), PlainSerializer(lambda value: value / unit)


Um2 = Annotated[NonNegative, *_times(1e-6)]
"""Square micrometres of a file, mm2 of a value."""
PositiveUm2 = Annotated[Positive, *_times(1e-6)]
Pj = Annotated[NonNegative, *_times(PJ)]
"""Picojoules of a file, joules of a value."""
PositivePj = Annotated[Positive, *_times(PJ)]
PerGb = Annotated[NonNegative, *_per(GB)]
"""Something a GB/s of a file, a byte/s of a value."""


class Reference(Document):
    """A size whose area is known."""

    size: Bytes
    area: Mm2


class Curve(Document):
    """A non-decreasing figure over the size of a memory, given at some sizes: areas in mm2."""

    sizes_bytes: Annotated[Listed[Bytes], Field(alias="sizes", min_length=2, max_length=64)]
    values: Annotated[Listed[Positive], Field(min_length=2, max_length=64)]
    reference: Reference | None = None
    through_origin: ClassVar[bool] = True

    @model_validator(mode="after")
    def _rising(self) -> Self:
        sizes, values = self.sizes_bytes, self.values
        if len(sizes) != len(values):
            raise ValueError(f"give as many values as sizes ({len(values)} and {len(sizes)})")
        if list(sizes) != sorted(set(sizes)) or list(values) != sorted(values):
            raise ValueError("give sizes and values in rising order")
        return self._scaled_to_reference()

    def _scaled_to_reference(self) -> Self:
        if self.reference is None:
            return self
        factor = self.reference.area / float(self.at(self.reference.size))
        return replace(self.scaled(factor), reference=None)

    def at(self, size_bytes: ArrayLike) -> Array:
        """The figure at each size."""
        size = np.asarray(size_bytes, dtype=np.float64)
        sizes, values = np.array(self.sizes_bytes), np.array(self.values)
        figure: Array = np.asarray(np.interp(size, sizes, values))
        if self.through_origin and (small := size < sizes[0]).any():
            figure = np.where(small, values[0] * size / sizes[0], figure)
        if (large := size > sizes[-1]).any():
            slope = (values[-1] - values[-2]) / (sizes[-1] - sizes[-2])
            figure = np.where(large, values[-2] + slope * (size - sizes[-2]), figure)
        return figure

    def scaled(self, factor: float) -> Self:
        """The same curve with every value times ``factor``."""
        return replace(self, values=tuple(value * factor for value in self.values))

    def as_read(self) -> dict[str, Any]:
        """The curve as documents state it."""
        return {
            "sizes_bytes": self.sizes_bytes,
            "values": self.values,
            "through_origin": self.through_origin,
        }


class EnergyCurve(Curve):
    """Energies at several sizes: figures as they stand, for which no known area is a reference."""

    values: Annotated[Listed[PositivePj], Field(min_length=2, max_length=64)]
    through_origin: ClassVar[bool] = False

    def _scaled_to_reference(self) -> Self:
        if self.reference is not None:
            raise ValueError("energies are not scaled, so leave reference out")
        return self


class InterfaceAreas(Document):
    """HBM and link interfaces of one die photo: PHY and controller of a stack; links by the lane
    pair, or by the GB/s where lanes are not known."""

    stack_mm2: NonNegative
    lane_mm2: NonNegative = 0.0
    link_mm2_per_byte_per_s: Annotated[PerGb, Field(alias="link_mm2_per_gb_per_s")] = 0.0

    def scaled(self, factor: float) -> "InterfaceAreas":
        """Each times ``factor``."""
        return replace(self, **{name: value * factor for name, value in self})


NO_INTERFACES = InterfaceAreas(stack_mm2=0.0)


class CoreAreas(Document):
    """Areas by component (``phaze.technology/1``), the paper's among them."""

    mac_mm2: Annotated[PositiveUm2, Field(alias="mac_um2")]
    lane_mm2: Annotated[PositiveUm2, Field(alias="lane_um2")]
    vector_control_mm2: Annotated[Um2, Field(alias="vector_control_um2")]
    core_buffer: Curve
    scratchpad: Curve
    cache: Curve = Field(default_factory=lambda stated: stated["scratchpad"])
    network_mm2_per_byte_per_cycle: NonNegative
    hbm_mm2_per_byte_per_s: Annotated[PerGb, Field(alias="hbm_mm2_per_gb_per_s")]
    link_mm2_per_byte_per_s: Annotated[PerGb, Field(alias="link_mm2_per_gb_per_s")]
    other_share: Share

    support_mm2: ClassVar[float] = 0.0
    control_lane_mm2: ClassVar[float] = 0.0
    control_array_mm2: ClassVar[float] = 0.0
    network_mm2: ClassVar[float] = 0.0
    uncore_mm2: ClassVar[float] = 0.0
    ga100: ClassVar[InterfaceAreas] = NO_INTERFACES
    aldebaran: ClassVar[InterfaceAreas] = NO_INTERFACES
    host_lanes: ClassVar[int] = 0
    register_file_bytes: ClassVar[int] = 0
    shared_cluster: ClassVar[bool] = False

    @property
    def control_cluster_mm2(self) -> float:
        """Control of a vector core that stands alone."""
        return self.vector_control_mm2


class PartAreas(Document):
    """Areas of parts (``phaze.technology/2``): lanes and arrays are one cluster, whose buffers are
    summed before they are counted. Registers of at most ``register_file_bytes`` are a register file
    with twice the ports of a memory."""

    mac_mm2: Annotated[PositiveUm2, Field(alias="mac_um2")]
    support_mm2: Annotated[Um2, Field(alias="support_um2")]
    lane_mm2: Annotated[PositiveUm2, Field(alias="lane_um2")]
    control_lane_mm2: Annotated[Um2, Field(alias="control_lane_um2")]
    control_cluster_mm2: Annotated[Um2, Field(alias="control_cluster_um2")]
    control_array_mm2: Annotated[Um2, Field(alias="control_array_um2")]
    network_mm2: Annotated[
        Um2, Field(alias="network_um2", description="a byte a cycle, and mm of distance")
    ]
    uncore_mm2: NonNegative
    sram: Curve
    cache: Curve
    ga100: InterfaceAreas
    aldebaran: InterfaceAreas
    host_lanes: Annotated[int, Field(ge=0, le=1024)]

    network_mm2_per_byte_per_cycle: ClassVar[float] = 0.0
    hbm_mm2_per_byte_per_s: ClassVar[float] = 0.0
    link_mm2_per_byte_per_s: ClassVar[float] = 0.0
    other_share: ClassVar[float] = 0.0
    register_file_bytes: ClassVar[int] = REGISTER_FILE_BYTES
    shared_cluster: ClassVar[bool] = True

    @property
    def core_buffer(self) -> Curve:
        """Operand buffers and registers."""
        return self.sram

    @property
    def scratchpad(self) -> Curve:
        """A global buffer that software fills."""
        return self.sram


class UnitEnergies(Document):
    """What both formats state: joules an operation or a byte, at the reference voltage.

    ``buffer`` is joules a byte over the size of a memory that is accessed as a whole, as the global
    buffer is. A buffer inside a core or cluster lies in banks of at most ``core_bank_bytes`` beside
    the units they feed.
    """

    mac_j: Annotated[PositivePj, Field(alias="mac_pj")]
    lane_j: Annotated[PositivePj, Field(alias="lane_pj")]
    buffer: EnergyCurve
    core_bank_bytes: Annotated[Bytes, Field(alias="core_bank")]
    hbm_j_per_byte: Annotated[PositivePj, Field(alias="hbm_pj_per_byte")]
    link_j_per_byte: Annotated[PositivePj, Field(alias="link_pj_per_byte")]

    def core_buffer_j_per_byte(self, size_bytes: ArrayLike) -> Array:
        """Energy a byte of a buffer of each size inside a core or cluster."""
        return self.buffer.at(
            np.minimum(np.asarray(size_bytes, dtype=np.float64), self.core_bank_bytes)
        )


class CoreEnergies(UnitEnergies):
    """Energies by component, static power by area, and the share of its full rate that a chip holds
    at its design power (``phaze.technology/1``)."""

    static_w_per_mm2: NonNegative
    design_activity: Share

    edge_j: ClassVar[float] = 0.0
    stack_w: ClassVar[float] = 0.0
    hbm_activity: ClassVar[float] = 1.0


class PartEnergies(UnitEnergies):
    """Energies of parts, and idle power (``phaze.technology/2``). ``edge_j``: a byte between
    operand buffer and array edge, beside the buffer's own. ``hbm_activity``: of its bandwidth while
    a large product runs."""

    edge_j: Annotated[Pj, Field(alias="edge_pj_per_byte")]
    leakage_w_per_mm2: NonNegative
    stack_w: NonNegative
    hbm_activity: Share

    design_activity: ClassVar[None] = None

    @property
    def static_w_per_mm2(self) -> float:
        """Leakage, at any clock."""
        return self.leakage_w_per_mm2


AreaTable = CoreAreas | PartAreas
EnergyTable = CoreEnergies | PartEnergies

"""A process technology: areas, energies, voltage over the clock, and wafers, as one table of coefficients.

:mod:`phaze.hardware.area` and :mod:`phaze.hardware.power` say what each stands for; one that a model of area does not
know is zero. ``phaze.technology/1`` (the paper's areas among them) has no voltage and states the share of its full rate
that a chip holds at its design power; ``phaze.technology/2`` has a voltage, and a power limit sets the clock.

A node in full times four factors is another one (:func:`scaled`):

    logic    multiply-accumulate units, lanes, control, network, half of the uncore
    sram     operand buffers, registers, global buffer, caches
    analog   HBM and link interfaces, half of the uncore
    energy   joules at the reference voltage; wires have their own figure, HBM and links none

Voltage over the clock, of the voltage at the reference clock: V(f) = max(least, 1 + slope (f / reference - 1)), which
ends at ``most``: no part of the node runs beyond that clock (:attr:`Voltage.most_hz`).

Memory areas and energies are curves over the size: straight lines between the points, areas through the origin below
the first, the last slope beyond the last. All are non-decreasing, so a chip with more of anything is never smaller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from phaze.documents import Document, Hertz, NonNegative, Positive
from phaze.errors import InputError
from phaze.values import FrozenTable

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """A non-decreasing figure over the size of a memory, given at some sizes."""

    sizes_bytes: tuple[float, ...]
    values: tuple[float, ...]
    through_origin: bool

    def __post_init__(self) -> None:
        pairs = list(zip(self.sizes_bytes, self.values, strict=True))
        if len(pairs) < 2 or any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(pairs)):
            raise InputError("curve", "the sizes or values do not rise", "give at least two points in rising order")

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

    def scaled(self, factor: float) -> "Curve":
        """The same curve with every value times ``factor``."""
        return Curve(self.sizes_bytes, tuple(value * factor for value in self.values), self.through_origin)


@dataclass(frozen=True, slots=True)
class InterfaceAreas:
    """HBM PHY and controller of a stack, SerDes of a lane pair or of a byte/s, as one maker's die photo shows them."""

    stack_mm2: float = 0.0
    lane_mm2: float = 0.0
    link_mm2_per_byte_per_s: float = 0.0

    def scaled(self, factor: float) -> "InterfaceAreas":
        """Each times ``factor``."""
        return InterfaceAreas(*(getattr(self, each.name) * factor for each in fields(self)))


@dataclass(frozen=True, slots=True)
class AreaTable:
    """Areas in mm2: of a unit, a byte/s, a byte a cycle, a byte a cycle and mm of distance; curves over bytes.

    ``control_cluster_mm2`` is that of a cluster's lanes, or of a vector core that stands alone. Registers of at most
    ``register_file_bytes`` are a register file with twice the ports of a memory. ``shared_cluster``: lanes and arrays
    are one cluster, whose buffers are summed before they are counted.
    """

    mac_mm2: float
    lane_mm2: float
    control_cluster_mm2: float
    core_buffer: Curve
    scratchpad: Curve
    cache: Curve
    support_mm2: float = 0.0
    control_lane_mm2: float = 0.0
    control_array_mm2: float = 0.0
    register_file_bytes: int = 0
    shared_cluster: bool = False
    network_mm2: float = 0.0
    network_mm2_per_byte_per_cycle: float = 0.0
    hbm_mm2_per_byte_per_s: float = 0.0
    link_mm2_per_byte_per_s: float = 0.0
    ga100: InterfaceAreas = InterfaceAreas()
    aldebaran: InterfaceAreas = InterfaceAreas()
    host_lanes: int = 0
    lane_bytes_per_s: float = float("inf")
    uncore_mm2: float = 0.0
    other_share: float = 0.0


@dataclass(frozen=True, slots=True)
class EnergyTable:
    """Energies: joules an operation or a byte, at the reference voltage; watts that are drawn at any clock.

    ``buffer`` is joules a byte over the size of a memory that is accessed as a whole, as the global buffer is. A buffer
    inside a core or cluster lies in banks of at most ``core_bank_bytes`` beside the units they feed. ``edge_j``: a byte
    between operand buffer and array edge, beside the buffer's own. ``wire_j``: a byte and mm. ``hbm_activity``: of its
    bandwidth while a large product runs. ``design_activity``: the share of its full rate that a chip holds at its
    design power; None where a power limit sets the clock.
    """

    mac_j: float
    lane_j: float
    buffer: Curve
    core_bank_bytes: int
    hbm_j_per_byte: float
    link_j_per_byte: float
    static_w_per_mm2: float
    design_activity: float | None = None
    edge_j: float = 0.0
    wire_j: float = 0.0
    stack_w: float = 0.0
    hbm_activity: float = 1.0

    def core_buffer_j_per_byte(self, size_bytes: ArrayLike) -> Array:
        """Energy a byte of a buffer of each size inside a core or cluster."""
        return self.buffer.at(np.minimum(np.asarray(size_bytes, dtype=np.float64), self.core_bank_bytes))


class Voltage(Document):
    """The voltage over the clock, as a share of that at the reference clock."""

    reference_hz: Annotated[Hertz, Field(alias="reference")]
    slope: Positive
    least: Positive
    most: Annotated[Positive, Field(ge=1)]

    def at(self, clock_hz: ArrayLike) -> Array:
        """V(f) of the module's docstring."""
        clock = np.asarray(clock_hz, dtype=np.float64)
        volts: Array = np.maximum(self.least, 1.0 + self.slope * (clock / self.reference_hz - 1.0))
        return volts

    @property
    def most_hz(self) -> float:
        """The clock that the greatest voltage allows."""
        return self.reference_hz * (1.0 + (self.most - 1.0) / self.slope) if self.slope else float("inf")


CONSTANT_VOLTAGE = Voltage.model_construct(reference_hz=1.0, slope=0.0, least=1.0, most=1.0)
"""The same voltage at every clock."""


class Fab(Document):
    """The wafer: price, defects, carbon."""

    wafer_usd: Positive
    wafer_diameter_mm: Positive
    defects_per_cm2: NonNegative
    energy_kwh_per_cm2: NonNegative
    gas_kgco2e_per_cm2: NonNegative
    materials_kgco2e_per_cm2: NonNegative


# The keys of tables in documents of each format, and the fields of those that are called otherwise here.
AREAS_1 = (
    "mac_mm2", "lane_mm2", "vector_control_mm2", "core_buffer", "scratchpad", "cache",
    "network_mm2_per_byte_per_cycle", "hbm_mm2_per_byte_per_s", "link_mm2_per_byte_per_s", "other_share",
)  # fmt: skip
AREAS_2 = (
    "mac_mm2", "support_mm2", "lane_mm2", "control_lane_mm2", "control_cluster_mm2", "control_array_mm2",
    "network_mm2", "uncore_mm2", "sram", "cache", "ga100", "aldebaran", "host_lanes", "lane_bytes_per_s",
)  # fmt: skip
ENERGIES_1 = (
    "mac_j", "lane_j", "buffer", "core_bank_bytes", "hbm_j_per_byte", "link_j_per_byte", "static_w_per_mm2",
    "design_activity",
)  # fmt: skip
ENERGIES_2 = (
    "mac_j", "edge_j", "lane_j", "buffer", "core_bank_bytes", "wire_j", "hbm_j_per_byte", "link_j_per_byte",
    "leakage_w_per_mm2", "stack_w", "hbm_activity",
)  # fmt: skip
FIELD_OF: Mapping[str, str] = MappingProxyType(
    {
        "vector_control_mm2": "control_cluster_mm2",
        "sram": "core_buffer",
        "leakage_w_per_mm2": "static_w_per_mm2",
    }
)


@dataclass(frozen=True, slots=True)
class Technology:
    """One process."""

    name: str
    title: str
    area: AreaTable
    energy: EnergyTable
    fab: Fab
    voltage: Voltage = CONSTANT_VOLTAGE
    notes: str | None = field(default=None, compare=False)
    sources: Mapping[str, str] = field(default_factory=FrozenTable, compare=False)

    @property
    def schema(self) -> str:
        """The format that it was read from."""
        return "phaze.technology/2" if self.sets_clock else "phaze.technology/1"

    @property
    def sets_clock(self) -> bool:
        """Whether a power limit sets the clock of its chips (``phaze.technology/2``)."""
        return self.energy.design_activity is None

    @property
    def sent_j_per_byte(self) -> float:
        """What a byte that is sent takes beside idle power: nothing where SerDes never sleep and are drawn always."""
        return 0.0 if self.sets_clock else self.energy.link_j_per_byte

    def as_read(self) -> dict[str, Any]:
        """The figures as the format has them that it was read from."""
        areas, energies = (AREAS_2, ENERGIES_2) if self.sets_clock else (AREAS_1, ENERGIES_1)
        return {
            "name": self.name,
            "title": self.title,
            "area": {key: getattr(self.area, FIELD_OF.get(key, key)) for key in areas},
            "energy": {key: getattr(self.energy, FIELD_OF.get(key, key)) for key in energies},
            **({"voltage": self.voltage} if self.sets_clock else {}),
            "fab": self.fab,
        }


class Factors(Document):
    """This node over its base: areas of logic, SRAM and analog parts, energy at the reference voltage."""

    logic: Positive
    sram: Positive
    analog: Positive
    energy: Positive


LOGIC = (
    "mac_mm2", "support_mm2", "lane_mm2", "control_lane_mm2", "control_cluster_mm2", "control_array_mm2", "network_mm2",
)  # fmt: skip


def scaled(base: Technology, by: Factors) -> Technology:
    """``base`` with its areas and energies times the factors; name, voltage, wires, lanes and wafers stay its own."""
    area, energy = base.area, base.energy
    logic = {name: getattr(area, name) * by.logic for name in LOGIC}
    memories = {name: getattr(area, name).scaled(by.sram) for name in ("core_buffer", "scratchpad", "cache")}
    interfaces = {name: getattr(area, name).scaled(by.analog) for name in ("ga100", "aldebaran")}
    uncore_mm2 = area.uncore_mm2 * (by.logic + by.analog) / 2.0
    joules = {name: getattr(energy, name) * by.energy for name in ("mac_j", "edge_j", "lane_j")}
    return replace(
        base,
        area=replace(area, **logic, **memories, **interfaces, uncore_mm2=uncore_mm2),
        energy=replace(energy, **joules, buffer=energy.buffer.scaled(by.energy)),
    )

"""A process node: area and energy of every part of an accelerator, its voltage over the clock, its wafers.

Files (``phaze.technology/2``) give a node in full, or as a ``base`` node times four factors (:func:`scaled`):

    logic    multiply-accumulate units, lanes, control, network, half of the uncore
    sram     operand buffers, registers, global buffer, caches
    analog   HBM and link interfaces, half of the uncore
    energy   joules at the reference voltage; wires have their own figure, HBM and links none

Voltage over the clock, of the voltage at the reference clock: V(f) = max(least, 1 + slope (f / reference - 1)), which
ends at ``most``: no part of the node runs beyond that clock (:attr:`Voltage.most_hz`).
"""

from bisect import bisect_right
from dataclasses import dataclass, replace

from phaze.hardware.technology import Curve, Fab


def curve_at(curve: Curve, size_bytes: float) -> float:
    """The figure at one size; on a straight line between two points, which it never leaves by rounding."""
    sizes, values = curve.sizes_bytes, curve.values
    if size_bytes < sizes[0]:
        return values[0] * size_bytes / sizes[0] if curve.through_origin else values[0]
    at = min(bisect_right(sizes, size_bytes) - 1, len(sizes) - 2)
    slope = (values[at + 1] - values[at]) / (sizes[at + 1] - sizes[at])
    found = values[at] + slope * (size_bytes - sizes[at])
    return found if size_bytes > sizes[-1] else min(found, values[at + 1])


@dataclass(frozen=True, slots=True)
class InterfaceAreas:
    """HBM PHY and controller of a stack, SerDes of a lane pair or of a byte/s, as one maker's die photo shows them."""

    stack_mm2: float
    lane_mm2: float
    link_mm2_per_byte_per_s: float


@dataclass(frozen=True, slots=True)
class PartAreas:
    """Areas in mm2; the network's is for one byte a cycle and mm of distance, curves are over bytes."""

    mac_mm2: float
    support_mm2: float
    lane_mm2: float
    control_lane_mm2: float
    control_cluster_mm2: float
    control_array_mm2: float
    network_mm2: float
    uncore_mm2: float
    sram: Curve
    cache: Curve
    ga100: InterfaceAreas
    aldebaran: InterfaceAreas
    host_lanes: int
    lane_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class PartEnergies:
    """Joules at the reference voltage, and what is drawn at any clock.

    ``edge_j``: a byte between operand buffer and array edge, beside the buffer's own. ``wire_j``: a byte and mm.
    ``hbm_activity``: of its bandwidth while a large product runs.
    """

    mac_j: float
    edge_j: float
    lane_j: float
    buffer: Curve
    core_bank_bytes: int
    wire_j: float
    hbm_j_per_byte: float
    link_j_per_byte: float
    leakage_w_per_mm2: float
    stack_w: float
    hbm_activity: float


@dataclass(frozen=True, slots=True)
class Voltage:
    """The voltage that a clock needs, as a share of that at the reference clock."""

    reference_hz: float
    slope: float
    least: float
    most: float

    def at(self, clock_hz: float) -> float:
        """V(f) of the module's docstring."""
        return max(self.least, 1.0 + self.slope * (clock_hz / self.reference_hz - 1.0))

    @property
    def most_hz(self) -> float:
        """The clock that the greatest voltage allows."""
        return self.reference_hz * (1.0 + (self.most - 1.0) / self.slope)


@dataclass(frozen=True, slots=True)
class Node:
    """One process."""

    name: str
    title: str
    area: PartAreas
    energy: PartEnergies
    voltage: Voltage
    fab: Fab


@dataclass(frozen=True, slots=True)
class Factors:
    """A node over another: areas of logic, SRAM and analog parts, energy at the reference voltage."""

    logic: float
    sram: float
    analog: float
    energy: float


def _interfaces(areas: InterfaceAreas, analog: float) -> InterfaceAreas:
    return InterfaceAreas(
        areas.stack_mm2 * analog, areas.lane_mm2 * analog, areas.link_mm2_per_byte_per_s * analog
    )  # fmt: skip


def scaled(base: Node, by: Factors) -> Node:
    """``base`` with its areas and energies times the factors; name, voltage, wires, lanes and wafers stay its own."""
    area, energy = base.area, base.energy
    areas = replace(
        area,
        mac_mm2=area.mac_mm2 * by.logic,
        support_mm2=area.support_mm2 * by.logic,
        lane_mm2=area.lane_mm2 * by.logic,
        control_lane_mm2=area.control_lane_mm2 * by.logic,
        control_cluster_mm2=area.control_cluster_mm2 * by.logic,
        control_array_mm2=area.control_array_mm2 * by.logic,
        network_mm2=area.network_mm2 * by.logic,
        uncore_mm2=area.uncore_mm2 * (by.logic + by.analog) / 2.0,
        sram=area.sram.scaled(by.sram),
        cache=area.cache.scaled(by.sram),
        ga100=_interfaces(area.ga100, by.analog),
        aldebaran=_interfaces(area.aldebaran, by.analog),
    )
    energies = replace(
        energy,
        mac_j=energy.mac_j * by.energy,
        edge_j=energy.edge_j * by.energy,
        lane_j=energy.lane_j * by.energy,
        buffer=energy.buffer.scaled(by.energy),
    )
    return replace(base, area=areas, energy=energies)

"""A process technology: the area, energy and static power of every component, and the area of a chip in it.

For a chip with T tensor cores of r x c units, V vector cores of l lanes, core buffers u and v, a global buffer g that
delivers w bytes a cycle, HBM at H bytes/s and links at B bytes/s (:func:`component_areas`; the built/in-use ratios
``kappa`` of the chip's silicon multiply cores, global buffer and HBM interface):

    tensor_arrays   = kappa_c T r c mac
    vector_units    = kappa_c V (l lane + control)
    core_buffers    = kappa_c (T core(u) + V core(v))
    global_buffer   = scratchpad(kappa_g g)  or  cache(kappa_g g)
    network         = w network
    hbm_interface   = kappa_h H hbm
    link_interface  = B link
    other           = share * (sum of the above)

Memory areas are curves over the size: straight lines between the points, through the origin below the first, the last
slope beyond the last. All are non-decreasing, so a chip with more of anything is never smaller.
"""

from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phaze.errors import InputError
from phaze.hardware.chip import Chip, Silicon

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
        knots, values = np.array(self.sizes_bytes), np.array(self.values)
        inside = np.interp(size, knots, values)
        below = values[0] * size / knots[0] if self.through_origin else inside
        slope = (values[-1] - values[-2]) / (knots[-1] - knots[-2])
        above = values[-1] + slope * (size - knots[-1])
        result: Array = np.where(size < knots[0], below, np.where(size > knots[-1], above, inside))
        return result

    def scaled(self, factor: float) -> "Curve":
        """The same curve with every value times ``factor``."""
        return Curve(self.sizes_bytes, tuple(value * factor for value in self.values), self.through_origin)


@dataclass(frozen=True, slots=True)
class AreaTable:
    """Areas: mm2 a unit, a byte/s, a byte a cycle; curves in mm2 over bytes."""

    mac_mm2: float
    lane_mm2: float
    vector_control_mm2: float
    core_buffer: Curve
    scratchpad: Curve
    cache: Curve
    network_mm2_per_byte_per_cycle: float
    hbm_mm2_per_byte_per_s: float
    link_mm2_per_byte_per_s: float
    other_share: float


@dataclass(frozen=True, slots=True)
class EnergyTable:
    """Energies: joules an operation or a byte; static watts a mm2.

    ``buffer`` is joules a byte over the size of a memory that is accessed as a whole, as the global buffer is. A core's
    buffer lies in banks of at most ``core_bank_bytes`` beside the units they feed. ``design_activity`` is the share of
    its full rate that a chip holds at its design power.
    """

    mac_j: float
    lane_j: float
    buffer: Curve
    core_bank_bytes: int
    hbm_j_per_byte: float
    link_j_per_byte: float
    static_w_per_mm2: float
    design_activity: float

    def core_buffer_j_per_byte(self, size_bytes: ArrayLike) -> Array:
        """Energy a byte of a core's buffer of each size."""
        return self.buffer.at(np.minimum(np.asarray(size_bytes, dtype=np.float64), self.core_bank_bytes))


@dataclass(frozen=True, slots=True)
class Fab:
    """What a wafer of this process costs in money, defects and carbon."""

    wafer_usd: float
    wafer_diameter_mm: float
    defects_per_cm2: float
    energy_kwh_per_cm2: float
    gas_kgco2e_per_cm2: float
    materials_kgco2e_per_cm2: float


@dataclass(frozen=True, slots=True)
class Technology:
    """One process."""

    name: str
    title: str
    area: AreaTable
    energy: EnergyTable
    fab: Fab


@dataclass(frozen=True, slots=True)
class Areas:
    """Area by component in mm2, as arrays over chips (of no dimension for one chip)."""

    tensor_arrays: Array
    vector_units: Array
    core_buffers: Array
    global_buffer: Array
    network: Array
    hbm_interface: Array
    link_interface: Array
    other: Array

    def total(self) -> Array:
        """The sum of all components."""
        components: list[Array] = [getattr(self, f.name) for f in fields(self)]
        return sum(components, start=np.zeros(()))

    def by_component(self) -> dict[str, float]:
        """For one chip: component name to mm2, in the order of the fields."""
        return {f.name: float(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Parts:
    """The numbers that area depends on, each one value or an array over chips."""

    tensor_cores: ArrayLike
    macs_per_core: ArrayLike
    tensor_buffer_bytes: ArrayLike
    vector_cores: ArrayLike
    lanes_per_core: ArrayLike
    vector_buffer_bytes: ArrayLike
    global_buffer_bytes: ArrayLike
    global_bytes_per_cycle: ArrayLike
    hbm_bytes_per_s: ArrayLike
    link_bytes_per_s: ArrayLike
    cache: bool
    silicon: Silicon


def component_areas(technology: Technology, parts: Parts) -> Areas:
    """Area of every component of every chip; the formulas stand in the module's docstring."""
    table, silicon = technology.area, parts.silicon

    def value(x: ArrayLike) -> Array:
        return np.asarray(x, dtype=np.float64)

    tensor_cores = value(parts.tensor_cores) * silicon.cores_built
    vector_cores = value(parts.vector_cores) * silicon.cores_built
    global_curve = table.cache if parts.cache else table.scratchpad
    core_buffers = tensor_cores * table.core_buffer.at(parts.tensor_buffer_bytes)
    known = (
        tensor_cores * (value(parts.macs_per_core) * table.mac_mm2),
        vector_cores * (value(parts.lanes_per_core) * table.lane_mm2 + table.vector_control_mm2),
        core_buffers + vector_cores * table.core_buffer.at(parts.vector_buffer_bytes),
        global_curve.at(value(parts.global_buffer_bytes) * silicon.global_buffer_built),
        value(parts.global_bytes_per_cycle) * table.network_mm2_per_byte_per_cycle,
        value(parts.hbm_bytes_per_s) * silicon.hbm_built * table.hbm_mm2_per_byte_per_s,
        value(parts.link_bytes_per_s) * table.link_mm2_per_byte_per_s,
    )
    return Areas(*known, other=sum(known, start=np.zeros(())) * table.other_share)


def parts_of(chip: Chip) -> Parts:
    """What the area of one chip depends on."""
    return Parts(
        tensor_cores=chip.tensor_cores,
        macs_per_core=chip.tensor_core.macs,
        tensor_buffer_bytes=chip.tensor_core.buffer.size_bytes,
        vector_cores=chip.vector_cores,
        lanes_per_core=chip.vector_core.lanes,
        vector_buffer_bytes=chip.vector_core.buffer.size_bytes,
        global_buffer_bytes=chip.global_buffer.size_bytes,
        global_bytes_per_cycle=chip.global_buffer.bandwidth_bytes_per_s / chip.clock_hz,
        hbm_bytes_per_s=chip.hbm.bandwidth_bytes_per_s,
        link_bytes_per_s=chip.links.bandwidth_bytes_per_s,
        cache=chip.global_buffer.cache,
        silicon=chip.silicon,
    )


def chip_areas(technology: Technology, chip: Chip) -> Areas:
    """Area of one chip by component."""
    return component_areas(technology, parts_of(chip))

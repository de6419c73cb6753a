"""Power of a chip: dynamic energy over time, static power, and an estimate of its design power.

    dynamic_c = rate_c * energy_c            for every component c at its full rate
    static    = static_w_per_mm2 * area
    design    = activity * (max(tensor side, vector side) + global buffer + HBM + links) + static

A side is its units and their buffers: a program keeps either the arrays or the lanes fully busy, and the memories
with them. Rates: tensor ``macs * clock``, vector ``lanes * clock``, memories and links their bandwidths in bytes/s.
"""

from dataclasses import dataclass, fields

from phaze.hardware.chip import Chip
from phaze.hardware.technology import Technology, chip_areas


@dataclass(frozen=True, slots=True)
class Power:
    """Watts by component, each at its full rate, and the share of it that a chip holds at its design power."""

    tensor_arrays: float
    tensor_buffers: float
    vector_units: float
    vector_buffers: float
    global_buffer: float
    hbm: float
    links: float
    static: float
    activity: float

    @property
    def design_w(self) -> float:
        """An estimate of the thermal design power; the formula stands in the module's docstring."""
        sides = max(self.tensor_arrays + self.tensor_buffers, self.vector_units + self.vector_buffers)
        return self.activity * (sides + self.global_buffer + self.hbm + self.links) + self.static

    def by_component(self) -> dict[str, float]:
        """Component name to watts, in the order of the fields."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "activity"}


def full_rate_power(technology: Technology, chip: Chip) -> Power:
    """Power of every component of ``chip`` when it is busy all the time."""
    table = technology.energy
    tensor_buffer, vector_buffer = chip.tensor_core.buffer, chip.vector_core.buffer
    tensor_j, vector_j = table.core_buffer_j_per_byte([tensor_buffer.size_bytes, vector_buffer.size_bytes])
    global_buffer = chip.global_buffer
    return Power(
        tensor_arrays=chip.macs * chip.clock_hz * table.mac_j,
        tensor_buffers=chip.tensor_cores * tensor_buffer.bandwidth_bytes_per_s * float(tensor_j),
        vector_units=chip.lanes * chip.clock_hz * table.lane_j,
        vector_buffers=chip.vector_cores * vector_buffer.bandwidth_bytes_per_s * float(vector_j),
        global_buffer=global_buffer.bandwidth_bytes_per_s * float(table.buffer.at(global_buffer.size_bytes)),
        hbm=chip.hbm.bandwidth_bytes_per_s * table.hbm_j_per_byte,
        links=chip.links.bandwidth_bytes_per_s * table.link_j_per_byte,
        static=table.static_w_per_mm2 * float(chip_areas(technology, chip).total()),
        activity=table.design_activity,
    )

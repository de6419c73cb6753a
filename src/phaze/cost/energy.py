"""Energy of works by component on chips of cores; :mod:`phaze.cost.set_energy` has the power of a layer.

For a work with M multiply-accumulates and O lane operations, and its bytes at each level (:class:`Column`):

    tensor_arrays  = M mac                              registers of the array are in ``mac``
    tensor_buffers = (core_bytes + global_bytes of its products) core(U)     what arrays read, what fills the buffers
    vector_units   = O lane
    vector_buffers = 2 vector_bytes core(U')                                  in and out
    global_buffer  = (global_bytes + hbm_bytes) buffer(G)                     to the cores, to HBM
    hbm            = hbm_bytes hbm
    links          = sent_bytes link
    static         = static_w_per_mm2 area time

so energy is never below M mac + compulsory bytes x hbm.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.cost.table import Column
from phaze.hardware.technology import EnergyTable

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Energies:
    """Joules by component, one value for each chip."""

    tensor_arrays: Floats
    tensor_buffers: Floats
    vector_units: Floats
    vector_buffers: Floats
    global_buffer: Floats
    hbm: Floats
    links: Floats
    static: Floats

    def total(self) -> Floats:
        """The sum of all components."""
        components: list[Floats] = [getattr(self, f.name) for f in fields(self)]
        return sum(components, start=np.zeros(len(self.hbm)))

    def by_component(self, chip: int = 0) -> dict[str, float]:
        """Component name to joules of one chip."""
        return {f.name: float(getattr(self, f.name)[chip]) for f in fields(self)}


def energies(
    column: Column, work: int, chips: ChipArrays, table: EnergyTable, area_mm2: Floats, sent_bytes: float = 0.0
) -> Energies:
    """Energy of one work on every chip; the formulas stand in the module's docstring."""
    done = column.works[work]
    each = np.ones(len(chips))
    macs = sum(p.macs for p in done.products)
    operations = 0.0 if done.vector is None else done.vector.operations * done.vector.elements
    tensor_j = table.core_buffer_j_per_byte(chips.tensor_buffer_bytes)
    vector_j = table.core_buffer_j_per_byte(chips.vector_buffer_bytes)
    vector_bytes, global_bytes, hbm_bytes = (
        column.vector_bytes(work), column.global_bytes(work), column.hbm_bytes(work),
    )  # fmt: skip
    return Energies(
        tensor_arrays=macs * table.mac_j * each,
        tensor_buffers=(column.core_bytes(work) + global_bytes - vector_bytes) * tensor_j,
        vector_units=operations * table.lane_j * each,
        vector_buffers=2.0 * vector_bytes * vector_j,
        global_buffer=(global_bytes + hbm_bytes) * table.buffer.at(chips.global_bytes),
        hbm=hbm_bytes * table.hbm_j_per_byte,
        links=sent_bytes * table.link_j_per_byte * each,
        static=table.static_w_per_mm2 * area_mm2 * column.time_s(work),
    )

"""What a chip of a space draws at its design power, and what making it costs and emits, for all chips at once.

The formulas are those of :mod:`phaze.hardware.power` and :mod:`phaze.hardware.ownership`.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.ownership import GB, Terms
from phaze.hardware.technology import Fab, Technology
from phaze.search.space import Chips

Floats = NDArray[np.float64]


def design_watts(chips: Chips, technology: Technology) -> Floats:
    """The design power of every chip; core buffers feed their arrays and lanes fully."""
    table = technology.energy
    arrays = chips.tensor_cores * chips.clock_hz
    lanes = chips.vector_cores * chips.lanes * chips.clock_hz
    tensor_j, vector_j = (
        table.core_buffer_j_per_byte(size) for size in (chips.tensor_buffer_bytes, chips.vector_buffer_bytes)
    )
    tensor = arrays * (chips.rows * chips.columns * table.mac_j + (2 * chips.rows + 6 * chips.columns) * tensor_j)
    vector = lanes * (table.lane_j + 6 * vector_j)
    shared = chips.global_bytes_per_s * table.buffer.at(chips.global_buffer_bytes)
    memory = chips.hbm_bytes_per_s * table.hbm_j_per_byte + chips.link_bytes_per_s * table.link_j_per_byte
    active = np.maximum(tensor, vector) + shared + memory
    return np.asarray(table.design_activity * active + table.static_w_per_mm2 * chips.area_mm2)


def _yields(area_mm2: Floats, fab: Fab, terms: Terms) -> Floats:
    return np.asarray((1 + area_mm2 / 100 * fab.defects_per_cm2 / terms.yield_clustering) ** -terms.yield_clustering)


def making_usd(chips: Chips, dies: int, fab: Fab, terms: Terms, hbm_bytes: int) -> Floats:
    """Dies, HBM and package of every chip; infinite where a die does not fit a wafer."""
    area, radius = chips.area_mm2 / dies, fab.wafer_diameter_mm / 2
    count = np.floor(np.pi * (radius**2 - radius * np.sqrt(2 * area)) / area)
    good = np.maximum(count, 1) * _yields(area, fab, terms)
    die = np.where(count > 0, dies * fab.wafer_usd / good, np.inf)
    return np.asarray(die + hbm_bytes / GB * terms.hbm_usd_per_gb + terms.package_usd)


def making_kgco2e(chips: Chips, dies: int, fab: Fab, terms: Terms, hbm_bytes: int) -> Floats:
    """The same in carbon."""
    return np.asarray(
        dies * die_kgco2e(chips.area_mm2 / dies, fab, terms)
        + hbm_bytes / GB * terms.hbm_kgco2e_per_gb
        + terms.package_kgco2e
    )


def die_kgco2e(area_mm2: Floats, fab: Fab, terms: Terms) -> Floats:
    """Carbon of a good die of each area."""
    per_cm2 = terms.fab_grid_kgco2e_per_kwh * fab.energy_kwh_per_cm2
    per_cm2 += fab.gas_kgco2e_per_cm2 + fab.materials_kgco2e_per_cm2
    return np.asarray(area_mm2 / 100 * per_cm2 / _yields(area_mm2, fab, terms))

"""What a chip of a space draws at its design power, and what making it costs and emits, for all chips at once.

The formulas are those of :mod:`phaze.hardware.power` and :mod:`phaze.hardware.ownership`.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.chip import Chip
from phaze.hardware.columns import ChipColumns
from phaze.hardware.ownership import GB, Terms
from phaze.hardware.power import full_rate
from phaze.hardware.silicon.chip import MULTICAST
from phaze.hardware.technology import Fab
from phaze.search.space import Chips, Space

Floats = NDArray[np.float64]


def columns_in(base: Chip, chips: Chips) -> ChipColumns:
    """Chips of a space as areas and powers see them; core buffers feed their arrays and lanes fully."""

    def each(value: float) -> Floats:
        return np.broadcast_to(np.float64(value), len(chips))

    silicon, clock, rows, columns = base.silicon, chips.clock_hz, chips.rows.astype(float), chips.columns.astype(float)
    tensor_cores, vector_cores = chips.tensor_cores.astype(float), chips.vector_cores.astype(float)
    lanes, size = chips.lanes.astype(float), chips.global_buffer_bytes.astype(float)
    return ChipColumns(
        clusters=tensor_cores,
        built=tensor_cores * silicon.cores_built,
        arrays=each(1.0),
        rows=rows,
        columns=columns,
        vectors=vector_cores,
        vectors_built=vector_cores * silicon.cores_built,
        lanes=lanes,
        operand_bytes=chips.tensor_buffer_bytes.astype(float),
        operand_bytes_per_s=(2 * rows + 6 * columns) * clock,
        register_bytes=chips.vector_buffer_bytes.astype(float),
        register_bytes_per_s=6 * lanes * clock,
        port=each(np.inf),
        broadcast=np.broadcast_to(False, len(chips)),
        global_bytes=size,
        global_built_bytes=size * silicon.global_buffer_built,
        width=chips.global_bytes_per_s / clock,
        global_bytes_per_s=chips.global_bytes_per_s,
        fan_out=each(MULTICAST),
        cache=np.broadcast_to(base.global_buffer.cache, len(chips)),
        stacks=each(0.0),
        sites=each(0.0),
        hbm_bytes_per_s=chips.hbm_bytes_per_s,
        hbm_built_bytes_per_s=chips.hbm_bytes_per_s * silicon.hbm_built,
        link_bytes_per_s=chips.link_bytes_per_s,
        lane_bytes_per_s=each(np.inf),
        clock_hz=clock,
        limit_w=each(np.inf),
    )


def design_watts(space: Space, chips: Chips) -> Floats:
    """The design power of every chip of a space."""
    return full_rate(columns_in(space.base, chips), space.technology, chips.area_mm2).design_w


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

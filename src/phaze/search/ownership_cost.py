"""What making a chip of a space costs and emits, for all chips at once.

The formulas are those of :mod:`phaze.hardware.ownership`.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.ownership import GB, Terms
from phaze.hardware.technology import Fab

Floats = NDArray[np.float64]


def _yields(area_mm2: Floats, fab: Fab, terms: Terms) -> Floats:
    return np.asarray((1 + area_mm2 / 100 * fab.defects_per_cm2 / terms.yield_clustering) ** -terms.yield_clustering)


def making_usd(area_mm2: Floats, dies: int, fab: Fab, terms: Terms, hbm_bytes: int) -> Floats:
    """Dies, HBM and package of every chip; infinite where a die does not fit a wafer."""
    area, radius = area_mm2 / dies, fab.wafer_diameter_mm / 2
    count = np.floor(np.pi * (radius**2 - radius * np.sqrt(2 * area)) / area)
    good = np.maximum(count, 1) * _yields(area, fab, terms)
    die = np.where(count > 0, dies * fab.wafer_usd / good, np.inf)
    return np.asarray(die + hbm_bytes / GB * terms.hbm_usd_per_gb + terms.package_usd)


def making_kgco2e(area_mm2: Floats, dies: int, fab: Fab, terms: Terms, hbm_bytes: int) -> Floats:
    """The same in carbon."""
    dies_kgco2e = dies * die_kgco2e(area_mm2 / dies, fab, terms)
    return np.asarray(dies_kgco2e + hbm_bytes / GB * terms.hbm_kgco2e_per_gb + terms.package_kgco2e)


def die_kgco2e(area_mm2: Floats, fab: Fab, terms: Terms) -> Floats:
    """Carbon of a good die of each area."""
    per_cm2 = terms.fab_grid_kgco2e_per_kwh * fab.energy_kwh_per_cm2
    per_cm2 += fab.gas_kgco2e_per_cm2 + fab.materials_kgco2e_per_cm2
    return np.asarray(area_mm2 / 100 * per_cm2 / _yields(area_mm2, fab, terms))

"""What a chip of a space draws, costs and emits, as arrays: the factors of objectives other than throughput.

The formulas are those of :mod:`phaze.hardware.power` and :mod:`phaze.hardware.ownership`, for all chips at once.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.hardware.ownership import GB, HOURS_PER_YEAR, Terms, load_terms
from phaze.hardware.technology import Technology
from phaze.hardware.technology_files import load_technology
from phaze.search.chips import SpaceChips
from phaze.search.objective import Objective

Floats = NDArray[np.float64]


def design_watts(opened: SpaceChips, technology: Technology) -> Floats:
    """The design power of every chip."""
    arrays, base, table = opened.arrays(), opened.base, technology.energy
    macs = arrays.tensor_cores * arrays.rows * arrays.columns
    lanes = arrays.vector_cores * arrays.lanes
    tensor = macs * arrays.clock_hz * table.mac_j + arrays.tensor_cores * arrays.tensor_buffer_bytes_per_s * np.asarray(
        table.core_buffer_j_per_byte(arrays.tensor_buffer_bytes)
    )
    vector = (
        lanes * arrays.clock_hz * table.lane_j
        + arrays.vector_cores
        * arrays.vector_buffer_bytes_per_s
        * np.asarray(table.core_buffer_j_per_byte(arrays.vector_buffer_bytes))
    )
    shared = arrays.global_bytes_per_s * np.asarray(table.buffer.at(arrays.global_bytes))
    links = base.links.bandwidth_bytes_per_s * table.link_j_per_byte
    active = np.maximum(tensor, vector) + shared + arrays.hbm_bytes_per_s * table.hbm_j_per_byte + links
    return np.asarray(table.design_activity * active + table.static_w_per_mm2 * opened.chips.area_mm2)


def _owned(opened: SpaceChips, technology: Technology, terms: Terms, hbm_bytes: int, carbon: bool) -> Floats:
    """USD, or with ``carbon`` kgCO2e, of every chip over its life."""
    fab, dies = technology.fab, opened.base.silicon.dies
    area = opened.chips.area_mm2 / dies
    radius = fab.wafer_diameter_mm / 2
    count = np.floor(np.pi * (radius**2 - radius * np.sqrt(2 * area)) / area)
    good = (1 + area / 100 * fab.defects_per_cm2 / terms.yield_clustering) ** -terms.yield_clustering
    hours = terms.lifetime_years * HOURS_PER_YEAR
    watts = design_watts(opened, technology)
    kwh = watts / 1e3 * terms.utilisation * terms.power_usage_effectiveness * hours
    hbm_gb = hbm_bytes / GB
    if carbon:
        per_cm2 = terms.fab_grid_kgco2e_per_kwh * fab.energy_kwh_per_cm2
        per_cm2 += fab.gas_kgco2e_per_cm2 + fab.materials_kgco2e_per_cm2
        made = dies * area / 100 * per_cm2 / good + hbm_gb * terms.hbm_kgco2e_per_gb + terms.package_kgco2e
        return np.asarray(made + kwh * terms.grid_kgco2e_per_kwh)
    with np.errstate(divide="ignore"):
        die = np.where(count > 0, dies * fab.wafer_usd / (np.maximum(count, 1) * good), np.inf)
    return np.asarray(die + hbm_gb * terms.hbm_usd_per_gb + terms.package_usd + kwh * terms.electricity_usd_per_kwh)


def factors_of(objective: Objective, opened: SpaceChips, hbm_bytes: list[int]) -> Floats:
    """The factor of every memory and chip, [memories, chips]."""
    if objective.kind == "throughput":
        return np.ones((len(hbm_bytes), len(opened)))
    if opened.base.technology is None:
        raise InputError("space.base", f"{opened.base.name} names no technology", "choose a base chip that does")
    technology = load_technology(opened.base.technology)
    if not objective.needs_hbm:
        return np.tile(design_watts(opened, technology), (len(hbm_bytes), 1))
    terms, carbon = load_terms(), objective.kind == "throughput_per_kgco2e"
    return np.stack([_owned(opened, technology, terms, size, carbon) for size in hbm_bytes])

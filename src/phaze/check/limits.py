"""Design power, manufacturing cost and carbon of chips (docs/technology.md)."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reading import listed, number, positive, require, whole

Floats = NDArray[np.float64]
GB = 1e9


def curve(table: Mapping[str, Any], size: Floats, where: str) -> Floats:
    """Straight lines between points; below the first through the origin or level, beyond the last its slope."""
    sizes = [positive(x, where) for x in listed(table["sizes_bytes"], where)]
    values = [number(x, where) for x in listed(table["values"], where, len(sizes))]
    rising = all(a < b for a, b in pairwise(sizes)) and all(a <= b for a, b in pairwise(values))
    require(len(sizes) > 1 and rising, f"{where}: the curve does not rise")
    slope = (values[-1] - values[-2]) / (sizes[-1] - sizes[-2])
    found = np.interp(size, sizes, values)
    found = np.where(size > sizes[-1], values[-1] + slope * (size - sizes[-1]), found)
    first = values[0] * size / sizes[0] if table["through_origin"] else np.full_like(size, values[0])
    return np.asarray(np.where(size < sizes[0], first, found))


def design_watts(chips: Any, process: Mapping[str, Any]) -> Floats:
    """Activity x (the greater of the two kinds of core with its buffers, memories, links) and static power."""
    table = process["energy"]

    def rate(name: str) -> float:
        return number(table[name], f"energy.{name}")

    bank = positive(table["core_bank_bytes"], "energy.core_bank_bytes")
    own = [
        curve(table["buffer"], np.minimum(size, bank), "energy.buffer")
        for size in (chips.tensor_buffer, chips.vector_buffer)
    ]
    fed = 2 * chips.rows + 6 * chips.columns
    tensor = chips.tensor_cores * chips.clock * (chips.rows * chips.columns * rate("mac_j") + fed * own[0])
    vector = chips.vector_cores * chips.lanes * chips.clock * (rate("lane_j") + 6 * own[1])
    moved = chips.global_bandwidth * curve(table["buffer"], chips.global_buffer, "energy.buffer")
    moved = moved + chips.hbm_bandwidth * rate("hbm_j_per_byte") + chips.links * rate("link_j_per_byte")
    active = rate("design_activity") * (np.maximum(tensor, vector) + moved)
    return np.asarray(active + rate("static_w_per_mm2") * chips.area)


def die_usd(die: Floats, fab: Mapping[str, Any], terms: Mapping[str, Any]) -> Floats:
    """A good die of so many mm2; infinite where none fits on a wafer."""
    radius = positive(fab["wafer_diameter_mm"], "wafer_diameter_mm") / 2
    count = np.floor(np.pi * (radius**2 - radius * np.sqrt(2 * die)) / die)
    alpha = positive(terms["yield_clustering"], "yield_clustering")
    good = (1 + die / 100 * number(fab["defects_per_cm2"], "defects_per_cm2") / alpha) ** -alpha
    wafer = number(fab["wafer_usd"], "wafer_usd")
    return np.asarray(np.where(count > 0, wafer / (np.maximum(count, 1) * good), np.inf))


def making_usd(area: Floats, base: Mapping[str, Any], terms: Mapping[str, Any], hbm_bytes: float) -> Floats:
    """Good dies, HBM and package."""
    dies = whole(base["silicon"]["dies"], "dies", 1)
    memory = hbm_bytes / GB * number(terms["hbm_usd_per_gb"], "hbm_usd_per_gb")
    package = number(terms["package_usd"], "package_usd")
    return np.asarray(dies * die_usd(area / dies, base["process"]["fab"], terms) + memory + package)


def fab_kg_per_cm2(fab: Mapping[str, Any], terms: Mapping[str, Any]) -> float:
    """Kilograms of CO2 equivalent of a cm2 of wafer: the fab's electricity, gases and materials."""
    power = number(terms["fab_grid_kgco2e_per_kwh"], "fab_grid") * number(fab["energy_kwh_per_cm2"], "fab.energy")
    return (
        power + number(fab["gas_kgco2e_per_cm2"], "fab.gas") + number(fab["materials_kgco2e_per_cm2"], "fab.materials")
    )


def die_kgco2e(die: Floats, fab: Mapping[str, Any], terms: Mapping[str, Any]) -> Floats:
    """A good die of so many mm2."""
    alpha = positive(terms["yield_clustering"], "yield_clustering")
    good = (1 + die / 100 * number(fab["defects_per_cm2"], "defects_per_cm2") / alpha) ** -alpha
    return np.asarray(die / 100 * fab_kg_per_cm2(fab, terms) / good)


def making_kgco2e(area: Floats, base: Mapping[str, Any], terms: Mapping[str, Any], hbm_bytes: float) -> Floats:
    """Good dies, HBM and package, in kilograms of CO2 equivalent."""
    dies = whole(base["silicon"]["dies"], "dies", 1)
    rest = hbm_bytes / GB * number(terms["hbm_kgco2e_per_gb"], "hbm_kgco2e_per_gb")
    rest += number(terms["package_kgco2e"], "package_kgco2e")
    return np.asarray(dies * die_kgco2e(area / dies, base["process"]["fab"], terms) + rest)

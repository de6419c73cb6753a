"""A chip's data sheet, of cores or of clusters: what it is, and what our models say of its area, power and cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phaze.documents import plain_value
from phaze.errors import InfeasibleError
from phaze.hardware.chip import Chip
from phaze.hardware.figures import figures_of, owned_by
from phaze.hardware.ownership import Ownership, Terms
from phaze.hardware.power import full_rate_power
from phaze.hardware.silicon.design import ClusterDesign, clusters_document
from phaze.hardware.technology_files import technology_of


@dataclass(frozen=True, slots=True)
class Sheet:
    """A chip with its estimates; None where the chip names no technology, and no ownership where it cannot be made.

    ``power_parts_w``: of a chip of cores every component at its full rate, of clusters a large product at the clock
    held."""

    chip: Chip
    area_mm2: float | None = None
    parts_mm2: Mapping[str, float] | None = None
    power_w: float | None = None
    power_parts_w: Mapping[str, float] | None = None
    ownership: Ownership | None = None
    obstacle: str | None = None


def sheet_of(chip: Chip, terms: Terms) -> Sheet:
    """The sheet of ``chip`` in the technology that it names."""
    figures = figures_of(chip)
    if figures is None:
        return Sheet(chip)
    known = (chip, figures.area_mm2, figures.parts_mm2, figures.design_w, _power_parts_w(chip))
    try:
        return Sheet(*known, ownership=owned_by(chip, terms))
    except InfeasibleError as fault:
        return Sheet(*known, obstacle=str(fault))


def _power_parts_w(chip: Chip) -> Mapping[str, float]:
    technology, design = technology_of(chip), chip.clusters
    if technology is not None:
        return full_rate_power(technology, chip).by_component()
    return {} if design is None else design.held_parts_w


def sheet_document(sheet: Sheet) -> dict[str, Any]:
    """The sheet as plain values in SI units."""
    chip, owned = sheet.chip, sheet.ownership
    money = ("dies_per_wafer", "yield_share", "die_usd", "hbm_usd", "package_usd", "making_usd", "energy_usd")
    carbon = ("total_usd", "energy_kwh", "embodied_kgco2e", "operational_kgco2e", "total_kgco2e")
    of_clusters = () if chip.clusters is None else ("links_usd",)
    plain = {name: value for name, value in plain_value(chip).items() if name not in ("clusters", "rated_hz")}
    return {
        **plain,
        **({} if chip.clusters is None else _of_clusters(chip.clusters)),
        "peak_flops": chip.peak_flops,
        "vector_flops": chip.vector_flops,
        "area_mm2": sheet.area_mm2,
        "area_by_component_mm2": sheet.parts_mm2,
        "design_power_w": sheet.power_w,
        "full_rate_power_by_component_w": sheet.power_parts_w,
        "obstacle": sheet.obstacle,
        "ownership": None
        if owned is None
        else {name: getattr(owned, name) for name in (*money, *of_clusters, *carbon)},
    }


def brief_document(sheet: Sheet) -> dict[str, Any]:
    """A chip in one row of a list."""
    chip = sheet.chip
    return {
        "name": chip.name,
        "title": chip.title,
        "peak_flops": chip.peak_flops,
        "hbm_bytes": chip.hbm.size_bytes,
        "hbm_bytes_per_s": chip.hbm.bandwidth_bytes_per_s,
        "area_mm2": sheet.area_mm2,
        "design_power_w": sheet.power_w,
        "technology": chip.technology,
        "cluster": chip.cluster,
    }


def _of_clusters(design: ClusterDesign) -> dict[str, Any]:
    """What a chip of clusters has beside the fields of a chip of cores, and what was measured of it."""
    return {"clusters": clusters_document(design), "measured": plain_value(design.accelerator.measured)}

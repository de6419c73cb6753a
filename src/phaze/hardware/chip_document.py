"""A chip's data sheet, of cores or of clusters: what it is, and what our models say of its area,
power and cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phaze.documents import plain_value
from phaze.errors import InfeasibleError
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import Ownership, estimates_of, ownership_of
from phaze.hardware.chip_record import states_clusters
from phaze.hardware.clocked import die_mm2
from phaze.hardware.ownership import Terms


@dataclass(frozen=True, slots=True)
class Sheet:
    """A chip with its estimates; None where the chip names no technology, and no ownership where it
    cannot be made.

    ``power_parts_w``: of a chip of cores every component at its full rate, of clusters a large
    product at the clock held."""

    chip: Chip
    area_mm2: float | None = None
    parts_mm2: Mapping[str, float] | None = None
    power_w: float | None = None
    power_parts_w: Mapping[str, float] | None = None
    ownership: Ownership | None = None
    obstacle: str | None = None


def sheet_of(chip: Chip, terms: Terms) -> Sheet:
    """The sheet of ``chip`` in the technology that it names."""
    figures = estimates_of(chip)
    if figures is None:
        return Sheet(chip)
    estimates = (chip, figures.area_mm2, figures.parts_mm2, figures.design_w, figures.power_parts_w)
    try:
        return Sheet(*estimates, ownership=ownership_of(chip, terms))
    except InfeasibleError as fault:
        return Sheet(*estimates, obstacle=str(fault))


def sheet_document(sheet: Sheet) -> dict[str, Any]:
    """The sheet as plain values in SI units."""
    chip, owned = sheet.chip, sheet.ownership
    plain = {
        name: value
        for name, value in plain_value(chip).items()
        if name not in ("clusters", "rated_hz")
    }
    return {
        **plain,
        **(_of_clusters(chip) if states_clusters(chip) else {}),
        "peak_flops": chip.peak_flops,
        "vector_flops": chip.vector_flops,
        "area_mm2": sheet.area_mm2,
        "area_by_component_mm2": sheet.parts_mm2,
        "design_power_w": sheet.power_w,
        "full_rate_power_by_component_w": sheet.power_parts_w,
        "obstacle": sheet.obstacle,
        "ownership": None if owned is None else _ownership(owned, chip),
    }


def _ownership(owned: Ownership, chip: Chip) -> dict[str, Any]:
    making = owned.making
    return {
        "dies_per_wafer": making.dies_per_wafer,
        "yield_share": making.yield_share,
        "die_usd": making.die_usd,
        "hbm_usd": making.hbm_usd,
        "package_usd": making.package_usd,
        "making_usd": making.usd,
        "energy_usd": owned.energy_usd,
        **({"links_usd": making.links_usd} if states_clusters(chip) else {}),
        "total_usd": owned.total_usd,
        "energy_kwh": owned.energy_kwh,
        "embodied_kgco2e": making.kgco2e,
        "operational_kgco2e": owned.operational_kgco2e,
        "total_kgco2e": owned.total_kgco2e,
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


def _of_clusters(chip: Chip) -> dict[str, Any]:
    """What a chip of clusters has beside the fields of a chip of cores, and what was measured of
    it."""
    return {"clusters": clusters_document(chip), "measured": plain_value(chip.measured)}


def clusters_document(chip: Chip) -> dict[str, Any]:
    """The clusters of a chip in documents for people; ``clock_hz`` is the most that it may run."""
    clusters = chip.clusters
    return {
        "count": clusters.count,
        "arrays": clusters.arrays,
        "operand_bytes": clusters.operand_bytes,
        "register_bytes": chip.vectors.register_bytes,
        "port_bytes_per_cycle": clusters.port_bytes_per_cycle,
        "global_bytes_per_cycle": chip.global_bytes_per_cycle,
        "hbm_stacks": chip.hbm.stacks,
        "built": chip.built.clusters[0],
        "die_mm2": die_mm2(chip),
        "clock_hz": chip.rated_hz,
        "sustained_w": chip.sustained_w,
    }

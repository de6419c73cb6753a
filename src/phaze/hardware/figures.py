"""What our models say of one chip, whichever of them it is priced by: area, power, energies, and what making it takes.

A chip of cores is priced by its technology (:mod:`phaze.hardware.technology`), a chip of clusters by the nodes of its
design (:mod:`phaze.hardware.silicon`). Whoever asks for a figure asks here, and does not ask which of them it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from phaze.hardware.area import chip_areas
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import (
    GB,
    Ownership,
    Terms,
    die_yield,
    dies_per_wafer,
    fab_kgco2e_per_cm2,
    lifetime_kwh,
    ownership_of,
)
from phaze.hardware.power import full_rate_power
from phaze.hardware.silicon.design import ClusterDesign, EnergyModel, NodeEnergy
from phaze.hardware.silicon.price import making_cost
from phaze.hardware.technology_files import technology_of


@dataclass(frozen=True, slots=True)
class ChipFigures:
    """Process, mm2 by part and in all, watts that are drawn whatever runs, design power, and energies of operators.

    The design power of a chip of clusters is what it draws at the clock that it holds.
    """

    process: str
    parts_mm2: Mapping[str, float]
    area_mm2: float
    static_w: float
    design_w: float
    energy: EnergyModel


@dataclass(frozen=True, slots=True)
class Making:
    """What making a device takes, USD and kg CO2e."""

    usd: float
    kgco2e: float


def figures_of(chip: Chip) -> ChipFigures | None:
    """The figures of a chip; None where it names no process."""
    if chip.clusters is not None:
        return _of_clusters(chip.clusters)
    technology = technology_of(chip)
    if technology is None:
        return None
    areas = chip_areas(technology, chip)
    static_w, design_w = technology.energy.static_w_per_mm2 * areas.total, full_rate_power(technology, chip).design_w
    return ChipFigures(technology.name, areas.by_component(), areas.total, static_w, design_w, technology.energy)


def _of_clusters(design: ClusterDesign) -> ChipFigures | None:
    areas, power, held_w = design.areas, design.power, design.held_w
    if design.node is None or areas is None or power is None or held_w is None:
        return None
    return ChipFigures(
        design.node.name, areas.by_part(), areas.total, power.idle_w, held_w, NodeEnergy(design.node)
    )  # fmt: skip


def owned_by(chip: Chip, terms: Terms) -> Ownership | None:
    """Cost and carbon of a chip over its life at its design power; None where it names no process. Raises where no die
    fits a wafer."""
    if chip.clusters is not None:
        return _clusters_owned(chip, chip.clusters, terms)
    technology = technology_of(chip)
    return None if technology is None else ownership_of(chip, technology, terms)


def making_of(chip: Chip, terms: Terms) -> Making | None:
    """What making a chip takes; None where it names no process. Raises where no die fits a wafer."""
    owned = owned_by(chip, terms)
    return None if owned is None else Making(owned.making_usd, owned.embodied_kgco2e)


def _clusters_owned(chip: Chip, design: ClusterDesign, terms: Terms) -> Ownership | None:
    areas, die_mm2, held_w, node = design.areas, design.die_mm2, design.held_w, design.node
    if node is None or areas is None or die_mm2 is None or held_w is None:
        return None
    cost = making_cost(design.accelerator, areas, terms, node, design.base_node, die_mm2)
    dies, energy_kwh = design.accelerator.built.dies, lifetime_kwh(held_w, terms)
    each_mm2, hbm_gb = die_mm2 / dies, chip.hbm.size_bytes / GB
    good = die_yield(each_mm2, node.fab.defects_per_cm2, terms.yield_clustering)
    dies_kgco2e = dies * (each_mm2 / 100 * fab_kgco2e_per_cm2(node.fab, terms) / good)
    return Ownership(
        dies_per_wafer=dies_per_wafer(each_mm2, node.fab.wafer_diameter_mm),
        yield_share=good,
        die_usd=cost.dies_usd,
        hbm_usd=cost.hbm_usd,
        package_usd=cost.package_usd,
        energy_usd=energy_kwh * terms.electricity_usd_per_kwh,
        energy_kwh=energy_kwh,
        embodied_kgco2e=dies_kgco2e + (hbm_gb * terms.hbm_kgco2e_per_gb + terms.package_kgco2e),
        operational_kgco2e=energy_kwh * terms.grid_kgco2e_per_kwh,
        links_usd=cost.links_usd,
    )

"""What our models say of one chip, whichever of them it is priced by: area, power, energies, and what making it takes.

A chip of cores is priced by its technology (:mod:`phaze.hardware.technology`), a chip of clusters by the nodes of its
design (:mod:`phaze.hardware.silicon`). Whoever asks for a figure asks here, and does not ask which of them it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from phaze.hardware.chip import Chip
from phaze.hardware.ownership import GB, Terms, die_yield, ownership_of
from phaze.hardware.power import full_rate_power
from phaze.hardware.silicon.design import ClusterDesign, EnergyModel, NodeEnergy
from phaze.hardware.silicon.price import making_cost
from phaze.hardware.technology import Fab, chip_areas
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
    total = float(areas.total())
    static_w, design_w = technology.energy.static_w_per_mm2 * total, full_rate_power(technology, chip).design_w
    return ChipFigures(technology.name, areas.by_component(), total, static_w, design_w, technology.energy)


def _of_clusters(design: ClusterDesign) -> ChipFigures | None:
    areas, power, held_w = design.areas, design.power, design.held_w
    if design.node is None or areas is None or power is None or held_w is None:
        return None
    return ChipFigures(
        design.node.name, areas.by_part(), areas.total, power.idle_w, held_w, NodeEnergy(design.node)
    )  # fmt: skip


def making_of(chip: Chip, terms: Terms) -> Making | None:
    """What making a chip takes; None where it names no process. Raises where no die fits a wafer."""
    design, technology = chip.clusters, technology_of(chip)
    if design is None:
        if technology is None:
            return None
        owned = ownership_of(chip, technology, terms)
        return Making(owned.making_usd, owned.embodied_kgco2e)
    areas, die_mm2 = design.areas, design.die_mm2
    if design.node is None or areas is None or die_mm2 is None:
        return None
    cost = making_cost(design.accelerator, areas, terms, design.node, design.base_node, die_mm2)
    dies = design.accelerator.built.dies
    return Making(cost.total_usd, dies * _die_kgco2e(die_mm2 / dies, design.node.fab, terms) + _rest(chip, terms))


def _die_kgco2e(die_mm2: float, fab: Fab, terms: Terms) -> float:
    per_cm2 = terms.fab_grid_kgco2e_per_kwh * fab.energy_kwh_per_cm2
    per_cm2 += fab.gas_kgco2e_per_cm2 + fab.materials_kgco2e_per_cm2
    return die_mm2 / 100 * per_cm2 / die_yield(die_mm2, fab.defects_per_cm2, terms.yield_clustering)


def _rest(chip: Chip, terms: Terms) -> float:
    """HBM and package."""
    return chip.hbm.size_bytes / GB * terms.hbm_kgco2e_per_gb + terms.package_kgco2e

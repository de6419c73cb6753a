"""What our models say of one chip: area, power, energies, and what making it takes.

Where a process sets the clock, power is that at the clock held and making is priced with links; else power is the
estimate of a TDP. Whoever asks for a figure asks here, and does not ask which of them it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas, clocked, die_mm2, full_rate_power
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
from phaze.hardware.price import making_cost
from phaze.hardware.technology import Technology


@dataclass(frozen=True, slots=True)
class ChipFigures:
    """mm2 by part and in all, watts that are drawn whatever runs, design power and its parts, and the process, whose
    energies operators take.

    The design power of a chip of clusters is what it draws at the clock that it holds, its parts those of a large
    product; of cores the parts are every component at its full rate.
    """

    technology: Technology
    parts_mm2: Mapping[str, float]
    area_mm2: float
    static_w: float
    design_w: float
    power_parts_w: Mapping[str, float]

    @property
    def process(self) -> str:
        return self.technology.name


@dataclass(frozen=True, slots=True)
class Making:
    """What making a device takes, USD and kg CO2e."""

    usd: float
    kgco2e: float


def figures_of(chip: Chip) -> ChipFigures | None:
    """The figures of a chip; None where it names no process."""
    technology, areas, held = chip.process, chip_areas(chip), clocked(chip)
    if technology is None or areas is None:
        return None
    if held is not None:
        idle_w = held.power.idle_w
        return ChipFigures(technology, areas.by_part(), areas.total, idle_w, held.held_w, held.parts_w)
    static_w, full = technology.energy.static_w_per_mm2 * areas.total, full_rate_power(chip)
    components = full.by_component()
    return ChipFigures(technology, areas.by_component(), areas.total, static_w, full.design_w, components)


def owned_by(chip: Chip, terms: Terms) -> Ownership | None:
    """Cost and carbon of a chip over its life at its design power; None where it names no process. Raises where no die
    fits a wafer."""
    if chip.process is None:
        return None
    return _clusters_owned(chip, terms) if chip.of_clusters else ownership_of(chip, terms)


def making_of(chip: Chip, terms: Terms) -> Making | None:
    """What making a chip takes; None where it names no process. Raises where no die fits a wafer."""
    owned = owned_by(chip, terms)
    return None if owned is None else Making(owned.making_usd, owned.embodied_kgco2e)


def _clusters_owned(chip: Chip, terms: Terms) -> Ownership | None:
    held, all_dies_mm2, node = clocked(chip), die_mm2(chip), chip.process
    if node is None or all_dies_mm2 is None or held is None:
        return None
    cost = making_cost(chip, terms)
    dies, energy_kwh = chip.built.dies, lifetime_kwh(held.held_w, terms)
    each_mm2, hbm_gb = all_dies_mm2 / dies, chip.hbm.size_bytes / GB
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

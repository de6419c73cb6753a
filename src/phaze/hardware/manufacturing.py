"""Manufacturing cost and carbon: of one chip, or of all chips of a space at once.

For dies of area A mm2 on a wafer of radius R mm, of one or of each of many:

    dies per wafer  N = pi (R^2 - R sqrt(2 A)) / A                  (rounded down)
    yield           Y = (1 + A D / alpha)^(-alpha)                  (negative binomial; A in cm2, D
                    defects a cm2)
    dies, USD       = dies * wafer price / (N Y)                    (compute dies and base dies)
    HBM, USD        = GB * price, or stacks * price of the generation's stack, as the technology
                    prices it
    links, USD      = its share * bandwidth * (port of a switch + cable)
    USD             = dies + HBM + package + links
    kgCO2e          = dies * A (fab grid * fab energy + gases + materials) / Y + HBM GB * c_hbm +
                    package

Spare clusters count as area only: TrendForce's 28 usable H100 a wafer fit the plain yield (31), and
not one where a die with broken clusters can be sold (56).
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from phaze.errors import InfeasibleError
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import GENERATIONS, Hbm
from phaze.hardware.clocked import chip_areas, die_mm2
from phaze.hardware.columns import ChipColumns, Floats
from phaze.hardware.ownership import GB, Terms
from phaze.hardware.technology import Fab, Technology

SWITCH_USD_PER_GB_PER_S = 0.25
"""A switch port at manufacturing cost, as dies are here (derived: an NVSwitch of 294 mm2 and 1,600
GB/s one way, both recalled, on a 5 nm wafer is 0.08 USD a GB/s; threefold for package, board and
power, assumed)."""
CABLE_USD_PER_GB_PER_S = 0.15
"""A copper pair with its connectors (assumed: 4 USD for 25 GB/s)."""

F = TypeVar("F", float, Floats)


def dies_per_wafer(area_mm2: F, diameter_mm: float) -> Floats:
    """Whole dies of each area on a round wafer; 0 if none fits."""
    radius = diameter_mm / 2
    return np.asarray(
        np.maximum(0.0, np.floor(np.pi * (radius**2 - radius * np.sqrt(2 * area_mm2)) / area_mm2))
    )


def die_yield(area_mm2: F, defects_per_cm2: float, clustering: float) -> F:
    """Share of dies without a defect, negative binomial."""
    defects = 1 + area_mm2 / 100 * defects_per_cm2 / clustering
    if isinstance(defects, np.ndarray):
        # One power after the other: numpy's own may differ in the last digit from that of one die.
        return np.array([each**-clustering for each in defects.tolist()])
    share: F = defects**-clustering
    return share


def dies_usd(area_mm2: F, dies: int, fab: Fab, terms: Terms) -> Floats:
    """Good dies of each area; infinite where none fits a wafer."""
    count = dies_per_wafer(area_mm2, fab.wafer_diameter_mm)
    good = np.maximum(count, 1.0) * die_yield(area_mm2, fab.defects_per_cm2, terms.yield_clustering)
    return np.where(count > 0, dies * fab.wafer_usd / good, np.inf)


def manufacturing_kgco2e(area_mm2: F, dies: int, hbm_bytes: F | float, fab: Fab, terms: Terms) -> F:
    """Carbon of good dies of each area, their HBM and package."""
    energy_kgco2e = terms.fab_grid_kgco2e_per_kwh * fab.energy_kwh_per_cm2
    per_cm2 = energy_kgco2e + fab.gas_kgco2e_per_cm2 + fab.materials_kgco2e_per_cm2
    good = die_yield(area_mm2, fab.defects_per_cm2, terms.yield_clustering)
    dies_kgco2e = dies * (area_mm2 / 100 * per_cm2 / good)
    return dies_kgco2e + hbm_bytes / GB * terms.hbm_kgco2e_per_gb + terms.package_kgco2e


def links_usd(bytes_per_s: F) -> F:
    """What joins a device's links to others: a switch port and a cable for every GB/s, one way."""
    return bytes_per_s / GB * (SWITCH_USD_PER_GB_PER_S + CABLE_USD_PER_GB_PER_S)


def memory_usd(
    hbm: Hbm, stacks: F, size_bytes: int, terms: Terms, technology: Technology
) -> F | float:
    """HBM: so many stacks of a chip's generation, or so many bytes."""
    if not technology.prices_stacks:
        return size_bytes / GB * terms.hbm_usd_per_gb
    return stacks * GENERATIONS[hbm.generation].usd if hbm.generation else 0.0


@dataclass(frozen=True, slots=True)
class Manufacturing:
    """USD and kg CO2e of one device, its memory and its share of the network that its links lead
    to."""

    dies_per_wafer: int
    yield_share: float
    die_usd: float
    hbm_usd: float
    package_usd: float
    links_usd: float
    kgco2e: float

    @property
    def usd(self) -> float:
        """Dies, HBM, package, and what joins its links to others."""
        return self.die_usd + self.hbm_usd + self.package_usd + self.links_usd


def manufacturing_of(chip: Chip, terms: Terms) -> Manufacturing | None:
    """Cost and carbon of a chip; None where it names no process. Raises where no die fits a
    wafer."""
    node, areas, die = chip.process, chip_areas(chip), die_mm2(chip)
    if node is None or areas is None or die is None:
        return None
    dies = chip.built.dies
    each_mm2 = die / dies
    if chip.base_process is None:
        cost = _require_die(each_mm2, dies, node.fab, terms)
    else:
        above = areas.clusters / dies + node.area.uncore_mm2
        below = (areas.total - dies * above) / chip.built.base_dies
        base = _require_die(below, chip.built.base_dies, chip.base_process.fab, terms)
        cost = _require_die(above, dies, node.fab, terms) + base
    return Manufacturing(
        dies_per_wafer=int(dies_per_wafer(each_mm2, node.fab.wafer_diameter_mm)),
        yield_share=die_yield(each_mm2, node.fab.defects_per_cm2, terms.yield_clustering),
        die_usd=cost,
        hbm_usd=memory_usd(chip.hbm, float(chip.hbm.stacks), chip.hbm.size_bytes, terms, node),
        package_usd=terms.package_usd,
        links_usd=node.links_share * links_usd(chip.links.bandwidth_bytes_per_s),
        kgco2e=manufacturing_kgco2e(each_mm2, dies, float(chip.hbm.size_bytes), node.fab, terms),
    )


def _require_die(area_mm2: float, dies: int, fab: Fab, terms: Terms) -> float:
    usd = float(dies_usd(area_mm2, dies, fab, terms))
    if usd == np.inf:
        raise InfeasibleError(
            f"A die of {area_mm2:.0f} mm2 does not fit a wafer of {fab.wafer_diameter_mm:.0f} mm; "
            "split the chip into more dies.",
            {"needed_mm2": area_mm2, "wafer_diameter_mm": fab.wafer_diameter_mm},
        )
    return usd


def chips_usd(
    chips: ChipColumns,
    die_mm2: Floats,
    base: Chip,
    hbm_bytes: int,
    terms: Terms,
    technology: Technology,
) -> Floats:
    """USD of every chip that varies a base, with its own stacks or so much memory; infinite where a
    die does not fit a wafer."""
    dies = base.built.dies
    hbm_usd = memory_usd(base.hbm, chips.stacks, hbm_bytes, terms, technology)
    joined_usd = technology.links_share * links_usd(chips.link_bytes_per_s)
    return np.asarray(
        dies_usd(die_mm2 / dies, dies, technology.fab, terms)
        + hbm_usd
        + terms.package_usd
        + joined_usd
    )

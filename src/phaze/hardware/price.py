"""What a chip of clusters costs to make and to join to others.

    die, USD   = wafer price / (dies a wafer x yield), for each compute and base die
    HBM, USD   = stacks x price of the generation's stack
    links, USD = bandwidth x (port of a switch + cable), the chip's share of what joins it to the others
    making     = dies + HBM + package + links

Spare clusters count as area only: TrendForce's 28 usable H100 a wafer fit the plain yield (31), and not one where a die
with broken clusters can be sold (56).
"""

from dataclasses import dataclass

import numpy as np

from phaze.errors import InfeasibleError
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import GENERATIONS
from phaze.hardware.clocked import chip_areas, die_mm2
from phaze.hardware.columns import ChipColumns, Floats
from phaze.hardware.ownership import Terms, die_yield, dies_per_wafer
from phaze.hardware.technology import Fab, Technology

SWITCH_USD_PER_GB_PER_S = 0.25
"""A switch port at manufacturing cost, as dies are here (derived: an NVSwitch of 294 mm2 and 1,600 GB/s one way, both
recalled, on a 5 nm wafer is 0.08 USD a GB/s; threefold for package, board and power, assumed)."""
CABLE_USD_PER_GB_PER_S = 0.15
"""A copper pair with its connectors (assumed: 4 USD for 25 GB/s)."""
GB = 1e9


@dataclass(frozen=True, slots=True)
class MakingCost:
    """USD of one device and its share of the network that its links lead to."""

    dies_usd: float
    hbm_usd: float
    package_usd: float
    links_usd: float

    @property
    def total_usd(self) -> float:
        return self.dies_usd + self.hbm_usd + self.package_usd + self.links_usd


def _die_usd(area_mm2: float, fab: Fab, clustering: float) -> float:
    count = dies_per_wafer(area_mm2, fab.wafer_diameter_mm)
    if count == 0:
        sentence = f"A die of {area_mm2:.0f} mm2 does not fit a wafer of {fab.wafer_diameter_mm:.0f} mm."
        raise InfeasibleError(sentence, {"needed_mm2": area_mm2, "wafer_diameter_mm": fab.wafer_diameter_mm})
    return fab.wafer_usd / (count * die_yield(area_mm2, fab.defects_per_cm2, clustering))


def links_usd(bytes_per_s: float) -> float:
    """What joins a device's links to others: a switch port and a cable for every GB/s, one way."""
    return bytes_per_s / GB * (SWITCH_USD_PER_GB_PER_S + CABLE_USD_PER_GB_PER_S)


def making_cost(chip: Chip, terms: Terms) -> MakingCost:
    """Cost of a chip of clusters whose process was read with it; its die may be larger than its parts."""
    node, base, areas, die = chip.process, chip.base_process, chip_areas(chip), die_mm2(chip)
    if node is None or areas is None or die is None:
        raise AssertionError(f"{chip.name} names no process")
    built, alpha = chip.built, terms.yield_clustering
    if base is None:
        dies = built.dies * _die_usd(die / built.dies, node.fab, alpha)
    else:
        above = areas.clusters / built.dies + node.area.uncore_mm2
        below = (areas.total - built.dies * above) / built.base_dies
        dies = built.dies * _die_usd(above, node.fab, alpha) + built.base_dies * _die_usd(below, base.fab, alpha)
    generation = chip.hbm.generation
    hbm = chip.hbm.stacks * GENERATIONS[generation].usd if generation else 0.0
    return MakingCost(dies, hbm, terms.package_usd, links_usd(chip.links.bandwidth_bytes_per_s))


def making_columns(chips: ChipColumns, die_mm2: Floats, generation: str, terms: Terms, node: Technology) -> Floats:
    """Total USD of every chip of one die, as :func:`making_cost` has it; each distinct die is priced once."""
    areas, of = np.unique(die_mm2, return_inverse=True)
    dies = np.array([_die_usd(float(area), node.fab, terms.yield_clustering) for area in areas])
    hbm = chips.stacks * GENERATIONS[generation].usd
    links = chips.link_bytes_per_s / GB * (SWITCH_USD_PER_GB_PER_S + CABLE_USD_PER_GB_PER_S)
    total: Floats = dies[of] + hbm + terms.package_usd + links
    return total

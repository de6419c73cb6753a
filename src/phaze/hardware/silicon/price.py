"""Yield with spare clusters, and what an accelerator costs to make and to join to others.

With D defects a cm2, clustering alpha, and areas in cm2 (:func:`harvested_yield`):

    mc = D (area of clusters)      mr = D (area of the rest) / 2          half of the rest is SRAM, which repairs itself
    Y  = (1 + mr/alpha)^-alpha  sum over x <= spares of NB(x; mc, alpha)
    NB(x; m, alpha) = C(x + alpha - 1, x) (m/alpha)^x (1 + m/alpha)^-(x + alpha)

TrendForce's 28 usable H100 a wafer fit a yield without harvesting (31) and not with it (56), so prices take the plain
yield (1 + area D / alpha)^-alpha and spares count as area only, until a source settles it:

    die, USD   = wafer price / (dies a wafer x plain yield), for each compute and base die
    HBM, USD   = stacks x price of the generation's stack
    links, USD = bandwidth x (port of a switch + cable), the chip's share of what joins it to the others
    making     = dies + HBM + package + links
"""

from dataclasses import dataclass
from math import gamma

import numpy as np

from phaze.errors import InfeasibleError
from phaze.hardware.area import Areas
from phaze.hardware.columns import ChipColumns, Floats
from phaze.hardware.ownership import Terms, die_yield, dies_per_wafer
from phaze.hardware.silicon.chip import GENERATIONS, Accelerator
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


def _negative_binomial(count: int, mean: float, clustering: float) -> float:
    ways = gamma(count + clustering) / (gamma(clustering) * gamma(count + 1))
    ratio = mean / clustering
    return float(ways * ratio**count * (1.0 + ratio) ** -(count + clustering))


def harvested_yield(
    clusters_mm2: float, rest_mm2: float, spares: int, defects_per_cm2: float, clustering: float
) -> float:
    """Share of dies that can be sold when up to ``spares`` clusters may be broken."""
    in_clusters, in_rest = defects_per_cm2 * clusters_mm2 / 100.0, defects_per_cm2 * rest_mm2 / 100.0 / 2.0
    whole = sum(_negative_binomial(broken, in_clusters, clustering) for broken in range(spares + 1))
    return float((1.0 + in_rest / clustering) ** -clustering * whole)


def _die_usd(area_mm2: float, fab: Fab, clustering: float) -> float:
    count = dies_per_wafer(area_mm2, fab.wafer_diameter_mm)
    if count == 0:
        sentence = f"A die of {area_mm2:.0f} mm2 does not fit a wafer of {fab.wafer_diameter_mm:.0f} mm."
        raise InfeasibleError(sentence, {"needed_mm2": area_mm2, "wafer_diameter_mm": fab.wafer_diameter_mm})
    return fab.wafer_usd / (count * die_yield(area_mm2, fab.defects_per_cm2, clustering))


def links_usd(bytes_per_s: float) -> float:
    """What joins a device's links to others: a switch port and a cable for every GB/s, one way."""
    return bytes_per_s / GB * (SWITCH_USD_PER_GB_PER_S + CABLE_USD_PER_GB_PER_S)


def making_cost(
    chip: Accelerator,
    areas: Areas[float],
    terms: Terms,
    node: Technology,
    base: Technology | None = None,
    die_mm2: float | None = None,
) -> MakingCost:
    """Cost of ``chip``; ``base`` is the node of its base dies, ``die_mm2`` a die that is larger than its parts."""
    built, alpha = chip.built, terms.yield_clustering
    if base is None:
        dies = built.dies * _die_usd((die_mm2 or areas.total) / built.dies, node.fab, alpha)
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

"""The rules of a space, and what manufacturing a chip takes (docs/search.md; docs/technology.md;
docs/silicon.md).

A combination of axis values is a chip of the space if

    least_share most_area <= area <= most_area, or smaller with a single core of a kind where the
    space says so
    die = max(area, edge of its stacks) <= most_area,    watts <= most_power and most_w_per_mm2
                                                         area,    USD <= most_usd
    watts at no clock within the sustained power, and the clock held under it at least half of the
    rated one

A chip of stacks has their memory and no other; else a chip may have every memory with which its
price is allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips, least_of
from .reading import cover, number, positive
from .silicon import Power, areas_of, drawn_of, held_clock, power_of
from .technology import Technology, known_keys

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
GB = 1e9
NEAR = 1e-12
"""Areas at a limit differ in the last bits."""
LEAST_SHARE = 0.5
"""Of its rated clock, that a chip must hold: docs/silicon.md."""
STACK_EDGE, RETICLE, ASPECT = 10.5, 33.0, 1.25
"""mm of a stack along an edge of the die, mm of the longest edge, and the ratio of edges:
docs/silicon.md."""
STACK_USD = MappingProxyType({"hbm2": 120.0, "hbm2e": 160.0, "hbm3": 198.0, "hbm3e": 238.0})
LINK_USD_PER_GB = 0.25 + 0.15
"""A switch port and a cable for a GB/s, one way."""
KEEP = frozenset({"most_area", "least_share", "smaller_with_one_core", "most_power", "most_usd"})
KEEP_CLUSTERS = frozenset(
    {"most_area", "least_share", "sustained_power", "most_w_per_mm2", "most_usd"}
)


def die_of(chips: Chips) -> Floats:
    """mm2 of a die, whose edge must hold half of its stacks."""
    side = STACK_EDGE * np.ceil(chips.hbm_stacks / 2.0)
    return np.maximum(chips.area, np.where(side > RETICLE, np.inf, side * side / ASPECT))


def _good(die: Floats, fab: Mapping[str, Any], terms: Mapping[str, Any]) -> Floats:
    """The share of dies that work."""
    alpha = positive(terms["yield_clustering"], "yield_clustering")
    return np.asarray(
        (1 + die / 100 * number(fab["defects_per_cm2"], "defects_per_cm2") / alpha) ** -alpha
    )


def making_usd(
    chips: Chips, made: Technology, terms: Mapping[str, Any], hbm_bytes: Floats | float
) -> Floats:
    """Good dies, HBM, package and links, of boxes those of the least chip; infinite where no die
    fits on a wafer."""
    chips = least_of(chips)
    die = die_of(chips) / made.dies
    radius = positive(made.fab["wafer_diameter_mm"], "wafer_diameter_mm") / 2
    count = np.floor(np.pi * (radius**2 - radius * np.sqrt(2 * die)) / die)
    each = number(made.fab["wafer_usd"], "wafer_usd") / (
        np.maximum(count, 1) * _good(die, made.fab, terms)
    )
    usd = made.dies * np.where(count > 0, each, np.inf) + number(
        terms["package_usd"], "package_usd"
    )
    if not made.stack_bytes:
        return np.asarray(usd + hbm_bytes / GB * number(terms["hbm_usd_per_gb"], "hbm_usd_per_gb"))
    cover(made.generation in STACK_USD, f"the price of {made.generation}")
    return np.asarray(
        usd + chips.hbm_stacks * STACK_USD[made.generation] + chips.links / GB * LINK_USD_PER_GB
    )


def making_kgco2e(
    chips: Chips, made: Technology, terms: Mapping[str, Any], hbm_bytes: Floats | float
) -> Floats:
    """Good dies, HBM and package, of boxes those of the least chip, in kilograms of CO2 equivalent;
    of a wafer electricity, gases and materials."""
    chips = least_of(chips)
    fab, die = made.fab, die_of(chips) / made.dies
    power = number(terms["fab_grid_kgco2e_per_kwh"], "fab_grid") * number(
        fab["energy_kwh_per_cm2"], "fab.energy"
    )
    gas, materials = (
        number(fab[f"{name}_kgco2e_per_cm2"], f"fab.{name}") for name in ("gas", "materials")
    )
    dies = made.dies * die / 100 * (power + gas + materials) / _good(die, fab, terms)
    memory = chips.hbm_stacks * made.stack_bytes if made.stack_bytes else hbm_bytes
    rest = memory / GB * number(terms["hbm_kgco2e_per_gb"], "hbm_kgco2e_per_gb")
    return np.asarray(dies + rest + number(terms["package_kgco2e"], "package_kgco2e"))


@dataclass(frozen=True, slots=True)
class Limits:
    """What a chip may have, infinite where there is no such rule: mm2 and the share of them that it
    must have, unless it has a single core of a kind; watts that lower its clock, watts at its
    clock, in all and of a mm2; dollars."""

    made: Technology
    terms: Mapping[str, Any]
    most_area: float
    least_share: float
    single_core: bool
    sustained_w: float
    most_w: float
    most_w_per_mm2: float
    most_usd: float

    @property
    def of_power(self) -> bool:
        """Whether some rule is about watts."""
        return min(self.sustained_w, self.most_w, self.most_w_per_mm2) < np.inf

    def usd(self, chips: Chips, hbm_bytes: float) -> Floats:
        """The price of chips; 0 where no rule depends on it."""
        if self.most_usd == np.inf:
            return np.zeros(len(chips))
        return making_usd(chips, self.made, self.terms, hbm_bytes)

    def watts(self, chips: Chips) -> Floats:
        """Watts of chips at the clock that they hold. No chip of a box draws less than the box: it
        runs at its rated clock, or draws what is sustained."""
        low = least_of(chips)
        power = drawn_of(low, chips, self.made).power()
        watts = power.watts(low.clock)
        if low is chips or self.sustained_w == np.inf:
            return watts
        rated = np.full(len(low), min(self.made.clock_hz, self.made.most_hz))
        return np.maximum(watts, np.minimum(self.sustained_w, power.watts(rated)))

    def single(self, chips: Chips) -> NDArray[np.bool_]:
        """Which chips may be smaller because they have a single core of a kind."""
        return np.asarray(self.single_core & ((chips.clusters == 1) | (chips.vector_units == 1)))

    def _powered(self, chips: Chips) -> tuple[Chips, NDArray[np.bool_]]:
        """Chips with the clock that they hold, and which of them the rules of power keep."""
        power: Power = power_of(chips, self.made)
        clock = held_clock(power, chips.clock, self.sustained_w)
        watts = power.watts(clock)
        stays = np.maximum(power.product_w, power.vector_w) <= self.sustained_w
        stays &= clock >= LEAST_SHARE * chips.clock
        stays &= watts <= np.minimum(self.most_w, self.most_w_per_mm2 * chips.area) * (1 + NEAR)
        return replace(chips, clock=clock), stays

    def kept(self, chips: Chips) -> tuple[Chips, Integers]:
        """The chips among some combinations, with area and clock, and which of them these are."""
        chips = replace(chips, area=areas_of(chips, self.made).total)
        stays = (chips.area >= self.least_share * self.most_area) | self.single(chips)
        stays &= die_of(chips) <= self.most_area * (1 + NEAR)
        places = np.flatnonzero(stays)
        chips = chips.taken(places)
        if self.of_power:
            chips, stays = self._powered(chips)
            chips, places = chips.taken(stays), places[stays]
        stays = self.usd(chips, 0.0) <= self.most_usd * (1 + NEAR)
        return chips.taken(stays), places[stays]

    def memory(self, chips: Chips, memories: Sequence[int]) -> Integers:
        """The place of the largest memory that each chip may have, -1: none."""
        most = np.full(len(chips), -1)
        for place, size in enumerate(memories):
            if self.made.stack_bytes:
                allowed = chips.hbm_stacks * self.made.stack_bytes == size
            else:
                allowed = self.usd(chips, float(size)) <= self.most_usd * (1 + NEAR)
            most[allowed] = place
        return most


def limits_of(
    keep: Mapping[str, Any],
    keys: frozenset[str],
    made: Technology,
    most_area: float,
    terms: Mapping[str, Any],
) -> Limits:
    """The rules that a space states, which may have these keys."""
    known_keys(keep, keys, "keep")

    def most(name: str) -> float:
        return np.inf if keep.get(name) is None else positive(keep[name], f"keep.{name}")

    return Limits(
        made=made,
        terms=terms,
        most_area=most_area,
        least_share=number(keep["least_share"], "keep.least_share", 0, 1),
        single_core=keep.get("smaller_with_one_core") is True,
        sustained_w=most("sustained_power"),
        most_w=most("most_power"),
        most_w_per_mm2=most("most_w_per_mm2"),
        most_usd=most("most_usd"),
    )

"""Which combinations of the axes are chips of a space: area, die edge, power and manufacturing
cost.

Kept is a chip with

    area <= budget  and  (area >= least_share * budget  or  a single core of either kind, if so
                    asked)
    die  <= budget,      die = max(area, the edge that its HBM stacks need)
    design power <= most_power
    accepted under sustained_power (clocked.refusal)   and   watts at the clock held <=
                                                       most_w_per_mm2 area
    manufacturing cost <= most_usd            without its HBM where a study chooses that: the search
                                              holds chip and memory together against it

A rule whose limit the space does not state keeps every chip. Each rule is a whole-array formula
over a chunk of combinations, on what the rules before it leave; a combination that breaks several
counts under the first. Memory grows with the chips that are kept, not with the combinations.

A chip that draws no more than its limit at its rated clock holds that. Any other holds the clock at
which it draws the limit W, so no clock need be found to know that

    it holds half of its clock    if and only if    it draws at most W at half of it
    watts <= most_w_per_mm2 area  if and only if    W <= most_w_per_mm2 area

Where a side is nearer than rounding could move it, the clock is found as it is for every chip.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from math import isfinite
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.hardware.area import areas_of, edge_areas
from phaze.hardware.columns import ChipColumns, Flags, Floats, columns_of
from phaze.hardware.manufacturing import chips_usd
from phaze.hardware.ownership import load_terms
from phaze.hardware.power import (
    LEAST_SHARE,
    ClockPower,
    accepted,
    clock_power,
    full_rate,
    held_clocks,
    power_at,
)
from phaze.search.space import Space

WITHIN = 1 + 1e-12
"""Of a limit, which sums in another order may exceed."""
MOST_LISTED = 2e9
"""Combinations that are evaluated one by one: minutes."""
CHUNK = 1 << 18
"""Combinations built at a time: tens of MB, near the processor's caches."""
NEAR = 1e-9
"""Sides of a rule that are nearer than this are compared with the clock that a chip holds."""
RULES = ("area", "edge", "power", "cost")
NOTHING_LEFT_OUT: Mapping[str, int] = MappingProxyType(dict.fromkeys(RULES, 0))


@dataclass(frozen=True, slots=True)
class Need:
    """The rule that leaves no chip, and how near the nearest comes to it."""

    rule: str
    needed: float
    available: float
    unit: str
    sentence: str


def area_budget(space: Space) -> float:
    """The area that a chip of the space may have, mm2."""
    chip = space.area_within
    if chip is None:
        return float(space.keep.most_area or 0.0)
    return float(areas_of(columns_of([chip]), space.technology).total[0])


def clock_powers(space: Space, chips: ChipColumns) -> ClockPower[Floats]:
    """What sets the clock of chips under a power limit."""
    return clock_power(chips, space.technology, areas_of(chips, space.technology))


def clocks_of(space: Space, chips: ChipColumns) -> Floats:
    """The clock of every chip: the one that it is rated for, or the one that its power limit lets
    it hold."""
    if not space.technology.sets_clock:
        return chips.clock_hz
    return held_clocks(clock_powers(space, chips), space.technology, chips.clock_hz, chips.limit_w)


def design_watts(space: Space, chips: ChipColumns, area_mm2: Floats, held_hz: Floats) -> Floats:
    """The design power of every chip: what it draws at the clock that it holds, or at its full
    rate."""
    if not space.technology.sets_clock:
        return full_rate(chips, space.technology, area_mm2).design_w
    return power_at(clock_powers(space, chips), space.technology, held_hz)


def die_areas(chips: ChipColumns, area_mm2: Floats) -> Floats:
    """The area with what stays empty so that the stacks have edge."""
    return np.maximum(area_mm2, edge_areas(chips.stacks))


def price_usd(space: Space, chips: ChipColumns, area_mm2: Floats, hbm_bytes: int = 0) -> Floats:
    """What making every chip takes, with its own memory or that much."""
    return chips_usd(
        chips, die_areas(chips, area_mm2), space.base, hbm_bytes, load_terms(), space.technology
    )


def _in_area(space: Space, chips: ChipColumns, area_mm2: Floats, budget: float) -> Flags:
    large = area_mm2 >= space.keep.least_share * budget
    if space.keep.smaller_with_one_core:
        large = large | (chips.clusters == 1) | (chips.vectors == 1)
    return np.asarray((area_mm2 <= budget * WITHIN) & large)


def _held_within(space: Space, chips: ChipColumns, area_mm2: Floats) -> Flags:
    """Chips that the rules of sustained power keep, by the clock that each holds."""
    power, held = clock_powers(space, chips), clocks_of(space, chips)
    watts = power_at(power, space.technology, held)
    return np.asarray(
        accepted(chips, power, held) & (watts <= space.keep.most_w_per_mm2 * area_mm2)
    )


def _powered(space: Space, chips: ChipColumns, area_mm2: Floats) -> Flags:
    """Which chips the rules of power keep."""
    most, every = space.keep.most_power, np.ones(len(chips), np.bool_)
    if most is not None:
        every = np.asarray(
            design_watts(space, chips, area_mm2, clocks_of(space, chips)) <= most * WITHIN
        )
    return (
        every & _sustained(space, chips, area_mm2)
        if isfinite(space.keep.sustained_power)
        else every
    )


def _sustained(space: Space, chips: ChipColumns, area_mm2: Floats) -> Flags:
    """Which chips the rules of sustained power keep."""
    node, most_w = space.technology, space.keep.most_w_per_mm2 * area_mm2
    power = clock_powers(space, chips)
    fixed_w = np.maximum(power.product_fixed_w, power.vector_fixed_w)
    top = np.minimum(chips.clock_hz, node.voltage.most_hz)
    top_w, half_w = (power_at(power, node, clock) for clock in (top, LEAST_SHARE * chips.clock_hz))
    full = top_w <= chips.limit_w
    drawn_w = np.where(full, top_w, chips.limit_w)
    slow = np.where(full, top < LEAST_SHARE * chips.clock_hz, half_w > chips.limit_w)
    within = np.asarray((fixed_w <= chips.limit_w) & ~slow & (drawn_w <= most_w))
    near = (np.abs(half_w / chips.limit_w - 1) < NEAR) | (np.abs(drawn_w / most_w - 1) < NEAR)
    doubt = np.flatnonzero(near & ~full)
    if len(doubt):
        within[doubt] = _held_within(space, chips.taken(doubt), area_mm2[doubt])
    return within


def passing(space: Space, rule: str, chips: ChipColumns, area_mm2: Floats, budget: float) -> Flags:
    """Which combinations a rule lets pass."""
    every = np.ones(len(chips), np.bool_)
    if rule == "area":
        return _in_area(space, chips, area_mm2, budget)
    if rule == "edge":
        return np.asarray(edge_areas(chips.stacks) <= budget)
    if rule == "power":
        return _powered(space, chips, area_mm2)
    most = space.keep.most_usd
    return every if most is None else np.asarray(price_usd(space, chips, area_mm2) <= most * WITHIN)


@dataclass(frozen=True, slots=True)
class KeptChips:
    """Combinations that are chips: which they are, their areas, and how many each rule leaves
    out."""

    index: NDArray[np.int64]
    chips: ChipColumns
    area_mm2: Floats
    left_out: Mapping[str, int]


def kept_of(space: Space, chips: ChipColumns) -> KeptChips:
    """Of some combinations those that the space keeps."""
    index, area, budget = (
        np.arange(len(chips)),
        areas_of(chips, space.technology).total,
        area_budget(space),
    )
    left_out = dict[str, int]()
    for rule in RULES:
        stays = np.flatnonzero(passing(space, rule, chips, area, budget))
        left_out[rule] = len(index) - len(stays)
        if left_out[rule]:
            index, chips, area = index[stays], chips.taken(stays), area[stays]
    return KeptChips(index, chips, area, left_out)


def kept_chunks(space: Space) -> Iterator[KeptChips]:
    """All that a space keeps, a chunk of combinations at a time."""
    points, count = space.axis_points(), len(space)
    if count > MOST_LISTED:
        seen = f"there are {count:.3g} combinations, and every chip is evaluated"
        raise InputError("axes", seen, f"give at most {MOST_LISTED:.0e}")
    shape = [len(axis) for axis in points.values()]
    for start in range(0, count, CHUNK):
        numbers = np.arange(start, min(count, start + CHUNK))
        yield kept_of(space, space.placed(np.unravel_index(numbers, shape), points))


def left_out_of(space: Space) -> Mapping[str, int]:
    """Combinations that each rule leaves out, without keeping any chip."""
    left_out = dict(NOTHING_LEFT_OUT)
    for chunk in kept_chunks(space):
        for rule, count in chunk.left_out.items():
            left_out[rule] += count
    return left_out


def joined(parts: list[ChipColumns]) -> ChipColumns:
    """Chips of several chunks together; one value for all of them takes no memory."""

    def column(name: str) -> NDArray[Any]:
        pieces = [getattr(part, name) for part in parts if len(part)]
        if pieces and all((piece == pieces[0][0]).all() for piece in pieces):
            return np.broadcast_to(pieces[0][0], sum(len(piece) for piece in pieces))
        return np.concatenate(pieces or [getattr(parts[0], name)])

    return ChipColumns(**{field.name: column(field.name) for field in fields(ChipColumns)})


def refusals(space: Space, chips: ChipColumns, area_mm2: Floats) -> list[str | None]:
    """Why the space does not keep each of these combinations, or None where it does."""
    budget, keep = area_budget(space), space.keep
    passes = {rule: passing(space, rule, chips, area_mm2, budget) for rule in RULES}
    held = clocks_of(space, chips)
    watts = design_watts(space, chips, area_mm2, held)
    dies, most_usd = die_areas(chips, area_mm2), keep.most_usd or 0.0
    usd = price_usd(space, chips, area_mm2)
    reasons: list[str | None] = []
    for index, area in enumerate(area_mm2.tolist()):
        broken = next((rule for rule in RULES if not passes[rule][index]), None)
        if broken == "area" and area > budget:
            reasons.append(f"{area:.1f} of {budget:.1f} mm2")
        elif broken == "area":
            reasons.append(f"{area:.1f} mm2, below {keep.least_share * budget:.1f}")
        elif broken == "edge":
            reasons.append(
                f"{int(chips.stacks[index])} stacks need a die of {dies[index]:.0f} of "
                f"{budget:.0f} mm2"
            )
        elif broken == "power" and keep.most_power is None:
            reasons.append(
                f"{watts[index]:.0f} W at {held[index] / 1e9:.2f} GHz, the clock it would hold"
            )
        elif broken == "power":
            reasons.append(f"{watts[index]:.0f} of {keep.most_power:.0f} W")
        elif broken == "cost" and space.memories is not None:
            reasons.append(f"more than {most_usd:,.0f} USD with its HBM")
        elif broken == "cost":
            reasons.append(f"{usd[index]:,.0f} of {most_usd:,.0f} USD without HBM")
        else:
            reasons.append(None)
    return reasons


def need_of(space: Space, left_out: Mapping[str, int]) -> Need:
    """Of a space without a chip: the first rule that nothing satisfies and the combination that
    comes nearest; where power sets clocks, so that rules hang together, the rule that leaves most
    of the combinations out."""
    return _most_broken(space, left_out) if space.technology.sets_clock else _nearest(space)


def _most_broken(space: Space, left_out: Mapping[str, int]) -> Need:
    keep = space.keep
    area, power = (float(keep.most_area or 0.0), "mm2"), (keep.sustained_power, "W")
    rule = max(left_out, key=lambda name: left_out[name])
    limit, unit = {
        "area": area,
        "edge": area,
        "power": power,
        "cost": (keep.most_usd or 0.0, "USD"),
    }[rule]
    least = f" and at least {keep.least_share * area[0]:,.4g} mm2" if rule == "area" else ""
    sentence = f"most of them break the rule of {rule}, at most {limit:,.4g} {unit}{least}"
    return Need(rule, float("nan"), limit, unit, sentence)


def _nearest(space: Space) -> Need:
    keep, budget, points = space.keep, area_budget(space), space.axis_points()
    most_w, most_usd = keep.most_power, keep.most_usd
    smallest = least_w = least_usd = np.inf
    largest = 0.0
    for start in range(0, len(space), CHUNK):
        numbers = np.arange(start, min(len(space), start + CHUNK))
        chips = space.placed(
            np.unravel_index(numbers, [len(axis) for axis in points.values()]), points
        )
        area = areas_of(chips, space.technology).total
        smallest = min(smallest, float(area.min()))
        largest = max(largest, float(area[area <= budget].max(initial=0.0)))
        inside = np.flatnonzero(_in_area(space, chips, area, budget))
        chips, area = chips.taken(inside), area[inside]
        watts = design_watts(space, chips, area, clocks_of(space, chips))
        least_w = min(least_w, float(watts.min(initial=np.inf)))
        cool = np.flatnonzero(watts <= (np.inf if most_w is None else most_w * WITHIN))
        usd = price_usd(space, chips.taken(cool), area[cool])
        least_usd = min(least_usd, float(usd.min(initial=np.inf)))
    if smallest > budget:
        sentence = f"the smallest chip needs {smallest:,.4g} mm2 and there are {budget:,.4g} mm2"
        return Need("area", smallest, budget, "mm2", sentence)
    if not np.isfinite(least_w):
        least = keep.least_share * budget
        sentence = (
            f"the largest chip within the area has {largest:,.4g} mm2 and least_share asks "
            f"for {least:,.4g} mm2"
        )
        return Need("least_share", least, largest, "mm2", sentence)
    if most_w is not None and least_w > most_w * WITHIN:
        sentence = (
            f"the chip of least power within the area needs {least_w:,.4g} W and there are "
            f"{most_w:,.4g} W"
        )
        return Need("power", least_w, most_w, "W", sentence)
    most = float(most_usd or 0.0)
    sentence = (
        f"the cheapest chip that is left costs {least_usd:,.4g} USD without HBM and there "
        f"are {most:,.4g} USD"
    )
    return Need("cost", least_usd, most, "USD", sentence)

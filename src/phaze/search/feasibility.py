"""Which combinations of the axes are chips of the space: area, design power, and the price of making one.

Each rule is a whole-array formula over a chunk of combinations. A combination that breaks several rules counts under
the first of area, power and cost. The price of a chip's HBM is not in the space's rule, for HBM is chosen by the study;
the search holds chip and memory together against ``most_usd``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.hardware.area import Areas, areas_of, chip_areas
from phaze.hardware.ownership import load_terms
from phaze.hardware.technology import Technology
from phaze.search.ownership_cost import columns_in, design_watts, making_usd
from phaze.search.space import CHUNK, FIELDS, Chips, Space, grid_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FeasibleChips:
    """The chips of a space, and how many combinations each rule left out.

    Of a space that is looked at in boxes only some chips: ``numbers`` are those of their combinations, ascending, and
    there are so many ``others``.
    """

    chips: Chips
    area: int
    power: int
    cost: int
    numbers: NDArray[np.int64] | None = None
    others: int = 0


@dataclass(frozen=True, slots=True)
class Need:
    """The rule that leaves no chip, and how near the nearest comes to it."""

    rule: str
    needed: float
    available: float
    unit: str
    sentence: str


def areas_in(space: Space, chips: Chips) -> Areas[Floats]:
    """The area of every chip by part, mm2."""
    return areas_of(columns_in(space.base, chips), space.technology)


def _in_area(space: Space, chips: Chips, budget: float) -> Flags:
    large = chips.area_mm2 >= space.keep.least_share * budget
    if space.keep.smaller_with_one_core:
        large = large | (chips.tensor_cores == 1) | (chips.vector_cores == 1)
    return np.asarray((chips.area_mm2 <= budget * (1 + 1e-12)) & large)


def _budget(space: Space, technology: Technology) -> float:
    if space.keep.area_of is None or space.area_chip is None:
        return float(space.keep.most_area or 0.0)
    return chip_areas(technology, space.area_chip).total


def kept_counts(space: Space) -> FeasibleChips:
    """What the rules of a space leave out, without its chips."""
    return _kept(space, False)


MOST_LISTED = 2e9
"""Combinations that are evaluated one by one: minutes."""


def kept_of(space: Space) -> FeasibleChips:
    """Every chip of the space, and what was left out."""
    count = len(grid_of(space))
    if count > MOST_LISTED:
        seen = f"there are {count:.3g} combinations, and every chip is evaluated"
        raise InputError("axes", seen, f"give at most {MOST_LISTED:.0e}")
    return _kept(space, True)


def in_space(space: Space, chips: Chips) -> Flags:
    """Which combinations, with their areas, are chips of the space."""
    technology, keep = space.technology, space.keep
    kept = _in_area(space, chips, _budget(space, technology))
    if keep.most_power is not None:
        kept &= design_watts(space, chips) <= keep.most_power * (1 + 1e-12)
    if keep.most_usd is not None:
        usd = making_usd(chips, space.base.silicon.dies, technology.fab, load_terms(), 0)
        kept &= usd <= keep.most_usd * (1 + 1e-12)
    return kept


def _kept(space: Space, wanted: bool) -> FeasibleChips:
    technology, grid = space.technology, grid_of(space)
    budget, most_w, most_usd = _budget(space, technology), space.keep.most_power, space.keep.most_usd
    terms, dies = load_terms(), grid.space.base.silicon.dies
    pieces: list[list[NDArray[Any]]] = [[] for _ in fields(Chips)]
    counts = np.zeros(3, np.int64)
    for start in range(0, len(grid), CHUNK):
        some = grid.chips(start, min(start + CHUNK, len(grid)))
        some = replace(some, area_mm2=areas_in(space, some).total)
        for at in range(3):
            before = len(some)
            if at == 0:
                some = some.taken(_in_area(space, some, budget))
            elif at == 1 and most_w is not None:
                some = some.taken(design_watts(space, some) <= most_w * (1 + 1e-12))
            elif at == 2 and most_usd is not None:
                some = some.taken(making_usd(some, dies, technology.fab, terms, 0) <= most_usd * (1 + 1e-12))
            counts[at] += before - len(some)
        some = some if wanted else some.taken(np.empty(0, np.int64))
        for column, field in zip(pieces, fields(Chips), strict=True):
            column.append(getattr(some, field.name))
    varied = {"vector_cores", "lanes", "tensor_buffer", "vector_buffer", "area", *grid.names}
    area, power, cost = counts.tolist()
    return FeasibleChips(Chips(*(_joined(pieces, name not in varied) for name in FIELDS)), area, power, cost)


def nearest_chip(space: Space) -> Need:
    """Of a space without a chip: the first rule that nothing satisfies, and the combination that comes nearest."""
    technology, grid, terms = space.technology, grid_of(space), load_terms()
    budget, most_w, most_usd = _budget(space, technology), space.keep.most_power, space.keep.most_usd
    smallest = least_w = least_usd = np.inf
    largest = 0.0
    for start in range(0, len(grid), CHUNK):
        some = grid.chips(start, min(start + CHUNK, len(grid)))
        some = replace(some, area_mm2=areas_in(space, some).total)
        smallest = min(smallest, float(some.area_mm2.min()))
        largest = max(largest, float(some.area_mm2[some.area_mm2 <= budget].max(initial=0.0)))
        some = some.taken(_in_area(space, some, budget))
        watts = design_watts(space, some)
        least_w = min(least_w, float(watts.min(initial=np.inf)))
        some = some.taken(watts <= (np.inf if most_w is None else most_w * (1 + 1e-12)))
        usd = making_usd(some, grid.space.base.silicon.dies, technology.fab, terms, 0)
        least_usd = min(least_usd, float(usd.min(initial=np.inf)))
    if smallest > budget:
        said = f"the smallest chip needs {smallest:,.4g} mm2 and there are {budget:,.4g} mm2"
        return Need("area", smallest, budget, "mm2", said)
    if not np.isfinite(least_w):
        least = space.keep.least_share * budget
        said = f"the largest chip within the area has {largest:,.4g} mm2 and least_share asks for {least:,.4g} mm2"
        return Need("least_share", least, largest, "mm2", said)
    if most_w is not None and least_w > most_w * (1 + 1e-12):
        said = f"the chip of least power within the area needs {least_w:,.4g} W and there are {most_w:,.4g} W"
        return Need("power", least_w, most_w, "W", said)
    most = float(most_usd or 0.0)
    said = f"the cheapest chip that is left costs {least_usd:,.4g} USD without HBM and there are {most:,.4g} USD"
    return Need("cost", least_usd, most, "USD", said)


def _joined(pieces: list[list[NDArray[Any]]], same: bool) -> NDArray[Any]:
    """The next column of all pieces, which are let go; one value for all chips takes no memory."""
    own = pieces.pop(0)
    count = sum(len(piece) for piece in own)
    if same and count > 0:
        return np.broadcast_to(next(piece[0] for piece in own if len(piece)), count)
    return np.concatenate(own)


def area_budget(space: Space) -> float:
    """The area that a chip of the space may have, mm2."""
    return _budget(space, space.technology)


def combinations_at(space: Space, numbers: Sequence[int]) -> Chips:
    """Combinations of the axes by number, whether or not the space keeps them, with their areas."""
    grid = grid_of(space)
    some = grid.chips_at(np.unravel_index(np.asarray(numbers, np.int64), [len(axis) for axis in grid.values]))
    return replace(some, area_mm2=areas_in(space, some).total)


def refusals(space: Space, chips: Chips) -> list[str | None]:
    """Why the space does not keep each of these combinations, or None where it does."""
    technology, terms = space.technology, load_terms()
    budget, most_w, most_usd = _budget(space, technology), space.keep.most_power, space.keep.most_usd
    inside, watts = _in_area(space, chips, budget), design_watts(space, chips)
    usd = making_usd(chips, space.base.silicon.dies, technology.fab, terms, 0)
    found: list[str | None] = []
    for at in range(len(chips)):
        area = float(chips.area_mm2[at])
        if not inside[at]:
            least = space.keep.least_share * budget
            found.append(f"{area:.1f} of {budget:.1f} mm2" if area > budget else f"{area:.1f} mm2, below {least:.1f}")
        elif most_w is not None and watts[at] > most_w * (1 + 1e-12):
            found.append(f"{watts[at]:.0f} of {most_w:.0f} W")
        elif most_usd is not None and usd[at] > most_usd * (1 + 1e-12):
            found.append(f"{usd[at]:,.0f} of {most_usd:,.0f} USD without HBM")
        else:
            found.append(None)
    return found

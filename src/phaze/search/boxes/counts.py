r"""How many chips a space has; of chips of cores without looking at each.

An area is a sum in a fixed order: first what cores take, y(T, r, c, V, l, buffers), then global buffer, network, HBM
and links, z(g, w, H, B, f). Sums of floats never fall when a term grows, so of the values of y in order those within
the area at one z stand together, and two places found by halving count them (:func:`_first_above`). Cores are looked at
so many at a time that memory stays small (:data:`CORES_AT_ONCE`). Where power or
price is limited too, every combination is looked at (:func:`phaze.search.feasibility.kept_of`), as of chips of clusters
(:mod:`phaze.hardware.silicon.counted`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.silicon.counted import left_out_of
from phaze.search.clustered_space import SpaceOfClusters
from phaze.search.feasibility import FeasibleChips, area_budget, areas_in, kept_counts
from phaze.search.space import Chips, Grid, Space, grid_of
from phaze.search.spaces import AnySpace

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# The axes that areas count last, in the order of the grid.
SHARED = ("global_buffer", "global_bandwidth", "hbm_bandwidth", "links", "clock")

# A few hundred megabytes of columns; fewer at once would halve more often.
CORES_AT_ONCE = 2**21


@dataclass(frozen=True, slots=True)
class SpaceCounts:
    """Chips of a space, and combinations that each rule leaves out; ``rules`` of a space of clusters has the die's edge
    apart."""

    chips: int
    area: int
    power: int
    cost: int
    rules: Mapping[str, int] = field(default_factory=dict)


def _combinations(grid: Grid, names: tuple[str, ...], at_once: int) -> Iterator[Chips]:
    """Every combination of some axes, the others at their first values, ``at_once`` at a time."""
    lengths = [len(values) if name in names else 1 for name, values in zip(grid.names, grid.values, strict=True)]
    total = prod(lengths)
    for first in range(0, total, at_once):
        yield grid.chips_at(np.unravel_index(np.arange(first, min(first + at_once, total)), lengths))


def _area(known: Floats, shared: tuple[float, ...], share: float) -> Floats:
    """Areas of cores ``known`` with one set of what they share, added as :func:`phaze.hardware.area.areas_of` adds."""
    total = known
    for one in shared:
        total = total + one
    return np.asarray(total + share * total)


def _first_above(known: Floats, shared: tuple[float, ...], share: float, most: float, at_most: bool) -> int:
    """Of ascending areas of cores the first place above ``most``; with ``at_most`` false the first not below it."""
    low, high = 0, len(known)
    while low < high:
        middle = (low + high) // 2
        area = float(_area(known[middle : middle + 1], shared, share)[0])
        if area <= most if at_most else area < most:
            low = middle + 1
        else:
            high = middle
    return low


def count_chips(space: AnySpace) -> SpaceCounts:
    """The chips that the rules of a space keep."""
    if isinstance(space, SpaceOfClusters):
        out = left_out_of(space.silicon)
        chips = len(space.silicon) - sum(out.values())
        return SpaceCounts(chips, out["area"] + out["edge"], out["power"], out["cost"], out)
    return count_cores(space)


def count_cores(space: Space, at_once: int = CORES_AT_ONCE) -> SpaceCounts:
    """The same of chips of cores, looking at so many combinations of cores at a time."""
    grid, keep, technology = grid_of(space), space.keep, space.technology
    if keep.most_power is not None or keep.most_usd is not None:
        found: FeasibleChips = kept_counts(space)
        combinations = len(grid)
        return SpaceCounts(combinations - found.area - found.power - found.cost, found.area, found.power, found.cost)
    (rest,) = _combinations(grid, SHARED, len(grid))
    shared = areas_in(space, rest)
    rows = np.stack([shared.global_buffer, shared.network, shared.hbm, shared.links], axis=1)
    most, least = area_budget(space) * (1 + 1e-12), keep.least_share * area_budget(space)
    chips = 0
    for cores in _combinations(grid, tuple(name for name in grid.names if name not in SHARED), at_once):
        own = areas_in(space, cores)
        known = own.clusters
        single = (cores.tensor_cores == 1) | (cores.vector_cores == 1)
        if not keep.smaller_with_one_core:
            single = np.zeros(len(cores), np.bool_)
        several, alone = np.sort(known[~single]), np.sort(known[single])
        for row in rows.tolist():
            of_one = (tuple(row), technology.area.other_share)
            chips += _first_above(several, *of_one, most, True) - _first_above(several, *of_one, least, False)
            chips += _first_above(alone, *of_one, most, True)
    return SpaceCounts(chips, len(grid) - chips, 0, 0)

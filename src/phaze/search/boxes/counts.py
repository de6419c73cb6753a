r"""How many chips a space has; of chips of cores without looking at each.

An area is a sum in a fixed order: first what cores take, y(T, r, c, V, l, buffers), then global
buffer, network, HBM and links, z(g, w, H, B, f). Sums of floats never fall when a term grows, so of
the values of y in order those within the area at one z stand together, and two places found by
halving count them (:func:`_first_above`). Cores are considered so many at a time that memory stays
small (:data:`CORES_AT_ONCE`). Where power or price is limited too, every combination is considered,
as of chips of clusters (:func:`phaze.search.feasibility.left_out_of`).
"""

from collections.abc import Iterator, Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.area import areas_of
from phaze.hardware.columns import ChipColumns
from phaze.search.feasibility import NOTHING_LEFT_OUT, area_budget, left_out_of
from phaze.search.space import Space

Floats = NDArray[np.float64]
# The axes that areas count last, in the order of the space.
SHARED = ("global_buffer", "global_bandwidth", "hbm_bandwidth", "links", "clock")

CORES_AT_ONCE = 2**21
"""Areas of cores that are sorted together: fewer would be halved more often."""
BLOCK = 2**16
"""Combinations whose columns are built together: they stay in the processor's caches."""


def _combinations(
    space: Space, names: tuple[str, ...], at_once: int
) -> Iterator[Iterator[ChipColumns]]:
    """Every combination of some axes, the others at their first values, ``at_once`` at a time, in
    blocks."""
    points = space.axis_points()
    lengths = [len(values) if name in names else 1 for name, values in points.items()]

    def blocks(first: int, last: int) -> Iterator[ChipColumns]:
        for start in range(first, last, BLOCK):
            numbers = np.arange(start, min(start + BLOCK, last))
            yield space.placed(np.unravel_index(numbers, lengths), points)

    total = prod(lengths)
    for first in range(0, total, at_once):
        yield blocks(first, min(first + at_once, total))


def _area(cores: Floats, shared: tuple[float, ...], share: float) -> Floats:
    """Areas of cores ``cores`` with one set of what they share, added as
    :func:`phaze.hardware.area.areas_of` adds."""
    total = cores
    for part in shared:
        total = total + part
    return np.asarray(total + share * total)


def _first_above(
    cores: Floats, shared: tuple[float, ...], share: float, most: float, at_most: bool
) -> int:
    """Of ascending areas of cores the first place above ``most``; with ``at_most`` false the first
    not below it."""
    low, high = 0, len(cores)
    while low < high:
        middle = (low + high) // 2
        area = float(_area(cores[middle : middle + 1], shared, share)[0])
        if area <= most if at_most else area < most:
            low = middle + 1
        else:
            high = middle
    return low


def count_left_out(space: Space, at_once: int = CORES_AT_ONCE) -> Mapping[str, int]:
    """Combinations that each rule of a space leaves out, looking at so many combinations of cores
    at a time."""
    keep, technology = space.keep, space.technology
    if space.limits["power"] is not None or space.limits["usd"] is not None:
        return left_out_of(space)
    rows = list[list[float]]()
    for blocks in _combinations(space, SHARED, len(space)):
        for rest in blocks:
            shared = areas_of(rest, technology)
            rows += np.stack(
                [shared.global_buffer, shared.network, shared.hbm, shared.links], axis=1
            ).tolist()
    most, least = area_budget(space) * (1 + 1e-12), keep.least_share * area_budget(space)
    chips, names = 0, tuple(name for name in space.axis_points() if name not in SHARED)
    for blocks in _combinations(space, names, at_once):
        areas, flags = list[Floats](), list[NDArray[np.bool_]]()
        for cores in blocks:
            areas.append(areas_of(cores, technology).clusters)
            flags.append(
                ((cores.clusters == 1) | (cores.vectors == 1)) & keep.smaller_with_one_core
            )
        cores_mm2, single = np.concatenate(areas), np.concatenate(flags)
        several, alone = np.sort(cores_mm2[~single]), np.sort(cores_mm2[single])
        for row in rows:
            of_one = (tuple(row), technology.area.other_share)
            chips += _first_above(several, *of_one, most, True) - _first_above(
                several, *of_one, least, False
            )
            chips += _first_above(alone, *of_one, most, True)
    return {**NOTHING_LEFT_OUT, "area": len(space) - chips}

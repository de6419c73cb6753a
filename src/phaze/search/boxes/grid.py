r"""Boxes of a space: a range of values of every axis, as two corners of places.

Parts of a chip only grow with every axis but the clock (a faster one needs less network for the
same bytes a second), and the network grows with built clusters times port, which falls where more
clusters share the width. So every chip x of a box with corners lo, hi has

    area(x) >= area(lo, the clock of hi, the least built x port of the box)  (:meth:`BoxGrid.sized`)
    die(x)  >= the greater of that and the edge that the stacks of lo need
            (:meth:`BoxGrid.least_dies`)

and no chip of a box is kept where that is above the budget. Upper ends are first lowered to what
fits with all else at the low corner (:func:`trimmed`): what is above the budget there is above it
in every chip that was cut off.

Limits are held to 1e-9 more than the rules of a space hold them; single chips are held to the rules
themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.area import Areas, areas_of
from phaze.hardware.columns import ChipColumns
from phaze.hardware.technology import Technology
from phaze.search.factors import AS_THEY_ARE, ConstantFactors
from phaze.search.feasibility import area_budget, die_areas
from phaze.search.space import Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
SLACK = 1e-9
"""Sums in another order than those of single chips differ by less."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Boxes as the places of their corners in every axis, [boxes, axes]."""

    low: Integers
    high: Integers

    def __len__(self) -> int:
        return len(self.low)

    def taken(self, index: NDArray[Any] | slice) -> "Boxes":
        """Some of them, by numbers or flags."""
        return Boxes(self.low[index], self.high[index])

    @property
    def alone(self) -> Flags:
        """Which of them are one combination."""
        return np.asarray((self.low == self.high).all(axis=1))

    @property
    def sizes(self) -> Floats:
        """Combinations of each; exact below 2^53."""
        return np.asarray((self.high - self.low + 1).astype(np.float64).prod(axis=1))


def joined(boxes: list[Boxes]) -> Boxes:
    """All of them, in order."""
    return Boxes(
        np.concatenate([some.low for some in boxes]), np.concatenate([some.high for some in boxes])
    )


@dataclass(frozen=True, slots=True)
class BoxGrid:
    """The axes of a space, and what its rules keep; ``factors`` make its chips other than the model
    has them, what is in the space stays.

    ``counted``: chips of every width, which ports depend on, and number of clusters, widths first,
    all else at its least; ``places`` are those of the fields of chips among the axes.
    """

    space: Space
    points: Mapping[str, NDArray[Any]]
    budget_mm2: float
    counted: ChipColumns
    places: Mapping[str, int]
    factors: ConstantFactors = AS_THEY_ARE

    @property
    def technology(self) -> Technology:
        return self.space.technology

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.points)

    @property
    def values(self) -> tuple[NDArray[Any], ...]:
        return tuple(self.points.values())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.points.values())

    @property
    def clock_axis(self) -> int | None:
        """The place of the clock, where it is an axis."""
        return self.places.get("clock_hz")

    def chips(self, places: Integers) -> ChipColumns:
        """Combinations by place."""
        return self.space.placed(tuple(places.T), self.points)

    def over_counts(self, boxes: Boxes, values: Floats, most: bool) -> Floats:
        """The most of a value of :attr:`counted` over the numbers of clusters of every box at its
        greatest width, or the least at its least width."""
        count, width = self.places["clusters"], self.places.get("width")
        first, last = boxes.low[:, count], boxes.high[:, count]
        if width is not None:
            row = (boxes.high if most else boxes.low)[:, width] * self.shape[count]
            first, last = row + first, row + last
        # Of every second range that the places delimit; the last value is there only to be a place
        # beyond.
        ends = np.stack([first, last + 1], axis=1).ravel()
        pick = np.maximum if most else np.minimum
        return np.asarray(pick.reduceat(np.append(values, values[-1:]), ends)[::2])

    def sized(self, boxes: Boxes, most: bool) -> tuple[ChipColumns, Areas[Floats]]:
        """A chip that no chip of a box is smaller than, or larger than, and its area; the total
        with room for rounding."""
        (places, others), clock = (
            ((boxes.high, boxes.low) if most else (boxes.low, boxes.high)),
            self.clock_axis,
        )
        if clock is not None:
            places = places.copy()
            places[:, clock] = others[:, clock]
        chips = self.chips(places)
        if not self.technology.area.network_mm2:
            return chips, areas_of(chips, self.technology)
        lines = self.over_counts(boxes, self.counted.built * self.counted.port, most)
        chips = replace(chips, port=lines / chips.built)
        areas = areas_of(chips, self.technology)
        return chips, replace(areas, total=areas.total * (1 + (SLACK if most else -SLACK)))

    def least_dies(self, boxes: Boxes) -> Floats:
        """What no die of a box is smaller than."""
        chips, areas = self.sized(boxes, most=False)
        return die_areas(chips, areas.total)

    def fits(self, die_mm2: Floats) -> Flags:
        """Dies that a space may keep."""
        return np.asarray(die_mm2 <= self.budget_mm2 * (1 + SLACK))


def box_grid(space: Space, factors: ConstantFactors = AS_THEY_ARE) -> BoxGrid:
    """A space as its boxes have it."""
    points = space.axis_points()
    names = tuple(points)
    places = {field: names.index(name) for name, field, _ in space.axis_fields if name in points}
    count, width = places["clusters"], places.get("width")
    widths = 1 if width is None else len(points[names[width]])
    counts = len(points[names[count]])
    combinations = np.zeros((widths * counts, len(names)), np.int64)
    combinations[:, count] = np.tile(np.arange(counts), widths)
    if width is not None:
        combinations[:, width] = np.repeat(np.arange(widths), counts)
    counted = space.placed(tuple(combinations.T), points)
    return BoxGrid(space, points, area_budget(space), counted, places, factors)


def whole(grid: BoxGrid) -> Boxes:
    """The one box that is a space."""
    top = np.array([grid.shape], np.int64) - 1
    return Boxes(np.zeros_like(top), top)


def numbers_of(grid: BoxGrid, places: Integers) -> Integers:
    """Combinations by number, of places [chips, axes]."""
    return np.asarray(np.ravel_multi_index(tuple(places.T), grid.shape), np.int64)


def trimmed(grid: BoxGrid, boxes: Boxes) -> Boxes:
    """Boxes with upper ends lowered to what fits with all else at the low corner; by halves of what
    is left."""
    high = boxes.high.copy()
    for axis in range(len(grid.names)):
        if axis == grid.clock_axis:  # with which areas do not rise
            continue
        inside, beyond = boxes.low[:, axis].copy(), high[:, axis] + 1
        while len(wide := np.flatnonzero(beyond - inside > 1)):
            middle = (inside[wide] + beyond[wide]) // 2
            low = boxes.low[wide].copy()
            low[:, axis] = middle
            fits = grid.fits(grid.least_dies(Boxes(low, high[wide])))
            inside[wide] = np.where(fits, middle, inside[wide])
            beyond[wide] = np.where(fits, beyond[wide], middle)
        high[:, axis] = inside
    return Boxes(boxes.low, high)


def halves(grid: BoxGrid, boxes: Boxes) -> Boxes:
    """Every box in two, along the axis whose ends lie furthest apart by ratio; boxes of one
    combination are not."""
    ratio = np.stack(
        [
            np.log(axis[high] / axis[low])
            for axis, low, high in zip(grid.values, boxes.low.T, boxes.high.T, strict=True)
        ],
        axis=1,
    )
    widest, every = (
        np.argmax(np.where(boxes.high > boxes.low, ratio + 1e-9, -1.0), axis=1),
        np.arange(len(boxes)),
    )
    middle = (boxes.low[every, widest] + boxes.high[every, widest]) // 2
    top, bottom = boxes.high.copy(), boxes.low.copy()
    top[every, widest], bottom[every, widest] = middle, middle + 1
    return joined([Boxes(boxes.low, top), Boxes(bottom, boxes.high)])

r"""Boxes of a space of chips of cores: a range of values of every axis, as two corners of places.

With areas that add up and never fall with an axis but the clock (a faster one needs less network for the same bytes a
second), every chip x of a box with corners lo, hi has

    area(x) >= least = area(lo, the clock at hi)              no chip of the box is kept where that is above the budget
    units(x) <= units(lo) + (budget - least) / mm2 of a unit  all multiply-accumulate units of the chip; lanes alike

A unit's mm2 are those of its logic with the share of what is counted on top; its buffers only make it larger. Upper
ends are first lowered to what fits with all else at the low corner (:func:`trimmed`). What is above the budget there is
above it in every chip that was cut off.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.area import areas_of
from phaze.hardware.columns import ChipColumns
from phaze.hardware.ownership import load_terms
from phaze.search.boxes.box_costs import BoxChips
from phaze.search.chips import SpaceChips
from phaze.search.factors import AS_THEY_ARE, Factors
from phaze.search.feasibility import area_budget, design_watts
from phaze.search.ownership_cost import making_usd
from phaze.search.space import Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
# Limits are held to this, as the rules of a space hold them.
WITHIN_LIMITS = 1 + 1e-12


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
    return Boxes(np.concatenate([one.low for one in boxes]), np.concatenate([one.high for one in boxes]))


class Axes(Protocol):
    """What boxes are cut along: the axes of a space, and the least area of what a box holds."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def values(self) -> tuple[NDArray[Any], ...]: ...

    @property
    def most_mm2(self) -> float: ...

    def untrimmed(self) -> frozenset[str]: ...

    def least_areas(self, low: Integers, high: Integers) -> Floats: ...


@dataclass(frozen=True, slots=True)
class BoxGrid:
    """The axes of a space of chips of cores, and what its rules keep; ``factors`` make its chips other than the model
    has them, what is in the space stays."""

    space: Space
    points: Mapping[str, NDArray[Any]]
    budget_mm2: float
    factors: Factors = AS_THEY_ARE

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.points)

    @property
    def values(self) -> tuple[NDArray[Any], ...]:
        return tuple(self.points.values())

    @property
    def most_mm2(self) -> float:
        """The area that a chip may have, as the rules of a space hold it."""
        return self.budget_mm2 * WITHIN_LIMITS

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.points.values())

    def untrimmed(self) -> frozenset[str]:
        """Axes with which areas do not rise."""
        return frozenset({"clock"})

    def least_areas(self, low: Integers, high: Integers) -> Floats:
        """What no chip of a box is smaller than."""
        places, names = low.copy(), self.names
        if "clock" in names:
            places[:, names.index("clock")] = high[:, names.index("clock")]
        return self._areas(self.chips(places))

    def _areas(self, chips: ChipColumns) -> Floats:
        return areas_of(chips, self.space.technology).total

    def chips(self, places: Integers) -> ChipColumns:
        """Combinations by place."""
        return self.space.placed(tuple(places.T), self.points)

    def corners(self, boxes: Boxes) -> "Corners":
        """The virtual chips of boxes."""
        low, high, least = self.chips(boxes.low), self.chips(boxes.high), self.least_areas(boxes.low, boxes.high)
        table, built = self.space.technology.area, self.space.base.silicon.cores_built
        left = np.maximum(self.budget_mm2 * (1 + 1e-9) - least, 0.0) / (1 + table.other_share) / built
        units, lanes = low.clusters * low.macs, low.vectors * low.lanes
        return Corners(
            self,
            low,
            high,
            least,
            self._areas(high),
            np.minimum(units + left / table.mac_mm2, high.clusters * high.macs),
            np.minimum(lanes + left / table.lane_mm2, high.vectors * high.lanes),
        )

    def opened(self, chips: ChipColumns, area_mm2: Floats) -> SpaceChips:
        """Virtual or real chips as a search has those of a space."""
        return SpaceChips(self.space, chips, area_mm2, chips.clock_hz).scaled(self.factors)


@dataclass(frozen=True, slots=True)
class Corners:
    """Boxes as virtual chips: both corners, the least area, that of the high corner, and at most so many units and
    lanes."""

    view: BoxGrid
    low: ChipColumns
    high: ChipColumns
    area_mm2: Floats
    most_mm2: Floats
    units: Floats
    lanes: Floats

    def __len__(self) -> int:
        return len(self.units)

    def taken(self, index: NDArray[Any]) -> "Corners":
        """Some of them, by numbers or flags."""
        rest = (self.area_mm2, self.most_mm2, self.units, self.lanes)
        return Corners(self.view, self.low.taken(index), self.high.taken(index), *(values[index] for values in rest))

    @property
    def least_w(self) -> Floats:
        """Watts that no chip of a box is rated below."""
        return self.rated().design_w()

    def kept(self) -> Flags:
        """Boxes that may hold a chip of the space."""
        space, budget, low = self.view.space, self.view.budget_mm2, self.low
        keep = space.keep
        there = self.area_mm2 <= self.view.most_mm2
        small = self.most_mm2 < keep.least_share * budget * (1 - 1e-12)
        if "clock" in self.view.names:
            small = np.zeros(len(low), np.bool_)  # the high corner is not the largest chip
        if keep.smaller_with_one_core:
            small &= (low.clusters > 1) & (low.vectors > 1)
        if keep.most_power is not None:
            there &= design_watts(space, low, self.area_mm2) <= keep.most_power * (1 + 1e-9)
        if keep.most_usd is not None:
            usd = making_usd(self.area_mm2, space.base.silicon.dies, space.technology.fab, load_terms(), 0)
            there &= usd <= keep.most_usd * (1 + 1e-9)
        return np.asarray(there & ~small)

    def boxes(self) -> BoxChips:
        """The virtual chips, for costs."""
        low = self.view.opened(self.low, self.area_mm2).arrays()
        high = self.view.opened(self.high, self.most_mm2).arrays()
        unlimited, nothing = np.full(len(self), np.inf), np.zeros(len(self))
        return BoxChips(low, high, self.units, self.lanes, unlimited, unlimited, nothing)

    def links(self) -> Floats:
        """The fastest links of every box."""
        return self.high.link_bytes_per_s * self.view.factors.links

    def rated(self) -> SpaceChips:
        """What rates of an objective ask of chips, of boxes: their low corners."""
        return self.view.opened(self.low, self.area_mm2)


def box_grid(space: Space, factors: Factors = AS_THEY_ARE) -> BoxGrid:
    """The boxes' view of a space."""
    return BoxGrid(space, space.axis_points(), area_budget(space), factors)


def whole(view: Axes) -> Boxes:
    """The one box that is a space."""
    top = np.array([[len(values) for values in view.values]], np.int64) - 1
    return Boxes(np.zeros_like(top), top)


def numbers_of(view: Axes, places: Integers) -> Integers:
    """Combinations by number, of places [chips, axes]."""
    shape = tuple(len(values) for values in view.values)
    return np.asarray(np.ravel_multi_index(tuple(places.T), shape), np.int64)


def trimmed(view: Axes, boxes: Boxes) -> Boxes:
    """Boxes with upper ends lowered to what fits with all else at the low corner; by halves of what is left."""
    high = boxes.high.copy()
    for place, name in enumerate(view.names):
        if name in view.untrimmed():
            continue
        fits, over = boxes.low[:, place].copy(), high[:, place] + 1
        while True:
            middle = (fits + over) // 2
            open_ = np.flatnonzero(over - fits > 1)
            if not len(open_):
                break
            trial = boxes.low[open_].copy()
            trial[:, place] = middle[open_]
            inside = view.least_areas(trial, high[open_]) <= view.most_mm2
            fits[open_] = np.where(inside, middle[open_], fits[open_])
            over[open_] = np.where(inside, over[open_], middle[open_])
        high[:, place] = fits
    return Boxes(boxes.low, high)


def halves(view: Axes, boxes: Boxes) -> Boxes:
    """Every box in two, along the axis whose ends lie furthest apart by ratio; boxes of one combination are not."""
    ratio = np.stack(
        [np.log(own[boxes.high[:, at]] / own[boxes.low[:, at]]) for at, own in enumerate(view.values)], axis=1
    )
    axis, every = np.argmax(np.where(boxes.high > boxes.low, ratio + 1e-9, -1.0), axis=1), np.arange(len(boxes))
    middle = (boxes.low[every, axis] + boxes.high[every, axis]) // 2
    top, bottom = boxes.high.copy(), boxes.low.copy()
    top[every, axis], bottom[every, axis] = middle, middle + 1
    return joined([Boxes(boxes.low, top), Boxes(bottom, boxes.high)])

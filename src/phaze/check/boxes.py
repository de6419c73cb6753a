"""Spaces too large to look at every chip: boxes of axis values, closed as a whole (rules icml24, chips of cores).

A box has a range of values of every axis. Areas add up and grow with every axis (with the clock they fall), so

    area          at the low corner; above the budget there is no chip in the box. First every upper end is cut to what
                  fits with all else at the low corner. Power and price at the low corner the same
    seconds       at the high corner: most cores, units, lanes, buffers, bandwidths, clock. What depends on two ends has
                  both: a visit of an array takes at least its least rows, a core alone has 1/T of the memories with the
                  least T. Units and lanes together are at most what the area that is left would hold
    schedules, placements      of a virtual chip with these seconds and cores: any schedule or plan of a chip of the box
                  is one of it, so nothing in the box is faster

A box whose bound does not reach the goal is cut in two along the axis whose ends lie furthest apart by ratio; the
halves cover it by construction. Boxes of one chip go through the steps of :mod:`.proof`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .box_walk import BATCH, MOST_LEFT, Boxed, halves_of_open
from .operators import CoreBoxes
from .proof import Watch
from .published import Model
from .reading import cover, number, positive, require
from .space import Chips, Limits, axes_of, chips_at, limits_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
WITHIN = 1e-12
"""Areas at a limit differ in the last bits."""
NEAR = 1e-9
"""Bounds and scores are sums in another order than phaze has them."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A space as axes: values by name, ascending, and what its chips are made from."""

    space: Mapping[str, Any]
    axes: dict[str, Floats]
    limits: Limits

    @property
    def budget(self) -> float:
        return self.limits.budget

    @property
    def combinations(self) -> int:
        count = 1
        for values in self.axes.values():
            count *= len(values)
        return count

    def corner(self, index: Integers) -> Chips:
        """The combinations of places [boxes, axes], with their areas."""
        at = {name: values[index[:, place]] for place, (name, values) in enumerate(self.axes.items())}
        chips = chips_at(self.space, at, len(index))
        return replace(chips, area=self.limits.area(chips))

    def beyond(self, low: Integers, high: Integers) -> dict[str, NDArray[np.bool_]]:
        """By each rule, boxes that it leaves no chip of."""
        area, bottom = self.least_area(low, high), self.corner(low)
        watts = self.limits.power(replace(bottom, area=np.minimum(area, bottom.area)))
        return {
            "area": area > self.budget * (1 + WITHIN), "power": watts > self.limits.watts * (1 + WITHIN),
            "price": self.limits.price(area, 0.0) > self.limits.usd * (1 + WITHIN),
        }  # fmt: skip

    def least_area(self, low: Integers, high: Integers) -> Floats:
        """At the low corner; a faster clock needs less network."""
        index = low.copy()
        if "clock" in self.axes:
            index[:, list(self.axes).index("clock")] = high[:, list(self.axes).index("clock")]
        return self.corner(index).area


def grid_of(space: Mapping[str, Any], terms: Mapping[str, Any]) -> Grid:
    """A space of chips of cores whose axes ascend, with the terms of ownership that prices depend on."""
    cover("axes" in space and space["base"].get("clusters") is None, "boxes of chips of clusters")
    axes = axes_of(space)
    cover("links" not in axes, "links as an axis")
    for name, values in axes.items():
        require(bool((np.diff(values) > 0).all()), f"axes.{name}: values do not ascend")
    return Grid(space, axes, limits_of(space, terms))


def boxes_of(grid: Grid, low: Integers, high: Integers) -> CoreBoxes:
    """Boxes as virtual chips: their corners, and what the area that the low corner leaves would hold."""
    bottom, top, base = grid.corner(low), grid.corner(high), grid.space["base"]
    table, built = base["process"]["area"], number(base["silicon"]["cores_built"], "cores_built")
    share = 1 + number(table["other_share"], "area.other_share")
    left = (grid.budget * (1 + NEAR) - grid.least_area(low, high)) / share / built
    unit, lane = positive(table["mac_mm2"], "mac_mm2"), positive(table["lane_mm2"], "lane_mm2")
    units = bottom.tensor_cores * bottom.rows * bottom.columns + np.maximum(left, 0.0) / unit
    lanes = bottom.vector_cores * bottom.lanes + np.maximum(left, 0.0) / lane
    corner = {field.name: getattr(top, field.name) for field in fields(top)}
    return CoreBoxes(
        **corner, least_rows=bottom.rows, least_columns=bottom.columns, least_tensor_cores=bottom.tensor_cores,
        least_vector_cores=bottom.vector_cores, unit_rate=units * top.clock, lane_rate=lanes * top.clock,
    )  # fmt: skip


def _cut(grid: Grid, low: Integers, high: Integers, found: Boxed) -> Integers:
    """Upper ends cut to what fits with all else at the low corner; what is cut off is counted."""
    most = grid.budget * (1 + WITHIN)
    high = high.copy()
    for place, name in enumerate(grid.axes):
        if name == "clock":
            continue
        while True:
            trial = low.copy()
            trial[:, place] = high[:, place]
            over = (grid.least_area(trial, high) > most) & (high[:, place] > low[:, place])
            if not over.any():
                break
            slab = low[over].copy()
            slab[:, place] = high[over, place]
            found.count("area", slab, high[over])
            high[over, place] -= 1
    return high


def _bounds(model: Model, boxes: CoreBoxes, memory: int, goals: Floats, sharp: bool) -> Floats:
    """What no plan of a model undercuts on any chip of every box, as far as its goal."""
    place, nothing = np.full(len(boxes), memory), np.zeros((model.configurations, len(boxes)))
    return np.asarray(model.bounds(boxes, place, goals, "rooflines" if sharp else "floors", nothing).min(axis=0))


Goals = Callable[[Integers, Integers], Floats]
"""By the corners of boxes what no plan on a chip of theirs may undercut; 0 where any will do."""


def walk(model: Model, grid: Grid, memory: int, goal: float | Goals, watch: Watch, most: int = MOST_LEFT) -> Boxed:
    """Close the boxes of a space against a goal, the same for all or that of each; the chips that are left, at most so
    many, stand alone in theirs."""
    found, count = Boxed(grid.combinations), len(grid.axes)
    ratios = [values / values[0] for values in grid.axes.values()]
    tops = np.array([[len(values) - 1 for values in grid.axes.values()]])
    waiting: list[tuple[Integers, Integers]] = [(np.zeros((1, count), np.int64), tops)]
    while waiting:
        low, high = waiting.pop()
        if len(low) > BATCH:
            waiting.append((low[BATCH:], high[BATCH:]))
            low, high = low[:BATCH], high[:BATCH]
        found.boxes += len(low)
        over = np.zeros(len(low), bool)
        for reason, beyond in grid.beyond(low, high).items():
            found.count(reason, low[beyond & ~over], high[beyond & ~over])
            over |= beyond
        low, high = low[~over], high[~over]
        if not len(low):
            continue
        high = _cut(grid, low, high, found)
        boxes = boxes_of(grid, low, high)
        small = boxes.area < grid.limits.least * grid.budget
        if grid.space["keep"]["smaller_with_one_core"]:
            small &= (boxes.least_tensor_cores > 1) & (boxes.least_vector_cores > 1)
        small &= "clock" not in grid.axes
        found.count("area", low[small], high[small])
        low, high, boxes = low[~small], high[~small], boxes.taken(~small)
        if not len(low):
            continue
        goals = goal(low, high) if callable(goal) else np.full(len(low), goal)
        free = goals <= 0
        found.count("limits", low[free], high[free])
        low, high, boxes, goals = low[~free], high[~free], boxes.taken(~free), goals[~free]
        closed = _bounds(model, boxes, memory, goals, False) >= goals * (1 - NEAR)
        some = np.flatnonzero(~closed & np.isfinite(goals))
        if len(some):
            closed[some] = _bounds(model, boxes.taken(some), memory, goals[some], True) >= goals[some] * (1 - NEAR)
        found.count("rooflines", low[closed], high[closed])
        waiting += halves_of_open(found, low[~closed], high[~closed], ratios, float(goals.min(initial=np.inf)), most)
        watch(found.words)
    return found

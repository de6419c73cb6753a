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
from .operators import Constants, Costs, distinct
from .products import BoxParts, box_least, core_parts
from .proof import Watch
from .published import Model
from .reading import cover, number, positive, require
from .space import Chips, Limits, axes_of, chips_at, limits_of
from .vectors import VectorParts, box_lanes
from .works import Product

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


@dataclass(frozen=True, slots=True)
class Ends:
    """Boxes as virtual chips: both corners, and at most how many units and lanes all cores together have."""

    low: Chips
    high: Chips
    units: Floats
    lanes: Floats

    def taken(self, index: NDArray[Any]) -> "Ends":
        return Ends(self.low.taken(index), self.high.taken(index), self.units[index], self.lanes[index])


def ends_of(grid: Grid, low: Integers, high: Integers) -> Ends:
    """The corners of boxes, and what the area that the low corner leaves would hold."""
    bottom, top, base = grid.corner(low), grid.corner(high), grid.space["base"]
    table, built = base["process"]["area"], number(base["silicon"]["cores_built"], "cores_built")
    share = 1 + number(table["other_share"], "area.other_share")
    left = (grid.budget * (1 + NEAR) - grid.least_area(low, high)) / share / built
    unit, lane = positive(table["mac_mm2"], "mac_mm2"), positive(table["lane_mm2"], "lane_mm2")
    units = bottom.tensor_cores * bottom.rows * bottom.columns + np.maximum(left, 0.0) / unit
    lanes = bottom.vector_cores * bottom.lanes + np.maximum(left, 0.0) / lane
    return Ends(
        bottom, top, np.minimum(units, top.tensor_cores * top.rows * top.columns),
        np.minimum(lanes, top.vector_cores * top.lanes),
    )  # fmt: skip


class BoxCosts(Costs):
    """Seconds that works take at least on every box."""

    def __init__(self, ends: Ends, constants: Constants, level: Mapping[str, Any]) -> None:
        super().__init__(ends.high, constants, level, False)
        self.ends = ends

    def _one(self, way: str) -> bool:
        return way == "one core"

    def _of_product(self, p: Product, way: str) -> Floats:
        if way not in self._tensor_parts:
            high, low, constants = self.ends.high, self.ends.low, self.constants
            shares = low.tensor_cores if self._one(way) else np.ones(len(high))
            cores = np.minimum(high.tensor_cores, high.vector_cores) if way == "paired" else high.tensor_cores
            cores = np.ones(len(high)) if self._one(way) else cores
            units = np.minimum(self.ends.units, cores * high.rows * high.columns)
            # No more than all units in one core.
            rate = high.clock * constants.matrix_share
            parts = core_parts(
                cores, high.rows, high.columns, high.tensor_buffer, high.clock, rate,
                np.full(len(high), constants.lost), high.global_buffer / shares, high.global_bandwidth / shares,
                high.hbm_bandwidth * constants.hbm_share / shares,
            )  # fmt: skip
            corner = [getattr(parts, field.name) for field in fields(parts)]
            rows, of = distinct([*corner, low.rows, low.columns, units * rate, np.full(len(high), np.inf)])
            self._tensor_parts[way] = BoxParts(*rows), of
        box, of = self._tensor_parts[way]
        if (p, way) not in self._known:
            self._known[p, way] = box_least(p, box)
        return np.asarray(self._known[p, way][of])

    def _of_lanes(self, work: Any, way: str) -> Floats:
        if way not in self._vector_parts:
            high, low, constants = self.ends.high, self.ends.low, self.constants
            shares = low.vector_cores if self._one(way) else np.ones(len(high))
            cores = np.minimum(high.tensor_cores, high.vector_cores) if way == "paired" else high.vector_cores
            cores = np.ones(len(high)) if self._one(way) else cores
            columns = (
                cores, high.lanes, high.clock * 6.0 * high.lanes,
                np.minimum(constants.kept_row, 0.5 * high.vector_buffer), high.clock, high.global_buffer / shares,
                high.global_bandwidth / shares, high.hbm_bandwidth * constants.vector_hbm_share / shares,
                np.minimum(self.ends.lanes, cores * high.lanes),
            )  # fmt: skip
            rows, of = distinct(columns)
            self._vector_parts[way] = VectorParts(*rows[:8]), rows[8], of
        parts, most, of = self._vector_parts[way]
        if (work, way) not in self._known:
            self._known[work, way] = box_lanes(work, parts, most * parts.clock)
        return np.asarray(self._known[work, way][of])


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


def _bounds(model: Model, ends: Ends, memory: int, goals: Floats, sharp: bool) -> Floats:
    """What no plan of a model undercuts on any chip of every box, as far as its goal."""
    found = np.full(len(ends.high), np.inf)
    for at in range(len(model.graphs)):
        costs = BoxCosts(ends, model.constants, model.level)
        times = model.layer_bounds(at, ends.high, "floors", costs)
        for way in (w for w, (graph, _) in enumerate(model.ways) if graph == at):
            found = np.minimum(found, model.least(way, memory, times, goals, not sharp))
    return found


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
        ends = ends_of(grid, low, high)
        small = (ends.high.area < grid.limits.least * grid.budget) & (
            (ends.low.tensor_cores > 1) & (ends.low.vector_cores > 1) if grid.space["keep"]["smaller_with_one_core"]
            else np.ones(len(low), bool)
        )  # fmt: skip
        small &= "clock" not in grid.axes
        found.count("area", low[small], high[small])
        low, high, ends = low[~small], high[~small], ends.taken(~small)
        if not len(low):
            continue
        goals = goal(low, high) if callable(goal) else np.full(len(low), goal)
        free = goals <= 0
        found.count("limits", low[free], high[free])
        low, high, ends, goals = low[~free], high[~free], ends.taken(~free), goals[~free]
        closed = _bounds(model, ends, memory, goals, False) >= goals * (1 - NEAR)
        some = np.flatnonzero(~closed & np.isfinite(goals))
        if len(some):
            closed[some] = _bounds(model, ends.taken(some), memory, goals[some], True) >= goals[some] * (1 - NEAR)
        found.count("rooflines", low[closed], high[closed])
        waiting += halves_of_open(found, low[~closed], high[~closed], ratios, float(goals.min(initial=np.inf)), most)
        watch(found.words)
    return found

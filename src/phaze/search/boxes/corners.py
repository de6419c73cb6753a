r"""Boxes as virtual chips, and what rates of an objective ask of them.

No chip of a box has more multiply-accumulate units in use than those of the high corner, nor than
the area holds that the least chip leaves of the budget:

    units(x) <= (units built at lo + (budget - least area) / mm2 of a unit) x the most used of what
    is built

A unit's mm2 are those of its logic with the share of what is counted on top; its buffers only make
it larger. Lanes alike.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.columns import ChipColumns
from phaze.hardware.power import LEAST_SHARE
from phaze.search.boxes.box_costs import BoxChips
from phaze.search.boxes.clocks import BoxSizes, box_clocks
from phaze.search.boxes.grid import SLACK, Boxes, BoxGrid
from phaze.search.chips import SpaceChips
from phaze.search.feasibility import die_areas, price_usd
from phaze.search.space import Space

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Corners:
    """Boxes as virtual chips: both corners, and what no chip of the box is below or above.

    ``units`` and ``lanes``: multiply-accumulates and lane operations of all units and lanes a cycle
    of the fastest clock. Clocks are without the grid's factors.
    """

    grid: BoxGrid
    low: ChipColumns
    high: ChipColumns
    area_mm2: Floats
    most_mm2: Floats
    fastest_hz: Floats
    slowest_hz: Floats
    idle_w: Floats
    rated_w: Floats
    units: Floats
    lanes: Floats
    ports: Floats
    widest_port: Floats
    edges: Floats

    def __len__(self) -> int:
        return len(self.area_mm2)

    def taken(self, index: NDArray[Any]) -> "Corners":
        """Some of them, by numbers or flags."""
        columns: list[Any] = [self.grid, self.low.taken(index), self.high.taken(index)]
        return Corners(*columns, *(getattr(self, f.name)[index] for f in fields(self)[3:]))

    @property
    def space(self) -> Space:
        return self.grid.space

    @property
    def die_mm2(self) -> Floats:
        """The least die of every box."""
        return die_areas(self.low, self.area_mm2)

    def feasible(self) -> Flags:
        """Boxes that may hold a chip of the space."""
        keep, low = self.space.keep, self.low
        small = self.most_mm2 < keep.least_share * self.grid.budget_mm2 * (1 - SLACK)
        if keep.smaller_with_one_core:
            small &= (low.clusters > 1) & (low.vectors > 1)
        there = self.grid.fits(self.die_mm2) & ~small
        there &= self.fastest_hz >= LEAST_SHARE * low.clock_hz * (1 - SLACK)
        there &= self.idle_w <= low.limit_w * (1 + SLACK)
        if keep.most_power is not None:
            there &= self.rated_w <= keep.most_power * (1 + SLACK)
        if keep.most_usd is not None:
            priced = np.flatnonzero(there)
            there[priced] = self.taken(priced).making_usd(0) <= keep.most_usd * (1 + SLACK)
        return there

    def boxes(self) -> BoxChips:
        """The virtual chips, for costs."""
        ends = ((self.low, self.slowest_hz), (self.high, self.fastest_hz))
        low, high = (
            self._chips(columns, clock_hz).scaled(self.grid.factors).arrays()
            for columns, clock_hz in ends
        )
        return BoxChips(low, high, self.units, self.lanes, self.ports, self.widest_port, self.edges)

    def _chips(self, columns: ChipColumns, clock_hz: Floats) -> SpaceChips:
        return SpaceChips(self.space, columns, self.area_mm2, clock_hz)

    def links(self) -> Floats:
        """The fastest links of every box."""
        return self.high.link_bytes_per_s * self.grid.factors.links

    def allowed(self, hbm_bytes: int) -> Flags:
        """Boxes with a chip that may have that memory; of stacks the most of its chips, for more
        never slows."""
        return self._chips(replace(self.low, stacks=self.high.stacks), self.slowest_hz).allowed(
            hbm_bytes
        )

    def static_w(self) -> Floats:
        """Watts that every chip draws at the least."""
        return self.idle_w

    def making_usd(self, hbm_bytes: int) -> Floats:
        """What making takes at the least, with the least stacks or that memory."""
        return price_usd(self.space, self.low, self.area_mm2, hbm_bytes)

    def making_kgco2e(self, hbm_bytes: int) -> Floats:
        """The same in carbon."""
        return self._chips(self.low, self.slowest_hz).making_kgco2e(hbm_bytes)


def corners_of(grid: BoxGrid, boxes: Boxes) -> Corners:
    """The virtual chips of boxes."""
    sizes = _sizes(grid, boxes)
    clocks = box_clocks(grid, boxes, sizes)
    ports = grid.counted.port
    return Corners(
        grid=grid,
        low=sizes.low,
        high=sizes.high,
        area_mm2=sizes.least_mm2,
        most_mm2=sizes.most_mm2,
        fastest_hz=clocks.fastest_hz,
        slowest_hz=clocks.slowest_hz,
        idle_w=clocks.idle_w,
        rated_w=clocks.rated_w,
        units=sizes.units * clocks.unit_share,
        lanes=sizes.lanes * clocks.lane_share,
        ports=grid.over_counts(boxes, grid.counted.clusters * ports, most=True),
        widest_port=grid.over_counts(boxes, ports, most=True),
        edges=clocks.edges,
    )


def _sizes(grid: BoxGrid, boxes: Boxes) -> BoxSizes:
    low, high, table, counted = (
        grid.chips(boxes.low),
        grid.chips(boxes.high),
        grid.technology.area,
        grid.counted,
    )
    (_, least), (_, most) = grid.sized(boxes, most=False), grid.sized(boxes, most=True)
    left = np.maximum(grid.budget_mm2 * (1 + SLACK) - least.total, 0.0) / (1 + table.other_share)
    units = low.built * low.macs + left / (table.mac_mm2 + table.support_mm2)
    lanes = low.vectors_built * low.lanes + left / (table.lane_mm2 + table.control_lane_mm2)
    units_used = grid.over_counts(boxes, counted.clusters / counted.built, most=True)
    lanes_used = grid.over_counts(boxes, counted.vectors / counted.vectors_built, most=True)
    return BoxSizes(
        low=low,
        high=high,
        least_mm2=least.total,
        most_mm2=most.total,
        least_cluster_mm2=least.clusters / low.built,
        most_cluster_mm2=most.clusters / high.built,
        units=np.minimum(units * units_used, high.clusters * high.macs),
        lanes=np.minimum(lanes * lanes_used, high.vectors * high.lanes),
    )

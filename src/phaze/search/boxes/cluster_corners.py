"""Boxes of chips of clusters as virtual chips, and what rates of an objective ask of them."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.hardware.columns import ChipColumns
from phaze.hardware.ownership import GB, load_terms
from phaze.hardware.power import LEAST_SHARE
from phaze.hardware.silicon.price import making_columns
from phaze.search.boxes.box_costs import BoxChips
from phaze.search.factors import Factors
from phaze.search.ownership_cost import die_kgco2e
from phaze.search.space import Space

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
SLACK = 1e-9
"""Sums in another order than those of single chips differ by less."""
DIE_STEP_MM2 = 0.125
"""Dies of boxes are priced as if they were so much smaller at the most: few different ones are priced."""


@dataclass(frozen=True, slots=True)
class ClusterCorners:
    """Boxes as virtual chips: both corners, and what no chip of the box is below or above.

    ``unit_rate`` and ``lane_rate``: multiply-accumulates and lane operations a second of all units and lanes.
    """

    space: Space
    factors: Factors
    low: ChipColumns
    high: ChipColumns
    area_mm2: Floats
    most_mm2: Floats
    die_mm2: Floats
    cluster_mm2: Floats
    idle_w: Floats
    held_hz: Floats
    least_hz: Floats
    least_w: Floats
    unit_rate: Floats
    lane_rate: Floats
    ports: Floats
    widest_port: Floats
    edges: Floats

    def __len__(self) -> int:
        return len(self.area_mm2)

    def taken(self, index: NDArray[Any]) -> "ClusterCorners":
        """Some of them, by numbers or flags."""
        columns: list[Any] = [self.space, self.factors, self.low.taken(index), self.high.taken(index)]
        return ClusterCorners(*columns, *(getattr(self, f.name)[index] for f in fields(self)[4:]))

    @property
    def most_die_mm2(self) -> float:
        """The area that a die may have."""
        return float(self.space.keep.most_area or 0.0)

    def boxes(self) -> BoxChips:
        """The virtual chips, for costs."""
        by, high = self.factors, self.high
        faster = replace(high, hbm_bytes_per_s=high.hbm_bytes_per_s * by.hbm, width=high.width * by.shared)
        ends = ((self.low, self.least_hz), (faster, self.held_hz))
        low, fast = (ChipSet(columns, clock_hz, self.area_mm2, self.cluster_mm2, True) for columns, clock_hz in ends)
        units, lanes = (rate / self.held_hz for rate in (self.unit_rate, self.lane_rate))
        return BoxChips(low, fast, units, lanes, self.ports, self.widest_port, self.edges)

    def links(self) -> Floats:
        """The fastest links of every box."""
        return self.high.link_bytes_per_s * self.factors.links

    def kept(self) -> Flags:
        """Boxes that may hold a chip of the space."""
        keep, most_mm2, low = self.space.keep, self.most_die_mm2, self.low
        there = self.die_mm2 <= most_mm2 * (1 + SLACK)
        there &= self.most_mm2 >= keep.least_share * most_mm2 * (1 - SLACK)
        there &= self.held_hz >= self.factors.clock * LEAST_SHARE * low.clock_hz * (1 - SLACK)
        there &= self.idle_w <= low.limit_w * (1 + SLACK)
        if keep.most_usd is not None:
            there &= self.making_usd() <= keep.most_usd * (1 + SLACK)
        return np.asarray(there)

    def rated(self) -> "ClusterCorners":
        """What rates of an objective ask of chips, of boxes: the least of everything with the most memory."""
        return self

    def allowed(self, hbm_bytes: int) -> Flags:
        """Boxes whose chips have at most that memory: more never slows."""
        return np.asarray(self.high.stacks.astype(np.int64) * self.space.stack_bytes == hbm_bytes)

    def static_w(self) -> Floats:
        """Watts that every chip draws at the least."""
        return self.idle_w

    def making_usd(self, hbm_bytes: int = 0) -> Floats:
        """What making takes at the least, with the least memory."""
        die = np.floor(np.minimum(self.die_mm2, self.most_die_mm2) / DIE_STEP_MM2) * DIE_STEP_MM2
        generation = self.space.accelerator.hbm.generation or ""
        return making_columns(self.low, np.maximum(die, DIE_STEP_MM2), generation, load_terms(), self.space.technology)

    def making_kgco2e(self, hbm_bytes: int = 0) -> Floats:
        """The same in carbon."""
        terms = load_terms()
        memory = self.low.stacks * self.space.stack_bytes / GB * terms.hbm_kgco2e_per_gb
        return np.asarray(die_kgco2e(self.die_mm2, self.space.technology.fab, terms) + (memory + terms.package_kgco2e))

r"""Boxes of a space of chips of clusters: a range of values of every axis, as two corners of places.

What does not rise with every axis has the least over the box. With N clusters of which n are built, port p, width w,

    area      rest(lo) + network mm2 x least n p at lo's width x sqrt(rest(lo)): parts but the network only rise, and
              n p is looked up for every N of the box, for a port falls where N rises
    die       the greater of that and the edge of the least stacks
    clock     what the power limit lets a chip hold that draws the least of the box: parts at the low corner, edge bytes
              of an array at the best number of arrays, delivered bytes with the largest registers
    units     U = all multiply-accumulate units: at most those of the high corner, and what the area that is left holds.
              A cycle takes at least U e + d joules, e of a unit with its share of the arrays' edges at the high corner,
              so a chip of U units holds at most f(U); U f(U) rises with U (its voltage only falls), so no chip of the
              box makes more than U f(U) a second at the most units; lanes alike

Limits are held to 1e-9 more than the rules of a space hold them; single chips are held to the rules themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.area import Areas, areas_of, edge_areas
from phaze.hardware.columns import ChipColumns
from phaze.hardware.power import (
    LEAST_SHARE,
    MOST_SHARING,
    OPERAND_BYTES,
    ClockPower,
    edge_bytes,
    held_clocks,
    power_at,
)
from phaze.hardware.technology import Technology
from phaze.search.boxes.box_grid import Boxes
from phaze.search.boxes.cluster_corners import SLACK, ClusterCorners
from phaze.search.factors import AS_THEY_ARE, Factors
from phaze.search.space import SPARES, Space, ports_over

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def rest_of(areas: Areas[Floats]) -> Floats:
    """mm2 of all but the network."""
    own = areas
    return own.arrays + own.vector + own.buffers + own.global_buffer + own.hbm + own.links + own.uncore


def _over(low: Integers, high: Integers, value: Callable[[int], Floats], most: bool) -> Floats:
    """The least, or the most, of a value over the places of an axis from ``low`` to ``high`` of every box."""
    pick, found = (np.maximum if most else np.minimum), np.full(len(low), -np.inf if most else np.inf)
    for place in range(int(low.min(initial=0)), int(high.max(initial=-1)) + 1):
        inside = (low <= place) & (place <= high)
        found = np.where(inside, pick(found, value(place)), found)
    return found


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What the power of every chip of a box is made of, at the least or at the most."""

    fixed_w: Floats
    vector_fixed_w: Floats
    idle_w: Floats
    unit_j: Floats
    array_j: Floats
    rest_j: Floats
    lane_j: Floats
    edges: Floats

    def power(self, array_j: Floats, vector_j: Floats) -> ClockPower[Floats]:
        """With so many joules a cycle of arrays and lanes."""
        return ClockPower(self.fixed_w, array_j + self.rest_j, self.vector_fixed_w, vector_j, self.idle_w)


@dataclass(frozen=True, slots=True)
class ClusterGrid:
    """The axes of a space of chips of clusters, and what its rules keep; ``ports`` by width and number of clusters.

    ``factors`` make its chips other than the model has them, what is in the space stays.
    """

    space: Space
    names: tuple[str, ...]
    values: tuple[Floats, ...]
    ports: Floats
    factors: Factors = AS_THEY_ARE

    @property
    def node(self) -> Technology:
        return self.space.technology

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(values) for values in self.values)

    @property
    def most_mm2(self) -> float:
        """The area that a die may have."""
        return float(self.space.keep.most_area or 0.0)

    def untrimmed(self) -> frozenset[str]:
        """Axes with which areas do not rise."""
        return frozenset()

    def _columns(self, places: Integers) -> ChipColumns:
        at = {
            name: axis[places[:, place]] for place, (name, axis) in enumerate(zip(self.names, self.values, strict=True))
        }
        return self.space.columns(at)

    def _clusters(self, boxes: Boxes, widest: bool, of: Callable[[float], float], most: bool = False) -> Floats:
        """The least or most of (a factor of the number of clusters) x port over every box, at its least or most
        width."""
        at, wide = self.names.index("clusters"), self.names.index("global_width")
        width, low, high = (boxes.high if widest else boxes.low)[:, wide], boxes.low[:, at], boxes.high[:, at]
        table = self.ports * np.array([of(float(count)) for count in self.values[at]])
        return _over(low, high, lambda place: table[width, place], most)

    def _wired(self, boxes: Boxes, areas: Areas[Floats], most: bool) -> Floats:
        """Area with the least or the most network that a box has."""
        lines = self._clusters(boxes, most, _built, most)
        rest = rest_of(areas)
        return np.asarray(rest + self.node.area.network_mm2 * lines * np.sqrt(rest))

    def least_areas(self, low: Integers, high: Integers) -> Floats:
        """What no die of a box is smaller than."""
        chips = self._columns(low)
        area = self._wired(Boxes(low, high), areas_of(chips, self.node), False)
        return np.asarray(np.maximum(area, edge_areas(chips.stacks)) * (1 - SLACK))

    def corners(self, boxes: Boxes) -> ClusterCorners:
        """The virtual chips of boxes."""
        low, high = self._columns(boxes.low), self._columns(boxes.high)
        small, large = areas_of(low, self.node), areas_of(high, self.node)
        area = self._wired(boxes, small, False) * (1 - SLACK)
        most = self._wired(boxes, large, True) * (1 + SLACK)
        inside, widest = small.clusters / low.built, large.clusters / high.built
        least = self._drawn(boxes, (low, high), area, inside, False)
        greatest = self._drawn(boxes, (high, low), np.minimum(most, self.most_mm2), widest, True)
        units, lanes = self._most(boxes, low, high, small, area)
        most_j = np.minimum(greatest.array_j, units * greatest.unit_j)
        vector_j = low.clusters * low.lanes * least.lane_j

        def held(drawn: _Drawn, array_j: Floats, lanes_j: Floats) -> Floats:
            return self.factors.clock * held_clocks(drawn.power(array_j, lanes_j), self.node, low.clock_hz, low.limit_w)

        slowest = held(greatest, most_j, np.minimum(lanes, high.clusters * high.lanes) * greatest.lane_j) * (1 - SLACK)
        least_hz = np.maximum(slowest, self.factors.clock * LEAST_SHARE * low.clock_hz * (1 - SLACK))
        # A chip that draws no less a cycle, at a clock that is no lower.
        watts = power_at(least.power(least.array_j, vector_j), self.node, least_hz / self.factors.clock)
        return ClusterCorners(
            space=self.space,
            factors=self.factors,
            low=low,
            high=high,
            area_mm2=area,
            most_mm2=most,
            die_mm2=np.maximum(area, edge_areas(low.stacks)),
            cluster_mm2=inside,
            idle_w=least.idle_w,
            held_hz=held(least, least.array_j, vector_j) * (1 + SLACK),
            least_hz=least_hz,
            least_w=watts * (1 - SLACK),
            unit_rate=units * held(least, units * least.unit_j, vector_j) * (1 + SLACK),
            lane_rate=lanes * held(least, least.array_j, lanes * least.lane_j) * (1 + SLACK),
            ports=self._clusters(boxes, True, _itself, True),
            widest_port=self._clusters(boxes, True, _one, True),
            edges=least.edges,
        )

    def _drawn(
        self, boxes: Boxes, ends: tuple[ChipColumns, ChipColumns], area: Floats, inside: Floats, most: bool
    ) -> _Drawn:
        """What sets clocks, at the least or at the most; ``ends``: the corner on that side, and the other one."""
        energy, at, (own, other), by = (
            self.node.energy,
            self.names.index("arrays"),
            ends,
            1 + (SLACK if most else -SLACK),
        )

        def edge(chips: ChipColumns, a_unit: bool) -> Callable[[int], Floats]:
            def of(place: int) -> Floats:
                some = replace(chips, arrays=np.full(len(chips), self.values[at][place]))
                return edge_bytes(some) / (some.macs if a_unit else 1.0)

            return of

        places = (boxes.low[:, at], boxes.high[:, at])
        edges, all_edges = _over(*places, edge(other, True), most), _over(*places, edge(own, False), most)
        buffer_j, shared_j = energy.core_buffer_j_per_byte(own.operand_bytes), energy.buffer.at(own.global_bytes)
        inside_j = buffer_j + energy.edge_j + energy.wire_j * np.sqrt(inside) / 2.0
        across_j = buffer_j + energy.wire_j * np.sqrt(area) / 2.0
        tile = np.maximum(np.floor(other.register_bytes / 2.0) / 8.0, own.macs)
        asked = own.clusters * 4.0 * own.macs / np.sqrt(tile)
        delivered = np.minimum(self._clusters(boxes, most, _itself, most), asked)
        sharing = np.minimum(MOST_SHARING, np.sqrt(np.minimum(other.fan_out, other.clusters)))
        reads, rate = np.minimum(own.width, delivered / sharing), own.hbm_bytes_per_s
        idle = energy.static_w_per_mm2 * area + own.stacks * energy.stack_w
        idle = by * (idle + own.link_bytes_per_s * energy.link_j_per_byte)
        return _Drawn(
            fixed_w=idle + by * energy.hbm_activity * rate * energy.hbm_j_per_byte,
            vector_fixed_w=idle + by * rate * (energy.hbm_j_per_byte + shared_j + across_j),
            idle_w=idle,
            unit_j=by * (energy.mac_j + edges * inside_j),
            array_j=by * own.clusters * (own.macs * energy.mac_j + all_edges * inside_j),
            rest_j=by * (reads * shared_j + delivered * across_j),
            lane_j=by * (energy.lane_j + 3.0 * OPERAND_BYTES * energy.core_buffer_j_per_byte(own.register_bytes)),
            edges=edges,
        )

    def _most(
        self, boxes: Boxes, low: ChipColumns, high: ChipColumns, small: Areas[Floats], area: Floats
    ) -> tuple[Floats, Floats]:
        """Units and lanes of all clusters in use that no chip of a box exceeds."""
        own = self.node.area
        left = np.maximum(self.most_mm2 * (1 + SLACK) - area, 0.0)
        at = self.names.index("clusters")
        share = np.array([count / _built(float(count)) for count in self.values[at]])
        used = _over(boxes.low[:, at], boxes.high[:, at], lambda place: share[place], True)
        lane_mm2 = own.lane_mm2 + own.control_lane_mm2
        units = (small.arrays + left) / (own.mac_mm2 + own.support_mm2) * used
        lanes = (low.built * low.lanes * lane_mm2 + left) / lane_mm2 * used
        return np.minimum(units, high.clusters * high.macs), np.minimum(lanes, high.clusters * high.lanes)


def _built(count: float) -> float:
    return count + float(np.ceil(count / SPARES))


def _itself(count: float) -> float:
    return count


def _one(count: float) -> float:
    return 1.0


def cluster_grid(space: Space, factors: Factors = AS_THEY_ARE) -> ClusterGrid:
    """The boxes' view of a space."""
    points = space.axis_points()
    widths, clusters = (points[name].astype(np.float64) for name in ("global_width", "clusters"))
    ports = np.stack([ports_over(np.full(len(clusters), width), clusters) for width in widths])
    return ClusterGrid(space, tuple(points), tuple(points.values()), ports, factors)

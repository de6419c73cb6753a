r"""The clocks and the power of the chips of a box: what a power limit lets them hold, or what they
are rated for.

Where a power limit sets the clock, what does not rise with every axis has the least over the box:

    clock     what the limit lets a chip hold that draws the least of the box: parts at the low
              corner, edge bytes of an array at the best number of arrays, delivered bytes with the
              largest registers
    units     with U of all multiply-accumulate units a cycle takes at least U e + d joules, e of a
              unit with its share of the arrays' edges at the high corner, so a chip of U units
              holds at most f(U). U f(U) rises with U (its voltage only falls), so no chip of the
              box makes more than U f(U) a second at the most units; lanes alike

Where none does, chips run at the clock of their corner and draw what
:func:`phaze.hardware.power.full_rate` says.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.columns import ChipColumns
from phaze.hardware.power import (
    LEAST_SHARE,
    MOST_SHARING,
    OPERAND_BYTES,
    ClockPower,
    edge_bytes,
    full_rate,
    held_clocks,
    power_at,
)
from phaze.search.boxes.grid import SLACK, Boxes, BoxGrid

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BoxSizes:
    """The chips at both corners of boxes, the least and the most area of all dies and of one
    cluster, and units and lanes in use that no chip of a box exceeds."""

    low: ChipColumns
    high: ChipColumns
    least_mm2: Floats
    most_mm2: Floats
    least_cluster_mm2: Floats
    most_cluster_mm2: Floats
    units: Floats
    lanes: Floats


@dataclass(frozen=True, slots=True)
class BoxClocks:
    """What no chip of a box is above or below: clocks held, idle watts and those of its rating,
    bytes a unit and cycle between buffers and arrays. ``unit_share``, ``lane_share``: the clock of
    a chip with all units, or lanes, over the fastest."""

    fastest_hz: Floats
    slowest_hz: Floats
    idle_w: Floats
    rated_w: Floats
    unit_share: Floats
    lane_share: Floats
    edges: Floats


def box_clocks(grid: BoxGrid, boxes: Boxes, sizes: BoxSizes) -> BoxClocks:
    """The clocks and the power of every box."""
    if grid.technology.sets_clock:
        return _limited_clocks(grid, boxes, sizes)
    low, technology, each = sizes.low, grid.technology, np.ones(len(boxes))
    watts = full_rate(low, technology, sizes.least_mm2)
    return BoxClocks(
        sizes.high.clock_hz,
        low.clock_hz,
        watts.static,
        watts.design_w,
        each,
        each,
        np.zeros(len(boxes)),
    )


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
        return ClockPower(
            self.fixed_w, array_j + self.rest_j, self.vector_fixed_w, vector_j, self.idle_w
        )


def _limited_clocks(grid: BoxGrid, boxes: Boxes, sizes: BoxSizes) -> BoxClocks:
    technology, low, high = grid.technology, sizes.low, sizes.high
    least, greatest = _drawn(grid, boxes, sizes, most=False), _drawn(grid, boxes, sizes, most=True)
    vector_j = low.vectors * low.lanes * least.lane_j

    def fastest(array_j: Floats, lanes_j: Floats) -> Floats:
        return held_clocks(least.power(array_j, lanes_j), technology, high.clock_hz, high.limit_w)

    most_power = greatest.power(
        np.minimum(greatest.array_j, sizes.units * greatest.unit_j), sizes.lanes * greatest.lane_j
    )
    slowest_hz = held_clocks(most_power, technology, low.clock_hz, low.limit_w)
    slowest_hz = np.maximum(slowest_hz, LEAST_SHARE * low.clock_hz) * (1 - SLACK)
    fastest_hz = fastest(least.array_j, vector_j)
    # A chip that draws no less a cycle, at a clock that is no lower.
    rated_w = power_at(least.power(least.array_j, vector_j), technology, slowest_hz)
    with np.errstate(divide="ignore", invalid="ignore"):  # of boxes that hold no clock
        unit_share = fastest(sizes.units * least.unit_j, vector_j) / fastest_hz
        lane_share = fastest(least.array_j, sizes.lanes * least.lane_j) / fastest_hz
    return BoxClocks(
        fastest_hz=fastest_hz * (1 + SLACK),
        slowest_hz=slowest_hz,
        idle_w=least.idle_w,
        rated_w=rated_w * (1 - SLACK),
        unit_share=unit_share,
        lane_share=lane_share,
        edges=least.edges,
    )


def _over_arrays(
    grid: BoxGrid, boxes: Boxes, value: Callable[[float], Floats], most: bool
) -> Floats:
    """The least, or the most, of a value over the numbers of arrays of every box."""
    axis = grid.places["arrays"]
    low, high = boxes.low[:, axis], boxes.high[:, axis]
    pick, best = (
        (np.maximum if most else np.minimum),
        np.full(len(boxes), -np.inf if most else np.inf),
    )
    for place in range(int(low.min(initial=0)), int(high.max(initial=-1)) + 1):
        inside = (low <= place) & (place <= high)
        best = np.where(inside, pick(best, value(float(grid.values[axis][place]))), best)
    return best


def _edges(chips: ChipColumns, arrays: float) -> tuple[Floats, Floats]:
    """Bytes a cycle between buffers and arrays of clusters with so many arrays, and those of a
    unit."""
    several = replace(chips, arrays=np.full(len(chips), arrays))
    edges = edge_bytes(several)
    return edges, edges / several.macs


def _drawn(grid: BoxGrid, boxes: Boxes, sizes: BoxSizes, most: bool) -> _Drawn:
    """What sets clocks, at the least or at the most: of the corner on that side, and where it falls
    of the other."""
    node, by = grid.technology, 1 + (SLACK if most else -SLACK)
    energy = node.energy
    if most:
        near, far, cluster_mm2 = sizes.high, sizes.low, sizes.most_cluster_mm2
        area = np.minimum(sizes.most_mm2, grid.budget_mm2)
    else:
        near, far, cluster_mm2, area = (
            sizes.low,
            sizes.high,
            sizes.least_cluster_mm2,
            sizes.least_mm2,
        )
    edges = _over_arrays(grid, boxes, lambda arrays: _edges(far, arrays)[1], most)
    all_edges = _over_arrays(grid, boxes, lambda arrays: _edges(near, arrays)[0], most)
    buffer_j, shared_j = (
        energy.core_buffer_j_per_byte(near.operand_bytes),
        energy.buffer.at(near.global_bytes),
    )
    inside_j = buffer_j + energy.edge_j + node.wire_j * np.sqrt(cluster_mm2) / 2.0
    across_j = buffer_j + node.wire_j * np.sqrt(area) / 2.0
    tile = np.maximum(np.floor(far.register_bytes / 2.0) / 8.0, near.macs)
    wanted = near.clusters * 4.0 * near.macs / np.sqrt(tile)
    delivered = np.minimum(
        grid.over_counts(boxes, grid.counted.clusters * grid.counted.port, most), wanted
    )
    sharing = np.minimum(MOST_SHARING, np.sqrt(np.minimum(far.fan_out, far.clusters)))
    reads, rate = np.minimum(near.width, delivered / sharing), near.hbm_bytes_per_s
    idle = energy.static_w_per_mm2 * area + near.stacks * energy.stack_w
    idle = by * (idle + near.link_bytes_per_s * energy.link_j_per_byte)
    return _Drawn(
        fixed_w=idle + by * energy.hbm_activity * rate * energy.hbm_j_per_byte,
        vector_fixed_w=idle + by * rate * (energy.hbm_j_per_byte + shared_j + across_j),
        idle_w=idle,
        unit_j=by * (energy.mac_j + edges * inside_j),
        array_j=by * near.clusters * (near.macs * energy.mac_j + all_edges * inside_j),
        rest_j=by * (reads * shared_j + delivered * across_j),
        lane_j=by
        * (
            energy.lane_j + 3.0 * OPERAND_BYTES * energy.core_buffer_j_per_byte(near.register_bytes)
        ),
        edges=edges,
    )

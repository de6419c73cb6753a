r"""Spaces of chips of clusters too large to look at every chip: boxes of axis values, closed as a whole.

A box has one number of arrays and a range of values of every other axis. With lo and hi its corners, N clusters of
which n = N + ceil(N / 12) are built, p the port and w the width:

    N p, n p      N p >= w, and a port is no narrower than that of the least width over the most clusters; so
                  n p >= max(13 w / 12, n(lo) p(w(lo), N(hi))); N p <= max(2 w(hi), N(hi))
    area, die     of the low corner with that network: all else only rises with every axis
    power         of what draws least: joules of the low corner's arrays and lanes, delivered bytes with the most sums
                  of a tile, shared by the most clusters; the clock held under it is held by no chip of the box at more
    units U       no more than the high corner has, nor than the area that is left; a unit takes at least e joules with
                  its share of edges at the high corner, so it runs at most at the clock f(U) where U e + rest meets the
                  limit, and as its voltage falls with U, U f(U) is most at the most units. Lanes alike
    seconds       of the high corner at the clock held, with the least rows and columns where an array's fill and a
                  visit count, and macs over U f(U)

A box whose bound does not reach the goal is cut in two, first along its arrays, then along the axis whose ends lie
furthest apart by ratio. Boxes of one chip go through the steps of :mod:`.proof`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .box_walk import BATCH, Boxed, halves_of_open
from .boxes import NEAR
from .limits import curve
from .means import Mean
from .operators import ClusterBoxes
from .proof import Counted, Model, Solver, Watch, prove, start
from .reading import number, only, positive, require
from .silicon import (
    AXES,
    LEAST_SHARE,
    MOST_SHARING,
    OPERAND,
    SPARES,
    Clusters,
    Power,
    Silicon,
    areas_of,
    built_of,
    cluster_axes,
    die_of,
    edges_of,
    held_of,
    kept_clusters,
    port_of,
    silicon_of,
    usd_of,
)
from .space import Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LEAST, MOST = 1 - NEAR, 1 + NEAR


@dataclass(frozen=True, slots=True)
class ClusterGrid:
    """A space of clusters as axes, with what its chips are made from and may take."""

    axes: dict[str, Floats]
    own: Silicon
    keep: Mapping[str, Any]
    terms: Mapping[str, Any]

    @property
    def combinations(self) -> int:
        count = 1
        for values in self.axes.values():
            count *= len(values)
        return count

    @property
    def most(self) -> float:
        return positive(self.keep["most_area"], "keep.most_area")

    @property
    def watts(self) -> float:
        return positive(self.keep["sustained_power"], "sustained_power")

    def corner(self, index: Integers) -> Clusters:
        """The combinations of places [boxes, axes], without clock and area."""
        at = {name: values[index[:, place]] for place, (name, values) in enumerate(self.axes.items())}
        nothing, rate = np.zeros(len(index)), at["hbm_stacks"] * self.own.stack_rate
        port = port_of(at["global_width"], at["clusters"])
        return Clusters(**at, port=port, hbm_bandwidth=rate, clock=nothing, area=nothing)

    def least(self, low: Integers, high: Integers) -> Clusters:
        """The low corner with the narrowest port, so that its network is the least of the box; with its area."""
        bottom, top = self.corner(low), self.corner(high)
        narrow = np.maximum(
            port_of(bottom.global_width, top.clusters),
            bottom.global_width * (1 + 1 / SPARES) / built_of(bottom),
        )
        bottom = replace(bottom, port=np.minimum(narrow, port_of(bottom.global_width, bottom.clusters)))
        return replace(bottom, area=areas_of(bottom, self.own).total * LEAST)


def cluster_grid_of(space: Mapping[str, Any], terms: Mapping[str, Any]) -> ClusterGrid:
    """A space of chips of clusters whose axes ascend."""
    return ClusterGrid(cluster_axes(space), silicon_of(space["base"]), space["keep"], terms)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Watts and joules that no chip of a box goes below: a unit with its edges, a lane, all else of a cycle."""

    product_w: Floats
    vector_w: Floats
    unit: Floats
    lane: Floats
    arrays: Floats
    rest: Floats

    def power(self, arrays: Floats, lanes: Floats) -> Power:
        return Power(self.product_w, arrays + self.rest, self.vector_w, lanes * self.lane)


def _drawn(grid: ClusterGrid, bottom: Clusters, top: Clusters) -> _Drawn:
    own = grid.own

    def rate(name: str) -> float:
        return number(own.energy[name], f"energy.{name}")

    def banked(size: Floats) -> Floats:
        return curve(own.energy["buffer"], np.minimum(size, bank), "energy.buffer")

    bank, macs = (
        positive(own.energy["core_bank_bytes"], "core_bank_bytes"),
        bottom.arrays * bottom.rows * bottom.columns,
    )
    operand, shared = banked(bottom.operands), curve(own.energy["buffer"], bottom.global_buffer, "energy.buffer")
    inside = areas_of(bottom, own).clusters / built_of(bottom)
    edge = operand + rate("edge_j") + rate("wire_j") * np.sqrt(inside) / 2.0
    across = operand + rate("wire_j") * np.sqrt(bottom.area) / 2.0
    tile = np.maximum(top.sums / 8.0, macs)
    narrow = np.maximum(bottom.global_width, bottom.clusters * port_of(bottom.global_width, top.clusters))
    delivered = np.minimum(narrow, bottom.clusters * 4.0 * macs / np.sqrt(tile))
    reads = delivered / np.minimum(MOST_SHARING, np.sqrt(np.minimum(float(own.fan_out), top.clusters)))
    reads = np.minimum(bottom.global_width, reads)
    idle = rate("leakage_w_per_mm2") * bottom.area + bottom.hbm_stacks * rate("stack_w")
    idle, memory = (idle + bottom.links * rate("link_j_per_byte")) * LEAST, rate("hbm_j_per_byte")
    units = top.arrays * top.rows * top.columns
    return _Drawn(
        idle + rate("hbm_activity") * bottom.hbm_bandwidth * memory * LEAST,
        idle + bottom.hbm_bandwidth * (memory + shared + across) * LEAST,
        (rate("mac_j") + edges_of(top, own.broadcast) / units * edge) * LEAST,
        (rate("lane_j") + 3.0 * OPERAND * banked(bottom.registers)) * LEAST,
        bottom.clusters * (macs * rate("mac_j") + edges_of(bottom, own.broadcast) * edge) * LEAST,
        (reads * shared + delivered * across) * LEAST,
    )  # fmt: skip


def _most(grid: ClusterGrid, bottom: Clusters, top: Clusters) -> tuple[Floats, Floats]:
    """Units and lanes in use that no chip of a box exceeds."""
    area = grid.own.area

    def rate(name: str) -> float:
        return positive(area[name], f"area.{name}")

    left, built = np.maximum(grid.most * MOST - bottom.area, 0.0), built_of(bottom)
    used = np.minimum(SPARES / (SPARES + 1), top.clusters / built)
    unit, lane = rate("mac_mm2") + rate("support_mm2"), rate("lane_mm2") + rate("control_lane_mm2")
    macs = [chips.arrays * chips.rows * chips.columns for chips in (bottom, top)]
    units = np.minimum((built * macs[0] + left / unit) * used * MOST, top.clusters * macs[1])
    lanes = np.minimum((built * bottom.lanes + left / lane) * used * MOST, top.clusters * top.lanes)
    return units, lanes


def boxes_of(grid: ClusterGrid, low: Integers, high: Integers) -> tuple[ClusterBoxes, dict[str, NDArray[np.bool_]]]:
    """The virtual chips of boxes with one number of arrays each, and by rule those that it leaves no chip of."""
    bottom, top = grid.least(low, high), grid.corner(high)
    drawn, (units, lanes) = _drawn(grid, bottom, top), _most(grid, bottom, top)
    few = bottom.clusters * bottom.lanes

    def held(arrays: Floats, lit: Floats) -> Floats:
        return held_of(len(low), grid.own, drawn.power(arrays, lit), grid.watts) * MOST

    clock, die = held(drawn.arrays, few), die_of(bottom, bottom.area)
    ports = np.maximum(2.0 * top.global_width, top.clusters)
    ports = np.minimum(ports, top.clusters * port_of(top.global_width, bottom.clusters))
    boxes = ClusterBoxes(
        **{f.name: getattr(top, f.name) for f in fields(Clusters) if f.name not in ("clock", "area")},
        clock=clock, area=bottom.area, least_rows=bottom.rows, least_columns=bottom.columns,
        unit_rate=units * held(units * drawn.unit, few), lane_rate=lanes * held(drawn.arrays, lanes), ports=ports,
    )  # fmt: skip
    fixed = np.maximum(drawn.product_w, drawn.vector_w)
    beyond = {"area": die > grid.most * MOST, "power": (fixed > grid.watts) | (clock < LEAST_SHARE * grid.own.clock)}
    if grid.keep["most_usd"] is not None:
        most = positive(grid.keep["most_usd"], "keep.most_usd")
        beyond["price"] = usd_of(bottom, grid.own, np.minimum(die, grid.most), grid.terms) > most * MOST
    return boxes, beyond


def _cut(grid: ClusterGrid, low: Integers, high: Integers, found: Boxed) -> Integers:
    """Upper ends cut to what fits with all else at the low corner; what is cut off is counted."""
    high = high.copy()
    for place in range(len(AXES)):
        while True:
            slab = low.copy()
            slab[:, place] = high[:, place]
            bottom = grid.least(slab, high)
            over = (die_of(bottom, bottom.area) > grid.most * MOST) & (high[:, place] > low[:, place])
            if not over.any():
                break
            found.count("area", slab[over], high[over])
            high[over, place] -= 1
    return high


def _memory(grid: ClusterGrid, chips: Clusters, memories: Sequence[int]) -> Integers:
    """The place of the largest memory that a chip of each box may have, -1: none."""
    sizes = chips.hbm_stacks * grid.own.stack_bytes
    return np.asarray(np.searchsorted(np.array(memories, np.float64), sizes, side="right") - 1, np.int64)


def walk_clusters(
    models: Sequence[Model], mean: Mean, grid: ClusterGrid, memories: Sequence[int], goal: float, near: Sequence[float],
    watch: Watch,
) -> Boxed:  # fmt: skip
    """Close the boxes of a space against a goal; the chips that are left stand alone in theirs."""
    found, count = Boxed(grid.combinations), len(AXES)
    ratios = [values / values[0] for values in grid.axes.values()]
    tops = np.array([[len(values) - 1 for values in grid.axes.values()]])
    arrays = AXES.index("arrays")
    whole = np.repeat(tops, len(grid.axes["arrays"]), axis=0)
    first = np.zeros((len(whole), count), np.int64)
    first[:, arrays] = whole[:, arrays] = np.arange(len(whole))
    waiting: list[tuple[Integers, Integers]] = [(first, whole)]
    while waiting:
        low, high = waiting.pop()
        if len(low) > BATCH:
            waiting.append((low[BATCH:], high[BATCH:]))
            low, high = low[:BATCH], high[:BATCH]
        found.boxes += len(low)
        high = _cut(grid, low, high, found)
        boxes, beyond = boxes_of(grid, low, high)
        over = np.zeros(len(low), bool)
        for reason, out in beyond.items():
            found.count(reason, low[out & ~over], high[out & ~over])
            over |= out
        low, high, boxes = low[~over], high[~over], boxes.taken(~over)
        if not len(low):
            continue
        left = _open(models, mean, boxes, _memory(grid, boxes, memories), goal, near)
        found.count("rooflines", low[~left], high[~left])
        low, high = low[left], high[left]
        waiting += halves_of_open(found, low, high, ratios, goal)
        watch(found.words)
    return found


def _open(
    models: Sequence[Model], mean: Mean, boxes: ClusterBoxes, memory: Integers, goal: float, near: Sequence[float]
) -> NDArray[np.bool_]:
    """Which boxes may hold a chip below the goal."""
    left = np.zeros(len(boxes), bool)
    if (memory >= 0).any():
        state = start(models, mean, Space(boxes, len(boxes), memory), goal * LEAST, near)
        for step in ("floors", "rooflines"):
            if len(state.left()):
                state.run(step)
        left[state.left()] = True
    return left


def prove_clusters(
    models: Sequence[Model], mean: Mean, grid: ClusterGrid, memories: Sequence[int], bound: float,
    near: Sequence[float], watch: Watch, solver: Solver | None = None,
) -> Counted:  # fmt: skip
    """No chip of a space scores below the bound; how many boxes and chips it took."""
    found = walk_clusters(models, mean, grid, memories, bound, near, watch)
    counted = Counted(grid.combinations, grid.combinations, bound, dict(found.closed))
    counted.closed["boxes"], counted.boxes = 0, found.boxes
    total = sum(found.closed.values()) + found.open
    require(total == grid.combinations, f"boxes cover {total} of {grid.combinations} combinations")
    if not found.open:
        return counted
    chips = kept_clusters(grid.corner(np.concatenate(found.left)), grid.own, grid.keep, grid.terms)
    counted.closed["rules of the space"] = found.open - len(chips)
    if not len(chips):
        return counted
    some = Space(chips, grid.combinations, exact_memory(grid, chips, memories))
    watch(f"{len(chips):,} chips that boxes leave")
    rest = prove(models, mean, some, (bound, bound), watch, near=near)
    for step, closed in rest.closed.items():
        counted.closed[step] = counted.closed.get(step, 0) + closed
    require(rest.least >= bound * LEAST, f"nothing shows that {rest.first_open} scores {bound!r} or more")
    return counted


def exact_memory(grid: ClusterGrid, chips: Clusters, memories: Sequence[int]) -> Integers:
    """The place of every chip's own memory, -1: none of the problem's."""
    places = {size: at for at, size in enumerate(memories)}
    return np.array([places.get(int(stacks) * grid.own.stack_bytes, -1) for stacks in chips.hbm_stacks], np.int64)


def cluster_named(grid: ClusterGrid, memories: Sequence[int], said: Any) -> Space:
    """The one chip that an answer names, of a space that is too large to look at every chip."""
    named = only(said, "answer.chip", AXES)
    there = all(positive(named[name], f"answer.chip.{name}") in values for name, values in grid.axes.items())
    require(there, "answer.chip: the space has no such chip")
    index = np.array([[int(np.flatnonzero(values == named[name])[0]) for name, values in grid.axes.items()]])
    chip = kept_clusters(grid.corner(index), grid.own, grid.keep, grid.terms)
    require(len(chip) == 1, "answer.chip: the space has no such chip")
    return Space(chip, grid.combinations, exact_memory(grid, chip, memories))

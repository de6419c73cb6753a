r"""Spaces too large to look at every chip: boxes of axis values, excluded as a whole.

A box has one number of arrays and a range of values of every other axis. With lo and hi its
corners, N clusters of which n are built, p the port and w the width of the global buffer:

    network       N p >= w, and a port is no narrower than that of the least width over the most
                  clusters; so n p >= max(13 w / 12, n(lo) p(w(lo), N(hi))); N p <= max(2 w(hi),
                  N(hi)). Without ports the width is least at the fastest clock
    area, die     of the low corner with that network: all else only rises with every axis. Above
                  the budget there is no chip in the box; first every upper end is cut to what fits
                  with all else at the low corner
    power         what draws least (:func:`.silicon.drawn_of`); the clock held under it is held by
                  no chip at more
    units U       no more than the high corner has, nor than the area that is left; a unit takes at
                  least e joules with its share of edges at the high corner, so it runs at most at
                  the clock f(U) where U e + rest meets the limit, and as its voltage falls with U,
                  U f(U) is most at the most units. Lanes alike
    clock held    no less than what draws most holds, nor than half of the rated one
    seconds       of a virtual chip (:class:`.chips.Boxes`): the high corner at the clock held, with
                  the least rows and columns where an array's fill and a visit count, the least
                  cores where one has a share of the memories, and macs over U f(U). Any schedule or
                  plan of a chip of the box is one of it
    joules        bytes that the virtual chip moves at least, at the prices of the low corner at the
                  least clock held (:func:`.silicon.prices_of`); static watts, dollars and kilograms
                  of the low corner


A box whose bound does not reach its goal is cut in two along the axis whose ends lie furthest apart
by ratio; the halves cover it by construction. Boxes of one chip go through the steps of
:mod:`.space_proof`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Boxes, Chips
from .energy import Goals
from .limits import LEAST_SHARE, die_of
from .means import Mean
from .model import Model
from .reading import require
from .silicon import Drawn, Power, areas_of, drawn_of, held_clock, port_of
from .space import Grid, Space, numbered
from .space_proof import Counted, Near, Solver, Watch, one_goal, prove, start

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
ROUNDING = 1e-9
"""Bounds and scores are sums in another order than phaze has them."""
LEAST, MOST = 1 - ROUNDING, 1 + ROUNDING
BATCH = 4_096
"""Boxes bounded at once."""
FEW = 1_024
"""Boxes of which bounds take no longer than those of one."""
MOST_LEFT = 1_000_000
"""Chips that may be left to the steps of a proof: with more the claim is taken to be false."""
MOST_CHIPS = 4_000_000
"""Combinations of which every chip is checked where boxes could exclude them: more takes longer
than boxes do."""
BoxGoals = Callable[[Boxes, Integers], Goals]
"""By boxes and the places of a memory that no chip has less than, the goals of their chips."""


def of_clusters(space: Mapping[str, Any]) -> bool:
    """Whether the chips of a space are of clusters."""
    return space["base"].get("clusters") is not None


def boxed(problem: Mapping[str, Any]) -> bool:
    """Whether the space of a problem is proved by boxes: one of many chips."""
    axes = problem["space"].get("axes", {})
    return prod(len(values) for values in axes.values()) > MOST_CHIPS


@dataclass(slots=True)
class Walk:
    """How far a walk over boxes is: how many were bounded, combinations excluded by each reason,
    chips left."""

    combinations: int
    boxes: int = 0
    closed: dict[str, int] = field(default_factory=dict)
    left: list[Integers] = field(default_factory=list)

    @property
    def open(self) -> int:
        """Chips that stand alone in their boxes."""
        return sum(len(places) for places in self.left)

    @property
    def words(self) -> str:
        """How far it is."""
        return (
            f"{self.boxes:,} boxes, {sum(self.closed.values()):,} combinations closed, "
            f"{self.open:,} chips left"
        )

    def count(self, reason: str, low: Integers, high: Integers) -> None:
        """Combinations of boxes that are excluded."""
        sizes = (high - low + 1).astype(object).prod(axis=1) if len(low) else np.zeros(0, object)
        self.closed[reason] = self.closed.get(reason, 0) + int(sum(sizes.tolist()))

    def chips(self, grid: Grid) -> tuple[Chips, Integers]:
        """The chips among what boxes left, and their places [chips, axes]; every combination was
        counted once."""
        total = sum(self.closed.values()) + self.open
        require(
            total == self.combinations, f"boxes cover {total} of {self.combinations} combinations"
        )
        index = np.concatenate([np.zeros((0, len(grid.axes)), np.int64), *self.left])
        chips, stays = grid.limits.kept(grid.corner(index))
        return chips, index[stays]


def least_chips(grid: Grid, low: Integers, high: Integers) -> Chips:
    """The low corners with the least network of their boxes, with their areas."""
    bottom, top = grid.corner(low), grid.corner(high)
    bottom = replace(bottom, global_width=bottom.global_width * (bottom.clock / top.clock))
    spread = (
        bottom.global_width * (1 + 1 / grid.made.spare_every) / grid.made.built(bottom.clusters)
    )
    narrow = np.maximum(port_of(bottom.global_width, top.clusters), spread)
    limited = np.isfinite(bottom.port)
    bottom = replace(bottom, port=np.where(limited, np.minimum(narrow, bottom.port), np.inf))
    return replace(bottom, area=areas_of(bottom, grid.made).total * LEAST)


def _most(grid: Grid, bottom: Chips, top: Chips) -> tuple[Floats, Floats]:
    """Multiply-accumulate units and lanes in use that no chip of a box exceeds."""
    made, left = grid.made, np.maximum(grid.limits.most_area * MOST - bottom.area, 0.0)
    share = 1 / (made.built_share + 1 / made.spare_every)
    most = []
    for count, high, low, each, mm2 in (
        (bottom.clusters, top.clusters, bottom.macs, top.macs, made.mac_mm2),
        (bottom.vector_units, top.vector_units, bottom.lanes, top.lanes, made.lane_mm2),
    ):
        built = made.built(count)
        used = np.minimum(share, high / built)
        most.append(np.minimum((built * low + left / mm2) * used * MOST, high * each))
    return most[0], most[1]


def _widest(bottom: Chips, top: Chips) -> Chips:
    """The high corners with the widest global buffer: a bandwidth at the slowest clock."""
    return replace(top, global_width=top.global_width * (top.clock / bottom.clock))


def _small(grid: Grid, bottom: Chips, top: Chips) -> Flags:
    """Boxes whose chips are all smaller than they may be; never those of ports, whose widths do not
    rise."""
    area = areas_of(_widest(bottom, top), grid.made).total
    small = area * MOST < grid.limits.least_share * grid.limits.most_area
    return small & np.isinf(top.port) & ~grid.limits.single(bottom)


def _drawn_most(grid: Grid, bottom: Chips, top: Chips) -> Power:
    """What no chip of boxes draws more than: the high corners with the widest ports, the more area
    the more power."""
    port = np.where(np.isinf(top.port), np.inf, port_of(top.global_width, bottom.clusters))
    most = replace(_widest(bottom, top), port=port)
    area = np.minimum(areas_of(most, grid.made).total, grid.limits.most_area) * MOST
    return drawn_of(replace(most, area=area), bottom, grid.made).power()


def boxes_of(grid: Grid, bottom: Chips, top: Chips) -> tuple[Boxes, dict[str, Flags]]:
    """Boxes as virtual chips by their corners, and by rule those that it leaves no chip of."""
    limits, nothing = grid.limits, np.zeros(len(top), bool)
    units, lanes = _most(grid, bottom, top)
    clock = units_hz = lanes_hz = np.minimum(top.clock, grid.made.most_hz)
    least = bottom
    beyond = {
        "area": (die_of(bottom) > limits.most_area * MOST) | _small(grid, bottom, top),
        "power": nothing,
    }
    if limits.of_power:
        drawn: Drawn = drawn_of(bottom, top, grid.made)
        rated, watts = top.clock, limits.sustained_w * MOST
        clock = held_clock(drawn.power(), rated, watts) * MOST
        units_hz = held_clock(drawn.power(arrays_j=units * drawn.unit_j), rated, watts) * MOST
        lanes_hz = held_clock(drawn.power(lanes=lanes), rated, watts) * MOST
        beyond["power"] = np.maximum(drawn.product_w, drawn.vector_w) > watts
        beyond["power"] |= (clock < LEAST_SHARE * rated) | (
            drawn.power().watts(bottom.clock) > limits.most_w * MOST
        )
        slowest = held_clock(_drawn_most(grid, bottom, top), bottom.clock, limits.sustained_w)
        slowest = np.maximum(slowest, LEAST_SHARE * bottom.clock) * LEAST
        least = replace(bottom, clock=slowest)
    beyond["price"] = limits.usd(bottom, 0.0) > limits.most_usd * MOST
    ports = np.maximum(2.0 * top.global_width, top.clusters)
    ports = np.minimum(ports, top.clusters * port_of(top.global_width, bottom.clusters))
    ports = np.where(np.isinf(top.port), np.inf, ports)
    corner = {column.name: getattr(top, column.name) for column in fields(top)} | {
        "clock": clock,
        "area": bottom.area,
    }
    return Boxes(
        **corner, least=least, unit_rate=units * units_hz, lane_rate=lanes * lanes_hz,
        all_ports=ports,
    ), beyond  # fmt: skip


def _cut(grid: Grid, low: Integers, high: Integers, walked: Walk) -> Integers:
    """Upper ends cut to what fits with all else at the low corner; what is cut off is counted."""
    most, high = grid.limits.most_area * MOST, high.copy()
    for place, name in enumerate(grid.axes):
        if name == "clock":
            continue
        wide = np.flatnonzero(high[:, place] > low[:, place])
        while len(wide):
            slab = low[wide]
            slab[:, place] = high[wide, place]
            over = die_of(least_chips(grid, slab, high[wide])) > most
            walked.count("area", slab[over], high[wide[over]])
            wide = wide[over]
            high[wide, place] -= 1
            wide = wide[high[wide, place] > low[wide, place]]
    return high


@dataclass(frozen=True, slots=True)
class BoxClaim:
    """What is claimed of a space of boxes: that no plan of ``models`` has the corners of ``goal``
    for itself on its chips, with every memory that counts where ``by_memory``, else with the most
    that each may have; ``near``: what each model takes on good chips."""

    models: Sequence[Model]
    means: Sequence[Mean]
    grid: Grid
    memories: Sequence[int]
    by_memory: bool
    goal: BoxGoals
    near: Near
    watch: Watch

    @property
    def places(self) -> list[int | None]:
        """The memories to walk with; None: the most that a chip may have."""
        return list(range(len(self.memories))) if self.by_memory else [None]

    def left(self, counted: Counted) -> Iterator[Space]:
        """By memory the chips that boxes leave, numbered by their combinations, all others
        counted."""
        lengths = [len(axis) for axis in self.grid.axes.values()]
        for place in self.places:
            walked = walk(self, place)
            chips, index = walked.chips(self.grid)
            most = self.grid.limits.memory(chips, self.memories)
            there = most >= (0 if place is None else place)
            memory = most[there] if place is None else np.full(np.count_nonzero(there), place)
            counted.boxes += walked.boxes
            counted.add(walked.closed)
            counted.add({"rules of the space": walked.open - len(memory)})
            if not len(memory):
                continue
            self.watch(f"{len(memory):,} chips that boxes leave")
            number = np.ravel_multi_index(tuple(index[there].T), lengths)
            yield Space(chips.taken(there), self.grid.combinations, memory, number)


def _open(claim: BoxClaim, boxes: Boxes, memory: Integers, goals: Goals) -> Flags:
    """Which boxes may hold a chip that does not reach its goals."""
    if not (memory >= 0).any():
        return np.zeros(len(boxes), bool)
    space = numbered(boxes, len(boxes), memory)
    unlimited = goals.open & np.isinf(goals.corners).all(axis=0)
    lower = replace(goals, corners=goals.corners * LEAST)
    state = start(claim.models, claim.means, space, lower, claim.near)
    first, second = claim.models[0].steps[:2]
    state.run(first)
    # Whether anything fits is decided by then: what is sharper later is seconds.
    fits = np.asarray((state.scores() < np.inf).any(axis=0) & unlimited.any(axis=0))
    state.goals = replace(state.goals, open=goals.open & ~unlimited)
    if len(state.left()):
        state.run(second)
    fits[state.left()] = True
    return fits


def _halved(low: Integers, high: Integers, ratios: Sequence[Floats]) -> tuple[Integers, Integers]:
    """Every box in two, along the axis whose ends lie furthest apart by ratio."""
    spans = [
        np.log(axis[high[:, place]] / axis[low[:, place]]) for place, axis in enumerate(ratios)
    ]
    widest = np.argmax(np.where(high > low, np.stack(spans, axis=1) + 1e-9, -1.0), axis=1)
    every = np.arange(len(low))
    middle = (low[every, widest] + high[every, widest]) // 2
    left, right = high.copy(), low.copy()
    left[every, widest], right[every, widest] = middle, middle + 1
    return np.concatenate([low, right]), np.concatenate([left, high])


def _divided(low: Integers, high: Integers, ratios: Sequence[Floats]) -> tuple[Integers, Integers]:
    """Boxes halved until there are as many as are bounded without haste, or each is one chip."""
    lows, highs, alone = [low[:0]], [high[:0]], 0
    while len(low) and alone + len(low) < FEW:
        single = (low == high).all(axis=1)
        lows.append(low[single])
        highs.append(high[single])
        alone += int(np.count_nonzero(single))
        low, high = low[~single], high[~single]
        if len(low):
            low, high = _halved(low, high, ratios)
    return np.concatenate([*lows, low]), np.concatenate([*highs, high])


def _first(grid: Grid) -> tuple[Integers, Integers]:
    """The whole space as a box for every number of arrays."""
    tops = np.array([[len(values) - 1 for values in grid.axes.values()]])
    if "arrays" not in grid.axes:
        return np.zeros_like(tops), tops
    arrays = list(grid.axes).index("arrays")
    high = np.repeat(tops, tops[0, arrays] + 1, axis=0)
    low = np.zeros_like(high)
    low[:, arrays] = high[:, arrays] = np.arange(len(high))
    return low, high


def walk(claim: BoxClaim, place: int | None) -> Walk:
    """Exclude the boxes of a space against their goals, every chip with the memory of a place or
    the most that it may have; the chips that are left stand alone in theirs."""
    grid = claim.grid
    walked, ratios = Walk(grid.combinations), [values / values[0] for values in grid.axes.values()]
    waiting = [_divided(*_first(grid), ratios)]
    while waiting:
        low, high = waiting.pop()
        # What bounds take beside arithmetic is the same for one box and for thousands.
        while len(low) < BATCH and waiting:
            more = waiting.pop()
            low, high = np.concatenate([low, more[0]]), np.concatenate([high, more[1]])
        if len(low) > BATCH:
            waiting.append((low[BATCH:], high[BATCH:]))
            low, high = low[:BATCH], high[:BATCH]
        walked.boxes += len(low)
        high = _cut(grid, low, high, walked)
        bottom = least_chips(grid, low, high)
        boxes, beyond = boxes_of(grid, bottom, grid.corner(high))
        goals = claim.goal(boxes, np.full(len(low), place or 0))
        beyond["limits"] = np.asarray(~goals.open.any(axis=0))
        left = np.ones(len(low), np.bool_)
        for reason, out in beyond.items():
            walked.count(reason, low[left & out], high[left & out])
            left &= ~out
        low, high, boxes, goals = low[left], high[left], boxes.taken(left), goals.taken(left)
        alike = np.full(len(low), place or 0)
        memory = _most_memory(grid, boxes, claim.memories) if place is None else alike
        may = _open(claim, boxes, memory, goals)
        walked.count("rooflines", low[~may], high[~may])
        low, high = low[may], high[may]
        single = (low == high).all(axis=1)
        walked.left.append(low[single])
        require(
            walked.open <= MOST_LEFT,
            f"nothing shows that {MOST_LEFT:,} chips score "
            f"{goals.corners.min(initial=np.inf)!r} or more",
        )
        if not single.all():
            halves = _halved(low[~single], high[~single], ratios)
            waiting.append(_divided(*halves, ratios))
        claim.watch(walked.words)
    return walked


def _most_memory(grid: Grid, boxes: Boxes, memories: Sequence[int]) -> Integers:
    """The place of the largest memory that a chip of each box may have, -1: none."""
    if not grid.made.stack_bytes:
        return grid.limits.memory(boxes, memories)
    sizes = boxes.hbm_stacks * grid.made.stack_bytes
    return np.asarray(
        np.searchsorted(np.array(memories, np.float64), sizes, side="right") - 1, np.int64
    )


def prove_boxes(
    models: Sequence[Model], mean: Mean, grid: Grid, memories: Sequence[int], by_memory: bool,
    bound: float, near: Near, watch: Watch, solver: Solver | None = None,
) -> Counted:  # fmt: skip
    """No chip of a space scores below the bound; how many boxes and chips it took. ``solver`` is
    called with the number of a combination."""

    def goals(boxes: Boxes, memory: Integers) -> Goals:
        return one_goal(np.full(len(boxes), bound))

    claim = BoxClaim(models, [mean], grid, memories, by_memory, goals, near, watch)
    counted = Counted(grid.combinations * len(claim.places), grid.combinations, bound)
    counted.by_memory = by_memory
    for space in claim.left(counted):
        rest = prove(models, mean, space, (bound, bound), watch, False, solver, near)
        counted.add(rest.closed)
        words = f"nothing shows that {rest.first_open} scores {bound!r} or more"
        require(rest.least >= bound * LEAST, words)
    return counted

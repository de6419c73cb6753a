"""The least makespan of a component of a pass whose operators stand on cores, on one chip
(docs/schedule.md).

**Ideals.** Where a spread operator runs alone, phases of operators on one core each lie between
spread ones. A schedule is a path over the sets of what is done, closed under predecessors, whose
steps are one spread operator or one phase; a phase from I to J takes at least its longest path, and
the work of each kind over its cores (:func:`shortest_path`).

**Starts.** Any schedule is no shorter than the one that starts its operators in the same order,
each as early as cores, network and predecessors allow and no sooner than the one before it. These
are searched best first (:func:`least_makespan`): what has been started can end no sooner than its
longest path from here and than the work of each kind that is left, so the first schedule that is
whole is the shortest, and where the search is cut off none is shorter than the next to be looked
at. Of two that have started the same, one whose cores, network and open operators are all free no
later than the other's serves for both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .orders import UnitOrder
from .slots import KINDS, Rule

Floats = NDArray[np.float64]
MOST_IDEALS = 6_000
"""Sets of done operators that the exact path may hold: seconds of numpy."""
MOST_STARTED = 10_000
"""Beginnings of schedules that are evaluated: seconds of Python."""


def ideals_of(order: UnitOrder, part: Sequence[int]) -> list[int] | None:
    """Every set of a component that can have been done, by size; None if they are too many."""
    if len(part) > 62:
        return None
    place = {at: bit for bit, at in enumerate(part)}
    needs = [sum(1 << place[o] for o in part if order.follows(o, at)) for at in part]
    layer, found = {0}, [0]
    while layer:
        layer = {
            done | 1 << bit
            for done in layer
            for bit, need in enumerate(needs)
            if not done >> bit & 1 and done & need == need
        }
        found += sorted(layer)
        if len(found) > MOST_IDEALS:
            return None
    return found


def shortest_path(
    order: UnitOrder,
    part: Sequence[int],
    ideals: list[int],
    one: Floats,
    spread: Floats,
    cores: dict[str, float],
) -> float:
    """What no schedule of a component undercuts on one chip, by its ideals."""
    count = len(part)
    masks = np.array(ideals, np.int64)
    inside = (masks[:, None] >> np.arange(count)) & 1 == 1
    index = {mask: at for at, mask in enumerate(ideals)}
    on_one_core = [bool(order.kinds[at]) and not order.network[at] for at in part]
    single = np.where(on_one_core, one[list(part)], np.inf)
    # What takes no time disturbs nobody.
    single[np.minimum(one, spread)[list(part)] == 0] = 0.0
    every = [[i for i, o in enumerate(part) if order.follows(o, at)] for at in part]
    needs = [sum(1 << i for i in own) for own in every]
    preds = [[i for i in own if not any(i in every[other] for other in own)] for own in every]
    loads = []
    for kind in KINDS:
        of_kind = np.array([kind in order.kinds[at] for at in part]) & on_one_core
        loads.append(inside @ np.where(of_kind, one[list(part)], 0.0) / cores[kind])
    reach = np.full(len(ideals), np.inf)
    reach[0] = 0.0
    for at, mask in enumerate(ideals):
        here, end = reach[at], [0.0] * count
        if here >= reach[-1]:
            # What is done by a later time than all could be is on no shortest path.
            continue
        for i in range(count):
            if mask >> i & 1:
                continue
            end[i] = single[i] + max([end[j] for j in preds[i]], default=0.0)
            if mask & needs[i] == needs[i]:
                to = index[mask | 1 << i]
                reach[to] = min(reach[to], here + float(spread[part[i]]))
        above = np.flatnonzero(masks & mask == mask)
        finish = np.where(inside[above], np.array(end), 0.0).max(axis=1)
        phase = np.maximum(
            finish, np.maximum(loads[0][above] - loads[0][at], loads[1][above] - loads[1][at])
        )
        reach[above] = np.minimum(reach[above], here + phase)
    return float(reach[-1])


@dataclass(frozen=True, slots=True)
class _Chip:
    """A component on one chip, its operators by place: seconds on one core (infinite where it has
    to be spread) and spread, kinds, network, places that lead to each, and those that follow it as
    bits; the cores of each kind."""

    rule: Rule
    one: tuple[float, ...]
    spread: tuple[float, ...]
    kinds: tuple[tuple[int, ...], ...]
    network: tuple[bool, ...]
    leading: tuple[tuple[int, ...], ...]
    following: tuple[int, ...]
    cores: tuple[int, ...]

    def shortest(self, place: int) -> float:
        return min(self.one[place], self.spread[place])


@dataclass(frozen=True, slots=True)
class _Begun:
    """A beginning of a schedule: what has started, since when the last of it runs, the ends of all
    by place, when each core of either kind and the network are free."""

    done: int
    since: float
    ends: tuple[float, ...]
    free: tuple[tuple[float, ...], ...]
    network: float

    def rest(self, chip: _Chip) -> float:
        """When all is over at the soonest."""
        ends, last = list(self.ends), max((*self.ends, self.since))
        work = [sum(max(end, self.since) for end in own) for own in self.free]
        sent = max(self.network, self.since)
        for place in range(len(ends)):
            if self.done >> place & 1:
                continue
            soonest = max((self.since, *(ends[other] for other in chip.leading[place])))
            ends[place] = soonest + chip.shortest(place)
            last = max(last, ends[place])
            lone = chip.rule.alone and chip.one[place] == np.inf
            for kind in range(len(KINDS)) if lone else chip.kinds[place]:
                work[kind] += min(chip.one[place], chip.cores[kind] * chip.spread[place])
            if chip.network[place]:
                sent += chip.spread[place]
        shares = [total / count for total, count in zip(work, chip.cores, strict=True)]
        return max(last, sent, *shares)

    def _at(self, place: int, end: float, start: float, free: Any, network: float) -> "_Begun":
        ends = (*self.ends[:place], end, *self.ends[place + 1 :])
        return _Begun(self.done | 1 << place, start, ends, tuple(free), network)

    def next(self, chip: _Chip) -> Iterator["_Begun"]:
        """With one more operator started, in each way that it may run."""
        for place in range(len(self.ends)):
            leading = chip.leading[place]
            if self.done >> place & 1 or any(not self.done >> other & 1 for other in leading):
                continue
            ready = max((self.since, *(self.ends[other] for other in leading)))
            if chip.shortest(place) == 0:
                # What takes no time disturbs nobody.
                yield self._at(place, ready, ready, self.free, self.network)
                continue
            yield self._spread(chip, place, ready)
            if chip.one[place] < np.inf:
                yield self._on_one_core(chip, place, ready)

    def _spread(self, chip: _Chip, place: int, ready: float) -> "_Begun":
        free, network, start = list(self.free), self.network, ready
        held = range(len(KINDS)) if chip.rule.alone else chip.kinds[place]
        for kind in held:
            start = max(start, *free[kind])
        if chip.rule.alone or chip.network[place]:
            start = max(start, network)
        end = start + chip.spread[place]
        for kind in held:
            free[kind] = (end,) * chip.cores[kind]
        if chip.rule.alone or chip.network[place]:
            network = end
        return self._at(place, end, start, free, network)

    def _on_one_core(self, chip: _Chip, place: int, ready: float) -> "_Begun":
        free, start = list(self.free), ready
        for kind in chip.kinds[place]:
            start = max(start, free[kind][0])
        end = start + chip.one[place]
        for kind in chip.kinds[place]:
            free[kind] = tuple(sorted((*free[kind][1:], end)))
        return self._at(place, end, start, free, self.network)

    def figures(self, chip: _Chip) -> tuple[float, ...]:
        """What is no worse the smaller it is, among those that have started the same: ends that
        others wait for, the last one, when all is free."""
        since, ends = self.since, []
        for place, end in enumerate(self.ends):
            if chip.following[place] & ~self.done:
                ends.append(max(end, since))
        cores = [max(end, since) for own in self.free for end in own]
        return (since, max(self.network, since), max(self.ends), *ends, *cores)


def least_makespan(
    order: UnitOrder,
    rule: Rule,
    part: Sequence[int],
    seconds: tuple[Floats, Floats, float],
    cores: dict[str, float],
) -> float:
    """What no schedule of a component undercuts on one chip; its least makespan where the search
    ends. ``seconds``: of its operators on one core and spread, and what is known of all of it: a
    beginning that may end within that is followed before any other."""
    place_of = {unit: place for place, unit in enumerate(part)}
    one, spread, bound = seconds
    at_once = max(1, len(part))
    chip = _Chip(
        rule=rule,
        one=tuple(
            float(one[unit]) if order.kinds[unit] and not order.network[unit] else np.inf
            for unit in part
        ),
        spread=tuple(float(spread[unit]) for unit in part),
        kinds=tuple(tuple(map(KINDS.index, order.kinds[unit])) for unit in part),
        network=tuple(order.network[unit] for unit in part),
        leading=tuple(
            tuple(place_of[other] for other in part if order.follows(other, unit)) for unit in part
        ),
        following=tuple(
            sum(1 << place_of[other] for other in part if order.follows(unit, other))
            for unit in part
        ),
        cores=tuple(min(at_once, int(cores[kind])) for kind in KINDS),
    )
    begun = _Begun(0, 0.0, (0.0,) * len(part), tuple((0.0,) * n for n in chip.cores), 0.0)
    waiting: list[tuple[float, int, int, _Begun]] = [(bound, len(part), 0, begun)]
    seen: dict[int, list[tuple[float, ...]]] = {}
    whole, count = (1 << len(part)) - 1, 0
    while waiting:
        soonest, _, _, begun = heappop(waiting)
        if begun.done == whole or count >= MOST_STARTED:
            return soonest
        for more in begun.next(chip):
            figures = more.figures(chip)
            known = seen.setdefault(more.done, [])
            if any(all(a <= b for a, b in zip(old, figures, strict=True)) for old in known):
                continue
            known.append(figures)
            count += 1
            over = max(soonest, more.rest(chip))
            left = len(part) - more.done.bit_count()
            heappush(waiting, (over, left, count, more))
    return bound

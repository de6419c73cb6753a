"""Schedules under the rules icml24 (docs/schedule.md): is this one, and what does none undercut.

An operator runs on one core of each kind that it uses for L seconds, or spread and alone on the
chip for P; a collective is always alone.

**Credits.** Give weights y to chains of operators and shares to the kinds of core, sum y + tensor +
vector <= 1. What runs at a moment is one spread operator, or operators of which a chain has at most
one and a kind no more than its cores. So with c_i the sum of y over chains through i and of share /
cores over the kinds that i uses,

    makespan >= sum over i of min(P_i, L_i c_i),                                  (:func:`credited`)

a collective counting P whatever its weight. The weights know no chip: the longest path is y = 1 on
one chain, the load of a kind is all of the budget on it, and a certificate brings further ones.
Operators of a pass that all precede all others run in series, so bounds of these components add
(:mod:`.orders`).

**Ideals.** Between spread operators lie phases of operators on one core each. A schedule is a path
over the sets of what is done, closed under predecessors, whose steps are one spread operator or one
phase; a phase from I to J takes at least its longest path, and the work of each kind over its cores
(:func:`shortest_path`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graphs import Pass
from .orders import in_series
from .reading import listed, number, require, whole
from .slots import RULES, Run, Runs, length_of

Floats = NDArray[np.float64]
MOST_IDEALS = 6_000
"""Sets of done operators that the exact path may hold: seconds of numpy."""
USES = {"tensor": ("tensor",), "vector": ("vector",), "both": ("tensor", "vector")}.get


@dataclass(frozen=True, slots=True)
class Order:
    """Which operators of a pass take time, what they use, and for each the bits of all that must
    end before it."""

    busy: tuple[int, ...]
    uses: tuple[tuple[str, ...], ...]
    before: tuple[int, ...]

    def follows(self, first: int, then: int) -> bool:
        """Whether ``first`` ends before ``then`` starts in every schedule."""
        return bool(self.before[then] >> first & 1)


def order_of(own: Pass) -> Order:
    """The precedence of a pass, operators that take no time passing it on."""
    before: list[int] = []
    for waits in own.waits:
        before.append(0)
        for other in waits:
            before[-1] |= before[other] | 1 << other
    uses = tuple((USES(work.core) or ()) for work in own.works)
    busy = tuple(at for at, work in enumerate(own.works) if work.core != "none")
    return Order(busy, uses, tuple(before))


def makespan(
    own: Pass, slots: Any, one: Floats, spread: Floats, cores: dict[str, int], where: str
) -> float:
    """The length of a schedule, after every rule has been checked: slots [start, tensor core,
    vector core], both null where the operator is spread."""
    runs = list[Run]()
    for at, row in enumerate(listed(slots, where, len(own.works))):
        start_of, *on = listed(row, where, 3)
        start, uses = number(start_of, f"{where}[{at}]"), USES(own.works[at].core) or ()
        wide = on == [None, None]
        run = Run(
            str(at),
            uses,
            False,
            float(one[at]),
            float(spread[at]),
            start,
            start,
            wide,
            (on[0], on[1]),
        )
        runs.append(replace(run, end=start + run.length))
    edges = [(other, at) for at, waits in enumerate(own.waits) for other in waits]
    return length_of(Runs(RULES["icml24"], cores, runs, edges), where)


@dataclass(frozen=True, slots=True)
class CoreSeconds:
    """Seconds of the operators of a pass on one core and spread, [operators, chips], and the cores
    of each kind."""

    one: Floats
    spread: Floats
    cores: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class CoreSchedules:
    """The schedules of a pass: its order, the components of it, and the multipliers that a
    certificate brings."""

    own: Pass
    order: Order
    parts: tuple[tuple[int, ...], ...]
    multipliers: tuple["Multiplier", ...]

    def makespan(self, slots: Any, times: CoreSeconds, where: str) -> float:
        """The length of a schedule on the one chip."""
        cores = {kind: int(count[0]) for kind, count in times.cores.items()}
        return makespan(self.own, slots, times.one[:, 0], times.spread[:, 0], cores, where)

    def least(self, times: CoreSeconds, paths: bool) -> Floats:
        """What no schedule undercuts, on every chip; ``paths``: by the shortest path over ideals,
        too."""
        total = np.zeros(times.one.shape[1])
        for part in self.parts:
            bound = least(
                self.order, [part], times.one, times.spread, times.cores, self.multipliers
            )
            if paths and len(part) > 1:
                bound = np.maximum(bound, self._paths(part, times))
            total = total + bound
        return total

    def _paths(self, part: Sequence[int], times: CoreSeconds) -> Floats:
        """The shortest paths of a component, chip by chip; 0 where there are too many ideals."""
        paths, ideals = np.zeros(times.one.shape[1]), ideals_of(self.order, part)
        if ideals is None:
            return paths
        for chip in range(len(paths)):
            cores = {kind: float(count[chip]) for kind, count in times.cores.items()}
            one, spread = times.one[:, chip], times.spread[:, chip]
            paths[chip] = shortest_path(self.order, part, ideals, one, spread, cores)
        return paths


def core_schedules(own: Pass, multipliers: Any) -> CoreSchedules:
    """The schedules of a pass under the rule icml24."""
    order = order_of(own)
    stated = [multiplier_of(order, entry, "multipliers") for entry in multipliers]
    parts = [tuple(part) for part in in_series(order.busy, order.before)]
    return CoreSchedules(own, order, tuple(parts), tuple(stated))


# ---- what no schedule undercuts ----


def credited(
    order: Order, part: Sequence[int], weight: dict[int, Floats], one: Floats, spread: Floats
) -> Floats:
    """The bound of some weights c by operator, which must be within their budget."""
    total = np.zeros(one.shape[1])
    for at in part:
        if not order.uses[at]:
            total = total + spread[at]
        elif at in weight:
            total = total + np.minimum(spread[at], one[at] * weight[at])
    return total


def _path(order: Order, part: Sequence[int], one: Floats, spread: Floats) -> Floats:
    """The longest chain, and every collective beside it."""
    alone, longest = np.zeros(one.shape[1]), dict[int, Floats]()
    for at in part:
        if not order.uses[at]:
            alone = alone + spread[at]
            continue
        best = np.zeros(one.shape[1])
        for other, length in longest.items():
            if order.follows(other, at):
                best = np.maximum(best, length)
        longest[at] = best + np.minimum(one[at], spread[at])
    return np.asarray(alone + (np.max(list(longest.values()), axis=0) if longest else 0.0))


def _cover(order: Order, part: Sequence[int]) -> list[list[int]]:
    """The operators of a component in chains, each appended to the first chain that it follows."""
    chains: list[list[int]] = []
    for at in part:
        if order.uses[at]:
            for chain in chains:
                if order.follows(chain[-1], at):
                    chain.append(at)
                    break
            else:
                chains.append([at])
    return chains


def _greedy(order: Order, part: Sequence[int], one: Floats, spread: Floats) -> Floats:
    """Chains that cover all operators, each with the weight at which all of its operators count P,
    brought to 1."""
    chains, ratios = _cover(order, part), list[Floats]()
    with np.errstate(divide="ignore", invalid="ignore"):
        for chain in chains:
            own = [np.where(one[at] > 0, spread[at] / one[at], 0.0) for at in chain]
            ratios.append(np.minimum(np.max(own, axis=0), 1.0))
    scale = np.maximum(np.sum(ratios, axis=0), 1.0) if ratios else np.ones(one.shape[1])
    weight = {at: y / scale for chain, y in zip(chains, ratios, strict=True) for at in chain}
    return credited(order, part, weight, one, spread)


@dataclass(frozen=True, slots=True)
class Multiplier:
    """Weights of chains and shares of kinds, checked: chains are chains, and all of it is at most
    1."""

    chains: tuple[tuple[float, tuple[int, ...]], ...]
    shares: tuple[tuple[str, float], ...]


def multiplier_of(order: Order, row: Any, where: str) -> Multiplier:
    """An entry [chains as [weight, operators], share of tensor cores, share of vector cores]."""
    chains, *rest = listed(row, where, 3)
    shares = tuple(
        (kind, number(x, where, 0, 1)) for kind, x in zip(("tensor", "vector"), rest, strict=True)
    )
    found = []
    for chain in listed(chains, where):
        weight, members = listed(chain, where, 2)
        own = tuple(whole(at, where, 0, len(order.uses) - 1) for at in listed(members, where))
        rising = all(order.follows(a, b) for a, b in pairwise(own))
        require(rising, f"{where}: a stated chain is not one")
        found.append((number(weight, where, 0, 1), own))
    total = sum(weight for weight, _ in found) + sum(share for _, share in shares)
    scale = max(total, 1.0)
    return Multiplier(
        tuple((weight / scale, own) for weight, own in found),
        tuple((kind, x / scale) for kind, x in shares),
    )


def _weights(
    order: Order, part: Sequence[int], entry: Multiplier, cores: Mapping[str, Floats]
) -> dict[int, Floats]:
    """c by operator of a component."""
    inside, weight = set(part), dict[int, Floats]()
    for y, own in entry.chains:
        for at in own:
            if at in inside:
                weight[at] = weight.get(at, np.zeros(1)) + y
    for kind, share in entry.shares:
        for at in part:
            if share > 0 and kind in order.uses[at]:
                weight[at] = weight.get(at, np.zeros(1)) + share / cores[kind]
    return weight


def least(
    order: Order, parts: Sequence[Sequence[int]], one: Floats, spread: Floats,
    cores: Mapping[str, Floats],
    entries: Sequence[Multiplier] = (),
) -> Floats:  # fmt: skip
    """What no schedule of some components undercuts, on every chip: the best of all credits for
    each."""
    total = np.zeros(one.shape[1])
    for part in parts:
        if len(part) == 1:
            total = total + np.minimum(one[part[0]], spread[part[0]])
            continue
        found = np.maximum(_path(order, part, one, spread), _greedy(order, part, one, spread))
        loads = [Multiplier((), ((kind, 1.0),)) for kind in ("tensor", "vector")]
        for entry in (*loads, *entries):
            found = np.maximum(
                found, credited(order, part, _weights(order, part, entry, cores), one, spread)
            )
        total = total + found
    return total


def ideals_of(order: Order, part: Sequence[int]) -> list[int] | None:
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
    order: Order,
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
    single = np.array([float(one[at]) if order.uses[at] else np.inf for at in part])
    every = [[i for i, o in enumerate(part) if order.follows(o, at)] for at in part]
    needs = [sum(1 << i for i in own) for own in every]
    preds = [[i for i in own if not any(i in every[other] for other in own)] for own in every]
    loads = []
    for kind in ("tensor", "vector"):
        own = np.array([float(one[at]) if kind in order.uses[at] else 0.0 for at in part])
        loads.append(inside @ own / cores[kind])
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

"""Schedules that place operators on cores (docs/schedule.md): is this one, and what does none
undercut.

An operator runs on one core of each kind that it uses for L seconds, or spread for P: alone on the
chip (icml24), or with the cores of its kinds to itself (overlap). A collective runs alone, or holds
the network and no core; one in pieces with products beside it holds network and cores, spread.

**Credits.** Give weights y to chains of operators and shares to the kinds of core and the network,
sum y + shares <= 1. What runs at a moment are operators of which a chain has at most one, and of a
kind one spread or no more than its cores. So with c_i the sum of y over chains through i, and of
share / cores over the kinds that i uses, and C_i the same with all of the shares,

    makespan >= sum over i of min(P_i C_i, L_i c_i)                               (:func:`credited`)

Where a spread operator runs alone all of the budget is its own, C_i = 1, and what must be spread
counts P whatever its weight. The weights know no chip: the longest path is y = 1 on one chain, the
load of a kind is all of the budget on it, and a certificate brings further ones. Of a set A of
operators that follow one another, and those of a kind that stand before or after every one of A, no
member of A runs beside any of the kind: all of A and the load of those add up (:func:`_beside`).
Operators of a pass that all precede all others run in series, so bounds of these components add
(:mod:`.orders`); where HBM is shared a component takes no less than its bytes.

At the last step components are searched (:mod:`.core_paths`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .core_paths import ideals_of, least_makespan, shortest_path
from .orders import UnitOrder
from .reading import listed, number, require, whole
from .slots import KINDS, Rule, Run, Runs, length_of

Floats = NDArray[np.float64]
NETWORK = "network"
MOST_BESIDE = 8
"""Operators of a component that are tried as a set beside a kind, all sets of them: 256."""


@dataclass(frozen=True, slots=True)
class CoreSeconds:
    """Seconds of the units of a pass on one core and spread, and of their bytes at the whole
    bandwidth, [units, chips]; the cores of each kind."""

    one: Floats
    spread: Floats
    hbm: Floats
    cores: Mapping[str, Floats]


@dataclass(frozen=True, slots=True)
class Multiplier:
    """Weights of chains and shares of kinds, checked: chains are chains, and all of it is at most
    1."""

    chains: tuple[tuple[float, tuple[int, ...]], ...]
    shares: tuple[tuple[str, float], ...]


LOADS = tuple(Multiplier((), ((kind, 1.0),)) for kind in (*KINDS, NETWORK))
"""All of the budget on one kind of core, or on the network."""


@dataclass(frozen=True, slots=True)
class CoreSchedules:
    """The schedules of a pass under a rule: its order, the components of it, and the multipliers
    that a certificate brings."""

    order: UnitOrder
    rule: Rule
    parts: tuple[tuple[int, ...], ...]
    multipliers: tuple[Multiplier, ...] = ()

    def spread(self, slots: Any) -> list[bool]:
        """Which units of a schedule, that was checked, are spread."""
        return [row[1:] == [None, None] for row in slots]

    def makespan(self, slots: Any, times: CoreSeconds, where: str) -> float:
        """The length of a schedule on the one chip, after every rule has been checked: slots
        [start, tensor core, vector core], both null where the operator is spread."""
        order, runs = self.order, list[Run]()
        cores = {kind: int(count[0]) for kind, count in times.cores.items()}
        for unit, row in enumerate(listed(slots, where, len(order.kinds))):
            start_of, *on = listed(row, where, 3)
            start = number(start_of, f"{where}[{unit}]")
            run = Run(
                name=str(unit),
                uses=order.kinds[unit],
                network=order.network[unit],
                one_s=float(times.one[unit, 0]),
                all_s=float(times.spread[unit, 0]),
                start=start,
                end=start,
                spread=on == [None, None],
                cores=(on[0], on[1]),
                hbm_s=float(times.hbm[unit, 0]),
            )
            runs.append(replace(run, end=start + run.length))
        return length_of(Runs(self.rule, cores, runs, order.edges()), where)

    def least(self, times: CoreSeconds, effort: int) -> Floats:
        """What no schedule undercuts, on every chip; ``effort``: as in
        :class:`.passes.WorkSeconds`."""
        total = np.zeros(times.one.shape[1])
        for part in self.parts:
            bound = least(self, part, times)
            if effort and len(part) > 1:
                bound = self._searched(part, times, bound, effort)
            total = total + bound
        return total

    def _searched(
        self, part: Sequence[int], times: CoreSeconds, bound: Floats, effort: int
    ) -> Floats:
        """What searching a component shows, chip by chip."""
        shown = bound.copy()
        ideals = ideals_of(self.order, part) if self.rule.alone else None
        for chip in range(len(shown)):
            cores = {kind: float(count[chip]) for kind, count in times.cores.items()}
            one, spread = times.one[:, chip], times.spread[:, chip]
            if ideals is not None:
                path = shortest_path(self.order, part, ideals, one, spread, cores)
                shown[chip] = max(shown[chip], path)
            if effort > 1:
                seconds = one, spread, float(shown[chip])
                shown[chip] = least_makespan(self.order, self.rule, part, seconds, cores)
        return shown


def core_schedules(order: UnitOrder, rule: Rule, multipliers: Sequence[Any]) -> CoreSchedules:
    """The schedules of a pass under a rule that places operators on cores."""
    stated = [multiplier_of(order, entry, "multipliers") for entry in multipliers]
    parts = [tuple(part) for part in order.components()]
    return CoreSchedules(order, rule, tuple(parts), tuple(stated))


# ---- what no schedule undercuts ----


def _must_spread(order: UnitOrder, unit: int) -> bool:
    """Whether a unit has one way to run."""
    return order.network[unit] or not order.kinds[unit]


def credited(
    schedules: CoreSchedules, part: Sequence[int], entry: Multiplier, times: CoreSeconds
) -> Floats:
    """The bound of some weights, which are within their budget."""
    order, total = schedules.order, np.zeros(times.one.shape[1])
    for unit in part:
        chained = sum(y for y, members in entry.chains if unit in members)
        held = [*order.kinds[unit], *([NETWORK] if order.network[unit] else [])]
        shares = [(kind, share) for kind, share in entry.shares if kind in held]
        spread = 1.0 if schedules.rule.alone else chained + sum(share for _, share in shares)
        bound = times.spread[unit] * spread
        if not _must_spread(order, unit):
            each = [share / times.cores[kind] for kind, share in shares if kind != NETWORK]
            weight = chained + np.sum(each, axis=0) if each else chained
            bound = np.minimum(bound, times.one[unit] * weight)
        total = total + bound
    return total


def _shorter(order: UnitOrder, unit: int, times: CoreSeconds) -> Floats:
    """The seconds of the shortest way to run a unit."""
    if _must_spread(order, unit):
        return np.asarray(times.spread[unit])
    return np.asarray(np.minimum(times.one[unit], times.spread[unit]))


def _path(schedules: CoreSchedules, part: Sequence[int], times: CoreSeconds) -> Floats:
    """The longest chain, and every operator beside it that is always alone."""
    order = schedules.order
    alone, longest = np.zeros(times.one.shape[1]), dict[int, Floats]()
    for unit in part:
        if schedules.rule.alone and _must_spread(order, unit):
            alone = alone + times.spread[unit]
            continue
        best = np.zeros(times.one.shape[1])
        for other, length in longest.items():
            if order.follows(other, unit):
                best = np.maximum(best, length)
        longest[unit] = best + _shorter(order, unit, times)
    return np.asarray(alone + (np.max(list(longest.values()), axis=0) if longest else 0.0))


def _chains(order: UnitOrder, part: Sequence[int]) -> list[list[int]]:
    """The operators of a component that may run on one core, in chains, each appended to the first
    chain that it follows."""
    chains: list[list[int]] = []
    for unit in part:
        if _must_spread(order, unit):
            continue
        for chain in chains:
            if order.follows(chain[-1], unit):
                chain.append(unit)
                break
        else:
            chains.append([unit])
    return chains


def _greedy(schedules: CoreSchedules, part: Sequence[int], times: CoreSeconds) -> Floats:
    """Chains that cover all operators, each with the weight at which all of its operators count P,
    brought to 1; where a spread operator runs alone."""
    order, one, spread = schedules.order, times.one, times.spread
    chains, ratios = _chains(order, part), list[Floats]()
    with np.errstate(divide="ignore", invalid="ignore"):
        for chain in chains:
            each = [np.where(one[unit] > 0, spread[unit] / one[unit], 0.0) for unit in chain]
            ratios.append(np.minimum(np.max(each, axis=0), 1.0))
    scale = np.maximum(np.sum(ratios, axis=0), 1.0) if ratios else np.ones(one.shape[1])
    total = np.zeros(one.shape[1])
    for unit in part:
        if _must_spread(order, unit):
            total = total + spread[unit]
    for chain, ratio in zip(chains, ratios, strict=True):
        for unit in chain:
            total = total + np.minimum(spread[unit], one[unit] * ratio / scale)
    return total


def _beside(schedules: CoreSchedules, part: Sequence[int], times: CoreSeconds, kind: str) -> Floats:
    """The best of sets of operators that follow one another, each with the load of those of a kind
    that stand before or after all of it."""
    order, best = schedules.order, np.zeros(times.one.shape[1])
    others = [unit for unit in part if kind not in order.kinds[unit]][:MOST_BESIDE]
    loaded = [unit for unit in part if kind in order.kinds[unit]]
    load = {unit: credited(schedules, [unit], LOADS[KINDS.index(kind)], times) for unit in loaded}
    for chosen in range(1, 1 << len(others)):
        some = [unit for bit, unit in enumerate(others) if chosen >> bit & 1]
        if not all(order.ordered(a, b) for a, b in pairwise(some)):
            continue
        total = np.zeros_like(best)
        for unit in some:
            total = total + _shorter(order, unit, times)
        for unit in loaded:
            if all(order.ordered(unit, other) for other in some):
                total = total + load[unit]
        best = np.maximum(best, total)
    return best


def multiplier_of(order: UnitOrder, row: Any, where: str) -> Multiplier:
    """An entry [chains as [weight, operators], share of tensor cores, share of vector cores]."""
    chains, *rest = listed(row, where, 3)
    shares = [(kind, number(x, where, 0, 1)) for kind, x in zip(KINDS, rest, strict=True)]
    stated = []
    for chain in listed(chains, where):
        weight, row_of = listed(chain, where, 2)
        last = len(order.kinds) - 1
        members = tuple(whole(unit, where, 0, last) for unit in listed(row_of, where))
        rising = all(order.follows(a, b) for a, b in pairwise(members))
        require(rising, f"{where}: a stated chain is not one")
        stated.append((number(weight, where, 0, 1), members))
    total = sum(weight for weight, _ in stated) + sum(share for _, share in shares)
    scale = max(total, 1.0)
    return Multiplier(
        tuple((weight / scale, members) for weight, members in stated),
        tuple((kind, share / scale) for kind, share in shares),
    )


def least(schedules: CoreSchedules, part: Sequence[int], times: CoreSeconds) -> Floats:
    """What no schedule of a component undercuts, on every chip: the best of all credits."""
    if len(part) == 1:
        return _shorter(schedules.order, part[0], times)
    bound = np.maximum(times.hbm[list(part)].sum(axis=0), _path(schedules, part, times))
    for entry in (*LOADS, *schedules.multipliers):
        bound = np.maximum(bound, credited(schedules, part, entry, times))
    if schedules.rule.alone:
        return np.asarray(np.maximum(bound, _greedy(schedules, part, times)))
    for kind in KINDS:
        bound = np.maximum(bound, _beside(schedules, part, times, kind))
    return np.asarray(bound)

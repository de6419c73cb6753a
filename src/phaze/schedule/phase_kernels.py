"""Compiled loops of the phases: bounds by pairs of ideals, and one pass over all that may end
before a goal.

The mathematics stands in ``phases.py``; names are the same here.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit
from phaze.schedule.packing_kernels import FAR, pack
from phaze.schedule.part import Ints, Masks, Tables

# Shifts of sets need an unsigned 1: numba makes a float of a signed and an unsigned number.
ONE = np.uint64(1)


class Phases(NamedTuple):
    """What is known of phases, by their sets of operators: bounds, and the nodes that were not
    enough for more.

    ``used`` holds the numbers of sets known and of nodes visited.
    """

    keys: Masks
    filled: NDArray[np.bool_]
    low: Ints
    high: Ints
    tried: Ints
    used: Ints


class Paths(NamedTuple):
    """For each ideal: the least time after which it may, and after which it can have ended; where
    it can come from."""

    low: Ints
    high: Ints
    parent: Ints


@njit(cache=True, nogil=True)
def loads_of(tables: Tables, masks: Masks) -> Ints:
    """``[ideal, kind]``: the one-core times of its operators of each kind of core."""
    loads = np.zeros((len(masks), 2), np.int64)
    for ideal in range(len(masks)):
        for j in range(len(tables.below)):
            if masks[ideal] >> np.uint64(j) & ONE:
                for kind in range(2):
                    if tables.holds[j, 0, kind] > 0:
                        loads[ideal, kind] += tables.time[j, 0]
    return loads


@njit(cache=True, nogil=True)
def _earliest(tables: Tables, mask: int, ends: Ints) -> None:
    """e_j: the earliest end of each operator outside ``mask`` on one core, without core limits."""
    for j in range(len(tables.below)):
        ends[j] = 0
        if mask >> np.uint64(j) & ONE:
            continue
        ready = np.int64(0) if tables.time[j, 0] > 0 else FAR
        for i in range(j):
            if tables.below[j] >> np.uint64(i) & ONE and not mask >> np.uint64(i) & ONE:
                ready = max(ready, ends[i])
        ends[j] = ready + tables.time[j, 0] if ready < FAR else FAR


@njit(cache=True, nogil=True)
def _load(tables: Tables, loads: Ints, ideal: int, to: int) -> int:
    load = np.int64(0)
    for kind in range(2):
        cores = max(1, tables.cores[kind])
        load = max(load, -((loads[ideal, kind] - loads[to, kind]) // cores))
    return int(load)


@njit(cache=True, nogil=True)
def _path(ends: Ints, inside: int, most: int) -> int:
    """The latest of the earliest ends of the operators ``inside``; stops when it is at least
    ``most``."""
    latest = np.int64(0)
    for j in range(len(ends)):
        if inside >> np.uint64(j) & ONE and ends[j] > latest:
            latest = ends[j]
            if latest >= most:
                break
    return int(latest)


@njit(cache=True, nogil=True)
def sweep_phases(
    tables: Tables, masks: Masks, nexts: NDArray[np.int32], loads: Ints, g: Ints
) -> Ints:
    """The greater of g(S) and q(S): the rest where phases take at least their load and their
    longest path."""
    n, count = len(tables.below), len(masks)
    rest_s, ends = np.zeros(count, np.int64), np.zeros(n, np.int64)
    for ideal in range(count - 2, -1, -1):
        mask, best = masks[ideal], FAR
        _earliest(tables, mask, ends)
        for j in range(n):
            if nexts[ideal, j] >= 0 and tables.time[j, 1] > 0:
                best = min(best, tables.time[j, 1] + rest_s[nexts[ideal, j]])
        for to in range(ideal + 1, count):
            rest = rest_s[to]
            if mask & ~masks[to] or rest >= best:
                continue
            least = _load(tables, loads, ideal, to)
            if rest + least < best:
                least = max(least, _path(ends, masks[to] & ~mask, best - rest))
                best = min(best, rest + least)
        rest_s[ideal] = max(best, g[ideal])
    return rest_s


@njit(cache=True, nogil=True)
def _phase(
    tables: Tables, phases: Phases, inside: int, limit: int, nodes: int, order: Ints
) -> np.int64:
    """The place of a phase in the table, its bounds improved below ``limit``; -1 when the table is
    full."""
    size = np.uint64(len(phases.keys) - 1)
    # 2^64 over the golden ratio, as in kernels.py.
    mixed = np.uint64(inside) * np.uint64(0x9E3779B97F4A7C15)
    slot = (mixed ^ (mixed >> np.uint64(29))) & size
    while phases.filled[slot] and phases.keys[slot] != inside:
        slot = (slot + ONE) & size
    if not phases.filled[slot]:
        # Beyond half full, probes grow long and a full table would loop forever.
        if 2 * phases.used[0] > len(phases.keys):
            return np.int64(-1)
        phases.used[0] += 1
        phases.keys[slot], phases.filled[slot] = inside, True
        phases.low[slot], phases.high[slot], phases.tried[slot] = 0, FAR, 0
    limit = min(limit, phases.high[slot])
    if phases.low[slot] < limit and phases.tried[slot] < nodes:
        low, high, visited = pack(tables, inside, limit, nodes, order)
        phases.used[1] += visited
        phases.low[slot] = max(phases.low[slot], low)
        phases.high[slot] = min(phases.high[slot], high)
        if low < min(limit, high):
            phases.tried[slot] = nodes
    return np.int64(slot)


@njit(cache=True, nogil=True)
def _reach(paths: Paths, ideal: int, to: int, low: int, high: int) -> None:
    """From one ideal to another in at least ``low`` and at most ``high``."""
    paths.low[to] = min(paths.low[to], paths.low[ideal] + low)
    if paths.high[ideal] < FAR and high < FAR and paths.high[ideal] + high < paths.high[to]:
        paths.high[to], paths.parent[to] = paths.high[ideal] + high, ideal


@njit(cache=True, nogil=True)
def _spread(tables: Tables, nexts: NDArray[np.int32], paths: Paths, ideal: int) -> None:
    """The steps of one spread operator from an ideal."""
    for j in range(len(tables.below)):
        to = nexts[ideal, j]
        if to >= 0 and tables.time[j, 1] > 0:
            _reach(paths, ideal, to, tables.time[j, 1], tables.time[j, 1])


@njit(cache=True, nogil=True)
def phase_pass(
    tables: Tables, masks: Masks, nexts: NDArray[np.int32], loads: Ints, rest: Ints,
    phases: Phases, paths: Paths, goal: int, nodes: int, most: int,
) -> int:  # fmt: skip
    """All paths over ideals that may end before ``goal``; the least bound that was cut off, -1 out
    of effort."""
    count = len(masks)
    ends, order = np.zeros(len(tables.below), np.int64), np.zeros(len(tables.below), np.int64)
    paths.low[:], paths.high[:], paths.parent[:] = FAR, FAR, -1
    paths.low[0] = paths.high[0] = 0
    cut = FAR
    for ideal in range(count - 1):
        low, high, mask = paths.low[ideal], paths.high[ideal], masks[ideal]
        if low + rest[ideal] >= goal:
            cut = min(cut, low + rest[ideal])
            continue
        _spread(tables, nexts, paths, ideal)
        _earliest(tables, mask, ends)
        for to in range(ideal + 1, count):
            so_far = low + rest[to]
            if mask & ~masks[to] or so_far >= goal:
                continue
            least = _load(tables, loads, ideal, to)
            if so_far + least < goal:
                least = max(least, _path(ends, masks[to] & ~mask, FAR))
            if so_far + least < goal:
                if low + least >= paths.low[to] and high + least >= paths.high[to]:
                    continue
                place = _phase(tables, phases, masks[to] & ~mask, goal - so_far, nodes, order)
                if place < 0 or phases.used[1] > most:
                    return -1
                least = max(least, phases.low[place])
                if so_far + least < goal:
                    _reach(paths, ideal, to, least, phases.high[place])
                    continue
            cut = min(cut, so_far + least)
    return int(cut)

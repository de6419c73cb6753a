"""Compiled search for the least makespan of a phase: some operators, each on one core, alone on the
chip.

The mathematics stands in ``phases.py``.
"""

from typing import NamedTuple

import numpy as np

from phaze.compiled import njit
from phaze.schedule.part import Ints, Masks, Tables
from phaze.schedule.phase_bound_kernels import ONE, Inside, inside_of, least, overfull, spills

# Later than any time; a time added to it stays within 64 bits.
FAR = 2**62
# Running operators that a remembered state has room for, and states that are remembered.
ROOM = 8
REMEMBERED = 2**14
# Searches of fewer nodes end before a table of remembered states pays for itself.
FEW_NODES = 500


class Tree(NamedTuple):
    """A depth-first search, by depth: choices and their starts, ends, work left by kind, who
    started, the moment.

    ``next_choice`` of ``choices`` were taken; ``keys`` and ``place`` are for the states ``seen``,
    all of whose choices were taken in vain.
    """

    who: Ints
    when: Ints
    ends: Ints
    left: Ints
    started: Masks
    now: Ints
    next_choice: Ints
    choices: Ints
    keys: Ints
    place: Ints
    seen: Ints
    release: Ints


@njit(cache=True, nogil=True)
def _releases(
    phase: Inside, cores: Ints, started: int, ends: Ints, left: Ints, now: int, release: Ints
) -> int:
    """``release[kind]``: when a core can be had; the least makespan by what is left for each
    kind."""
    bound = np.int64(0)
    for kind in range(2):
        running, soonest, area = 0, FAR, np.int64(0)
        for a in range(len(ends)):
            if started >> np.uint64(a) & ONE:
                bound = max(bound, ends[a])
                if phase.kinds[a, kind] and ends[a] > now:
                    running += 1
                    soonest = min(soonest, ends[a])
                    area += ends[a] - now
        release[kind] = now if running < cores[kind] else soonest
        if left[kind] > 0:
            bound = max(bound, now - (-(area + left[kind]) // cores[kind]))
    return int(bound)


@njit(cache=True, nogil=True)
def _choices(
    phase: Inside, started: int, ends: Ints, now: int, release: Ints, who: Ints, when: Ints
) -> tuple[int, int]:
    """The operators that may start next, soonest first, then longest path; how many, and a bound on
    the makespan."""
    count, bound, soonest, second, best = 0, np.int64(0), FAR, FAR, -1
    for a in range(len(ends)):
        if started >> np.uint64(a) & ONE or phase.below[a] & ~started:
            continue
        start = now
        for b in range(a):
            if phase.below[a] >> np.uint64(b) & ONE:
                start = max(start, ends[b])
        for kind in range(2):
            if phase.kinds[a, kind]:
                start = max(start, release[kind])
        bound = max(bound, start + phase.tail[a])
        if phase.first[a] & ~started:
            continue
        end = start + phase.time[a]
        if end < soonest:
            soonest, second, best = end, soonest, a
        elif end < second:
            second = end
        place = count
        while place > 0 and (
            when[place - 1] > start
            or (when[place - 1] == start and phase.tail[who[place - 1]] < phase.tail[a])
        ):
            who[place], when[place] = who[place - 1], when[place - 1]
            place -= 1
        who[place], when[place] = a, start
        count += 1
    # A start at or after the end of another ready operator leaves a gap that this one fits into:
    # dominated.
    ready = 0
    for k in range(count):
        if when[k] < (second if who[k] == best else soonest):
            who[ready], when[ready] = who[k], when[k]
            ready += 1
    return ready, int(bound)


@njit(cache=True, nogil=True)
def _state(phase: Inside, started: int, ends: Ints, now: int, key: Ints) -> np.int64:
    """What the rest depends on: all that started, the moment, and what still runs; its place in
    memory, -1: too much.

    Running operators that nothing waits for are distinguished by their kinds alone.
    """
    key[:] = 0
    key[0], key[1] = started, now
    count = 2
    for a in range(len(ends)):
        if not started >> np.uint64(a) & ONE or ends[a] <= now:
            continue
        if count == len(key):
            return np.int64(-1)
        # Operators are numbered below 64, kinds above it, so that end and code pack into one
        # integer of base 128.
        code = a if phase.above[a] & ~started else 64 + 2 * phase.kinds[a, 0] + phase.kinds[a, 1]
        value, place = 128 * ends[a] + code, count
        while place > 2 and key[place - 1] > value:
            key[place] = key[place - 1]
            place -= 1
        key[place] = value
        count += 1
    # Multiplicative hashing by 2^64 over the golden ratio: neighbouring keys go far apart, at one
    # product a word.
    mixed = np.uint64(0)
    for value in key:
        mixed = (mixed ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(REMEMBERED - 1))


@njit(cache=True, nogil=True)
def _tree(phase: Inside, states: int) -> Tree:
    m = len(phase.ops)
    tree = Tree(
        np.zeros((m + 1, m), np.int64), np.zeros((m + 1, m), np.int64),
        np.zeros((m + 1, m), np.int64),
        np.zeros((m + 1, 2), np.int64), np.zeros(m + 1, np.uint64), np.zeros(m + 1, np.int64),
        np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.zeros((m + 1, ROOM + 2), np.int64),
        np.full(m + 1, -1), np.full((states, ROOM + 2), -1), np.zeros(2, np.int64),
    )  # fmt: skip
    for a in range(m):
        tree.left[0] += phase.kinds[a] * phase.time[a]
    return tree


@njit(cache=True, nogil=True)
def _open(phase: Inside, cores: Ints, tree: Tree, depth: int, best: int) -> int:
    """Find the choices of a new node, none where it cannot lead below ``best``; a bound on its
    makespan."""
    started, ends, now = tree.started[depth], tree.ends[depth], tree.now[depth]
    bound = _releases(phase, cores, started, ends, tree.left[depth], now, tree.release)
    count, more = _choices(
        phase, started, ends, now, tree.release, tree.who[depth], tree.when[depth]
    )
    bound = max(bound, more)
    tree.next_choice[depth], tree.choices[depth], tree.place[depth] = 0, count, -1
    if bound >= best:
        tree.choices[depth] = 0
    elif len(tree.seen) > 1:
        place = _state(phase, started, ends, now, tree.keys[depth])
        if place >= 0 and (tree.seen[place] == tree.keys[depth]).all():
            tree.choices[depth] = 0
        else:
            tree.place[depth] = place
    return int(bound)


@njit(cache=True, nogil=True)
def _descend(phase: Inside, tree: Tree, depth: int, best: int) -> bool:
    """Take the next choice of a node; False where it cannot lead below ``best``."""
    a, start = tree.who[depth, tree.next_choice[depth]], tree.when[depth, tree.next_choice[depth]]
    tree.next_choice[depth] += 1
    if start + phase.tail[a] >= best:
        return False
    tree.ends[depth + 1] = tree.ends[depth]
    tree.ends[depth + 1, a] = start + phase.time[a]
    tree.started[depth + 1] = tree.started[depth] | ONE << np.uint64(a)
    tree.left[depth + 1] = tree.left[depth] - phase.kinds[a] * phase.time[a]
    tree.now[depth + 1] = start
    return True


@njit(cache=True, nogil=True)
def pack(tables: Tables, inside: int, limit: int, nodes: int, order: Ints) -> tuple[int, int, int]:
    """(lower bound, makespan found or FAR, nodes visited) of a phase, as far as it may be shorter
    than ``limit``.

    ``order`` gets the operators of the best phase in order of start. Depth first, at most about
    ``nodes`` nodes.
    """
    phase, cores = inside_of(tables, inside), tables.cores
    m, low = len(phase.ops), least(phase, cores)
    if low >= limit:
        return low, FAR, 0
    for kind in range(2):
        if overfull(phase, kind, cores[kind], limit - 1) or spills(
            phase, kind, cores[kind], limit - 1
        ):
            return limit, FAR, 0
    tree = _tree(phase, REMEMBERED if nodes > FEW_NODES else 1)
    depth, visited, best, makespan = 0, 1, limit, FAR
    _open(phase, cores, tree, 0, best)
    while depth >= 0 and visited <= nodes and best > low:
        if tree.next_choice[depth] == tree.choices[depth]:
            # Remembered only when exhausted: a state that is still open may lead below a later
            # incumbent.
            if tree.place[depth] >= 0:
                tree.seen[tree.place[depth]] = tree.keys[depth]
            depth -= 1
        elif _descend(phase, tree, depth, best):
            depth += 1
            visited += 1
            bound = _open(phase, cores, tree, depth, best)
            if depth == m and bound < best:
                best = makespan = bound
                for d in range(m):
                    order[d] = phase.ops[tree.who[d, tree.next_choice[d] - 1]]
    return best if depth < 0 else low, makespan, visited

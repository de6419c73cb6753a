"""Compiled: the operators of a phase, and what tells at once that they take longer than a given
time.

The mathematics stands in ``phases.py``.
"""

from typing import NamedTuple

import numpy as np

from phaze.compiled import njit
from phaze.schedule.part import Ints, Masks, Tables

# Shifts of sets need an unsigned 1: numba makes a float of a signed and an unsigned number.
ONE = np.uint64(1)
# Dual feasible functions u^(k) are tried up to this k: each is a pass, and with fewer the bound is
# weaker, still one.
MOST_ROUNDED = 12
# A table of so many multisets fits into a fast cache; larger ones are left undecided, which is
# still a bound.
MOST_MULTISETS = 4096


class Inside(NamedTuple):
    """The operators of a phase by position: who must end before, who must start before, path to the
    end, kinds."""

    ops: Ints
    time: Ints
    below: Masks
    above: Masks
    first: Masks
    tail: Ints
    kinds: Ints


@njit(cache=True, nogil=True)
def inside_of(tables: Tables, inside: int) -> Inside:
    n = len(tables.below)
    ops = np.array([j for j in range(n) if inside >> np.uint64(j) & ONE])
    m = len(ops)
    time, below, above = np.zeros(m, np.int64), np.zeros(m, np.uint64), np.zeros(m, np.uint64)
    first, tail, kinds = np.zeros(m, np.uint64), np.zeros(m, np.int64), np.zeros((m, 2), np.int64)
    for a in range(m):
        time[a] = tables.time[ops[a], 0]
        for kind in range(2):
            kinds[a, kind] = tables.holds[ops[a], 0, kind]
        for b in range(m):
            if tables.below[ops[a]] >> np.uint64(ops[b]) & ONE:
                below[a] |= ONE << np.uint64(b)
                above[b] |= ONE << np.uint64(a)
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m):
            if above[a] >> np.uint64(b) & ONE:
                tail[a] = max(tail[a], tail[b])
        tail[a] += time[a]
        for b in range(m):
            same = time[a] == time[b] and kinds[a, 0] == kinds[b, 0] and kinds[a, 1] == kinds[b, 1]
            if a == b or not same or below[b] & ~below[a] or above[a] & ~above[b]:
                continue
            if below[a] != below[b] or above[a] != above[b] or b < a:
                first[a] |= ONE << np.uint64(b)
    return Inside(ops, time, below, above, first, tail, kinds)


@njit(cache=True, nogil=True)
def least(phase: Inside, cores: Ints) -> int:
    """The longest path, and the load of each kind."""
    m = len(phase.ops)
    bound, head, work = np.int64(0), np.zeros(m, np.int64), np.zeros(2, np.int64)
    for a in range(m):
        for b in range(a):
            if phase.below[a] >> np.uint64(b) & ONE:
                head[a] = max(head[a], head[b] + phase.time[b])
        bound = max(bound, head[a] + phase.tail[a])
        work += phase.kinds[a] * phase.time[a]
    for kind in range(2):
        bound = max(bound, -(-work[kind] // max(1, cores[kind])))
    return int(bound)


@njit(cache=True, nogil=True)
def overfull(phase: Inside, kind: int, cores: int, length: int) -> bool:
    """Whether some dual feasible function shows that the operators of a kind do not fit into
    ``length`` on its cores.

    First those of Martello and Toth for each threshold p, then the rounding ones of Fekete and
    Schepers.
    """
    m = len(phase.ops)
    for a in range(m):
        p = phase.time[a]
        if not phase.kinds[a, kind] or 2 * p > length:
            continue
        total = np.int64(0)
        for b in range(m):
            if phase.kinds[b, kind] and phase.time[b] >= p:
                total += length if phase.time[b] > length - p else phase.time[b]
        if total > cores * length:
            return True
    for k in range(1, MOST_ROUNDED + 1):
        total = np.int64(0)
        for b in range(m):
            if phase.kinds[b, kind]:
                parts = (k + 1) * phase.time[b]
                total += k * phase.time[b] if parts % length == 0 else parts // length * length
        if total > cores * k * length:
            return True
    return False


@njit(cache=True, nogil=True)
def spills(phase: Inside, kind: int, cores: int, length: int) -> bool:
    """Whether the operators of a kind, of few different times, need more than ``cores`` bins of
    ``length``.

    Over all multisets of times: the least (bins, fill of the last bin), each time added last in
    turn.
    """
    m = len(phase.ops)
    sizes, counts, strides = np.zeros(m, np.int64), np.zeros(m, np.int64), np.ones(m, np.int64)
    different, states = 0, 1
    for a in range(m):
        if phase.kinds[a, kind]:
            k = 0
            while k < different and sizes[k] != phase.time[a]:
                k += 1
            sizes[k], counts[k] = phase.time[a], counts[k] + 1
            different = max(different, k + 1)
    for k in range(different):
        strides[k] = states
        states *= counts[k] + 1
        if states > MOST_MULTISETS:
            return False
    bins, fill = np.full(states, m + 1, np.int64), np.full(states, length, np.int64)
    bins[0] = 0
    for state in range(1, states):
        for k in range(different):
            if state // strides[k] % (counts[k] + 1) == 0:
                continue
            before = state - strides[k]
            fits = fill[before] + sizes[k] <= length
            used, full = bins[before] + (0 if fits else 1), (fill[before] if fits else 0) + sizes[k]
            if used < bins[state] or (used == bins[state] and full < fill[state]):
                bins[state], fill[state] = used, full
    return bool(bins[states - 1] > cores)

"""Compiled loops of the exact method: enumerating ideals, the backward sweep, and the labels.

The mathematics stands in ``ideals.py`` and ``labels.py``; names are the same here.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit
from phaze.schedule.part import Floats, Ints, Masks, Tables

# Later than any time; a time added to it stays within 64 bits.
FAR = 2**62


@njit(cache=True, nogil=True)
def _slot(mask: np.uint64, keys: Masks, values: Ints) -> np.int64:
    """The place of ``mask`` in an open-addressing table, or the free place where it would go."""
    size = np.uint64(len(keys) - 1)
    # 2^64 over the golden ratio: ideals that differ in one bit go far apart; the shift brings high
    # bits into the index.
    mixed = np.uint64(mask) * np.uint64(0x9E3779B97F4A7C15)
    slot = (mixed ^ (mixed >> np.uint64(29))) & size
    while values[slot] >= 0 and keys[slot] != mask:
        slot = (slot + np.uint64(1)) & size
    return np.int64(slot)


@njit(cache=True, nogil=True)
def enumerate_ideals(tables: Tables, most: int) -> tuple[Masks, NDArray[np.int32], Masks, Ints]:
    """Every ideal by size, its successors by added operator (-1: none), and the hash table of
    masks.

    Stops after ``most`` ideals; then the last ideal is not the whole set.
    """
    n = len(tables.below)
    # At most a quarter full, so that a probe of the open-addressing table ends after one or two
    # steps.
    size = 1
    while size < 4 * most:
        size *= 2
    keys, values = np.zeros(size, np.uint64), np.full(size, -1, np.int64)
    masks, nexts = np.zeros(most, np.uint64), np.full((most, n), -1, np.int32)
    values[_slot(np.uint64(0), keys, values)] = 0
    count, ideal = 1, 0
    unit = np.uint64(1)
    while ideal < count:
        mask = masks[ideal]
        for j in range(n):
            bit = unit << np.uint64(j)
            need = tables.below[j] | tables.start_after[j]
            if mask & bit or need & ~mask:
                continue
            slot = _slot(mask | bit, keys, values)
            if values[slot] < 0:
                if count == most:
                    return masks[:count], nexts[:count], keys, values
                keys[slot], values[slot] = mask | bit, count
                masks[count] = mask | bit
                count += 1
            nexts[ideal, j] = values[slot]
        ideal += 1
    return masks[:count], nexts[:count], keys, values


@njit(cache=True, nogil=True)
def sweep_alone(
    tables: Tables, masks: Masks, nexts: NDArray[np.int32], keys: Masks, values: Ints
) -> Ints:
    """g(S) under rules where a spread operator runs alone, without core limits: see
    ``ideals.py``."""
    n, count = len(tables.below), len(masks)
    g = np.zeros(count, np.int64)
    ends, by_end = np.zeros(n, np.int64), np.zeros(n, np.int64)
    unit = np.uint64(1)
    for ideal in range(count - 2, -1, -1):
        mask, best, waiting = masks[ideal], FAR, 0
        for j in range(n):
            if mask >> np.uint64(j) & unit:
                continue
            if nexts[ideal, j] >= 0 and tables.time[j, 1] > 0:
                best = min(best, tables.time[j, 1] + g[nexts[ideal, j]])
            ready = np.int64(0) if tables.time[j, 0] > 0 else FAR
            for i in range(j):
                if tables.below[j] >> np.uint64(i) & unit and not mask >> np.uint64(i) & unit:
                    ready = max(ready, ends[i])
            ends[j] = ready + tables.time[j, 0] if ready < FAR else FAR
            if ends[j] < FAR:
                place = waiting
                while place > 0 and ends[by_end[place - 1]] > ends[j]:
                    by_end[place] = by_end[place - 1]
                    place -= 1
                by_end[place] = j
                waiting += 1
        for k in range(waiting):
            mask |= unit << np.uint64(by_end[k])
            if k + 1 == waiting or ends[by_end[k + 1]] > ends[by_end[k]]:
                successor = values[_slot(mask, keys, values)]
                best = min(best, ends[by_end[k]] + g[successor])
        g[ideal] = best
    return g


@njit(cache=True, nogil=True)
def sweep_paths(masks: Masks, paths: Ints) -> Ints:
    """g(S) under any rules: the longest path of shortest times in what the ideal leaves."""
    g = np.zeros(len(masks), np.int64)
    for ideal in range(len(masks)):
        for j in range(len(paths)):
            if not masks[ideal] >> np.uint64(j) & np.uint64(1):
                g[ideal] = max(g[ideal], paths[j])
    return g


@njit(cache=True, nogil=True)
def closing(tables: Tables, masks: Masks) -> Ints:
    """What it takes to spread all that an ideal leaves, one after another, where that is the end;
    -1 elsewhere."""
    n = len(tables.below)
    seconds = np.zeros(len(masks), np.int64)
    for ideal in range(len(masks)):
        for j in range(n):
            if masks[ideal] >> np.uint64(j) & np.uint64(1):
                continue
            if not tables.alone or tables.above[j] or tables.time[j, 1] == 0:
                seconds[ideal] = -1
                break
            seconds[ideal] += tables.time[j, 1]
    return seconds


@njit(cache=True, nogil=True)
def potentials(credits: Floats, masks: Masks) -> Floats:
    """h_k(S): the credit that vector k leaves to the operators outside each ideal."""
    count, n = credits.shape
    credit_left = np.zeros((len(masks), count))
    for ideal in range(len(masks)):
        for j in range(n):
            if not masks[ideal] >> np.uint64(j) & np.uint64(1):
                for k in range(count):
                    credit_left[ideal, k] += credits[k, j]
    return credit_left


@njit(cache=True, nogil=True)
def places(masks: Masks, keys: Masks, values: Ints) -> Ints:
    """The number of each ideal in ``masks``."""
    numbers = np.zeros(len(masks), np.int64)
    for index in range(len(masks)):
        numbers[index] = values[_slot(masks[index], keys, values)]
    return numbers


def warm() -> None:
    """Compile every kernel of the room by solving a small problem under each of the rules that need
    them."""
    from phaze.schedule.warming import warm_all

    warm_all()

"""Compiled loops of the antichain dual: the most violated configuration, and the simplex that
prices it.

The mathematics stands in ``dual.py``.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit
from phaze.schedule.part import Floats, Ints, Masks, Tables

# A pivot or a violation below this is rounding of 64-bit floats, not a direction.
EPSILON = 1e-9


@njit(cache=True, nogil=True)
def _items(tables: Tables, credit: Floats, steps: Ints, weights: Floats) -> int:
    """The steps of positive weight ``credit / time`` that may overlap others, heaviest first; how
    many."""
    count = 0
    for i in range(len(credit)):
        for mode in range(2):
            if tables.time[i, mode] == 0 or (mode == 1 and tables.alone):
                continue
            weight = credit[i] / tables.time[i, mode]
            if weight <= 0:
                continue
            place = count
            while place > 0 and weights[place - 1] < weight:
                weights[place], steps[place] = weights[place - 1], steps[place - 1]
                place -= 1
            weights[place], steps[place] = weight, 2 * i + mode
            count += 1
    return count


@njit(cache=True, nogil=True)
def _fits(tables: Tables, step: int, left: Ints) -> bool:
    for resource in range(3):
        code = tables.holds[step >> 1, step & 1, resource]
        if code == 1 and left[resource] < 1:
            return False
        if code == 2 and left[resource] < tables.cores[resource]:
            return False
    return True


@njit(cache=True, nogil=True)
def _most(
    tables: Tables,
    chain: Ints,
    steps: Ints,
    weights: Floats,
    first: int,
    count: int,
    allowed: int,
    left: Ints,
) -> float:
    """An upper bound on the weight that items ``first`` and after can add: one a chain, and as many
    as cores."""
    by_chain, by_core = 0.0, 0.0
    seen = np.uint64(0)
    tensor, vector = left[0], left[1]
    for k in range(first, count):
        i, mode = steps[k] >> 1, steps[k] & 1
        if not allowed >> np.uint64(i) & np.uint64(1):
            continue
        bit = np.uint64(1) << np.uint64(chain[i])
        if not seen & bit:
            seen |= bit
            by_chain += weights[k]
        if tables.holds[i, mode, 0] > 0:
            if tensor > 0:
                by_core += weights[k]
            tensor -= 1
        elif tables.holds[i, mode, 1] > 0:
            if vector > 0:
                by_core += weights[k]
            vector -= 1
        else:
            by_core += weights[k]
    return min(by_chain, by_core)


@njit(cache=True, nogil=True)
def dearest(
    tables: Tables, beside: Masks, chain: Ints, credit: Floats, chosen: Ints
) -> tuple[float, int]:
    """The set of steps that may run together with the greatest sum of ``credit / time``: that sum,
    and its size.

    Depth first over the items, dearest first, with :func:`_most` as the bound.
    """
    n = len(credit)
    steps, weights = np.empty(2 * n, np.int64), np.empty(2 * n)
    count = _items(tables, credit, steps, weights)
    best, size = 0.0, 0
    if tables.alone:
        for i in range(n):
            if tables.time[i, 1] > 0 and credit[i] / tables.time[i, 1] > best:
                best, size, chosen[0] = credit[i] / tables.time[i, 1], 1, 2 * i + 1
    place, allowed = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.uint64)
    left, value, path = np.zeros((n + 2, 3), np.int64), np.zeros(n + 2), np.zeros(n + 2, np.int64)
    allowed[0] = ~np.uint64(0)
    left[0] = tables.cores
    depth = 0
    while depth >= 0:
        index = place[depth]
        while index < count and not (
            allowed[depth] >> np.uint64(steps[index] >> 1) & np.uint64(1)
            and _fits(tables, steps[index], left[depth])
        ):
            index += 1
        if index == count or value[depth] + _most(
            tables, chain, steps, weights, index, count, allowed[depth], left[depth]
        ) <= best * (1 + 1e-12):
            depth -= 1
            continue
        place[depth], path[depth] = index + 1, steps[index]
        i, mode = steps[index] >> 1, steps[index] & 1
        value[depth + 1] = value[depth] + weights[index]
        allowed[depth + 1] = allowed[depth] & beside[i]
        place[depth + 1] = index + 1
        for resource in range(3):
            code = tables.holds[i, mode, resource]
            used = code if code < 2 else tables.cores[resource]
            left[depth + 1, resource] = left[depth, resource] - used
        depth += 1
        if value[depth] > best:
            best, size = value[depth], depth
            chosen[:depth] = path[:depth]
    return best, size


@njit(cache=True, nogil=True)
def _pivot(inverse: Floats, level: Floats, column: Floats, cost: Floats, entering: float) -> bool:
    """Bring ``column`` into the basis by the least ratio; False when nothing bounds it."""
    n = len(level)
    direction = (inverse * column).sum(axis=1)
    row, ratio = -1, np.inf
    for i in range(n):
        if direction[i] > EPSILON and level[i] / direction[i] < ratio:
            row, ratio = i, level[i] / direction[i]
    if row < 0:
        return False
    pivot = direction[row]
    inverse[row] /= pivot
    level[row] /= pivot
    for i in range(n):
        if i != row and direction[i] != 0:
            inverse[i] -= direction[i] * inverse[row]
            level[i] = max(0.0, level[i] - direction[i] * level[row])
    cost[row] = entering
    return True


@njit(cache=True, nogil=True)
def solve_dual(tables: Tables, beside: Masks, chain: Ints, rounds: int) -> tuple[float, Floats]:
    """Column generation: the best feasible credits that were met, and their sum, in units of
    time."""
    n = len(tables.below)
    inverse, level, cost = np.zeros((n, n)), np.zeros(n), np.ones(n)
    # Times of about 1, so that levels of time and of cover, which has no unit, are compared with
    # the same tolerance.
    scale = float(tables.time.max())
    for i in range(n):
        least = tables.time[i, 0]
        if least == 0 or 0 < tables.time[i, 1] < least:
            least = tables.time[i, 1]
        inverse[i, i] = level[i] = least / scale
    chosen, column = np.zeros(n + 2, np.int64), np.zeros(n)
    best, best_credits = 0.0, np.zeros(n)
    for _ in range(rounds):
        credit = (inverse.T * cost).sum(axis=1)
        lowest = np.argmin(credit)
        column[:] = 0
        if credit[lowest] < -EPSILON * level.sum():
            column[lowest] = -1
            if not _pivot(inverse, level, column, cost, 0.0):
                break
            continue
        credit = np.maximum(credit, 0.0) * scale
        price, size = dearest(tables, beside, chain, credit, chosen)
        scaled = credit.sum() / max(price, 1e-300)
        if scaled > best:
            best, best_credits = scaled, credit / price
        if price <= 1 + EPSILON:
            break
        for k in range(size):
            column[chosen[k] >> 1] = scale / tables.time[chosen[k] >> 1, chosen[k] & 1]
        if not _pivot(inverse, level, column, cost, 1.0):
            break
    return best, best_credits


@njit(cache=True, nogil=True)
def _room(
    weight: Floats, vector: NDArray[np.bool_], members: Ints, i: int, cores: Ints, sorted_: Floats
) -> float:
    """The most that operator i may weigh so that the top of the antichain ``members`` stays at most
    1."""
    total, least_own = 0.0, 0.0
    for kind in range(2):
        count, most = 0, min(cores[kind], len(members))
        for k in members:
            if k == i or weight[k] <= 0 or vector[k] != (kind == 1):
                continue
            place = min(count, most)
            if place == most and (most == 0 or weight[k] <= sorted_[most - 1]):
                continue
            if place == most:
                place -= 1
            else:
                count += 1
            while place > 0 and sorted_[place - 1] < weight[k]:
                sorted_[place] = sorted_[place - 1]
                place -= 1
            sorted_[place] = weight[k]
        for k in range(count):
            total += sorted_[k]
        if vector[i] == (kind == 1) and count == most and count > 0:
            least_own = sorted_[count - 1]
    return max(0.0, 1.0 - total) + least_own


@njit(cache=True, nogil=True)
def greedy_duals(
    one_core: Floats, spread: Floats, cores: Ints, vector: NDArray[np.bool_],
    members: Ints, first: Ints, in_sets: Ints, in_first: Ints, orders: Ints,
) -> Floats:  # fmt: skip
    """For each chip the best sum of greedy credits over the given orders: see ``dual.py``.

    ``one_core`` and ``spread`` are [chips, operators]; antichain a is ``members[first[a] : first[a
    + 1]]``, and the antichains with operator i are ``in_sets[in_first[i] : in_first[i + 1]]``.
    """
    chips, n = one_core.shape
    best = np.zeros(chips)
    weight, left, sorted_ = np.zeros(n), np.ones(len(first) - 1), np.zeros(n + 1)
    widest = 0
    for a in range(len(first) - 1):
        widest = max(widest, first[a + 1] - first[a])
    for chip in range(chips):
        roomy = cores[chip, 0] >= widest and cores[chip, 1] >= widest
        for order in orders:
            weight[:], left[:] = 0.0, 1.0
            total = 0.0
            for i in order:
                most = 1.0
                if spread[chip, i] < one_core[chip, i]:
                    most = spread[chip, i] / one_core[chip, i]
                for k in range(in_first[i], in_first[i + 1]):
                    a = in_sets[k]
                    room = left[a]
                    if room < most and not roomy:
                        room = _room(
                            weight,
                            vector,
                            members[first[a] : first[a + 1]],
                            i,
                            cores[chip],
                            sorted_,
                        )
                    most = min(most, room)
                weight[i] = most
                total += most * one_core[chip, i]
                for k in range(in_first[i], in_first[i + 1]):
                    left[in_sets[k]] = max(0.0, left[in_sets[k]] - most)
            best[chip] = max(best[chip], total)
    return best

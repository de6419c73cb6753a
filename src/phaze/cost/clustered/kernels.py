"""The mapping space of :mod:`phaze.cost.clustered.gemm`, compiled: fronts of clusters in cycles, for many products.

As in :mod:`phaze.cost.kernels` the space is a product of two sides that know nothing of each other. A cluster side is
``clusters arrays rows columns fan_out`` and ``operand bytes, sum bytes, port``; its front over (busy cycles, global
bytes) holds for every clock, width, global buffer and HBM. The global side and the pick of the best pair are those of
kernels.py, with bytes a cycle for rates. The arithmetic stands in the order of the scalar file, to the last bit.

A tile whose least possible cost is already dominated is left out before its flows are tried (:func:`_hopeless`):

    busy >= batch am an / (own N) mt nt k / (R C) / s,      bytes >= reads + outputs once
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from phaze.cost.kernels import CAPACITY, CHIP_CHOICES, CHIP_COSTS, FOUND, STEPS, _tiles, _up, _work, global_front, pick

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CLUSTER_COSTS = 6  # busy cycles, global bytes, edge bytes, array cycles, core cycles, port bytes
CLUSTER_CHOICES = 10  # flow, down, across, own, mt, nt, kc, ks, gm, gn
CLUSTER_FOUND = FOUND + 1  # cycles, HBM bytes, global bytes, edge bytes, what bounds; port bytes
SHARE = 0.95
LATENCY = 1000
SLACK = 1.0 - 1e-12
"""Rounding that the bound of a tile may have beyond its cost."""


@njit(cache=True, nogil=True, inline="always")
def _slices(
    one: bool, bm: int, bn: int, own: int, k: int, e: int, rows: int, operands: float, sums: float
) -> int:  # fmt: skip
    if not one and 4.0 * bm * bn * own > sums:
        return 0
    fits = operands / (2.0 * e * own * (bm + bn))
    least = 1 if one else min(rows, k)
    if fits < least:
        return 0
    if fits >= k:
        return k
    while least * 2 <= fits and least * 2 < k:
        least *= 2
    return least


@njit(cache=True, nogil=True, inline="always")
def _shared(e: int, batch: int, m: int, n: int, k: int, am: int, an: int, most: int) -> tuple[float, int, int]:
    best, best_m, best_n, gm = np.inf, 1, 1, 1
    while gm <= most:
        gn = 1
        while gn * 2 * gm <= most:
            gn *= 2
        moved = float(e) * batch * k * (float(m) * _up(an, gn) + float(n) * _up(am, gm))
        if moved < best:
            best, best_m, best_n = moved, gm, gn
        gm *= 2
    return best, best_m, best_n


@njit(cache=True, nogil=True, inline="always")
def _hopeless(count: int, costs: Floats, busy: float, moved: float) -> bool:
    found = False
    for i in range(count):
        if costs[i, 0] <= busy and costs[i, 1] <= moved:
            found = True
            break
    return found


@njit(cache=True, nogil=True, inline="always")
def _place(count: int, busy: float, moved: float, costs: Floats, choices: Integers) -> int:
    """Make room for a point: -1 where it is dominated, else its place, the last; the dominated leave."""
    if _hopeless(count, costs, busy, moved):
        return -1
    kept = 0
    for i in range(count):
        if not (busy <= costs[i, 0] and moved <= costs[i, 1]):
            if kept != i:
                for j in range(CLUSTER_COSTS):
                    costs[kept, j] = costs[i, j]
                for j in range(CLUSTER_CHOICES):
                    choices[kept, j] = choices[i, j]
            kept += 1
    return kept


@njit(cache=True, nogil=True, inline="always")
def _fits(
    sizes: Integers, shape: Integers, rates: Floats, split: tuple[int, int, int], mt: int, nt: int
) -> bool:  # fmt: skip
    """Whether any flow can hold the tile; a wider one cannot where this one cannot."""
    r, c, own = shape[2], shape[3], split[2]
    bm, bn = min(sizes[1], split[0] * mt), min(sizes[2], split[1] * nt)
    one = (mt <= r and nt <= c) or (mt <= c and nt <= r)
    held = one or 4.0 * bm * bn * own <= rates[1]
    return bool(held and rates[0] / (2.0 * sizes[4] * own * (bm + bn)) >= 1)


@njit(cache=True, nogil=True)
def _tile(
    sizes: Integers, shape: Integers, rates: Floats, split: tuple[int, int, int], mt: int, nt: int, count: int,
    costs: Floats, choices: Integers,
) -> int:  # fmt: skip
    """Enter every flow and split of k of one tile; the new length of the front."""
    batch, m, n, k, e = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    clusters, r, c = shape[0], shape[2], shape[3]
    operands, sums, port = rates[0], rates[1], rates[2]
    down, across, own = split
    bm, bn = min(m, down * mt), min(n, across * nt)
    made, outputs = float(bm) * bn * own, float(batch) * m * n
    am, an = _up(m, down * mt), _up(n, across * nt)
    reads, gm, gn = _shared(e, batch, m, n, k, am, an, min(shape[4], clusters))
    least = float(batch) * am * an / (float(own) * clusters) * mt * nt / (float(r) * c) * k / SHARE
    if _hopeless(count, costs, least * SLACK, reads + outputs * e):
        return count
    feed = 2.0 * r + 6.0 * c
    for flow in range(4):
        one = (flow == 0 and mt <= r and nt <= c) or (flow == 1 and mt <= c and nt <= r)
        deep = _slices(one, bm, bn, own, k, e, r, operands, sums)
        if deep == 0:
            continue
        ks = 1
        while ks <= 64 and ks <= k and (ks == 1 or float(batch) * am * an * (ks // 2) < 8.0 * clusters * own):
            kt = _up(k, ks)
            kc = min(deep, kt)
            items = float(batch) * am * an * ks
            waves = float(_up(_up(batch * am * an * ks, own), clusters))
            if items > 4e18:
                waves = np.ceil(items / own / clusters)
            cycles, moved = _work(flow, mt, nt, kt, kc, e, r, c)
            written = made * (float(e) if ks == 1 else 8.0)
            asked = float(e) * kt * (float(bm) + bn) * own
            drain = LATENCY + 2 * r + c - 2 + written / port
            each = cycles + (0.0 if 8.0 * made <= sums else drain)
            array = (waves * each + drain) / SHARE
            core = max(waves * moved / feed, waves * max(asked, written) / port)
            writes = outputs * e + (0.0 if ks == 1 else 8.0 * ks * outputs)
            busy = max(array, core)
            at = _place(count, busy, reads + writes, costs, choices)
            if at >= costs.shape[0]:
                return -1
            if at >= 0:
                costs[at, 0], costs[at, 1], costs[at, 2] = busy, reads + writes, items * (down * across) * moved
                costs[at, 3], costs[at, 4] = array, core
                costs[at, 5] = items * (float(e) * kt * (float(bm) + bn))
                choices[at, 0], choices[at, 1], choices[at, 2], choices[at, 3] = flow, down, across, own
                choices[at, 4], choices[at, 5], choices[at, 6], choices[at, 7] = mt, nt, kc, ks
                choices[at, 8], choices[at, 9] = gm, gn
                count = at + 1
            ks *= 2
    return count


@njit(cache=True, nogil=True)
def cluster_front(sizes: Integers, shape: Integers, rates: Floats, costs: Floats, choices: Integers) -> int:
    """The undominated choices of a cluster side, in cycles; how many, -1 where the front outgrew its room."""
    arrays, r, c = shape[1], shape[2], shape[3]
    tm, tn = np.empty(STEPS, np.int64), np.empty(STEPS, np.int64)
    count = 0
    for way in range(1, arrays + 2):
        split = (way, arrays // way, 1)
        if way > arrays:
            if arrays == 1:
                break
            split = (1, 1, arrays)
        elif arrays % way:
            continue
        mts = _tiles(_up(sizes[1], split[0]), r, c, tm)
        nts = _tiles(_up(sizes[2], split[1]), r, c, tn)
        for i in range(mts):
            for j in range(nts):
                if not _fits(sizes, shape, rates, split, tm[i], tn[j]):
                    break
                count = _tile(sizes, shape, rates, split, tm[i], tn[j], count, costs, choices)
                if count < 0:
                    return -1
    return count


@njit(cache=True, nogil=True)
def cluster_sweep(
    sizes: Integers, held: Floats, shapes: Integers, rates: Floats, buffers: Floats,
    core_of: Integers, buffer_of: Integers, widths: Floats, hbm: Floats, found: Floats,
) -> int:  # fmt: skip
    """All products on all parts: part p has cluster side ``core_of[p]`` and a global buffer ``buffers[buffer_of[p]]``.

    Fills ``found[product, part]``; returns the number of fronts that outgrew their room (none is expected to). Products
    of equal sizes that follow each other share their fronts.
    """
    sides, levels, overflow = shapes.shape[0], buffers.shape[0], 0
    core_costs = np.empty((sides, CAPACITY, CLUSTER_COSTS))
    core_choices = np.empty((CAPACITY, CLUSTER_CHOICES), np.int64)
    core_counts = np.empty(sides, np.int64)
    chip_costs = np.empty((levels, CAPACITY, CHIP_COSTS))
    chip_choices = np.empty((CAPACITY, CHIP_CHOICES), np.int64)
    chip_counts = np.empty(levels, np.int64)
    for s in range(sizes.shape[0]):
        if s == 0 or (sizes[s] != sizes[s - 1]).any():
            for i in range(sides):
                core_counts[i] = cluster_front(sizes[s], shapes[i], rates[i], core_costs[i], core_choices)
                overflow += core_counts[i] < 0
        for i in range(levels):
            chip_counts[i] = global_front(sizes[s], held[s], buffers[i], chip_costs[i], chip_choices)
            overflow += chip_counts[i] < 0
        once = held[s, 0] + held[s, 1] + held[s, 2]
        for p in range(core_of.shape[0]):
            i, j = core_of[p], buffer_of[p]
            at, _ = pick(
                core_counts[i], core_costs[i], chip_counts[j], chip_costs[j], once, widths[p], hbm[p], found[s, p]
            )
            found[s, p, FOUND] = core_costs[i, at, 5] if at >= 0 else np.inf
    return overflow


def warm() -> None:
    """Compile and cache every kernel; one product alone calls them from Python, with other types than a sweep."""
    from phaze.cost.clustered.mapping import ClusterPart
    from phaze.cost.clustered.products import map_on_clusters, part_rows, sweep_on_clusters
    from phaze.cost.mapping import product

    part = ClusterPart(2, 2, 2, 2, 4096.0, 4096.0, 8.0, 2, 2.0**20, 64.0, 8.0)
    map_on_clusters(product(1, 8, 8, 8), part)
    sweep_on_clusters([product(1, 8, 8, 8)], part_rows([part]))

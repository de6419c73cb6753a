"""The mapping space of :mod:`phaze.cost.clustered.gemm`, compiled: fronts of clusters in cycles, for many products.

As in :mod:`phaze.cost.kernels` the space is a product of two sides that know nothing of each other. A cluster side is
``clusters arrays rows columns fan_out`` and ``operand bytes, sum bytes, port``; its front over (busy cycles, global
bytes) holds for every clock, width, global buffer and HBM. The global side and the pick of the best pair are those of
kernels.py, with bytes a cycle for rates. The arithmetic stands in the order of the scalar file, to the last bit.

A tile whose least possible cost is already dominated is left out before its flows are tried (:func:`_hopeless`), with

    each   >= mt nt kt / (R C) + (0 if two tiles of sums fit, else D),    D = latency + fill and drain + made e / port
    busy   >= max((waves each + D) / s, items e k (bm + bn) / (N port))

where k in one slice has whole waves and bytes of reads + outputs e, and in several items ks / (own N) waves at least
and bytes of 16 more an output. Both must be dominated.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit
from phaze.cost.kernels import CAPACITY, CHIP_CHOICES, CHIP_COSTS, FOUND, STEPS, _tiles, _up, global_front, pick

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CLUSTER_COSTS = 6  # busy cycles, global bytes, edge bytes, array cycles, core cycles, port bytes
CLUSTER_CHOICES = 10  # flow, down, across, own, mt, nt, kc, ks, gm, gn
CLUSTER_FOUND = FOUND + 1  # cycles, HBM bytes, global bytes, edge bytes, what bounds; port bytes
SHARE = 0.95
"""SUSTAINED_SHARE of mapping.py; compiled code takes no imported objects."""
LATENCY = 1000
"""LATENCY_CYCLES of mapping.py, likewise."""
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
    best, best_m, best_n, step, both = np.inf, 0, 0, 0, 0
    while 2 << both <= most:
        both += 1
    each = float(e) * batch * k
    while step <= both:  # groups of 2^step x 2^(both - step) clusters: quotients are shifts
        across = both - step
        moved = each * (float(m) * ((an + (1 << across) - 1) >> across) + float(n) * ((am + (1 << step) - 1) >> step))
        if moved < best:
            best, best_m, best_n = moved, step, across
        step += 1
    return best, 1 << best_m, 1 << best_n


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


@njit(cache=True, nogil=True, inline="always")
def _above(a: float, b: float) -> float:
    """The quotient of whole numbers below 2^53, rounded up: exact, and sooner there than by whole numbers."""
    return float(np.ceil(a / b))


@njit(cache=True, nogil=True, inline="always")
def _folds(mt: int, nt: int, r: int, c: int) -> tuple[float, float, float, float]:
    """Rows and columns of arrays that a tile spans: its m over r and over c, its n over c and over r."""
    return _above(mt, r), _above(mt, c), _above(nt, c), _above(nt, r)


@njit(cache=True, nogil=True, inline="always")
def _worked(
    flow: int, mt: int, nt: int, kt: int, kc: int, e: int, r: int, folds: tuple[float, float, float, float]
) -> tuple[float, float]:
    """:func:`phaze.cost.kernels._work` of a tile whose folds are known: cycles of an array and bytes at its edge."""
    m_rows, m_columns, n_columns, n_rows = folds
    sums = 4.0 * mt * nt
    if flow == 2:
        deep = _above(kt, r)
        return deep * n_columns * max(mt, r), float(e) * kt * nt + float(e) * kt * mt * n_columns + sums * deep
    if flow == 3:
        deep = _above(kt, r)
        return deep * m_columns * max(nt, r), float(e) * kt * mt + float(e) * kt * nt * m_columns + sums * deep
    down, across = (m_rows, n_columns) if flow == 0 else (n_rows, m_columns)
    rows, columns = (mt, nt) if flow == 0 else (nt, mt)
    folded = down * across
    visits, cycles = 1.0, float(max(kt, r))
    if folded != 1:
        visits = _above(kt, kc)
        cycles = folded * ((visits - 1) * kc + max(kt - (visits - 1) * kc, float(r)))
    return cycles, float(e) * kt * (float(rows) * across + float(columns) * down) + sums * visits


@njit(cache=True, nogil=True, inline="always")
def _waves(items: float, whole: int, own: int, clusters: int) -> float:
    """Tiles that the busiest cluster makes one after another; ``whole`` is the same as ``items``, as far as it fits."""
    if items < 4e15:
        return _above(_above(items, own), clusters)
    if items > 4e18:
        return float(np.ceil(items / own / clusters))
    return float(_up(_up(whole, own), clusters))


@njit(cache=True, nogil=True, inline="always")
def _beaten(
    sizes: Integers, shape: Integers, rates: Floats, split: tuple[int, int, int], tile: tuple[int, int, int, int],
    once: float, reads: float, count: int, costs: Floats,
) -> bool:  # fmt: skip
    """Whether nothing that a tile may cost can enter the front."""
    k, e, clusters, r, c, port, own = sizes[3], sizes[4], shape[0], shape[2], shape[3], rates[2], split[2]
    mt, nt, bm, bn = tile
    made, outputs = float(bm) * bn * own, float(sizes[0]) * sizes[1] * sizes[2]
    drained = LATENCY + 2 * r + c - 2 + made * e / port
    apart = 0.0 if 8.0 * made <= rates[1] else drained
    work, fed = float(mt) * nt * k / (float(r) * c), once * (float(e) * k * (float(bm) + bn)) / (clusters * port)
    even = once / (float(own) * clusters)
    whole = max((np.ceil(even * SLACK) * (work + apart) + drained) / SHARE, fed) * SLACK
    if not _hopeless(count, costs, whole, reads + outputs * e):
        return False
    sliced = max((even * (work + 2.0 * apart) + drained) / SHARE, fed) * SLACK
    one = once >= 8.0 * clusters * own or k == 1
    return one or _hopeless(count, costs, sliced, reads + outputs * (e + 16.0))


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
    once = float(batch) * am * an
    if _beaten(sizes, shape, rates, split, (mt, nt, bm, bn), once, reads, count, costs):
        return count
    feed, folds = 2.0 * r + 6.0 * c, _folds(mt, nt, r, c)
    several = _slices(False, bm, bn, own, k, e, r, operands, sums)
    ks, step = 1, 0
    while ks <= 64 and ks <= k and (ks == 1 or once * (ks // 2) < 8.0 * clusters * own):
        kt, items = (k + ks - 1) >> step, once * ks
        waves = _waves(items, batch * am * an * ks, own, clusters)
        written = made * (float(e) if ks == 1 else 8.0)
        asked = float(e) * kt * (float(bm) + bn) * own
        drain = LATENCY + 2 * r + c - 2 + written / port
        apart = 0.0 if 8.0 * made <= sums else drain
        through = waves * max(asked, written) / port
        # Flows of a tile read and write the same of the global buffer: the soonest of them counts, the first of equals.
        busy, array, core, least_cycles, least_edge, best, best_kc = np.inf, 0.0, 0.0, np.inf, np.inf, -1, 0
        for flow in range(4):
            one = (flow == 0 and mt <= r and nt <= c) or (flow == 1 and mt <= c and nt <= r)
            deep = _slices(True, bm, bn, own, k, e, r, operands, sums) if one else several
            if deep == 0:
                continue
            kc = min(deep, kt)
            cycles, edge = _worked(flow, mt, nt, kt, kc, e, r, folds)
            if cycles >= least_cycles and edge >= least_edge:
                continue
            own_array = (waves * (cycles + apart) + drain) / SHARE
            own_core = max(waves * edge / feed, through)
            if max(own_array, own_core) < busy:
                busy, array, core, best, best_kc = max(own_array, own_core), own_array, own_core, flow, kc
                least_cycles, least_edge = cycles, edge
        writes = outputs * e + (0.0 if ks == 1 else 8.0 * ks * outputs)
        at = _place(count, busy, reads + writes, costs, choices) if best >= 0 else -1
        if at >= costs.shape[0]:
            return -1
        if at >= 0:
            costs[at, 0], costs[at, 1], costs[at, 2] = busy, reads + writes, items * (down * across) * least_edge
            costs[at, 3], costs[at, 4] = array, core
            costs[at, 5] = items * (float(e) * kt * (float(bm) + bn))
            choices[at, 0], choices[at, 1], choices[at, 2], choices[at, 3] = best, down, across, own
            choices[at, 4], choices[at, 5], choices[at, 6], choices[at, 7] = mt, nt, best_kc, ks
            choices[at, 8], choices[at, 9] = gm, gn
            count = at + 1
        ks, step = 2 * ks, step + 1
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

"""The mapping space of :mod:`phaze.cost.gemm`, compiled: the same numbers for many products and parts at once.

The space is a product of a core side (which knows no global buffer) and a global side (which knows no cores), and

    time = max(busy(core), (bytes(core) + sums(chip)) / global bandwidth, hbm(chip) / HBM bandwidth)

grows with each of busy, bytes, sums and hbm. So only the undominated choices of either side can be best: the fronts
over (busy, bytes) for every distinct core side (:func:`core_front`) and over (hbm, sums) for every distinct global
buffer (:func:`global_front`); each part then takes the best pair (:func:`pick`). Chips that share a side share its
front.

A product is the row ``batch m n k element_bytes`` of whole numbers and ``a b c`` bytes with their needs; a core side is
``cores rows columns`` and ``buffer bytes, buffer bytes/s, clock, block cycles``. The arithmetic is written in the order
of the scalar file, so that both agree to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CAPACITY = 512
"""Room for the points of a front; a front has distinct tile shapes, of which a core buffer holds few."""
STEPS = 128
"""Ladders of powers of two below 2^50 have 50 steps for rows and as many for columns."""
CORE_COSTS = 5  # busy, global bytes, core bytes, array seconds, core-buffer seconds
CORE_CHOICES = 7  # flow, mt, nt, kc, ks, gm, gn
CHIP_COSTS = 2  # HBM bytes, bytes of partial sums
CHIP_CHOICES = 5  # order, mg, ng, kg, resident
FOUND = 5  # seconds, HBM bytes, global bytes, core bytes, what bounds (0 array, 1 core buffer, 2 global buffer, 3 HBM)


@njit(cache=True, nogil=True, inline="always")
def _up(a: int, b: int) -> int:
    return (a + b - 1) // b


@njit(cache=True, nogil=True)
def _ladder(start: int, limit: int, out: Integers) -> int:
    count = 0
    while start < limit:
        out[count] = start
        count += 1
        start *= 2
    out[count] = limit
    return count + 1


@njit(cache=True, nogil=True)
def _tiles(extent: int, rows: int, columns: int, out: Integers) -> int:
    count, r, c = 0, rows, columns
    while r < extent or c < extent:
        step = min(r, c)
        out[count] = step
        count += 1
        if r == step:
            r *= 2
        if c == step:
            c *= 2
    out[count] = extent
    return count + 1


@njit(cache=True, nogil=True, inline="always")
def _depth(one: bool, mt: int, nt: int, k: int, e: int, rows: int, buffer: float) -> int:
    room = buffer - (0.0 if one else 4.0 * mt * nt)
    fits = room / (2.0 * e * (mt + nt))
    least = 1 if one else min(rows, k)
    if fits < least:
        return 0
    if fits >= k:
        return k
    while least * 2 <= fits and least * 2 < k:
        least *= 2
    return least


@njit(cache=True, nogil=True, inline="always")
def _reads(e: int, batch: int, m: int, n: int, k: int, am: int, an: int, cores: int) -> tuple[float, int, int]:
    best, best_m, best_n, gm = np.inf, 1, 1, 1
    while gm <= min(cores, 16):
        gn = 1
        while gn * 2 * gm <= cores and gn < 16:
            gn *= 2
        moved = float(e) * batch * k * (float(m) * _up(an, gn) + float(n) * _up(am, gm))
        if moved < best:
            best, best_m, best_n = moved, gm, gn
        gm *= 2
    return best, best_m, best_n


@njit(cache=True, nogil=True, inline="always")
def _work(flow: int, mt: int, nt: int, kt: int, kc: int, e: int, r: int, c: int) -> tuple[float, float]:
    sums = 4.0 * mt * nt
    if flow == 2:
        cycles = float(_up(kt, r)) * _up(nt, c) * max(mt, r)
        return cycles, float(e) * kt * nt + float(e) * kt * mt * _up(nt, c) + sums * _up(kt, r)
    if flow == 3:
        cycles = float(_up(kt, r)) * _up(mt, c) * max(nt, r)
        return cycles, float(e) * kt * mt + float(e) * kt * nt * _up(mt, c) + sums * _up(kt, r)
    rows, columns = (mt, nt) if flow == 0 else (nt, mt)
    folds = float(_up(rows, r)) * _up(columns, c)
    visits = 1 if folds == 1 else _up(kt, kc)
    cycles = float(max(kt, r))
    if folds != 1:
        cycles = folds * (float(visits - 1) * kc + max(kt - (visits - 1) * kc, r))
    return cycles, float(e) * kt * (float(rows) * _up(columns, c) + float(columns) * _up(rows, r)) + sums * visits


@njit(cache=True, nogil=True, inline="always")
def _enter(count: int, first: float, second: float, costs: Floats, choices: Integers) -> int:
    """Make room for a point in a front: -1 where it is dominated, else its place, the last; the dominated leave."""
    for i in range(count):
        if costs[i, 0] <= first and costs[i, 1] <= second:
            return -1
    kept = 0
    for i in range(count):
        if not (first <= costs[i, 0] and second <= costs[i, 1]):
            if kept != i:
                costs[kept] = costs[i]
                choices[kept] = choices[i]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def core_front(sizes: Integers, shape: Integers, rates: Floats, costs: Floats, choices: Integers) -> int:
    """The undominated choices of the core side; how many, -1 where the front outgrew its room."""
    batch, m, n, k, e = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    cores, r, c = shape[0], shape[1], shape[2]
    buffer, buffer_rate, clock, block_cycles = rates[0], rates[1], rates[2], rates[3]
    tm, tn = np.empty(STEPS, np.int64), np.empty(STEPS, np.int64)
    deep = np.empty(4, np.int64)
    mts, nts = _tiles(m, r, c, tm), _tiles(n, r, c, tn)
    outputs, count = float(batch) * m * n, 0
    for i in range(mts):
        for j in range(nts):
            mt, nt = tm[i], tn[j]
            deep[0] = _depth(mt <= r and nt <= c, mt, nt, k, e, r, buffer)
            deep[1] = _depth(mt <= c and nt <= r, mt, nt, k, e, r, buffer)
            deep[2] = _depth(False, mt, nt, k, e, r, buffer)
            deep[3] = deep[2]
            if deep[0] + deep[1] + deep[2] == 0:
                continue
            am, an = _up(m, mt), _up(n, nt)
            reads, gm, gn = _reads(e, batch, m, n, k, am, an, cores)
            lost = block_cycles * (float(_up(mt, r)) * _up(nt, c))
            for flow in range(4):
                if deep[flow] == 0:
                    continue
                ks = 1
                while ks <= 64 and ks <= k and (ks == 1 or float(batch) * am * an * (ks // 2) < 8.0 * cores):
                    kt = _up(k, ks)
                    kc = min(deep[flow], kt)
                    items = float(batch) * am * an * ks
                    waves = float(_up(batch * am * an * ks, cores))
                    if items > 4e18:
                        waves = np.ceil(items / cores)
                    cycles, moved = _work(flow, mt, nt, kt, kc, e, r, c)
                    array_s = (waves * (cycles + lost) + (2 * r + c - 2)) / clock
                    core_s = waves * moved / buffer_rate
                    writes = outputs * e + (0.0 if ks == 1 else 8.0 * ks * outputs)
                    busy = max(array_s, core_s)
                    at = _enter(count, busy, reads + writes, costs, choices)
                    if at >= 0:
                        if at >= costs.shape[0]:
                            return -1
                        costs[at, 0], costs[at, 1], costs[at, 2] = busy, reads + writes, items * moved
                        costs[at, 3], costs[at, 4] = array_s, core_s
                        choices[at, 0], choices[at, 1], choices[at, 2], choices[at, 3] = flow, mt, nt, kc
                        choices[at, 4], choices[at, 5], choices[at, 6] = ks, gm, gn
                        count = at + 1
                    ks *= 2
    return count


@njit(cache=True, nogil=True, inline="always")
def _put(
    count: int, order: int, mg: int, ng: int, kg: int, resident: int, hbm: float, sums: float,
    costs: Floats, choices: Integers,
) -> int:  # fmt: skip
    at = _enter(count, hbm, sums, costs, choices)
    if at < 0:
        return count
    costs[at, 0], costs[at, 1] = hbm, sums
    choices[at, 0], choices[at, 1], choices[at, 2], choices[at, 3], choices[at, 4] = order, mg, ng, kg, resident
    return at + 1


@njit(cache=True, nogil=True)
def global_front(sizes: Integers, held: Floats, size: float, costs: Floats, choices: Integers) -> int:
    """The undominated choices of the global side for a buffer of ``size`` bytes; how many."""
    batch, m, n, k, e = sizes[0], sizes[1], sizes[2], sizes[3], float(sizes[4])
    tm, tn = np.empty(STEPS, np.int64), np.empty(STEPS, np.int64)
    mgs, ngs = _ladder(1, m, tm), _ladder(1, n, tn)
    count = 0
    for resident in range(2):
        room, a, b, c = size, held[0], held[1], held[2]
        if resident == 1:
            room = 0.5 * size
            a = 0.0 if held[3] <= room else a
            b = 0.0 if held[4] <= room else b
            c = 0.0 if held[5] <= room else c
        s_n, s_m = min(n, 64), min(m, 64)
        for i in range(mgs):
            mg = tm[i]
            ahead = 1.0 if mg == m and batch == 1 else 2.0
            if ahead * e * mg * k + 2.0 * e * s_n * (float(k) + mg) <= room:
                count = _put(count, 0, mg, s_n, k, resident, a + b * _up(m, mg) + c, 0.0, costs, choices)
        for j in range(ngs):
            ng = tn[j]
            ahead = 1.0 if ng == n and batch == 1 else 2.0
            if ahead * e * ng * k + 2.0 * e * s_m * (float(k) + ng) <= room:
                count = _put(count, 1, s_m, ng, k, resident, a * _up(n, ng) + b + c, 0.0, costs, choices)
        for i in range(mgs):
            for j in range(ngs):
                mg, ng = tm[i], tn[j]
                fits = (room - 4.0 * mg * ng) / (2.0 * e * (float(mg) + ng))
                if fits < 1:
                    break
                kg = 1
                while kg * 2 <= fits and kg * 2 < k:
                    kg *= 2
                kg = k if fits >= k else kg
                sums = 8.0 * batch * m * n * (_up(k, kg) - 1)
                count = _put(count, 2, mg, ng, kg, resident, a * _up(n, ng) + b * _up(m, mg) + c, sums, costs, choices)
                if count >= costs.shape[0]:
                    return -1
    return count


@njit(cache=True, nogil=True)
def pick(
    cores: int, core: Floats, chips: int, chip: Floats, once: float, global_rate: float, hbm_rate: float, found: Floats
) -> tuple[int, int]:
    """The best pair of choices, its costs in ``found``; the global choice ``chips`` means ``through``."""
    at_core, at_chip, least_busy = -1, -1, np.inf
    found[0], found[1], found[2], found[3], found[4] = np.inf, np.inf, np.inf, np.inf, 0.0
    for i in range(cores):
        busy = core[i, 0]
        for j in range(chips + 1 if busy <= found[0] else 0):  # no pair of a longer one is as soon as the best
            through = j == chips
            hbm = max(core[i, 1], once) if through else chip[j, 0]
            moved = core[i, 1] + (0.0 if through else chip[j, 1])
            global_s, hbm_s = moved / global_rate, hbm / hbm_rate
            time = max(busy, global_s, hbm_s)
            better = time < found[0] or (
                time == found[0]
                and (
                    hbm < found[1]
                    or (hbm == found[1] and (moved < found[2] or (moved == found[2] and busy < least_busy)))
                )
            )
            if better:
                found[0], found[1], found[2], found[3], least_busy = time, hbm, moved, core[i, 2], busy
                found[4] = _bound(core[i, 3], core[i, 4], global_s, hbm_s)
                at_core, at_chip = i, j
    return at_core, at_chip


@njit(cache=True, nogil=True, inline="always")
def _bound(array_s: float, core_s: float, global_s: float, hbm_s: float) -> float:
    top = max(array_s, core_s, global_s, hbm_s)
    if array_s == top:
        return 0.0
    if hbm_s == top:
        return 3.0
    return 2.0 if global_s == top else 1.0


@njit(cache=True, nogil=True)
def sweep(
    sizes: Integers, held: Floats, shapes: Integers, rates: Floats, buffers: Floats,
    core_of: Integers, buffer_of: Integers, global_rates: Floats, hbm_rates: Floats, found: Floats,
) -> int:  # fmt: skip
    """All products on all parts: part p has core side ``core_of[p]`` and a global buffer of ``buffers[buffer_of[p]]``.

    Fills ``found[product, part]``; returns the number of fronts that outgrew their room (none is expected to). Products
    of equal sizes that follow each other share their core fronts.
    """
    sides, levels, overflow = shapes.shape[0], buffers.shape[0], 0
    core_costs = np.empty((sides, CAPACITY, CORE_COSTS))
    core_choices = np.empty((CAPACITY, CORE_CHOICES), np.int64)
    core_counts = np.empty(sides, np.int64)
    chip_costs = np.empty((levels, CAPACITY, CHIP_COSTS))
    chip_choices = np.empty((CAPACITY, CHIP_CHOICES), np.int64)
    chip_counts = np.empty(levels, np.int64)
    for s in range(sizes.shape[0]):
        if s == 0 or (sizes[s] != sizes[s - 1]).any():
            for i in range(sides):
                core_counts[i] = core_front(sizes[s], shapes[i], rates[i], core_costs[i], core_choices)
                overflow += core_counts[i] < 0
        for i in range(levels):
            chip_counts[i] = global_front(sizes[s], held[s], buffers[i], chip_costs[i], chip_choices)
            overflow += chip_counts[i] < 0
        once = held[s, 0] + held[s, 1] + held[s, 2]
        for p in range(core_of.shape[0]):
            i, j = core_of[p], buffer_of[p]
            pick(
                core_counts[i], core_costs[i], chip_counts[j], chip_costs[j], once,
                global_rates[p], hbm_rates[p], found[s, p],
            )  # fmt: skip
    return overflow


def warm() -> None:
    """Compile and cache every kernel; one product alone calls them from Python, with other types than a sweep."""
    from phaze.cost.clustered import kernels as cluster_kernels
    from phaze.cost.mapping import TensorPart, product
    from phaze.cost.products import map_product

    map_product(product(1, 8, 8, 8), TensorPart(1, 2, 2, 1024.0, 1e9, 1e9, 2.0**20, 1e9, 1e9))
    held, rates = np.array([[128.0, 128.0, 128.0, np.inf, np.inf, np.inf]]), np.array([[1024.0, 1e9, 1e9, 0.0]])
    sizes, shapes = np.array([[1, 8, 8, 8, 2]], np.int64), np.array([[1, 2, 2]], np.int64)
    zero, one = np.zeros(1, np.int64), np.ones(1)
    sweep(sizes, held, shapes, rates, np.array([2.0**20]), zero, zero, one, one, np.empty((1, 1, FOUND)))
    cluster_kernels.warm()

"""The core side of :mod:`phaze.cost.gemm`, compiled: the undominated choices of a product on the
cores of a part.

A product is the row ``batch m n k element_bytes`` of whole numbers. A core side is the whole
numbers ``cores arrays rows columns group multicast`` and ``buffer bytes, buffer bytes/s, array
cycles/s, block cycles, sum bytes, port bytes/s, latency cycles``; its front over (busy, global
bytes) holds for every global buffer and HBM. The arithmetic is written in the order of the scalar
file, so that both agree to the last bit.

A tile whose least possible cost is already dominated is left out before its flows are tried
(:func:`_beaten`), with

    each   >= m1 n1 kt / (R C) + (0 if two tiles of sums fit, else D),    D = latency + fill and
           drain + made e / port
    busy   >= max((waves each + D) / clock, tiles e k (mt + nt) / (T port))

where k in one slice has whole waves and bytes of reads + outputs e, and in several tiles ks /
(teams T) waves at least and bytes of 16 more an output. Both must be dominated.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 128
"""Ladders of powers of two below 2^50 have 50 steps for rows and as many for columns."""
CORE_COSTS = 6  # busy, global bytes, core bytes, array seconds, core-buffer seconds, port bytes
CORE_CHOICES = 10  # flow, down, across, teams, mt, nt, kc, ks, gm, gn
SLACK = 1.0 - 1e-12
"""Rounding that the bound of a tile may have beyond its cost."""


@njit(cache=True, nogil=True, inline="always")
def _up(a: int, b: int) -> int:
    return (a + b - 1) // b


@njit(cache=True, nogil=True, inline="always")
def _above(a: float, b: float) -> float:
    """The quotient of whole numbers below 2^53, rounded up: exact, and sooner there than by whole
    numbers."""
    return float(np.ceil(a / b))


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
def _depth(
    one_pass: bool, made: float, sides: float, k: int, rows: int, buffer: float, sums: float
) -> int:
    """kc of a tile of ``made`` outputs whose slices of depth 1 take ``sides`` bytes."""
    room = buffer
    if not one_pass:
        if 4.0 * made > sums:
            return 0
        room = buffer - (4.0 * made if sums == np.inf else 0.0)
    fits = room / sides
    least = 1 if one_pass else min(rows, k)
    if fits < least:
        return 0
    if fits >= k:
        return k
    while least * 2 <= fits and least * 2 < k:
        least *= 2
    return least


@njit(cache=True, nogil=True, inline="always")
def _reads(
    e: int, batch: int, m: int, n: int, k: int, am: int, an: int, group: int, multicast: int
) -> tuple[float, int, int]:  # fmt: skip
    best, best_m, best_n, step, both, most = np.inf, 0, 0, 0, 0, 0
    while 2 << both <= group:
        both += 1
    while 2 << most <= multicast:
        most += 1
    each = float(e) * batch * k
    while step <= min(both, most):  # groups of powers of two: quotients are shifts
        across = min(both - step, most)
        moved = each * (
            float(m) * ((an + (1 << across) - 1) >> across)
            + float(n) * ((am + (1 << step) - 1) >> step)
        )
        if moved < best:
            best, best_m, best_n = moved, step, across
        step += 1
    return best, 1 << best_m, 1 << best_n


@njit(cache=True, nogil=True, inline="always")
def _dominated(count: int, costs: Floats, first: float, second: float) -> bool:
    i = 0
    while i < count and not (costs[i, 0] <= first and costs[i, 1] <= second):
        i += 1
    return i < count


@njit(cache=True, nogil=True, inline="always")
def enter(count: int, first: float, second: float, costs: Floats, choices: Integers) -> int:
    """Make room for a point in a front: -1 where it is dominated, else its place, the last; the
    dominated leave."""
    if _dominated(count, costs, first, second):
        return -1
    kept = 0
    for i in range(count):
        if not (first <= costs[i, 0] and second <= costs[i, 1]):
            if kept != i:
                for j in range(costs.shape[1]):
                    costs[kept, j] = costs[i, j]
                for j in range(choices.shape[1]):
                    choices[kept, j] = choices[i, j]
            kept += 1
    return kept


@njit(cache=True, nogil=True, inline="always")
def _fits(
    sizes: Integers, shape: Integers, rates: Floats, split: tuple[int, int, int], m1: int, n1: int
) -> bool:  # fmt: skip
    """Whether any flow can hold the tile; a wider one cannot where this one cannot."""
    r, c, teams = shape[2], shape[3], split[2]
    mt, nt = min(sizes[1], split[0] * m1), min(sizes[2], split[1] * n1)
    one_pass = (m1 <= r and n1 <= c) or (m1 <= c and n1 <= r)
    made = float(mt) * nt * teams
    return _depth(one_pass, made, 2.0 * sizes[4] * teams * (mt + nt), 1, 1, rates[0], rates[4]) > 0


@njit(cache=True, nogil=True, inline="always")
def _folds(m1: int, n1: int, r: int, c: int) -> tuple[float, float, float, float]:
    """Rows and columns of arrays that a tile spans: its m over r and over c, its n over c and over
    r."""
    return _above(m1, r), _above(m1, c), _above(n1, c), _above(n1, r)


@njit(cache=True, nogil=True, inline="always")
def _work(
    flow: int,
    m1: int,
    n1: int,
    kt: int,
    kc: int,
    e: int,
    r: int,
    folds: tuple[float, float, float, float],
) -> tuple[float, float]:
    """Cycles of an array and bytes at its edge, of a tile whose folds are known."""
    m_rows, m_columns, n_columns, n_rows = folds
    sums = 4.0 * m1 * n1
    if flow == 2:
        deep = _above(kt, r)
        return deep * n_columns * max(m1, r), float(e) * kt * n1 + float(
            e
        ) * kt * m1 * n_columns + sums * deep
    if flow == 3:
        deep = _above(kt, r)
        return deep * m_columns * max(n1, r), float(e) * kt * m1 + float(
            e
        ) * kt * n1 * m_columns + sums * deep
    down, across = (m_rows, n_columns) if flow == 0 else (n_rows, m_columns)
    rows, columns = (m1, n1) if flow == 0 else (n1, m1)
    folded = down * across
    visits, cycles = 1.0, float(max(kt, r))
    if folded != 1:
        visits = _above(kt, kc)
        cycles = folded * ((visits - 1) * kc + max(kt - (visits - 1) * kc, float(r)))
    return cycles, float(e) * kt * (float(rows) * across + float(columns) * down) + sums * visits


@njit(cache=True, nogil=True, inline="always")
def _waves(items: float, whole: int, teams: int, cores: int) -> float:
    """Tiles that the busiest core makes one after another; ``whole`` is the same as ``items``, as
    far as it fits."""
    if items < 4e15:
        return _above(_above(items, teams), cores)
    if items > 4e18:
        return float(np.ceil(items / teams / cores))
    return float(_up(_up(whole, teams), cores))


@njit(cache=True, nogil=True, inline="always")
def _beaten(
    sizes: Integers, shape: Integers, rates: Floats, teams: int, tile: tuple[int, int, int, int],
    once: float, reads: float, count: int, costs: Floats,
) -> bool:  # fmt: skip
    """Whether nothing that a tile may cost can enter the front."""
    k, e, cores, r, c, clock, port = (
        sizes[3],
        sizes[4],
        shape[0],
        shape[2],
        shape[3],
        rates[2],
        rates[5],
    )
    m1, n1, mt, nt = tile
    made, outputs = float(mt) * nt * teams, float(sizes[0]) * sizes[1] * sizes[2]
    drained = rates[6] + 2 * r + c - 2 + made * e / port
    waits = 0.0 if 8.0 * made <= rates[4] else drained
    work, fed = (
        float(m1) * n1 * k / (float(r) * c),
        once * (float(e) * k * (float(mt) + nt)) / (cores * port),
    )
    even = once / (float(teams) * cores)
    whole = max((np.ceil(even * SLACK) * (work + waits) + drained) / clock, fed) * SLACK
    if not _dominated(count, costs, whole, reads + outputs * e):
        return False
    sliced = max((even * (work + 2.0 * waits) + drained) / clock, fed) * SLACK
    one = once >= 8.0 * cores * teams or k == 1
    return one or _dominated(count, costs, sliced, reads + outputs * (e + 16.0))


@njit(cache=True, nogil=True)
def _tile(
    sizes: Integers, shape: Integers, rates: Floats, split: tuple[int, int, int], m1: int, n1: int,
    count: int,
    costs: Floats, choices: Integers,
) -> int:  # fmt: skip
    """Enter every flow and split of k of one tile; the new length of the front."""
    batch, m, n, k, e = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    cores, r, c = shape[0], shape[2], shape[3]
    buffer, buffer_rate, clock, sums, port = rates[0], rates[1], rates[2], rates[4], rates[5]
    down, across, teams = split
    mt, nt = min(m, down * m1), min(n, across * n1)
    made, outputs = float(mt) * nt * teams, float(batch) * m * n
    am, an = _up(m, down * m1), _up(n, across * n1)
    reads, gm, gn = _reads(e, batch, m, n, k, am, an, shape[4], shape[5])
    once = float(batch) * am * an
    if _beaten(sizes, shape, rates, teams, (m1, n1, mt, nt), once, reads, count, costs):
        return count
    folds, sides = _folds(m1, n1, r, c), 2.0 * e * teams * (mt + nt)
    lost = rates[3] * (folds[0] * folds[2])
    several = _depth(False, made, sides, k, r, buffer, sums)
    ks, step = 1, 0
    while ks <= 64 and ks <= k and (ks == 1 or once * (ks // 2) < 8.0 * cores * teams):
        kt, items = (k + ks - 1) >> step, once * ks
        waves = _waves(items, batch * am * an * ks, teams, cores)
        written = made * (float(e) if ks == 1 else 8.0)
        asked = float(e) * kt * (float(mt) + nt) * teams
        drain = rates[6] + 2 * r + c - 2 + written / port
        waits = lost + (0.0 if 8.0 * made <= sums else drain)
        through = waves * max(asked, written) / port
        # Flows of a tile read and write the same of the global buffer: the soonest of them counts,
        # the first of equals.
        busy, array, core, least_cycles, least_moved, best, best_kc = (
            np.inf,
            0.0,
            0.0,
            np.inf,
            np.inf,
            -1,
            0,
        )
        for flow in range(4):
            one_pass = (flow == 0 and m1 <= r and n1 <= c) or (flow == 1 and m1 <= c and n1 <= r)
            deep = _depth(True, made, sides, k, r, buffer, sums) if one_pass else several
            if deep == 0:
                continue
            kc = min(deep, kt)
            cycles, moved = _work(flow, m1, n1, kt, kc, e, r, folds)
            if cycles >= least_cycles and moved >= least_moved:
                continue
            array_s = (waves * (cycles + waits) + drain) / clock
            core_s = max(waves * moved / buffer_rate, through)
            if max(array_s, core_s) < busy:
                busy, array, core, best, best_kc = max(array_s, core_s), array_s, core_s, flow, kc
                least_cycles, least_moved = cycles, moved
        writes = outputs * e + (0.0 if ks == 1 else 8.0 * ks * outputs)
        place = enter(count, busy, reads + writes, costs, choices) if best >= 0 else -1
        if place >= costs.shape[0]:
            return -1
        if place >= 0:
            costs[place, 0], costs[place, 1] = busy, reads + writes
            costs[place, 2], costs[place, 3], costs[place, 4] = (
                items * (down * across) * least_moved,
                array,
                core,
            )
            costs[place, 5] = items * (float(e) * kt * (float(mt) + nt))
            choices[place, 0], choices[place, 1], choices[place, 2], choices[place, 3] = (
                best,
                down,
                across,
                teams,
            )
            choices[place, 4], choices[place, 5], choices[place, 6], choices[place, 7] = (
                mt,
                nt,
                best_kc,
                ks,
            )
            choices[place, 8], choices[place, 9] = gm, gn
            count = place + 1
        ks, step = 2 * ks, step + 1
    return count


@njit(cache=True, nogil=True)
def core_front(
    sizes: Integers, shape: Integers, rates: Floats, costs: Floats, choices: Integers
) -> int:
    """The undominated choices of a core side; how many, -1 where the front outgrew its room."""
    arrays, r, c = shape[1], shape[2], shape[3]
    m_tiles, n_tiles = np.empty(STEPS, np.int64), np.empty(STEPS, np.int64)
    count = 0
    for way in range(1, arrays + 2):
        split = (way, arrays // way, 1)
        if way > arrays:
            if arrays == 1:
                break
            split = (1, 1, arrays)
        elif arrays % way:
            continue
        m_count = _tiles(_up(sizes[1], split[0]), r, c, m_tiles)
        n_count = _tiles(_up(sizes[2], split[1]), r, c, n_tiles)
        for i in range(m_count):
            for j in range(n_count):
                if not _fits(sizes, shape, rates, split, m_tiles[i], n_tiles[j]):
                    break
                count = _tile(
                    sizes, shape, rates, split, m_tiles[i], n_tiles[j], count, costs, choices
                )
                if count < 0:
                    return -1
    return count

"""The mapping space of :mod:`phaze.cost.gemm`, compiled: the same numbers for many products and
parts at once.

The space is a product of a core side (which knows no global buffer) and a global side (which knows
no cores), and

    time = max(busy(core), (bytes(core) + sums(chip)) / global bandwidth, hbm(chip) / HBM bandwidth)

grows with each of busy, bytes, sums and hbm. So only the undominated choices of either side can be
best: the fronts over (busy, bytes) for every distinct core side (:mod:`phaze.cost.core_kernels`)
and over (hbm, sums) for every distinct global buffer (:func:`global_front`); each part then takes
the best pair (:func:`pick`). Chips that share a side share its front.

A product is the row ``batch m n k element_bytes`` of whole numbers and ``a b c`` bytes with their
needs. The arithmetic is written in the order of the scalar file, so that both agree to the last
bit.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit
from phaze.cost.core_kernels import CORE_CHOICES, CORE_COSTS, STEPS, _up, core_front, enter

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CAPACITY = 512
"""Room for the points of a front; a front has distinct tile shapes, of which a core buffer holds
few."""
CHIP_COSTS = 2  # HBM bytes, bytes of partial sums
CHIP_CHOICES = 5  # order, mg, ng, kg, resident
FOUND = 6  # time, HBM bytes, global bytes, core bytes, bound (0 array, 1 core buffer, 2 global, 3 HBM), port bytes


@njit(cache=True, nogil=True)
def _ladder(start: int, limit: int, out: Integers) -> int:
    count = 0
    while start < limit:
        out[count] = start
        count += 1
        start *= 2
    out[count] = limit
    return count + 1


@njit(cache=True, nogil=True, inline="always")
def _put(
    count: int, order: int, mg: int, ng: int, kg: int, resident: int, hbm: float, sums: float,
    costs: Floats, choices: Integers,
) -> int:  # fmt: skip
    place = enter(count, hbm, sums, costs, choices)
    if place < 0:
        return count
    costs[place, 0], costs[place, 1] = hbm, sums
    choices[place, 0], choices[place, 1], choices[place, 2], choices[place, 3] = order, mg, ng, kg
    choices[place, 4] = resident
    return place + 1


@njit(cache=True, nogil=True)
def global_front(
    sizes: Integers, held: Floats, size: float, costs: Floats, choices: Integers
) -> int:
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
                count = _put(
                    count, 0, mg, s_n, k, resident, a + b * _up(m, mg) + c, 0.0, costs, choices
                )
        for j in range(ngs):
            ng = tn[j]
            ahead = 1.0 if ng == n and batch == 1 else 2.0
            if ahead * e * ng * k + 2.0 * e * s_m * (float(k) + ng) <= room:
                count = _put(
                    count, 1, s_m, ng, k, resident, a * _up(n, ng) + b + c, 0.0, costs, choices
                )
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
                count = _put(
                    count,
                    2,
                    mg,
                    ng,
                    kg,
                    resident,
                    a * _up(n, ng) + b * _up(m, mg) + c,
                    sums,
                    costs,
                    choices,
                )
                if count >= costs.shape[0]:
                    return -1
    return count


@njit(cache=True, nogil=True)
def pick(
    cores: int,
    core: Floats,
    chips: int,
    chip: Floats,
    once: float,
    global_rate: float,
    hbm_rate: float,
    found: Floats,
) -> tuple[int, int]:
    """The best pair of choices, its costs in ``found``; the global choice ``chips`` means
    ``through``."""
    at_core, at_chip, least_busy = -1, -1, np.inf
    found[0], found[1], found[2], found[3], found[4], found[5] = (
        np.inf,
        np.inf,
        np.inf,
        np.inf,
        0.0,
        np.inf,
    )
    for i in range(cores):
        busy = core[i, 0]
        for j in range(
            chips + 1 if busy <= found[0] else 0
        ):  # no pair of a longer one is as soon as the best
            through = j == chips
            hbm = max(core[i, 1], once) if through else chip[j, 0]
            moved = core[i, 1] + (0.0 if through else chip[j, 1])
            global_s, hbm_s = moved / global_rate, hbm / hbm_rate
            time = max(busy, global_s, hbm_s)
            better = time < found[0] or (
                time == found[0]
                and (
                    hbm < found[1]
                    or (
                        hbm == found[1]
                        and (moved < found[2] or (moved == found[2] and busy < least_busy))
                    )
                )
            )
            if better:
                found[0], found[1], found[2], found[3], least_busy = (
                    time,
                    hbm,
                    moved,
                    core[i, 2],
                    busy,
                )
                found[4], found[5] = _bound(core[i, 3], core[i, 4], global_s, hbm_s), core[i, 5]
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
    """All products on all parts: part p has core side ``core_of[p]`` and a global buffer of
    ``buffers[buffer_of[p]]``.

    Fills ``found[product, part]``; returns the number of fronts that outgrew their room (none is
    expected to). Products of equal sizes that follow each other share their core fronts.
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
                core_counts[i] = core_front(
                    sizes[s], shapes[i], rates[i], core_costs[i], core_choices
                )
                overflow += core_counts[i] < 0
        for i in range(levels):
            chip_counts[i] = global_front(
                sizes[s], held[s], buffers[i], chip_costs[i], chip_choices
            )
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
    """Compile and cache every kernel; one product alone calls them from Python, with other types
    than a sweep."""
    from phaze.cost.mapping import TensorPart, product
    from phaze.cost.products import map_product, parts_of, sweep_products

    part = TensorPart(1, 2, 2, 1024.0, 1e9, 1e9, 2.0**20, 1e9, 1e9)
    map_product(product(1, 8, 8, 8), part)
    sweep_products([product(1, 8, 8, 8)], parts_of(part))

"""A matrix product on parts of chips (docs/cost.md, Products): what no mapping beats, and all mappings.

**No mapping beats** (:func:`roofline`): operands and results once through either memory, and the array. Over all items
of a mapping the tiles cover the product and every visit of an array takes at least its rows, so with T arrays of R x C

    T cycles >= batch min( ceil(m/R) ceil(n/C) max(k, R),  ceil(n/R) ceil(m/C) max(k, R),
                           ceil(k/R) ceil(n/C) max(m, R),  ceil(k/R) ceil(m/C) max(n, R) )

**All mappings** (:func:`exact`): the core side (tile, dataflow, split of k) gives pairs (busy seconds, bytes from the
global buffer), the global side (what stays in it) pairs (bytes from HBM, partial sums). Time is the least over all
pairs of max(busy, (bytes + sums) / global bandwidth, HBM bytes / HBM bandwidth); only undominated pairs are combined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .works import Moved, Product

Floats = NDArray[np.float64]
SPLITS = (1, 2, 4, 8, 16, 32, 64)
"""The splits of k: docs/cost.md, Products."""
ITEMS_A_CORE = 8
"""k is split only while there are fewer items than this a core: docs/cost.md."""
SLICE = 64
"""Rows or columns of a streamed operand: docs/cost.md."""
FANOUT = 16
"""Cores that one multicast reaches: docs/cost.md."""
SUM = 4.0
"""Bytes of a sum: fp32."""
Front = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class TensorParts:
    """One array a field: T cores of R x C with buffers, cycles lost a block, and the memories' shares."""

    cores: Floats
    rows: Floats
    columns: Floats
    core_buffer: Floats
    core_rate: Floats
    clock: Floats
    lost: Floats
    buffer: Floats
    global_rate: Floats
    hbm_rate: Floats

    def __len__(self) -> int:
        return len(self.cores)


def _resident(moved: Moved, half: Floats) -> Floats:
    return np.asarray(moved[0] * (moved[1] > half))


def roofline(p: Product, parts: TensorParts) -> Floats:
    """Seconds that no mapping undercuts, on every part."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    r, c, half = parts.rows, parts.columns, 0.5 * parts.buffer
    deep, m, n, k = np.maximum(float(p.k), r), float(p.m), float(p.n), float(p.k)
    cycles = np.minimum(np.ceil(m / r) * np.ceil(n / c), np.ceil(n / r) * np.ceil(m / c)) * deep
    layers = np.ceil(k / r)
    stationary = np.minimum(np.ceil(n / c) * np.maximum(m, r), np.ceil(m / c) * np.maximum(n, r)) * layers
    busy = p.batch * np.minimum(cycles, stationary) / parts.cores + 2 * r + c - 2
    fetched = _resident(p.a, half) + _resident(p.b, half) + _resident(p.c, half)
    moved = float(p.e) * p.batch * (k * (m + n) + m * n)
    return np.asarray(np.maximum(busy / parts.clock, np.maximum(moved / parts.global_rate, fetched / parts.hbm_rate)))


def only_written(p: Product, hbm_rate: Floats) -> Floats:
    """An empty product writes what it has."""
    return np.asarray((p.c[0] if p.batch * p.m * p.n else 0.0) / hbm_rate)


def doublings(start: int, end: int) -> list[int]:
    """start, 2 start, ... below ``end``, and ``end``."""
    found = []
    while start < end:
        found.append(start)
        start *= 2
    return [*found, end]


def deepest(least: Floats, most: float, room: Floats) -> Floats:
    """The greatest of least, 2 least, ... below ``most``, and ``most``, within ``room``; 0 where none is."""
    steps = np.floor(np.log2(np.maximum(room, 1e-300) / least))
    found = least * np.exp2(steps)
    found = np.where(found > room, found / 2, np.where(2 * found <= room, 2 * found, found))
    return np.asarray(np.where(room < least, 0.0, np.where(room >= most, most, found)))


def _shared_reads(p: Product, am: Floats, an: Floats, cores: int) -> Floats:
    """Least bytes read from the global buffer when gm x gn cores, powers of two, share what they read."""
    best, gm = np.full(am.shape, np.inf), 1
    while gm <= min(cores, FANOUT):
        gn = 1
        while 2 * gn * gm <= cores and gn < FANOUT:
            gn *= 2
        reads = float(p.e) * p.batch * p.k * (p.m * np.ceil(an / gn) + p.n * np.ceil(am / gm))
        best, gm = np.minimum(best, reads), 2 * gm
    return best


@dataclass(frozen=True, slots=True)
class Side:
    """What the core side depends on, of one part."""

    rows: int
    columns: int
    core_buffer: float
    core_rate: float
    clock: float
    lost: float


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Every tile mt x nt, and how many there are along either side."""

    mt: Floats
    nt: Floats
    am: Floats
    an: Floats


def _tiles(p: Product, side: Side) -> _Tiles:
    extents = [sorted({*doublings(side.rows, extent), *doublings(side.columns, extent)}) for extent in (p.m, p.n)]
    mt, nt = (grid.ravel() for grid in np.meshgrid(*(np.array(own, float) for own in extents), indexing="ij"))
    return _Tiles(mt, nt, np.ceil(p.m / mt), np.ceil(p.n / nt))


def _flows(p: Product, side: Side, t: _Tiles) -> Iterator["Flow"]:
    """Each dataflow: what lies on rows and on columns, the depth of slices that fit (0: none), whether sums stay."""
    r, c = float(side.rows), float(side.columns)
    shallow = np.minimum(r, p.k)
    for rows, columns in ((t.mt, t.nt), (t.nt, t.mt)):
        single = (rows <= r) & (columns <= c)
        room = (side.core_buffer - np.where(single, 0.0, SUM * t.mt * t.nt)) / (2.0 * p.e * (t.mt + t.nt))
        yield rows, columns, deepest(np.where(single, 1.0, shallow), float(p.k), room), True
    room = (side.core_buffer - SUM * t.mt * t.nt) / (2.0 * p.e * (t.mt + t.nt))
    deep = deepest(np.full(len(t.mt), shallow), float(p.k), room)
    yield t.mt, t.nt, deep, False
    yield t.nt, t.mt, deep, False


Flow = tuple[Floats, Floats, Floats, bool]
"""What lies on rows and on columns, the depth of slices, whether sums stay."""


def array_cycles(rows: int, columns: int, flow: Flow, kt: float) -> Floats:
    """Cycles of an array for its part of a tile of depth ``kt``."""
    streamed, held, deep, stay = flow
    r, c = float(rows), float(columns)
    if not stay:
        return np.asarray(np.ceil(kt / r) * np.ceil(held / c) * np.maximum(streamed, r))
    folds, slices = np.ceil(streamed / r) * np.ceil(held / c), np.maximum(np.minimum(deep, kt), 1.0)
    visits = np.ceil(kt / slices)
    several = folds * ((visits - 1) * slices + np.maximum(kt - (visits - 1) * slices, r))
    return np.where(folds == 1, max(kt, r), several)


def edge_bytes(rows: int, columns: int, e: float, flow: Flow, kt: float) -> Floats:
    """Bytes between an array and its buffer for the same."""
    streamed, held, deep, stay = flow
    r, c, sums = float(rows), float(columns), SUM * streamed * held
    if not stay:
        return np.asarray(e * kt * held + e * kt * streamed * np.ceil(held / c) + sums * np.ceil(kt / r))
    folds, visits = np.ceil(streamed / r) * np.ceil(held / c), np.ceil(kt / np.maximum(np.minimum(deep, kt), 1.0))
    moved = e * kt * (streamed * np.ceil(held / c) + held * np.ceil(streamed / r))
    return np.asarray(moved + sums * np.where(folds == 1, 1.0, visits))


def undominated(first: Floats, second: Floats) -> Front:
    """The points that no other is below in both."""
    least = second.min()
    near = first <= first[second == least].min()
    first, second = first[near], second[near]
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    keep = np.ones(len(first), bool)
    keep[1:] = second[1:] < np.minimum.accumulate(second)[:-1]
    return first[keep], second[keep]


def leading(first: Floats, second: Floats, rank: Floats) -> NDArray[np.int64]:
    """The places of the undominated points by ascending ``first``; of equal ones that of least rank."""
    order = np.lexsort((rank, second, first))
    low = second[order]
    keep = np.ones(len(order), bool)
    keep[1:] = low[1:] < np.minimum.accumulate(low)[:-1]
    return np.asarray(order[keep])


Moving = tuple[Floats, Floats, Floats, Floats]
"""Busy time, global bytes, bytes at edges and through ports of the undominated choices of a side."""


def fastest(p: Product, core: Moving, held: Front | None, width: float, hbm_rate: float) -> tuple[float, ...]:
    """Time, HBM, global, edge and port bytes of the best pair: of equal times the one with least of these, in order."""
    busy, moved, edge, port = core
    once = p.a[0] + p.b[0] + p.c[0]
    hbm, through, at = [np.maximum(moved, once)], [moved], [np.arange(len(busy))]
    for more, sums in zip(*held, strict=True) if held is not None else ():
        hbm.append(np.full(len(busy), more))
        through.append(moved + sums)
        at.append(at[0])
    h, g, i = np.concatenate(hbm), np.concatenate(through), np.concatenate(at)
    time = np.maximum(np.maximum(busy[i], g / width), h / hbm_rate)
    best = int(np.lexsort((busy[i], g, h, time))[0])
    return float(time[best]), float(h[best]), float(g[best]), float(edge[i[best]]), float(port[i[best]])


def core_fronts(p: Product, side: Side, counts: Sequence[int]) -> list[Front | None]:
    """For each number of cores the undominated (busy seconds, global bytes); None where no tile fits."""
    t = _tiles(p, side)
    blocks = np.ceil(t.mt / side.rows) * np.ceil(t.nt / side.columns)
    outputs = float(p.batch) * p.m * p.n
    tiles = float(p.batch) * t.am * t.an
    reads = [_shared_reads(p, t.am, t.an, cores) for cores in counts]
    busy: list[list[Floats]] = [[] for _ in counts]
    moved: list[list[Floats]] = [[] for _ in counts]
    for flow in _flows(p, side, t):
        for ks in SPLITS:
            if ks > p.k:
                break
            fits = (flow[2] > 0) if ks == 1 else (flow[2] > 0) & (tiles * (ks // 2) < ITEMS_A_CORE * max(counts))
            if not fits.any():
                break
            kt = float(-(-p.k // ks))
            cycles = array_cycles(side.rows, side.columns, flow, kt) + side.lost * blocks
            own = edge_bytes(side.rows, side.columns, float(p.e), flow, kt)
            writes = outputs * p.e + (0.0 if ks == 1 else 2 * SUM * ks * outputs)
            for at, cores in enumerate(counts):
                may = fits if ks == 1 else fits & (tiles * (ks // 2) < ITEMS_A_CORE * cores)
                if not may.any():
                    continue
                waves = np.ceil(tiles[may] * ks / cores)
                array = (waves * cycles[may] + (2 * side.rows + side.columns - 2)) / side.clock
                busy[at].append(np.maximum(array, waves * own[may] / side.core_rate))
                moved[at].append(reads[at][may] + writes)
    return [undominated(np.concatenate(b), np.concatenate(g)) if b else None for b, g in zip(busy, moved, strict=True)]


def global_front(p: Product, buffer: float) -> Front | None:
    """The undominated (HBM bytes, partial sums) of what may stay in the global buffer; None where nothing can."""
    hbm, sums = [], []
    for room, kept in ((buffer, False), (0.5 * buffer, True)):
        a, b, c = (0.0 if kept and need <= 0.5 * buffer else size for size, need in (p.a, p.b, p.c))
        e, mg, ng = float(p.e), *(np.array(doublings(1, extent), float) for extent in (p.m, p.n))
        for size, other, streamed, whole, again in ((mg, p.n, b, a, p.m), (ng, p.m, a, b, p.n)):
            ahead = np.where((size == again) & (p.batch == 1), 1.0, 2.0)
            fits = ahead * e * size * p.k + 2.0 * e * min(other, SLICE) * (p.k + size) <= room
            hbm.append((whole + streamed * np.ceil(again / size) + c)[fits])
            sums.append(np.zeros(int(fits.sum())))
        rows, columns = (grid.ravel() for grid in np.meshgrid(mg, ng, indexing="ij"))
        slices = (room - SUM * rows * columns) / (2.0 * e * (rows + columns))
        deep = deepest(np.ones(len(rows)), float(p.k), slices)
        rows, columns, deep = rows[deep > 0], columns[deep > 0], deep[deep > 0]
        hbm.append(a * np.ceil(p.n / columns) + b * np.ceil(p.m / rows) + c)
        sums.append(2.0 * SUM * p.batch * p.m * p.n * (np.ceil(p.k / deep) - 1))
    first, second = np.concatenate(hbm), np.concatenate(sums)
    return undominated(first, second) if len(first) else None


def _least(p: Product, core: Front, held: Front | None, global_rate: float, hbm_rate: float) -> float:
    """The least time over all pairs of the two sides."""
    busy, moved = core
    once = p.a[0] + p.b[0] + p.c[0]
    nothing = np.maximum(np.maximum(busy, moved / global_rate), np.maximum(moved, once) / hbm_rate)
    best = float(nothing.min())
    if held is not None:
        hbm, sums = held
        slow = np.maximum((moved[:, None] + sums[None, :]) / global_rate, (hbm / hbm_rate)[None, :])
        best = min(best, float(np.maximum(slow, busy[:, None]).min()))
    return best


def exact(p: Product, parts: TensorParts) -> Floats:
    """Seconds of the best mapping on every part; infinite where no tile fits."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    found = np.full(len(parts), np.inf)
    sides = np.stack([parts.rows, parts.columns, parts.core_buffer, parts.core_rate, parts.clock, parts.lost], axis=1)
    groups: dict[tuple[float, ...], list[int]] = {}
    for at, row in enumerate(sides.tolist()):
        groups.setdefault(tuple(row), []).append(at)
    held: dict[float, Front | None] = {}
    for row, own in groups.items():
        counts = sorted({int(parts.cores[at]) for at in own})
        fronts = core_fronts(p, Side(int(row[0]), int(row[1]), row[2], row[3], row[4], row[5]), counts)
        front_of = dict(zip(counts, fronts, strict=True))
        for at in own:
            core, buffer = front_of[int(parts.cores[at])], float(parts.buffer[at])
            if core is None:
                continue
            if buffer not in held:
                held[buffer] = global_front(p, buffer)
            found[at] = _least(p, core, held[buffer], float(parts.global_rate[at]), float(parts.hbm_rate[at]))
    return found

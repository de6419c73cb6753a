"""A matrix product on clusters of arrays (docs/silicon.md), in cycles: what no mapping beats, and all mappings.

N clusters of c arrays R x C, each behind a port of p bytes a cycle, with U bytes of operands and S of sums; a read of
the global buffer reaches F clusters. A tile is made by down x across = c arrays together (own = 1), or every array has
one (own = c); one array makes mt x nt of it, bm = min(m, down mt), bn = min(n, across nt).

    each   = array cycles + (0 if 8 bm bn own <= S else drain),    drain = 1000 + 2R + C - 2 + written / p
    busy   = max((waves each + drain) / 0.95, waves moved / (2R + 6C), waves max(asked, written) / p)

**No mapping beats** (:func:`least_cycles`) the arrays, as in :mod:`.products`, plus one drain; nor, with sums of at
most ``room`` elements, the ports: tiles cover the product, so every cluster asks for e batch k (m n / bn + n m / bm) /
N bytes with bm bn <= room. Room is S / 8 where the next tile starts at once, else S / 4 with a drain a wave.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .products import (
    ITEMS_A_CORE,
    SPLITS,
    SUM,
    Front,
    Moving,
    array_cycles,
    deepest,
    doublings,
    edge_bytes,
    fastest,
    global_front,
    leading,
    only_written,
    undominated,
)
from .works import Moved, Product

Floats = NDArray[np.float64]
LATENCY, SUSTAINED = 1000.0, 0.95
SIDE = ("clusters", "arrays", "rows", "columns", "operands", "sums", "port", "fan_out")


@dataclass(frozen=True, slots=True)
class ClusterParts:
    """One array a field: what the cycles of a product depend on, and the clock that makes them seconds."""

    clusters: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    operands: Floats
    sums: Floats
    port: Floats
    fan_out: Floats
    buffer: Floats
    width: Floats
    hbm_rate: Floats
    clock: Floats

    def __len__(self) -> int:
        return len(self.clusters)


def _fetched(moved: Moved, half: Floats) -> Floats:
    return np.asarray(moved[0] * (moved[1] > half))


def fetched_of(p: Product, parts: ClusterParts) -> Floats:
    """Bytes that half of the global buffer does not hold."""
    half = 0.5 * parts.buffer
    return np.asarray(_fetched(p.a, half) + _fetched(p.b, half) + _fetched(p.c, half))


def spread_of(room: Floats, m: float, n: float) -> Floats:
    """The least of 1 / bm + 1 / bn over bm <= m, bn <= n and bm bn <= room."""
    short, long = min(m, n), max(m, n)
    room = np.maximum(room, 1.0)
    tall = 1.0 / short + 1.0 / np.minimum(long, np.maximum(room / short, 1e-300))
    return np.where(room >= short * short, tall, 2.0 / np.sqrt(room))


def _least_tiles(p: Product, parts: ClusterParts) -> Floats:
    """Cycles of all arrays together that tiles of a product take."""
    r, c, m, n, k = parts.rows, parts.columns, float(p.m), float(p.n), float(p.k)
    outputs = np.minimum(np.ceil(m / r) * np.ceil(n / c), np.ceil(n / r) * np.ceil(m / c)) * np.maximum(k, r)
    held = np.minimum(np.ceil(n / c) * np.maximum(m, r), np.ceil(m / c) * np.maximum(n, r)) * np.ceil(k / r)
    return np.asarray(p.batch * np.minimum(outputs, held))


def least_cycles(p: Product, parts: ClusterParts) -> Floats:
    """Cycles that no mapping undercuts, on every part."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    m, n, k, e = float(p.m), float(p.n), float(p.k), float(p.e)
    outputs, units = p.batch * m * n, parts.clusters * parts.arrays
    work, drain = _least_tiles(p, parts) / units, LATENCY + 2 * parts.rows + parts.columns - 2
    once = parts.arrays * parts.rows * parts.columns
    best = np.full(len(parts), np.inf)
    for bytes_an_output, again in ((8.0, 0.0), (4.0, 1.0)):
        room = np.maximum(parts.sums / bytes_an_output, once if again else np.minimum(once, parts.sums / 8.0))
        asked = p.batch * e * k * m * n * spread_of(room, m, n) / parts.clusters
        waves = np.maximum(1.0, outputs / (np.minimum(room, outputs) * parts.clusters))
        busy = np.maximum((work + drain * (1.0 + again * waves)) / SUSTAINED, asked / parts.port)
        shared = np.minimum(parts.fan_out, parts.clusters)
        reads = p.batch * e * k * m * n * spread_of(room * shared, m, n)
        best = np.minimum(best, np.maximum(busy, (reads + e * outputs) / parts.width))
    best = np.maximum(best, e * outputs / parts.clusters / parts.port)
    return np.asarray(np.maximum(best, fetched_of(p, parts) / parts.hbm_rate))


@dataclass(frozen=True, slots=True)
class Side:
    """The cluster side of a part."""

    clusters: int
    arrays: int
    rows: int
    columns: int
    operands: float
    sums: float
    port: float
    fan_out: int


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Every way to cut a product into tiles: arrays down and across, tiles at once, extents, counts."""

    down: Floats
    across: Floats
    own: Floats
    mt: Floats
    nt: Floats
    bm: Floats
    bn: Floats
    am: Floats
    an: Floats

    def taken(self, index: NDArray[np.bool_]) -> "_Tiles":
        return _Tiles(*(getattr(self, name)[index] for name in self.__slots__))


def _tiles(p: Product, side: Side) -> _Tiles:
    ways = [(down, side.arrays // down, 1) for down in range(1, side.arrays + 1) if side.arrays % down == 0]
    if side.arrays > 1:
        ways.append((1, 1, side.arrays))
    pieces = []
    for down, across, own in ways:
        extents = [
            sorted({*doublings(side.rows, extent), *doublings(side.columns, extent)})
            for extent in (-(-p.m // down), -(-p.n // across))
        ]
        mt, nt = (grid.ravel() for grid in np.meshgrid(*(np.array(x, float) for x in extents), indexing="ij"))
        same = [np.full(len(mt), float(value)) for value in (down, across, own)]
        bm, bn = np.minimum(p.m, down * mt), np.minimum(p.n, across * nt)
        pieces.append((*same, mt, nt, bm, bn, np.ceil(p.m / (down * mt)), np.ceil(p.n / (across * nt))))
    return _Tiles(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def _shared(p: Product, t: _Tiles, most: int) -> Floats:
    """Least bytes read from the global buffer when gm x gn clusters, powers of two, share what they read."""
    best, gm = np.full(len(t.am), np.inf), 1
    while gm <= most:
        gn = 1
        while 2 * gn * gm <= most:
            gn *= 2
        reads = float(p.e) * p.batch * p.k * (p.m * np.ceil(t.an / gn) + p.n * np.ceil(t.am / gm))
        best, gm = np.minimum(best, reads), 2 * gm
    return best


def _flows(p: Product, side: Side, t: _Tiles) -> Iterator[tuple[Floats, Floats, Floats, bool]]:
    """Each dataflow: what lies on rows and columns, the depth of slices that fit (0: none), whether sums stay."""
    room = side.operands / (2.0 * p.e * t.own * (t.bm + t.bn))
    held = SUM * t.bm * t.bn * t.own <= side.sums
    shallow = float(min(side.rows, p.k))
    for rows, columns in ((t.mt, t.nt), (t.nt, t.mt)):
        single = (rows <= side.rows) & (columns <= side.columns)
        deep = deepest(np.where(single, 1.0, shallow), float(p.k), room)
        yield rows, columns, np.where(single | held, deep, 0.0), True
    deep = np.where(held, deepest(np.full(len(room), shallow), float(p.k), room), 0.0)
    yield t.mt, t.nt, deep, False
    yield t.nt, t.mt, deep, False


def _split_front(
    p: Product, side: Side, t: _Tiles, flow: tuple[Floats, Floats, Floats, bool], ks: int
) -> tuple[Floats, Floats]:
    """Busy cycles, and bytes written to the global buffer, of tiles whose k is cut into ``ks``."""
    kt, e, outputs = float(-(-p.k // ks)), float(p.e), float(p.batch) * p.m * p.n
    made = t.bm * t.bn * t.own
    written = made * (e if ks == 1 else 2 * SUM)
    drain = LATENCY + 2 * side.rows + side.columns - 2 + written / side.port
    cycles, moved = array_cycles(side.rows, side.columns, flow, kt), edge_bytes(side.rows, side.columns, e, flow, kt)
    waves = np.ceil(np.ceil(p.batch * t.am * t.an * ks / t.own) / side.clusters)
    array = (waves * (cycles + np.where(8.0 * made <= side.sums, 0.0, drain)) + drain) / SUSTAINED
    port = waves * np.maximum(e * kt * (t.bm + t.bn) * t.own, written) / side.port
    busy = np.maximum(np.maximum(array, waves * moved / (2.0 * side.rows + 6.0 * side.columns)), port)
    return busy, np.full(len(busy), outputs * e + (0.0 if ks == 1 else 2 * SUM * ks * outputs))


def cluster_front(p: Product, side: Side) -> Front | None:
    """The undominated (busy cycles, global bytes); None where no tile fits."""
    t = _tiles(p, side)
    reads, count = _shared(p, t, min(side.fan_out, side.clusters)), p.batch * t.am * t.an
    busy, moved = list[Floats](), list[Floats]()
    for rows, columns, deep, stay in _flows(p, side, t):
        fits = deep > 0
        for ks in SPLITS:
            may = fits if ks == 1 else fits & (count * (ks // 2) < ITEMS_A_CORE * side.clusters * t.own)
            if ks > p.k or not may.any():
                break
            own, written = _split_front(p, side, t.taken(may), (rows[may], columns[may], deep[may], stay), ks)
            busy.append(own)
            moved.append(reads[may] + written)
    return undominated(np.concatenate(busy), np.concatenate(moved)) if busy else None


def _moving(p: Product, side: Side) -> Moving | None:
    """The undominated choices with what each moves; None where no tile fits. Of equal ones the first: arrays as they
    are arranged, rows, columns, splits of k, dataflows."""
    t = _tiles(p, side)
    reads, count = _shared(p, t, min(side.fan_out, side.clusters)), p.batch * t.am * t.an
    places, e = np.arange(float(len(reads))), float(p.e)
    found: list[tuple[Floats, ...]] = []
    for number, (rows, columns, deep, stay) in enumerate(_flows(p, side, t)):
        for step, ks in enumerate(SPLITS):
            may = deep > 0 if ks == 1 else (deep > 0) & (count * (ks // 2) < ITEMS_A_CORE * side.clusters * t.own)
            if ks > p.k or not may.any():
                break
            flow, some, kt = (rows[may], columns[may], deep[may], stay), t.taken(may), float(-(-p.k // ks))
            busy, written = _split_front(p, side, some, flow, ks)
            items = count[may] * ks
            edge = items * (some.down * some.across) * edge_bytes(side.rows, side.columns, e, flow, kt)
            port = items * (e * kt * (some.bm + some.bn))
            rank = places[may] * 100.0 + step * 10 + number
            found.append((busy, reads[may] + written, edge, port, rank))
    if not found:
        return None
    busy, moved, edge, port, rank = (np.concatenate(column) for column in zip(*found, strict=True))
    best = leading(busy, moved, rank)
    return busy[best], moved[best], edge[best], port[best]


def best_bytes(p: Product, parts: ClusterParts) -> tuple[Floats, ...]:
    """Cycles, HBM, global, edge and port bytes of the fastest mapping on every part."""
    found = np.full((5, len(parts)), np.inf)
    if p.batch * p.m * p.n * p.k == 0:
        found[0], found[1:3], found[3:] = only_written(p, parts.hbm_rate), p.c[0] if p.batch * p.m * p.n else 0.0, 0.0
        return tuple(found)
    fronts: dict[tuple[float, ...], Moving | None] = {}
    held: dict[float, Front | None] = {}
    sides = np.stack([getattr(parts, name) for name in SIDE], axis=1)
    for at, row in enumerate(map(tuple, sides.tolist())):
        if row not in fronts:
            n, a, r, c, operands, sums, port, fan = row
            fronts[row] = _moving(p, Side(int(n), int(a), int(r), int(c), operands, sums, port, int(fan)))
        core, buffer = fronts[row], float(parts.buffer[at])
        if core is not None:
            if buffer not in held:
                held[buffer] = global_front(p, buffer)
            found[:, at] = fastest(p, core, held[buffer], float(parts.width[at]), float(parts.hbm_rate[at]))
    return tuple(found)


def least_bytes(p: Product, parts: ClusterParts) -> tuple[Floats, ...]:
    """Cycles, HBM, global, edge and port bytes that no mapping undercuts, on every part."""
    cycles = least_cycles(p, parts)
    if p.batch * p.m * p.n * p.k == 0:
        return best_bytes(p, parts)
    m, n, k, e = float(p.m), float(p.n), float(p.k), float(p.e)
    room = np.maximum(parts.sums / SUM, parts.arrays * parts.rows * parts.columns)
    each = p.batch * e * k * m * n
    moved = each * spread_of(room * np.minimum(parts.fan_out, parts.clusters), m, n) + e * p.batch * m * n
    edge = p.batch * m * n * k * (e / parts.columns + min(e, SUM) / parts.rows)
    return cycles, fetched_of(p, parts), moved, edge, each * spread_of(room, m, n)


def _least(p: Product, core: Front, held: Front | None, width: float, hbm_rate: float) -> float:
    """The least cycles over all pairs of the two sides."""
    busy, moved = core
    once = p.a[0] + p.b[0] + p.c[0]
    nothing = np.maximum(np.maximum(busy, moved / width), np.maximum(moved, once) / hbm_rate)
    best = float(nothing.min())
    if held is not None:
        hbm, sums = held
        slow = np.maximum((moved[:, None] + sums[None, :]) / width, (hbm / hbm_rate)[None, :])
        best = min(best, float(np.maximum(slow, busy[:, None]).min()))
    return best


def best_cycles(p: Product, parts: ClusterParts) -> Floats:
    """Cycles of the best mapping on every part; infinite where no tile fits."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    found = np.full(len(parts), np.inf)
    fronts: dict[tuple[float, ...], Front | None] = {}
    held: dict[float, Front | None] = {}
    sides = np.stack([getattr(parts, name) for name in SIDE], axis=1)
    for at, row in enumerate(map(tuple, sides.tolist())):
        if row not in fronts:
            n, a, r, c, operands, sums, port, fan = row
            fronts[row] = cluster_front(p, Side(int(n), int(a), int(r), int(c), operands, sums, port, int(fan)))
        core, buffer = fronts[row], float(parts.buffer[at])
        if core is None:
            continue
        if buffer not in held:
            held[buffer] = global_front(p, buffer)
        found[at] = _least(p, core, held[buffer], float(parts.width[at]), float(parts.hbm_rate[at]))
    return found

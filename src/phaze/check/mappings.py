"""All mappings of a matrix product on parts of chips (docs/cost.md, Products; parts:
:mod:`.products`).

The core side (tile, dataflow, split of k) gives pairs (busy, bytes from the global buffer), the
global side (what stays in it) pairs (bytes from HBM, partial sums). Time is the least over all
pairs of max(busy, (bytes + sums) / global rate, HBM bytes / HBM rate); only undominated pairs are
combined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .arrays import Flow, array_cycles, deepest, doublings, edge_bytes
from .products import SUM, TensorParts, only_written, written_bytes
from .works import Product

Floats = NDArray[np.float64]
SPLITS = (1, 2, 4, 8, 16, 32, 64)
"""The splits of k: docs/cost.md, Products."""
ITEMS_A_CORE = 8
"""k is split only while there are fewer items than this a core: docs/cost.md."""
SLICE = 64
"""Rows or columns of a streamed operand: docs/cost.md."""
Front = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Side:
    """What the core side depends on beside the number of cores, of one part."""

    arrays: int
    rows: int
    columns: int
    operands: float
    sums: float
    edge_rate: float
    port: float
    array_rate: float
    latency: float
    lost: float
    fan_out: float
    multicast: float

    @property
    def shares_buffer(self) -> bool:
        """Whether sums lie in the buffer of operands."""
        return self.sums == np.inf


@dataclass(frozen=True, slots=True)
class _Tiles:
    """Every way to cut a product into tiles: arrays down and across, tiles at once, extents,
    counts."""

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
    ways = [
        (down, side.arrays // down, 1)
        for down in range(1, side.arrays + 1)
        if side.arrays % down == 0
    ]
    if side.arrays > 1:
        ways.append((1, 1, side.arrays))
    pieces = []
    for down, across, own in ways:
        extents = []
        for extent in (-(-p.m // down), -(-p.n // across)):
            extents.append(
                np.array(
                    sorted({*doublings(side.rows, extent), *doublings(side.columns, extent)}), float
                )
            )
        mt, nt = (grid.ravel() for grid in np.meshgrid(*extents, indexing="ij"))
        same = [np.full(len(mt), float(value)) for value in (down, across, own)]
        bm, bn = np.minimum(p.m, down * mt), np.minimum(p.n, across * nt)
        pieces.append(
            (*same, mt, nt, bm, bn, np.ceil(p.m / (down * mt)), np.ceil(p.n / (across * nt)))
        )
    return _Tiles(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


def _shared_reads(p: Product, t: _Tiles, group: float, multicast: float) -> Floats:
    """Least bytes read from the global buffer when gm x gn cores, powers of two, share what they
    read."""
    best, gm = np.full(len(t.am), np.inf), 1
    while gm <= min(group, multicast):
        gn = 1
        while 2 * gn * gm <= group and 2 * gn <= multicast:
            gn *= 2
        reads = float(p.e) * p.batch * p.k * (p.m * np.ceil(t.an / gn) + p.n * np.ceil(t.am / gm))
        best, gm = np.minimum(best, reads), 2 * gm
    return best


def _flows(p: Product, side: Side, t: _Tiles) -> Iterator[Flow]:
    """Each dataflow: what lies on rows and on columns, the depth of slices that fit (0: none),
    whether sums stay."""
    slices, sums = 2.0 * p.e * t.own * (t.bm + t.bn), SUM * t.bm * t.bn * t.own
    alone = side.operands / slices
    room = (side.operands - (sums if side.shares_buffer else 0.0)) / slices
    shallow = np.full(len(room), float(min(side.rows, p.k)))
    several = np.where(sums <= side.sums, deepest(shallow, float(p.k), room), 0.0)
    for rows, columns in ((t.mt, t.nt), (t.nt, t.mt)):
        single = (rows <= side.rows) & (columns <= side.columns)
        yield (
            rows,
            columns,
            np.where(single, deepest(np.ones(len(room)), float(p.k), alone), several),
            True,
        )
    yield t.mt, t.nt, several, False
    yield t.nt, t.mt, several, False


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
    """The places of the undominated points by ascending ``first``; of equal ones that of least
    rank."""
    order = np.lexsort((rank, second, first))
    low = second[order]
    keep = np.ones(len(order), bool)
    keep[1:] = low[1:] < np.minimum.accumulate(low)[:-1]
    return np.asarray(order[keep])


Moving = tuple[Floats, Floats, Floats, Floats]
"""Busy time, global bytes, bytes at edges and through ports of the undominated choices of a
side."""


def fastest(
    p: Product, core: Moving, held: Front | None, width: float, hbm_rate: float
) -> tuple[float, ...]:
    """Time, HBM, global, edge and port bytes of the best pair: of equal times the one with least of
    these, in order."""
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
    return (
        float(time[best]),
        float(h[best]),
        float(g[best]),
        float(edge[i[best]]),
        float(port[i[best]]),
    )


@dataclass(frozen=True, slots=True)
class _Cut:
    """Tiles in one dataflow whose k is cut into ``ks``: what a wave takes, whatever the number of
    cores."""

    tiles: _Tiles
    ks: int
    cycles: Floats
    drain: Floats
    waits: Floats
    edge: Floats
    asked: Floats
    written: Floats

    def busy(self, p: Product, side: Side, cores: int) -> Floats:
        """Time that cores and ports are busy."""
        t = self.tiles
        waves = np.ceil(np.ceil(p.batch * t.am * t.an * self.ks / t.own) / cores)
        array = (waves * (self.cycles + self.waits) + self.drain) / side.array_rate
        port = waves * np.maximum(self.asked, self.written) / side.port
        return np.asarray(np.maximum(np.maximum(array, waves * self.edge / side.edge_rate), port))


def _cut(p: Product, side: Side, t: _Tiles, flow: Flow, ks: int) -> _Cut:
    kt, e = float(-(-p.k // ks)), float(p.e)
    made = t.bm * t.bn * t.own
    written = made * (e if ks == 1 else 2 * SUM)
    drain = side.latency + 2 * side.rows + side.columns - 2 + written / side.port
    lost = side.lost * np.ceil(t.mt / side.rows) * np.ceil(t.nt / side.columns)
    return _Cut(
        t, ks, array_cycles(side.rows, side.columns, flow, kt) + lost, drain,
        np.where(8.0 * made <= side.sums, 0.0, drain),
        edge_bytes(side.rows, side.columns, e, flow, kt),
        e * kt * (t.bm + t.bn) * t.own, written,
    )  # fmt: skip


def core_choices(p: Product, side: Side, counts: Sequence[int]) -> list[Moving | None]:
    """For each number of cores the undominated choices of the core side; None where no tile fits.
    Of equal ones the first: arrays as they are arranged, rows, columns, splits of k, dataflows."""
    t, outputs, e = _tiles(p, side), float(p.batch) * p.m * p.n, float(p.e)
    items, places = p.batch * t.am * t.an, np.arange(float(len(t.am)))
    reads = [_shared_reads(p, t, min(side.fan_out, cores), side.multicast) for cores in counts]
    found: list[list[tuple[Floats, ...]]] = [[] for _ in counts]
    for number, (rows, columns, deep, stay) in enumerate(_flows(p, side, t)):
        for step, ks in enumerate(SPLITS):
            few = items * (ks // 2) < ITEMS_A_CORE * max(counts) * t.own
            fits = deep > 0 if ks == 1 else (deep > 0) & few
            if ks > p.k or not fits.any():
                break
            cut = _cut(p, side, t.taken(fits), (rows[fits], columns[fits], deep[fits], stay), ks)
            own, kt = items[fits], float(-(-p.k // ks))
            written = outputs * e + (0.0 if ks == 1 else 2 * SUM * ks * outputs)
            edge = own * ks * (cut.tiles.down * cut.tiles.across) * cut.edge
            port = own * ks * (e * kt * (cut.tiles.bm + cut.tiles.bn))
            rank = places[fits] * 100.0 + step * 10 + number
            for at, cores in enumerate(counts):
                row = cut.busy(p, side, cores), reads[at][fits] + written, edge, port, rank
                may = (
                    np.ones(len(own), bool)
                    if ks == 1
                    else own * (ks // 2) < ITEMS_A_CORE * cores * cut.tiles.own
                )
                if may.any():
                    found[at].append(row if may.all() else tuple(column[may] for column in row))
    return [_undominated(own) if own else None for own in found]


def _undominated(rows: Sequence[tuple[Floats, ...]]) -> Moving:
    busy, moved, edge, port, rank = (np.concatenate(column) for column in zip(*rows, strict=True))
    near = np.flatnonzero(busy <= busy[moved == moved.min()].min())
    best = near[leading(busy[near], moved[near], rank[near])]
    return busy[best], moved[best], edge[best], port[best]


def global_front(p: Product, buffer: float) -> Front | None:
    """The undominated (HBM bytes, partial sums) of what may stay in the global buffer; None where
    nothing can."""
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


def _each(p: Product, parts: TensorParts) -> Iterator[tuple[int, Moving, Front | None]]:
    """Every part on which a tile fits, with the choices of both sides."""
    names = [field.name for field in fields(Side)]
    groups: dict[tuple[float, ...], list[int]] = {}
    for at, row in enumerate(np.stack([getattr(parts, name) for name in names], axis=1).tolist()):
        groups.setdefault(tuple(row), []).append(at)
    held: dict[float, Front | None] = {}
    for row, own in groups.items():
        counts = sorted({int(parts.cores[at]) for at in own})
        side = Side(int(row[0]), int(row[1]), int(row[2]), *row[3:])
        choices = dict(zip(counts, core_choices(p, side, counts), strict=True))
        for at in own:
            core, buffer = choices[int(parts.cores[at])], float(parts.buffer[at])
            if core is not None:
                if buffer not in held:
                    held[buffer] = global_front(p, buffer)
                yield at, core, held[buffer]


def _quickest(
    p: Product, core: Moving, held: Front | None, global_rate: float, hbm_rate: float
) -> float:
    """The least time over all pairs of the two sides."""
    busy, moved, _, _ = core
    once = p.a[0] + p.b[0] + p.c[0]
    nothing = np.maximum(np.maximum(busy, moved / global_rate), np.maximum(moved, once) / hbm_rate)
    best = float(nothing.min())
    if held is not None:
        hbm, sums = held
        slow = np.maximum((moved[:, None] + sums[None, :]) / global_rate, (hbm / hbm_rate)[None, :])
        best = min(best, float(np.maximum(slow, busy[:, None]).min()))
    return best


def exact(p: Product, parts: TensorParts) -> Floats:
    """Time of the best mapping on every part; infinite where no tile fits."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    found = np.full(len(parts), np.inf)
    for at, core, held in _each(p, parts):
        found[at] = _quickest(
            p, core, held, float(parts.global_rate[at]), float(parts.hbm_rate[at])
        )
    return found


def exact_bytes(p: Product, parts: TensorParts) -> tuple[Floats, ...]:
    """Time, HBM, global, edge and port bytes of the fastest mapping on every part."""
    if p.batch * p.m * p.n * p.k == 0:
        return written_bytes(p, parts)
    found = np.full((5, len(parts)), np.inf)
    for at, core, held in _each(p, parts):
        found[:, at] = fastest(
            p, core, held, float(parts.global_rate[at]), float(parts.hbm_rate[at])
        )
    return tuple(found)

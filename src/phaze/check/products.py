"""A matrix product on parts of chips (docs/cost.md, Products): what no mapping beats. All mappings:
:mod:`.mappings`.

A part has N cores of c arrays R x C, each core with U bytes of operands and S of sums behind a port
of p bytes a unit of time; a read of the global buffer reaches F cores, no more than ``multicast``
in one direction. A chip of cores has one array a core, sums in the buffer of operands (S infinite)
and an unlimited port. A tile is made by down x across = c arrays together (own = 1), or every array
has one (own = c); one array makes mt x nt of it, bm = min(m, down mt), bn = min(n, across nt).

    drain  = latency + 2R + C - 2 + written / p
    each   = array cycles + lost blocks + (0 if 8 bm bn own <= S else drain)
    busy   = max((waves each + drain) / array rate, waves moved / edge rate, waves max(asked,
           written) / p)

**No mapping beats** (:func:`least`): tiles cover the product and every visit of an array takes at
least its rows, so

    N c cycles >= batch min( ceil(m/R) ceil(n/C) max(k, R),  ceil(n/R) ceil(m/C) max(k, R),
                             ceil(k/R) ceil(n/C) max(m, R),  ceil(k/R) ceil(m/C) max(n, R) )

plus one drain; nor, with sums of at most ``room`` elements, the ports: every core asks for e batch
k (m n / bn + n m / bm) / N bytes with bm bn <= room. Room is S / 8 where the next tile starts at
once, else S / 4 with a drain a wave. Nor the operands that half of the global buffer does not hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .works import Moved, Product

Floats = NDArray[np.float64]
MULTICAST = 16.0
"""Cores of a chip of cores that one multicast reaches: docs/cost.md."""
SUM = 4.0
"""Bytes of a sum: fp32."""
LATENCY, SUSTAINED = 1000.0, 0.95
"""Cycles of a cluster's first and last bytes, and what its arrays sustain: docs/silicon.md."""
CORE: Mapping[str, float] = MappingProxyType({
    "arrays": 1.0, "sums": np.inf, "port": np.inf, "array_rate": 1.0, "latency": 0.0, "lost": 0.0,
    "fan_out": np.inf,
    "multicast": MULTICAST,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorParts:
    """One array a field; rates in bytes, or cycles of an array, a unit of time."""

    cores: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    operands: Floats
    sums: Floats
    edge_rate: Floats
    port: Floats
    array_rate: Floats
    latency: Floats
    lost: Floats
    fan_out: Floats
    multicast: Floats
    buffer: Floats
    global_rate: Floats
    hbm_rate: Floats

    def __len__(self) -> int:
        return len(self.cores)

    @property
    def group(self) -> Floats:
        """Cores that a read of the global buffer reaches."""
        return np.minimum(self.fan_out, self.cores)

    @property
    def visit(self) -> Floats:
        """The least rows that a visit of an array takes."""
        return self.rows

    @property
    def fill(self) -> Floats:
        """Cycles of an array's first and last results."""
        return self.latency + 2 * self.rows + self.columns - 2

    @property
    def ports(self) -> Floats:
        """Bytes a cycle through all ports."""
        return self.cores * self.port

    @property
    def most_rate(self) -> Floats | float:
        """Multiply-accumulates a cycle that are known to be exceeded nowhere."""
        return np.inf

    @property
    def units(self) -> Floats:
        """Multiply-accumulate units of all cores."""
        return self.cores * self.arrays * self.rows * self.columns


@dataclass(frozen=True, slots=True)
class BoxParts(TensorParts):
    """The parts of boxes of chips: the high corner, the least rows and columns of a chip, the most
    multiply-accumulates a cycle, and the most bytes a cycle through all ports."""

    least_rows: Floats
    least_columns: Floats
    unit_rate: Floats
    all_ports: Floats

    @property
    def visit(self) -> Floats:
        return self.least_rows

    @property
    def fill(self) -> Floats:
        return self.latency + 2 * self.least_rows + self.least_columns - 2

    @property
    def ports(self) -> Floats:
        return self.all_ports

    @property
    def most_rate(self) -> Floats:
        return self.unit_rate

    @property
    def units(self) -> Floats:
        return self.unit_rate / self.array_rate


def tensor_parts(
    cores: Floats, rows: Floats, columns: Floats, operands: Floats, buffer: Floats,
    global_rate: Floats,
    hbm_rate: Floats, **more: Floats | float,
) -> TensorParts:  # fmt: skip
    """Parts in cycles: rates are bytes a cycle. What is not given is that of a core: one array,
    sums in the buffer of operands, no port."""
    wide = {name: np.full(len(cores), more.get(name, usual)) for name, usual in CORE.items()}
    return TensorParts(
        cores=cores, rows=rows, columns=columns, operands=operands,
        edge_rate=2.0 * rows + 6.0 * columns,
        buffer=buffer, global_rate=global_rate, hbm_rate=hbm_rate, **wide,
    )  # fmt: skip


def only_written(p: Product, hbm_rate: Floats) -> Floats:
    """An empty product writes what it has."""
    return np.asarray((p.c[0] if p.batch * p.m * p.n else 0.0) / hbm_rate)


def _missing(moved: Moved, half: Floats) -> Floats:
    return np.asarray(moved[0] * (moved[1] > half))


def _fetched_of(p: Product, parts: TensorParts) -> Floats:
    """Bytes that half of the global buffer does not hold."""
    half = 0.5 * parts.buffer
    return np.asarray(_missing(p.a, half) + _missing(p.b, half) + _missing(p.c, half))


def _spread_of(room: Floats, m: float, n: float) -> Floats:
    """The least of 1 / bm + 1 / bn over bm <= m, bn <= n and bm bn <= room."""
    short, long = min(m, n), max(m, n)
    room = np.maximum(room, 1.0)
    tall = 1.0 / short + 1.0 / np.minimum(long, np.maximum(room / short, 1e-300))
    return np.where(room >= short * short, tall, 2.0 / np.sqrt(room))


def _least_tiles(p: Product, parts: TensorParts) -> Floats:
    """Cycles of all arrays together that tiles of a product take."""
    r, c, m, n, k = parts.rows, parts.columns, float(p.m), float(p.n), float(p.k)
    outputs = np.minimum(
        np.ceil(m / r) * np.ceil(n / c), np.ceil(n / r) * np.ceil(m / c)
    ) * np.maximum(k, parts.visit)
    weights = np.ceil(n / c) * np.maximum(m, parts.visit)
    inputs = np.ceil(m / c) * np.maximum(n, parts.visit)
    held = np.minimum(weights, inputs) * np.ceil(k / r)
    return np.asarray(p.batch * np.minimum(outputs, held))


def least(p: Product, parts: TensorParts) -> Floats:
    """Time that no mapping undercuts, on every part."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    m, n, e = float(p.m), float(p.n), float(p.e)
    outputs, macs = p.batch * m * n, p.batch * m * n * float(p.k)
    tiles = _least_tiles(p, parts) / (parts.cores * parts.arrays)
    work, once = (
        np.maximum(tiles, parts.array_rate * macs / parts.most_rate),
        parts.arrays * parts.rows * parts.columns,
    )
    best = np.full(len(parts), np.inf)
    for bytes_an_output, drains_a_wave in ((8.0, 0.0), (4.0, 1.0)):
        fitting = once if drains_a_wave else np.minimum(once, parts.sums / 8.0)
        room = np.maximum(parts.sums / bytes_an_output, fitting)
        waves = np.maximum(1.0, outputs / (np.minimum(room, outputs) * parts.cores))
        busy = (work + parts.fill * (1.0 + drains_a_wave * waves)) / parts.array_rate
        reads = e * macs * _spread_of(room * parts.group, m, n)
        asked = e * macs * _spread_of(room, m, n)
        slower = np.maximum(asked / parts.ports, (reads + e * outputs) / parts.global_rate)
        best = np.minimum(best, np.maximum(busy, slower))
        if np.isinf(parts.sums).all():
            break
    best = np.maximum(best, e * outputs / parts.ports)
    return np.asarray(np.maximum(best, _fetched_of(p, parts) / parts.hbm_rate))


def written_bytes(p: Product, parts: TensorParts) -> tuple[Floats, ...]:
    """Time, HBM, global, edge and port bytes of an empty product."""
    size = np.full(len(parts), p.c[0] if p.batch * p.m * p.n else 0.0)
    return only_written(p, parts.hbm_rate), size, size, 0.0 * size, 0.0 * size


def least_bytes(p: Product, parts: TensorParts) -> tuple[Floats, ...]:
    """Time, HBM, global, edge and port bytes that no mapping undercuts, on every part."""
    time = least(p, parts)
    if p.batch * p.m * p.n * p.k == 0:
        return written_bytes(p, parts)
    m, n, k, e = float(p.m), float(p.n), float(p.k), float(p.e)
    room = np.maximum(parts.sums / SUM, parts.arrays * parts.rows * parts.columns)
    each = p.batch * e * k * m * n
    moved = each * _spread_of(room * parts.group, m, n) + e * p.batch * m * n
    edge = p.batch * m * n * k * (e / parts.columns + min(e, SUM) / parts.rows)
    return time, _fetched_of(p, parts), moved, edge, each * _spread_of(room, m, n)

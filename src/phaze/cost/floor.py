"""What products take at least on every chip of a box: their floor between the corners of a range of
parts.

With T cores of c arrays R x C, S bytes for sums, groups of F cores that share reads, clock f in
which arrays work, W and H bandwidths of global buffer and HBM at the high corner, r and q rows and
columns at the low one, latency L, at most U units (multiply-accumulates a cycle) and P bytes of
ports in all, a product of macs = batch m n k takes

    cycles = batch min( ceil(m/R) ceil(n/C) max(k, r),  ceil(n/R) ceil(m/C) max(k, r),
                        ceil(k/R) ceil(n/C) max(m, r),  ceil(k/R) ceil(m/C) max(n, r) )
                                                        (:func:`least_cycles`)
             + k0 batch ceil(m/R) ceil(n/C)
    tile   = max(S / 4, c R C),   asked = e batch max( k (m + n), 2 k m n / sqrt(tile) )
    moved  = e batch max( k (m + n), 2 k m n / sqrt(tile F) ) + e batch m n
    time  >= max( (cycles / (T c) + L + 2 r + q - 2) / f,   macs / (U f) + L / f,
                  moved / W,  asked / P,  operands that half of the global buffer does not hold / H
                              )

as the arrays of all cores together visit every tile and every visit takes at least its rows
(:mod:`phaze.cost.gemm`); a tile has a x b outputs with a b <= tile, and 1 / a + 1 / b is least at a
= b. Sums in the buffer are no limit here: S is infinite. Bytes between buffers and arrays are at
least min(e, 4) macs / 2 times ``edges``, those of a unit and cycle.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.mapping import SUM_BYTES, Product
from phaze.cost.products import ProductCosts, TensorParts, distinct_rows

Floats = NDArray[np.float64]
ROUNDING = 1 - 1e-12
"""Square roots and quotients may be so much too large."""


@dataclass(frozen=True, slots=True)
class PartBox:
    """Ranges of tensor parts: the high corner, the least sides of arrays, and what all of a chip
    has at most."""

    high: TensorParts
    least_rows: Floats
    least_columns: Floats
    units: Floats
    ports: Floats
    edges: Floats


@dataclass(frozen=True, slots=True)
class _Sides:
    """What the floor of a product depends on but the units in all, of distinct ranges."""

    arrays: Floats
    rows: Floats
    columns: Floats
    least_rows: Floats
    least_columns: Floats
    latency_cycles: Floats
    array_hz: Floats
    block_cycles: Floats
    tile: Floats
    group: Floats
    ports: Floats
    global_bytes: Floats
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats


def unheld_bytes(p: Product, global_bytes: Floats) -> Floats:
    """Bytes of a product's operands that half of every global buffer does not hold."""
    half, fetched = 0.5 * global_bytes, np.zeros(len(global_bytes))
    for need, size in (
        (p.a_need_bytes, p.a_bytes),
        (p.b_need_bytes, p.b_bytes),
        (p.c_need_bytes, p.c_bytes),
    ):
        fetched += np.where(need <= half, 0.0, size)
    return fetched


def least_cycles(p: Product, rows: Floats, columns: Floats, least_rows: Floats) -> Floats:
    """Cycles of one array that no flow undercuts, of at most so many rows and columns and at least
    so many rows."""
    m, n, k = float(p.m), float(p.n), float(p.k)
    tall_m, tall_n, tall_k = (np.ceil(x / rows) for x in (m, n, k))
    wide_m, wide_n = (np.ceil(x / columns) for x in (m, n))
    stay = np.minimum(tall_m * wide_n, tall_n * wide_m) * np.maximum(k, least_rows)
    pass_by = tall_k * np.minimum(
        wide_n * np.maximum(m, least_rows), wide_m * np.maximum(n, least_rows)
    )
    return np.asarray(p.batch * np.minimum(stay, pass_by))


def _floor(p: Product, sides: _Sides) -> tuple[Floats, Floats, Floats, Floats]:
    """Time, HBM bytes, global bytes and bytes through ports that no mapping undercuts, whatever the
    units in all."""
    each = np.ones(len(sides.rows))
    if p.empty:
        written = p.c_bytes if p.batch * p.m * p.n else 0.0
        return written / sides.hbm_bytes_per_s, written * each, written * each, 0.0 * each
    fetched = unheld_bytes(p, sides.global_bytes)
    e, m, n, k = float(p.element_bytes) * p.batch, float(p.m), float(p.n), float(p.k)
    cycles = least_cycles(p, sides.rows, sides.columns, sides.least_rows)
    cycles = cycles + p.batch * sides.block_cycles * np.ceil(m / sides.rows) * np.ceil(
        n / sides.columns
    )
    drained = (
        cycles / sides.arrays
        + sides.latency_cycles
        + 2 * sides.least_rows
        + sides.least_columns
        - 2
    )
    busy = drained / sides.array_hz
    asked = e * np.maximum(k * (m + n), ROUNDING * 2.0 * k * m * n / np.sqrt(sides.tile))
    reads = e * np.maximum(
        k * (m + n), ROUNDING * 2.0 * k * m * n / np.sqrt(sides.tile * sides.group)
    )
    moved = reads + e * m * n
    memory = np.maximum(moved / sides.global_bytes_per_s, fetched / sides.hbm_bytes_per_s)
    return np.maximum(np.maximum(busy, asked / sides.ports), memory), fetched, moved, asked


def product_floors(products: Sequence[Product], box: PartBox) -> ProductCosts:
    """What every product takes at least on every chip of every range, in its unit of time."""
    high, arrays = box.high, box.high.cores * box.high.arrays
    array_hz = high.clock_hz * high.sustained_share
    macs = high.arrays * high.rows * high.columns
    columns = (
        arrays,
        high.rows,
        high.columns,
        box.least_rows,
        box.least_columns,
        high.latency_cycles,
        array_hz,
        high.block_cycles,
        np.maximum(high.sum_bytes / SUM_BYTES, macs),
        np.minimum(high.fan_out, high.cores),
        box.ports,
        high.global_bytes,
        high.global_bytes_per_s,
        high.hbm_bytes_per_s,
    )
    rows, of = distinct_rows(np.stack(columns, axis=1))
    sides = _Sides(*(np.ascontiguousarray(rows[:, column]) for column in range(rows.shape[1])))
    most_macs, latency = (
        np.minimum(box.units, high.cores * macs) * array_hz,
        high.latency_cycles / array_hz,
    )
    shape = (len(products), len(arrays))
    time, fetched, moved, asked, edges = (np.empty(shape) for _ in range(5))
    for row, p in enumerate(products):
        least, *least_bytes = _floor(p, sides)
        time[row] = np.maximum(least[of], 0.0 if p.empty else p.macs / most_macs + latency)
        fetched[row], moved[row], asked[row] = (values[of] for values in least_bytes)
        edges[row] = min(float(p.element_bytes), SUM_BYTES) * p.macs / 2.0 * box.edges
    return ProductCosts(time, fetched, moved, edges, np.zeros(shape, np.int8), asked)

r"""What works take at least on every chip of a box of chips of cores.

With rl, rh the least and most rows of the box, cl, ch columns, T cores, G global buffer, f clock, H and W bandwidths of
HBM and global buffer at the high corner and U units in all, a product takes on each of its chips at least

    cycles = batch min( ceil(m/rh) ceil(n/ch) max(k, rl),  ceil(n/rh) ceil(m/ch) max(k, rl),
                        ceil(k/rh) ceil(n/ch) max(m, rl),  ceil(k/rh) ceil(m/ch) max(n, rl) )
             + k0 batch ceil(m/rh) ceil(n/ch)
    time  >= max( (max(cycles / T, batch m n k / U) + 2 rl + cl - 2) / f,
                  e batch (k m + k n + m n) / W,   operands that half of G does not hold / H )

as tiles cover the product and every visit of an array takes at least its rows (:mod:`phaze.cost.gemm`). Vector work
only falls with every field, so it takes what it takes at the high corner, and with v lanes in all no less than its
elements over v and its bytes over 6 v a cycle. A core alone has 1/T of the memories, T being that of the low corner.
Joules are those of the bytes above with buffers of the low corner's sizes (:mod:`phaze.cost.energy`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipArrays
from phaze.cost.energy import energies
from phaze.cost.mapping import Product
from phaze.cost.parts import How
from phaze.cost.products import ProductCosts, distinct_rows
from phaze.cost.table import Column
from phaze.cost.vector import VectorCosts, VectorWork, sweep_vector, vector_parts_from
from phaze.cost.work import Work
from phaze.hardware.calibration import Constants
from phaze.hardware.silicon.design import EnergyModel
from phaze.search.boxes.box_grid import BoxGrid, Corners

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BoxChips:
    """Boxes for costs: both corners as arrays of chips, and the most units and lanes that all cores have."""

    low: ChipArrays
    high: ChipArrays
    units: Floats
    lanes: Floats

    def __len__(self) -> int:
        return len(self.units)

    def column(self, works: Sequence[Work], constants: Constants, how: How = "all_cores") -> Column:
        """Every work on every box, run one way: no chip of a box takes less, nor moves fewer bytes."""
        return box_column(works, self, constants, how)

    def joules(self, column: Column, work: int, table: EnergyModel) -> Floats:
        """Joules of one work that no chip of a box undercuts."""
        return energies(column, work, self.low, table).total()


def box_chips(view: BoxGrid, corners: Corners) -> BoxChips:
    """The virtual chips of boxes, for costs."""
    low = view.opened(corners.low, corners.area_mm2).core_arrays()
    high = view.opened(corners.high, corners.most_mm2).core_arrays()
    return BoxChips(low, high, corners.units, corners.lanes)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The distinct tensor sides of boxes, one array a field."""

    cores: Floats
    rows: Floats
    columns: Floats
    least_rows: Floats
    least_columns: Floats
    clock_hz: Floats
    global_bytes: Floats
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats


def _shares(boxes: BoxChips, how: How, tensor: bool) -> tuple[Floats, Floats]:
    """Cores of a kind that an operator has at most, and into how many shares the memories are cut at the least."""
    own = boxes.high.tensor_cores if tensor else boxes.high.vector_cores
    if how == "one_core":
        return np.ones(len(own)), boxes.low.tensor_cores if tensor else boxes.low.vector_cores
    both = np.minimum(boxes.high.tensor_cores, boxes.high.vector_cores)
    return (both if how == "paired" else own), np.ones(len(own))


def held_bytes(p: Product, global_bytes: Floats) -> Floats:
    """Bytes of a product's operands that half of every global buffer does not hold."""
    half, held = 0.5 * global_bytes, np.zeros(len(global_bytes))
    for need, size in ((p.a_need_bytes, p.a_bytes), (p.b_need_bytes, p.b_bytes), (p.c_need_bytes, p.c_bytes)):
        held += np.where(need <= half, 0.0, size)
    return held


def least_cycles(p: Product, rows: Floats, columns: Floats, least_rows: Floats) -> Floats:
    """Cycles of one array that no flow undercuts, of at most so many rows and columns and at least so many rows."""
    m, n, k = float(p.m), float(p.n), float(p.k)
    tall_m, tall_n, tall_k = (np.ceil(x / rows) for x in (m, n, k))
    wide_m, wide_n = (np.ceil(x / columns) for x in (m, n))
    stay = np.minimum(tall_m * wide_n, tall_n * wide_m) * np.maximum(k, least_rows)
    pass_by = tall_k * np.minimum(wide_n * np.maximum(m, least_rows), wide_m * np.maximum(n, least_rows))
    return np.asarray(p.batch * np.minimum(stay, pass_by))


def _product_costs(p: Product, parts: _Parts, lost: float) -> tuple[Floats, Floats, float]:
    """Seconds, HBM bytes and global bytes that no mapping undercuts, on every tensor side."""
    if p.empty:
        written = p.c_bytes if p.batch * p.m * p.n else 0.0
        return written / parts.hbm_bytes_per_s, np.full(len(parts.cores), written), written
    held, m, n, k = held_bytes(p, parts.global_bytes), float(p.m), float(p.n), float(p.k)
    cycles = least_cycles(p, parts.rows, parts.columns, parts.least_rows)
    cycles = cycles + p.batch * lost * np.ceil(m / parts.rows) * np.ceil(n / parts.columns)
    busy_s = (cycles / parts.cores + 2 * parts.least_rows + parts.least_columns - 2) / parts.clock_hz
    moved = float(p.element_bytes) * p.batch * (k * (m + n) + m * n)
    memory_s = np.maximum(moved / parts.global_bytes_per_s, held / parts.hbm_bytes_per_s)
    return np.maximum(busy_s, memory_s), held, moved


def numbered(works: Sequence[Work], constants: Constants) -> tuple[dict[Product, int], list[tuple[int, ...]]]:
    """The distinct products of works as arrays run them, and which of them each work has."""
    rows: dict[Product, int] = {}
    packed = [tuple(p.packed(constants.rates, constants.grouped_share) for p in work.products) for work in works]
    return rows, [tuple(rows.setdefault(p, len(rows)) for p in own) for own in packed]


def box_column(works: Sequence[Work], boxes: BoxChips, constants: Constants, how: How = "all_cores") -> Column:
    """Every work on every box, run one way: no chip of a box takes less, nor moves fewer bytes."""
    products, product_rows = numbered(works, constants)
    vectors: dict[VectorWork, int] = {}
    for work in works:
        if work.vector is not None:
            vectors.setdefault(work.vector, len(vectors))
    every = np.arange(len(boxes))
    return Column(
        works=tuple(works),
        how=how,
        constants=constants,
        products=_products(list(products), boxes, constants, how),
        product_rows=tuple(product_rows),
        tensor_part_of=every,
        vectors=_vectors(list(vectors), boxes, constants, how),
        vector_rows=tuple(-1 if work.vector is None else vectors[work.vector] for work in works),
        vector_part_of=every,
        peak_flops=2.0 * np.minimum(boxes.units, _most_units(boxes, how)) * boxes.high.clock_hz,
    )


def _most_units(boxes: BoxChips, how: How) -> Floats:
    return np.asarray(_shares(boxes, how, True)[0] * boxes.high.rows * boxes.high.columns)


def _products(products: Sequence[Product], boxes: BoxChips, constants: Constants, how: How) -> ProductCosts:
    cores, shares = _shares(boxes, how, True)
    high, low = boxes.high, boxes.low
    clock_hz = high.clock_hz * constants.matrix_share
    columns = (
        cores, high.rows, high.columns, low.rows, low.columns, clock_hz, high.global_bytes / shares,
        high.global_bytes_per_s / shares, high.hbm_bytes_per_s * constants.hbm_share / shares,
    )  # fmt: skip
    rows, of = distinct_rows(np.stack(columns, axis=1))
    parts = _Parts(*(np.ascontiguousarray(rows[:, at]) for at in range(rows.shape[1])))
    shape, per_second = (len(products), len(boxes)), np.minimum(boxes.units, _most_units(boxes, how)) * clock_hz
    time_s, hbm, moved = np.empty(shape), np.empty(shape), np.empty(shape)
    for at, p in enumerate(products):
        least_s, fetched, through = _product_costs(p, parts, constants.block_cycles)
        time_s[at] = np.maximum(least_s[of], p.macs / per_second)
        hbm[at], moved[at] = fetched[of], through
    nothing = np.zeros(shape)
    return ProductCosts(time_s, hbm, moved, nothing, np.zeros(shape, np.int8), nothing)


def _vectors(works: Sequence[VectorWork], boxes: BoxChips, constants: Constants, how: How) -> VectorCosts:
    cores, shares = _shares(boxes, how, False)
    high, kept = boxes.high, constants.kept_row_bytes
    columns = (
        cores,
        high.lanes,
        high.vector_buffer_bytes_per_s,
        0.5 * high.vector_buffer_bytes if kept is None else np.minimum(kept, 0.5 * high.vector_buffer_bytes),
        high.clock_hz,
        high.global_bytes / shares,
        high.global_bytes_per_s / shares,
        high.hbm_bytes_per_s * constants.vector_hbm_share / shares,
    )
    rows, of = distinct_rows(np.stack(columns, axis=1))
    found = sweep_vector(works, vector_parts_from(rows))
    in_all = np.minimum(boxes.lanes, cores * high.lanes) * high.clock_hz
    time_s = found.time_s[:, of]
    for at, work in enumerate(works):
        moved = sum(one.bytes for one in (*work.reads, *work.writes))
        time_s[at] = np.maximum(time_s[at], max(work.operations * work.elements, moved / 6.0) / in_all)
    some = [getattr(found, name)[:, of] for name in ("hbm_bytes", "global_bytes")]
    nothing = np.zeros((len(works), len(boxes)))
    return VectorCosts(time_s, nothing, nothing, nothing, nothing, *some)

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

from phaze.cost.energy import energies
from phaze.cost.mapping import Product
from phaze.cost.parts import ChipArrays, How
from phaze.cost.products import ProductCosts, distinct_rows
from phaze.cost.table import Column, CostTable
from phaze.cost.vector import VectorCosts, VectorWork, sweep_vector, vector_parts_from
from phaze.cost.work import Work
from phaze.evaluate.ruled_pass import WorkTimes
from phaze.hardware.calibration import Constants
from phaze.hardware.technology import EnergyTable
from phaze.schedule.rules import Rule
from phaze.search.boxes.box_grid import BoxGrid, Corners
from phaze.search.rank_graph import RankGraph

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


def box_chips(view: BoxGrid, corners: Corners) -> BoxChips:
    """The virtual chips of boxes, for costs."""
    low, high = (view.opened(own).arrays() for own in (corners.low, corners.high))
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


def _product_costs(p: Product, parts: _Parts, lost: float) -> tuple[Floats, Floats, float]:
    """Seconds, HBM bytes and global bytes that no mapping undercuts, on every tensor side."""
    half, held = 0.5 * parts.global_bytes, np.zeros(len(parts.cores))
    if p.empty:
        written = p.c_bytes if p.batch * p.m * p.n else 0.0
        return written / parts.hbm_bytes_per_s, np.full(len(half), written), written
    for need, size in ((p.a_need_bytes, p.a_bytes), (p.b_need_bytes, p.b_bytes), (p.c_need_bytes, p.c_bytes)):
        held += np.where(need <= half, 0.0, size)
    m, n, k = float(p.m), float(p.n), float(p.k)
    tall_m, tall_n, tall_k = (np.ceil(x / parts.rows) for x in (m, n, k))
    wide_m, wide_n = (np.ceil(x / parts.columns) for x in (m, n))
    stay = np.minimum(tall_m * wide_n, tall_n * wide_m) * np.maximum(k, parts.least_rows)
    pass_by = tall_k * np.minimum(wide_n * np.maximum(m, parts.least_rows), wide_m * np.maximum(n, parts.least_rows))
    cycles = p.batch * (np.minimum(stay, pass_by) + lost * tall_m * wide_n)
    busy_s = (cycles / parts.cores + 2 * parts.least_rows + parts.least_columns - 2) / parts.clock_hz
    moved = float(p.element_bytes) * p.batch * (k * (m + n) + m * n)
    memory_s = np.maximum(moved / parts.global_bytes_per_s, held / parts.hbm_bytes_per_s)
    return np.maximum(busy_s, memory_s), held, moved


def _numbered(works: Sequence[Work], constants: Constants) -> tuple[dict[Product, int], list[tuple[int, ...]]]:
    rows: dict[Product, int] = {}
    packed = [tuple(p.packed(constants.rates, constants.grouped_share) for p in work.products) for work in works]
    return rows, [tuple(rows.setdefault(p, len(rows)) for p in own) for own in packed]


def box_column(works: Sequence[Work], boxes: BoxChips, constants: Constants, how: How = "all_cores") -> Column:
    """Every work on every box, run one way: no chip of a box takes less, nor moves fewer bytes."""
    products, product_rows = _numbered(works, constants)
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
    return ProductCosts(time_s, hbm, moved, nothing, np.zeros(shape, np.int8))


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


def box_work_times(works: Sequence[Work], boxes: BoxChips, constants: Constants, rule: Rule) -> WorkTimes:
    """What works take at least on every box, as a schedule rule asks for it."""
    if not rule.one_core:
        spread = box_column(works, boxes, constants).times_s()
        return WorkTimes(spread, spread, np.broadcast_to(0.0, spread.shape))
    rows: dict[Work, int] = {}
    of = [rows.setdefault(work, len(rows)) for work in works]
    own = tuple(rows)
    fused = tuple(work if work.core == "both" else Work("none") for work in own)
    alone, every = box_column(own, boxes, constants, "one_core"), box_column(own, boxes, constants)
    table = CostTable(own, tuple(of), alone, every, box_column(fused, boxes, constants, "paired"))
    one_s, spread_s = alone.times_s(), np.stack([table.spread_s(row, rule.paired) for row in range(len(own))])
    hbm_s = np.zeros_like(one_s)
    if rule.hbm_shared:
        full = np.stack([table.hbm_s(row, boxes.high.hbm_bytes_per_s) for row in range(len(own))])
        hbm_s = np.minimum(np.minimum(one_s, spread_s), full)
    return WorkTimes(one_s[of], spread_s[of], hbm_s[of])


def box_layer_works(graph: RankGraph, boxes: BoxChips, constants: Constants) -> WorkTimes:
    """What the works of a graph's layers take at least on every box."""
    works = [work for layer in graph.layers for one in layer.passes for work in one.works]
    if not works:
        nothing = np.zeros((0, len(boxes)))
        return WorkTimes(nothing, nothing, nothing)
    return box_work_times(works, boxes, constants, graph.layers[0].rule)


def box_joules(graph: RankGraph, boxes: BoxChips, constants: Constants, table: EnergyTable) -> Floats:
    """Joules of both passes of every layer on one device that no chip of a box undercuts, [layers, boxes]."""
    works = list(
        dict.fromkeys(w for layer in graph.layers for one in (layer.forward, layer.backward) for w in one.works)
    )
    column, smallest = box_column(works, boxes, constants), boxes.low
    known = {
        work: energies(column, at, smallest, table, np.zeros(len(boxes))).total()
        for at, work in enumerate(works)
        if work.core not in ("none", "network")
    }
    found = np.zeros((len(graph.layers), len(boxes)))
    for kind, layer in enumerate(graph.layers):
        sent = (layer.forward.sent_bytes + layer.backward.sent_bytes) * table.link_j_per_byte
        found[kind] = sent + layer.accumulation_bytes * layer.parameters * table.hbm_j_per_byte
        for one in (layer.forward, layer.backward):
            for work in one.works:
                found[kind] += known.get(work, 0.0)
    return found

"""Products on many parts at once: arrays in, arrays out, each distinct part costed once.

A :class:`TensorParts` holds one row per part that differs; :func:`sweep_products` gives the cost of
every product on every row. :func:`map_product` gives one product's best mapping on one part with
everything in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost import gemm, kernels
from phaze.cost.core_kernels import CORE_CHOICES, CORE_COSTS, core_front
from phaze.cost.mapping import (
    FLOWS,
    ORDERS,
    CoreOption,
    GlobalOption,
    Product,
    ProductCost,
    TensorPart,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
WHOLE = ("cores", "rows", "columns", "arrays")
"""Fields of a part that are whole numbers."""


@dataclass(frozen=True, slots=True)
class TensorParts:
    """One array per field of :class:`phaze.cost.mapping.TensorPart`, all of one length."""

    cores: Integers
    rows: Integers
    columns: Integers
    buffer_bytes: Floats
    buffer_bytes_per_s: Floats
    clock_hz: Floats
    global_bytes: Floats
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats
    block_cycles: Floats
    arrays: Integers
    sum_bytes: Floats
    port_bytes_per_s: Floats
    latency_cycles: Floats
    fan_out: Floats
    multicast: Floats
    sustained_share: Floats
    units_per_s: Floats

    def __len__(self) -> int:
        return len(self.cores)

    def part(self, index: int) -> TensorPart:
        """One of them."""
        values = {f.name: getattr(self, f.name)[index].item() for f in fields(self)}
        return TensorPart(**values)


def _core_side(part: TensorPart | TensorParts) -> tuple[list[Any], list[Any]]:
    """What fronts of the core side depend on, in whole numbers and in others
    (:mod:`phaze.cost.core_kernels`)."""
    group = np.minimum(part.fan_out, part.cores)
    shape = [
        part.cores,
        part.arrays,
        part.rows,
        part.columns,
        group,
        np.minimum(part.multicast, group),
    ]
    return shape, [
        part.buffer_bytes,
        part.buffer_bytes_per_s,
        part.clock_hz * part.sustained_share,
        part.block_cycles,
        part.sum_bytes,
        part.port_bytes_per_s,
        part.latency_cycles,
    ]


def core_sides(parts: TensorParts) -> tuple[Integers, Floats, Integers]:
    """The distinct core sides, in whole numbers and in others, and which of them every part has:
    one front each."""
    shape, rates = _core_side(parts)
    sides, side_of = distinct_rows(np.stack([*shape, *rates], axis=1))
    return (
        sides[:, : len(shape)].astype(np.int64),
        np.ascontiguousarray(sides[:, len(shape) :]),
        side_of,
    )


def part_rows(**columns: Floats | float) -> Floats:
    """Parts as rows, one column a field of :class:`phaze.cost.mapping.TensorPart`; a field that is
    not given is that of a plain core."""
    of_a_core: dict[str, Any] = {f.name: f.default for f in fields(TensorPart)}
    values = [
        np.asarray(columns.get(name, default), dtype=np.float64)
        for name, default in of_a_core.items()
    ]
    return np.stack(np.broadcast_arrays(*values), axis=1)


def parts_from(rows: Floats) -> TensorParts:
    """The parts whose fields are the columns of ``rows``."""
    columns: dict[str, Any] = {
        f.name: np.ascontiguousarray(rows[:, i]) for i, f in enumerate(fields(TensorParts))
    }
    whole = {name: columns[name].astype(np.int64) for name in WHOLE}
    return TensorParts(**{**columns, **whole})


def parts_of(part: TensorPart) -> TensorParts:
    """One part as arrays of length one."""
    return parts_from(np.array([[getattr(part, f.name) for f in fields(part)]], dtype=np.float64))


@dataclass(frozen=True, slots=True)
class ProductCosts:
    """Arrays over (product, part): time without start-up, bytes at each level, what bounds (0
    array, 1 core buffer, 2 global buffer, 3 HBM). A part whose buffer holds no tile takes infinite
    time; an empty product takes none. ``core_bytes``: between buffers and arrays, ``port_bytes``:
    through the ports of cores."""

    time_s: Floats
    hbm_bytes: Floats
    global_bytes: Floats
    core_bytes: Floats
    bound: NDArray[np.int8]
    port_bytes: Floats


def product_columns(products: Sequence[Product]) -> tuple[Integers, Floats]:
    """Sizes, and bytes with what each operand needs to be held, as rows."""
    sizes = np.array([product_sizes(p) for p in products], dtype=np.int64)
    needs = [
        (p.a_bytes, p.b_bytes, p.c_bytes, p.a_need_bytes, p.b_need_bytes, p.c_need_bytes)
        for p in products
    ]
    return sizes.reshape(-1, 5), np.array(needs, dtype=np.float64).reshape(-1, 6)


def product_sizes(p: Product) -> tuple[int, ...]:
    """What fronts depend on: batch, m, n, k, bytes of an element."""
    return p.batch, p.m, p.n, p.k, p.element_bytes


def _write_only(p: Product, parts: TensorParts, costs: Floats) -> None:
    """A product with k = 0 writes zeros; with no output it does nothing."""
    written = p.c_bytes if p.batch * p.m * p.n else 0.0
    costs[:] = 0.0
    costs[:, 0] = written / parts.hbm_bytes_per_s
    costs[:, 1] = costs[:, 2] = written
    costs[:, 4] = 3.0


def distinct_rows(rows: Floats) -> tuple[Floats, Integers]:
    """The different rows, and for every row which of them it is (sorted by columns, exact)."""
    if not len(rows):
        return rows, np.empty(0, dtype=np.int64)
    # Columns that do not vary order nothing.
    varying = rows[:, (rows != rows[0]).any(axis=0)]
    order = np.lexsort(varying.T[::-1]) if varying.shape[1] else np.arange(len(rows))
    ordered = varying[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    of = np.empty(len(rows), dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    return rows[order[new]], of


def sweep_products(products: Sequence[Product], parts: TensorParts) -> ProductCosts:
    """The cost of every product on every part, in the part's unit of time."""
    costs = np.empty((len(products), len(parts), kernels.FOUND))
    full = sorted(
        (i for i, p in enumerate(products) if not p.empty), key=lambda i: product_sizes(products[i])
    )
    for i, p in enumerate(products):
        if p.empty:
            _write_only(p, parts, costs[i])
    if full and len(parts):
        shapes, rates, side_of = core_sides(parts)
        buffers, buffer_of = np.unique(parts.global_bytes, return_inverse=True)
        sizes, operands = product_columns([products[i] for i in full])
        result = np.empty((len(full), len(parts), kernels.FOUND))
        overflow = kernels.sweep(
            sizes, operands, shapes, rates, buffers, side_of, buffer_of.astype(np.int64),
            parts.global_bytes_per_s,
            parts.hbm_bytes_per_s, result,
        )  # fmt: skip
        if overflow:
            raise RuntimeError(f"{overflow} fronts of mappings outgrew {kernels.CAPACITY} points")
        costs[full] = result
    time, hbm, shared, core, bound, port = (costs[:, :, i] for i in range(kernels.FOUND))
    return ProductCosts(time, hbm, shared, core, bound.astype(np.int8), port)


def front_of(p: Product, part: TensorPart) -> tuple[Floats, Integers]:
    """The front of a product on a core side: its costs, and the choices that make them."""
    sizes, _ = product_columns([p])
    shape, rates = _core_side(part)
    costs, choices = np.empty((kernels.CAPACITY, CORE_COSTS)), _choices(CORE_CHOICES)
    count = core_front(
        sizes[0], np.array(shape, np.int64), np.array(rates, np.float64), costs, choices
    )
    if count < 0:
        raise RuntimeError(f"a front of mappings outgrew {kernels.CAPACITY} points")
    return costs[:count], choices[:count]


def map_product(p: Product, part: TensorPart) -> ProductCost:
    """The best mapping of one product, by the kernels: equal to :func:`phaze.cost.gemm.best`, and
    fast."""
    core, core_choices = front_of(p, part)
    sizes, operands = product_columns([p])
    chip, chip_choices = (
        np.empty((kernels.CAPACITY, kernels.CHIP_COSTS)),
        _choices(kernels.CHIP_CHOICES),
    )
    chips = kernels.global_front(
        sizes[0], operands[0], float(part.global_bytes), chip, chip_choices
    )
    costs = np.empty(kernels.FOUND)
    once = float(operands[0, 0] + operands[0, 1] + operands[0, 2])
    i, j = kernels.pick(
        len(core),
        core,
        chips,
        chip,
        once,
        float(part.global_bytes_per_s),
        float(part.hbm_bytes_per_s),
        costs,
    )
    if i < 0:
        raise gemm.no_tile(part)
    flow, down, across, teams, mt, nt, kc, ks, gm, gn = (int(x) for x in core_choices[i])
    _, moved, core_moved, array_s, core_s, port = (float(x) for x in core[i])
    best = CoreOption(
        FLOWS[flow], down, across, teams, mt, nt, kc, ks, gm, gn, array_s, core_s, core_moved, port,
        moved
    )  # fmt: skip
    side = GlobalOption("through", 0, 0, 0, False, float(costs[1]), 0.0)
    if j < chips:
        order, mg, ng, kg, resident = (int(x) for x in chip_choices[j])
        side = GlobalOption(
            ORDERS[order], mg, ng, kg, bool(resident), float(chip[j, 0]), float(chip[j, 1])
        )
    time_s, hbm, total = (float(x) for x in costs[:3])
    global_s, hbm_s = total / part.global_bytes_per_s, hbm / part.hbm_bytes_per_s
    return ProductCost(best, side, time_s, global_s, hbm_s, hbm, total, part.cores * best.teams)


def _choices(width: int) -> Integers:
    return np.empty((kernels.CAPACITY, width), dtype=np.int64)

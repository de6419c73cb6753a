"""Products on many parts at once: arrays in, arrays out, each distinct part costed once.

A :class:`TensorParts` holds one row per part that differs; :func:`sweep_products` gives the cost of every product on
every row. :func:`map_product` gives one product's best mapping on one part with everything in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from phaze.cost import gemm, kernels
from phaze.cost.mapping import FLOWS, ORDERS, CoreOption, GlobalOption, Product, ProductCost, TensorPart

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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

    def __len__(self) -> int:
        return len(self.cores)

    def stacked(self) -> Floats:
        """All fields as the columns of one array."""
        return np.stack([np.asarray(getattr(self, f.name), dtype=np.float64) for f in fields(self)], axis=1)


def parts_from(rows: Floats) -> TensorParts:
    """The parts whose fields are the columns of ``rows``."""
    cores, height, width = (rows[:, i].astype(np.int64) for i in range(3))
    return TensorParts(cores, height, width, *(np.ascontiguousarray(rows[:, i]) for i in range(3, rows.shape[1])))


def parts_of(part: TensorPart) -> TensorParts:
    """One part as arrays of length one."""
    return parts_from(np.array([[getattr(part, f.name) for f in fields(part)]], dtype=np.float64))


@dataclass(frozen=True, slots=True)
class ProductCosts:
    """Arrays over (product, part): seconds without start-up, bytes at each level, what bounds (0 array, 1 core buffer,
    2 global buffer, 3 HBM). A part whose buffer holds no tile takes infinite time; an empty product takes none.
    ``port_bytes``: through the ports of clusters."""

    time_s: Floats
    hbm_bytes: Floats
    global_bytes: Floats
    core_bytes: Floats
    bound: NDArray[np.int8]
    port_bytes: Floats | None = None


def product_columns(products: Sequence[Product]) -> tuple[Integers, Floats]:
    """Sizes, and bytes with what each operand needs to be held, as rows."""
    sizes = np.array([product_sizes(p) for p in products], dtype=np.int64)
    needs = [(p.a_bytes, p.b_bytes, p.c_bytes, p.a_need_bytes, p.b_need_bytes, p.c_need_bytes) for p in products]
    return sizes.reshape(-1, 5), np.array(needs, dtype=np.float64).reshape(-1, 6)


def product_sizes(p: Product) -> tuple[int, ...]:
    """What fronts depend on: batch, m, n, k, bytes of an element."""
    return p.batch, p.m, p.n, p.k, p.element_bytes


def _write_only(p: Product, parts: TensorParts, found: Floats) -> None:
    """A product with k = 0 writes zeros; with no output it does nothing."""
    written = p.c_bytes if p.batch * p.m * p.n else 0.0
    found[:, 0] = written / parts.hbm_bytes_per_s
    found[:, 1] = found[:, 2] = written
    found[:, 3], found[:, 4] = 0.0, 3.0


def distinct_rows(rows: Floats) -> tuple[Floats, Integers]:
    """The different rows, and for every row which of them it is (sorted by columns, exact)."""
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    of = np.empty(len(rows), dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    return ordered[new], of


def sweep_products(products: Sequence[Product], parts: TensorParts) -> ProductCosts:
    """The cost of every product on every part."""
    found = np.empty((len(products), len(parts), kernels.FOUND))
    full = sorted((i for i, p in enumerate(products) if not p.empty), key=lambda i: product_sizes(products[i]))
    for i, p in enumerate(products):
        if p.empty:
            _write_only(p, parts, found[i])
    if full and len(parts):
        rows = parts.stacked()
        sides, core_of = distinct_rows(rows[:, [0, 1, 2, 3, 4, 5, 9]])
        buffers, buffer_of = np.unique(parts.global_bytes, return_inverse=True)
        sizes, held = product_columns([products[i] for i in full])
        result = np.empty((len(full), len(parts), kernels.FOUND))
        overflow = kernels.sweep(
            sizes, held, sides[:, :3].astype(np.int64), np.ascontiguousarray(sides[:, 3:]), buffers,
            core_of, buffer_of.astype(np.int64), parts.global_bytes_per_s, parts.hbm_bytes_per_s, result,
        )  # fmt: skip
        if overflow:
            raise RuntimeError(f"{overflow} fronts of mappings outgrew {kernels.CAPACITY} points")
        found[full] = result
    return ProductCosts(found[:, :, 0], found[:, :, 1], found[:, :, 2], found[:, :, 3], found[:, :, 4].astype(np.int8))


def map_product(p: Product, part: TensorPart) -> ProductCost:
    """The best mapping of one product, found by the kernels: equal to :func:`phaze.cost.gemm.best`, and fast."""
    rows = parts_of(part)
    sizes, held = product_columns([p])
    core, core_choices = np.empty((kernels.CAPACITY, kernels.CORE_COSTS)), _choices(kernels.CORE_CHOICES)
    chip, chip_choices = np.empty((kernels.CAPACITY, kernels.CHIP_COSTS)), _choices(kernels.CHIP_CHOICES)
    shape = np.array([part.cores, part.rows, part.columns], dtype=np.int64)
    rates = np.array([part.buffer_bytes, part.buffer_bytes_per_s, part.clock_hz, part.block_cycles])
    cores = kernels.core_front(sizes[0], shape, rates, core, core_choices)
    chips = kernels.global_front(sizes[0], held[0], float(rows.global_bytes[0]), chip, chip_choices)
    found = np.empty(kernels.FOUND)
    once = float(held[0, 0] + held[0, 1] + held[0, 2])
    i, j = kernels.pick(
        cores, core, chips, chip, once, part.global_bytes_per_s, part.hbm_bytes_per_s, found
    )  # fmt: skip
    if i < 0:
        raise gemm.no_tile(part)
    flow, mt, nt, kc, ks, gm, gn = (int(x) for x in core_choices[i])
    _, moved, core_moved, array_s, core_s = (float(x) for x in core[i])
    best = CoreOption(FLOWS[flow], mt, nt, kc, ks, gm, gn, array_s, core_s, core_moved, moved)
    side = GlobalOption("through", 0, 0, 0, False, float(found[1]), 0.0)
    if j < chips:
        order, mg, ng, kg, resident = (int(x) for x in chip_choices[j])
        side = GlobalOption(ORDERS[order], mg, ng, kg, bool(resident), float(chip[j, 0]), float(chip[j, 1]))
    time_s, hbm, total, _, _ = (float(x) for x in found)
    return ProductCost(
        best, side, time_s, total / part.global_bytes_per_s, hbm / part.hbm_bytes_per_s, hbm, total
    )  # fmt: skip


def _choices(width: int) -> Integers:
    return np.empty((kernels.CAPACITY, width), dtype=np.int64)

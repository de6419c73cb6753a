"""Products on many parts of clusters at once: arrays in, arrays out, in cycles; each distinct cluster side costed once.

Chips that share a cluster side share its front whatever their clock, global buffer, width and HBM are; what one clock
changes is HBM's bytes a cycle, so a sweep over clocks costs picks only.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.clustered import gemm as cluster_gemm
from phaze.cost.clustered import kernels as cluster_kernels
from phaze.cost.clustered.mapping import ClusterCost, ClusterOption, ClusterPart
from phaze.cost.kernels import CAPACITY, CHIP_CHOICES, CHIP_COSTS, global_front, pick
from phaze.cost.mapping import FLOWS, ORDERS, GlobalOption, Product
from phaze.cost.products import distinct_rows, product_columns, product_sizes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
SIDE = (0, 1, 2, 3, 7)
"""Columns of a part that are whole numbers of the cluster side: clusters, arrays, rows, columns, fan-out."""
STORES = (4, 5, 6)
"""Columns of its operand buffer, registers for sums, and port."""


@dataclass(frozen=True, slots=True)
class ClusterCosts:
    """Arrays over (product, part): cycles without start-up, bytes at each level, what bounds (0 array, 1 core buffer,
    2 global buffer, 3 HBM). Where no tile fits, cycles are infinite; an empty product takes none."""

    cycles: Floats
    hbm_bytes: Floats
    global_bytes: Floats
    edge_bytes: Floats
    port_bytes: Floats
    bound: NDArray[np.int8]


def part_rows(parts: Sequence[ClusterPart]) -> Floats:
    """Parts as rows, one column a field of :class:`phaze.cost.clustered.mapping.ClusterPart`."""
    return np.array([astuple(part) for part in parts], dtype=np.float64).reshape(-1, 11)


def _write_only(p: Product, hbm: Floats, found: Floats) -> None:
    """A product with k = 0 writes zeros; with no output it does nothing."""
    written = p.c_bytes if p.batch * p.m * p.n else 0.0
    found[:] = 0.0
    found[:, 0], found[:, 1], found[:, 2], found[:, 4] = written / hbm, written, written, 3.0


def sweep_on_clusters(products: Sequence[Product], rows: Floats) -> ClusterCosts:
    """The cost of every product on every part of ``rows``."""
    found = np.empty((len(products), len(rows), cluster_kernels.CLUSTER_FOUND))
    full = sorted((i for i, p in enumerate(products) if not p.empty), key=lambda i: product_sizes(products[i]))
    for i, p in enumerate(products):
        if p.empty:
            _write_only(p, rows[:, 10], found[i])
    if full and len(rows):
        sides, core_of = distinct_rows(rows[:, [*SIDE, *STORES]])
        buffers, buffer_of = np.unique(rows[:, 8], return_inverse=True)
        sizes, held = product_columns([products[i] for i in full])
        result = np.empty((len(full), len(rows), cluster_kernels.CLUSTER_FOUND))
        overflow = cluster_kernels.cluster_sweep(
            sizes, held, sides[:, :5].astype(np.int64), np.ascontiguousarray(sides[:, 5:]), buffers, core_of,
            buffer_of.astype(np.int64), np.ascontiguousarray(rows[:, 9]), np.ascontiguousarray(rows[:, 10]), result,
        )  # fmt: skip
        if overflow:
            raise RuntimeError(f"{overflow} fronts of mappings outgrew {CAPACITY} points")
        found[full] = result
    by = [found[:, :, i] for i in range(cluster_kernels.CLUSTER_FOUND)]
    return ClusterCosts(by[0], by[1], by[2], by[3], by[5], by[4].astype(np.int8))


def front_on_clusters(p: Product, part: ClusterPart) -> tuple[Floats, Integers]:
    """The front of a product on a cluster side: its costs in cycles and bytes, and the choices that make them."""
    sizes, _ = product_columns([p])
    costs = np.empty((CAPACITY, cluster_kernels.CLUSTER_COSTS))
    choices = np.empty((CAPACITY, cluster_kernels.CLUSTER_CHOICES), dtype=np.int64)
    row = part_rows([part])[0]
    count = cluster_kernels.cluster_front(
        sizes[0], row[list(SIDE)].astype(np.int64), np.ascontiguousarray(row[list(STORES)]), costs, choices
    )
    if count < 0:
        raise RuntimeError(f"a front of mappings outgrew {CAPACITY} points")
    return costs[:count], choices[:count]


def map_on_clusters(p: Product, part: ClusterPart) -> ClusterCost:
    """The best mapping of one product, by the kernels: equal to :func:`phaze.cost.clustered.gemm.best`, and fast."""
    core, core_choices = front_on_clusters(p, part)
    sizes, held = product_columns([p])
    chip, chip_choices = np.empty((CAPACITY, CHIP_COSTS)), np.empty((CAPACITY, CHIP_CHOICES), dtype=np.int64)
    chips = global_front(sizes[0], held[0], part.global_bytes, chip, chip_choices)
    found = np.empty(cluster_kernels.CLUSTER_FOUND)
    once = float(held[0, 0] + held[0, 1] + held[0, 2])
    i, j = pick(len(core), core, chips, chip, once, part.width, part.hbm_bytes_per_cycle, found)
    if i < 0:
        raise cluster_gemm.no_tile(part)
    flow, down, across, own, mt, nt, kc, ks, gm, gn = (int(x) for x in core_choices[i])
    _, moved, edge, array, busy, port = (float(x) for x in core[i])
    best = ClusterOption(FLOWS[flow], down, across, own, mt, nt, kc, ks, gm, gn, array, busy, edge, port, moved)
    side = GlobalOption("through", 0, 0, 0, False, float(found[1]), 0.0)
    if j < chips:
        order, mg, ng, kg, resident = (int(x) for x in chip_choices[j])
        side = GlobalOption(ORDERS[order], mg, ng, kg, bool(resident), float(chip[j, 0]), float(chip[j, 1]))
    cycles, hbm, total = (float(x) for x in found[:3])
    return ClusterCost(best, side, cycles, total / part.width, hbm / part.hbm_bytes_per_cycle, hbm, total)

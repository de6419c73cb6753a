r"""What works take at least on every chip of a box of chips of clusters.

With N clusters of c arrays R x C, S bytes of registers, port p, width w, HBM H, clock f and the most
multiply-accumulates a second Uf of :mod:`phaze.search.boxes.cluster_grid`, lo and hi the corners, a product of
macs = batch m n k takes

    cycles = batch min( ceil(m/R) ceil(n/C) max(k, Rlo), ceil(n/R) ceil(m/C) max(k, Rlo),
                        ceil(k/R) ceil(n/C) max(m, Rlo), ceil(k/R) ceil(m/C) max(n, Rlo) )             R, C at hi
    tile   = max(S / 4, c R C),  reads = e batch max( k (m + n), 2 k m n / sqrt(tile min(F, N)) )      at hi
    time  >= max( (max(cycles / (N c f), macs / Uf) + (L + 2 Rlo + Clo - 2) / f) / 0.95,
                  (reads + e batch m n) / (w f),   e batch max( k (m + n), 2 k m n / sqrt(tile) ) / (most N p x f),
                  operands that half of the global buffer does not hold / H ) / software_share

as arrays of all clusters together visit every tile (:mod:`phaze.cost.gemm`), of a x b outputs with
a b <= tile, and 1 / a + 1 / b is least at a = b. Vector work only falls with every field but takes no less than its
elements over all lanes. A cluster alone has 1/N of the memories, N that of the low corner.

Joules: a b e macs / 2 bytes at the edges of arrays with b the bytes a unit and cycle (``edges``), the bytes above, and
the voltage of the slowest clock (:mod:`phaze.cost.energy`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ClusterSet
from phaze.cost.mapping import LATENCY_CYCLES, SUM_BYTES, SUSTAINED_SHARE, Product
from phaze.cost.parts import How
from phaze.cost.products import ProductCosts, distinct_rows
from phaze.cost.table import Column
from phaze.cost.vector import VectorCosts, VectorWork, sweep_vector, vector_parts_from
from phaze.cost.work import Work
from phaze.hardware.calibration import Constants
from phaze.hardware.silicon.design import EnergyModel, NodeEnergy
from phaze.search.boxes.box_costs import held_bytes, least_cycles, numbered
from phaze.search.boxes.cluster_grid import ClusterCorners, ClusterGrid

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Parts:
    """The distinct cluster sides of boxes, one array a field; ``arrays`` those of all clusters, ``ports`` likewise."""

    arrays: Floats
    rows: Floats
    columns: Floats
    least_rows: Floats
    least_columns: Floats
    tile: Floats
    group: Floats
    ports: Floats
    clock_hz: Floats
    unit_rate: Floats
    global_bytes: Floats
    width: Floats
    hbm_bytes_per_s: Floats


@dataclass(frozen=True, slots=True)
class ClusterBoxes:
    """Boxes for costs; ``high`` is a set of chips for schedules and placements."""

    view: ClusterGrid
    corners: ClusterCorners
    high: ClusterSet

    def __len__(self) -> int:
        return len(self.corners)

    def column(self, works: Sequence[Work], constants: Constants, how: How = "all_cores") -> Column:
        """Every work on every box, run one way: no chip of a box takes less, nor moves fewer bytes."""
        products, product_rows = numbered(works, constants)
        vectors: dict[VectorWork, int] = {}
        for work in works:
            if work.vector is not None:
                vectors.setdefault(work.vector, len(vectors))
        every, own = np.arange(len(self)), self.corners
        return Column(
            works=tuple(works),
            how=how,
            constants=constants,
            products=self._products(list(products), constants, how),
            product_rows=tuple(product_rows),
            tensor_part_of=every,
            vectors=self._vectors(list(vectors), constants, how),
            vector_rows=tuple(-1 if work.vector is None else vectors[work.vector] for work in works),
            vector_part_of=every,
            peak_flops=2.0 * (1.0 if how == "one_core" else own.high.clusters) * own.high.macs * own.high.clock_hz,
        )

    def _shares(self, how: How) -> tuple[Floats, Floats]:
        """Clusters that an operator has at most, and into how many shares the memories are cut at the least."""
        each = np.ones(len(self))
        return (each, self.corners.low.clusters) if how == "one_core" else (self.corners.high.clusters, each)

    def _parts(self, constants: Constants, how: How) -> tuple[_Parts, NDArray[np.int64]]:
        own, high, low, by = self.corners, self.corners.high, self.corners.low, self.view.factors
        clusters, shares = self._shares(how)
        alone = how == "one_core"
        # The most bytes that the port of one cluster passes: with the fewest clusters.
        ports = own.widest_port if alone else own.ports
        columns = (
            clusters * high.arrays, high.rows, high.columns, low.rows, low.columns,
            np.maximum(np.floor(high.register_bytes / 2.0) / SUM_BYTES, high.macs),
            np.minimum(high.fan_out, clusters), ports, own.held_hz,
            np.minimum(own.unit_rate, clusters * high.macs * own.held_hz), high.global_bytes / shares,
            high.width * by.shared / shares, high.hbm_bytes_per_s * by.hbm * constants.hbm_share / shares,
        )  # fmt: skip
        rows, of = distinct_rows(np.stack(columns, axis=1))
        return _Parts(*(np.ascontiguousarray(rows[:, at]) for at in range(rows.shape[1]))), of

    def _products(self, products: Sequence[Product], constants: Constants, how: How) -> ProductCosts:
        parts, of = self._parts(constants, how)
        shape = (len(products), len(self))
        time_s, hbm, moved, ports, edges = (np.empty(shape) for _ in range(5))
        for at, p in enumerate(products):
            least_s, fetched, through, asked = _product_costs(p, parts)
            time_s[at], hbm[at] = least_s[of] / constants.software_share, fetched[of]
            moved[at], ports[at] = through[of], asked[of]
            edges[at] = min(float(p.element_bytes), SUM_BYTES) * p.macs / 2.0 * self.corners.edges
        return ProductCosts(time_s, hbm, moved, edges, np.zeros(shape, np.int8), ports)

    def _vectors(self, works: Sequence[VectorWork], constants: Constants, how: How) -> VectorCosts:
        own, high, by = self.corners, self.corners.high, self.view.factors
        clusters, shares = self._shares(how)
        kept, hz = 0.5 * high.register_bytes, own.held_hz
        columns = (
            clusters, high.lanes, 6.0 * high.lanes * hz,
            kept if constants.kept_row_bytes is None else np.minimum(constants.kept_row_bytes, kept), hz,
            high.global_bytes / shares, high.width * by.shared * hz / shares,
            high.hbm_bytes_per_s * by.hbm * constants.vector_hbm_share / shares,
        )  # fmt: skip
        rows, of = distinct_rows(np.stack(columns, axis=1))
        found = sweep_vector(works, vector_parts_from(rows))
        time_s, in_all = found.time_s[:, of], np.minimum(own.lane_rate, clusters * high.lanes * hz)
        for at, work in enumerate(works):
            moved = sum(one.bytes for one in (*work.reads, *work.writes))
            time_s[at] = np.maximum(time_s[at], max(work.operations * work.elements, moved / 6.0) / in_all)
        some = [getattr(found, name)[:, of] for name in ("hbm_bytes", "global_bytes")]
        nothing = np.zeros((len(works), len(self)))
        return VectorCosts(time_s, nothing, nothing, nothing, nothing, *some)

    def joules(self, column: Column, work: int, table: EnergyModel) -> Floats:
        """Joules of one work that no chip of a box undercuts."""
        if not isinstance(table, NodeEnergy):
            raise AssertionError("chips of clusters have the energies of a node")
        node, own, done = table.node, self.corners, column.works[work]
        energy, low = node.energy, own.low
        square = node.voltage.at(own.least_hz) ** 2
        held_j = energy.core_buffer_j_per_byte(low.operand_bytes)
        inside_j = held_j + energy.edge_j + energy.wire_j * np.sqrt(own.cluster_mm2) / 2.0
        across_j = held_j + energy.wire_j * np.sqrt(own.area_mm2) / 2.0
        operations = 0.0 if done.vector is None else done.vector.operations * done.vector.elements
        hbm, vector_j = column.hbm_bytes(work), 2.0 * energy.core_buffer_j_per_byte(low.register_bytes) + across_j
        arrays = sum(p.macs for p in done.products) * energy.mac_j + column.core_bytes(work) * inside_j
        arrays = arrays + column.port_bytes(work) * across_j
        lanes = operations * energy.lane_j + column.vector_bytes(work) * vector_j
        shared = (column.global_bytes(work) + hbm) * energy.buffer.at(low.global_bytes)
        return np.asarray((square * (arrays + lanes + shared) + hbm * energy.hbm_j_per_byte) * (1 - 1e-9))


def cluster_boxes(view: ClusterGrid, corners: ClusterCorners) -> ClusterBoxes:
    """The virtual chips of boxes, for costs."""
    faster = replace(corners.high, hbm_bytes_per_s=corners.high.hbm_bytes_per_s * view.factors.hbm)
    return ClusterBoxes(view, corners, ClusterSet(faster, corners.held_hz, corners.area_mm2, corners.cluster_mm2))


def _product_costs(p: Product, parts: _Parts) -> tuple[Floats, Floats, Floats, Floats]:
    """Seconds, HBM bytes, global bytes and bytes through ports that no mapping undercuts, on every cluster side."""
    each = np.ones(len(parts.rows))
    if p.empty:
        written = p.c_bytes if p.batch * p.m * p.n else 0.0
        return written / parts.hbm_bytes_per_s, written * each, written * each, 0.0 * each
    held = held_bytes(p, parts.global_bytes)
    cycles = least_cycles(p, parts.rows, parts.columns, parts.least_rows)
    drain = LATENCY_CYCLES + 2 * parts.least_rows + parts.least_columns - 2
    busy_s = np.maximum(cycles / (parts.arrays * parts.clock_hz), p.macs / parts.unit_rate)
    busy_s = (busy_s + drain / parts.clock_hz) / SUSTAINED_SHARE
    e, m, n, k = float(p.element_bytes) * p.batch, float(p.m), float(p.n), float(p.k)
    asked = e * np.maximum(k * (m + n), 2.0 * k * m * n / np.sqrt(parts.tile))
    moved = e * np.maximum(k * (m + n), 2.0 * k * m * n / np.sqrt(parts.tile * parts.group)) + e * m * n
    on_chip = np.maximum(moved / parts.width, asked / parts.ports) / parts.clock_hz
    time_s = np.maximum(np.maximum(busy_s, on_chip), held / parts.hbm_bytes_per_s)
    return time_s * (1 - 1e-12), held, moved, asked

"""Boxes of chips of clusters as virtual chips, and what no product or vector work of any chip in them undercuts.

A product of macs = batch m n k, with R, C, N, c, S, w of the high corner, f the clock that no chip of the box exceeds:

    tiles  = batch min(ceil(m/R) ceil(n/C) max(k, least R), ..., the other flows alike)     cycles of all N c arrays
    room   = max(S / 4, c R C) outputs of a tile;  1/a + 1/b is the least over a b <= room, a <= m, b <= n
    time  >= (max(tiles / (N c f), macs / U f(U)) + (1000 + 2 least R + least C - 2) / f) / 0.95
             e macs (1/a + 1/b) / (all ports f),   (the same with room x clusters that share + e batch m n) / (w f)
             what half of the global buffer does not hold / HBM
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cluster_products import LATENCY, SUSTAINED, ClusterParts, fetched_of, spread_of
from .products import SUM, only_written
from .silicon import Clusters
from .vectors import VectorParts, vector_seconds
from .works import Lanes, Product

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClusterBoxes(Clusters):
    """Boxes as virtual chips: the high corner at the clock that no chip exceeds, least rows and columns, the most
    multiply-accumulates and lane operations a second, the most bytes a cycle through all ports."""

    least_rows: Floats
    least_columns: Floats
    unit_rate: Floats
    lane_rate: Floats
    ports: Floats

    def taken(self, index: NDArray[Any]) -> "ClusterBoxes":
        """The boxes of ``index``."""
        return ClusterBoxes(*(getattr(self, f.name)[index] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class BoxParts(ClusterParts):
    """What the bound of a product depends on."""

    least_rows: Floats
    least_columns: Floats
    unit_rate: Floats
    ports: Floats


def box_parts(boxes: ClusterBoxes, parts: ClusterParts) -> BoxParts:
    """The parts of boxes, from those of their high corners."""
    own = {f.name: getattr(parts, f.name) for f in fields(ClusterParts)}
    least = {"least_rows": boxes.least_rows, "least_columns": boxes.least_columns}
    return BoxParts(**own, **least, unit_rate=boxes.unit_rate, ports=boxes.ports)


def box_cycles(p: Product, parts: BoxParts) -> Floats:
    """Cycles at the clock of every box that no mapping on any of its chips undercuts."""
    if p.batch * p.m * p.n * p.k == 0:
        return only_written(p, parts.hbm_rate)
    r, c, m, n, k, e = parts.rows, parts.columns, float(p.m), float(p.n), float(p.k), float(p.e)
    tall, wide, deep = np.maximum(m, parts.least_rows), np.maximum(n, parts.least_rows), np.maximum(k, parts.least_rows)
    tiles = np.minimum(np.ceil(m / r) * np.ceil(n / c), np.ceil(n / r) * np.ceil(m / c)) * deep
    tiles = np.minimum(tiles, np.minimum(np.ceil(n / c) * tall, np.ceil(m / c) * wide) * np.ceil(k / r))
    macs, outputs = p.batch * m * n * k, p.batch * m * n
    busy = np.maximum(p.batch * tiles / (parts.clusters * parts.arrays), macs / parts.unit_rate * parts.clock)
    busy = (busy + LATENCY + 2 * parts.least_rows + parts.least_columns - 2) / SUSTAINED
    room = np.maximum(parts.sums / SUM, parts.arrays * r * c)
    shared = np.minimum(parts.fan_out, parts.clusters)
    asked, reads = e * macs * spread_of(room, m, n), e * macs * spread_of(room * shared, m, n)
    moved = np.maximum(asked / parts.ports, (reads + e * outputs) / parts.width)
    return np.asarray(np.maximum(np.maximum(busy, moved), fetched_of(p, parts) / parts.hbm_rate) * (1 - 1e-12))


def box_lanes(work: Lanes, parts: VectorParts, most: Floats) -> Floats:
    """Seconds that vector work takes at least on every box, with at most so many lane operations a second in all."""
    moved = sum(size for size, _ in (*work.reads, *work.writes))
    return np.maximum(vector_seconds(work, parts), max(work.operations * work.elements, moved / 6.0) / most)

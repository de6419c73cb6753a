"""Operators spread over whole chips, of clusters or of cores: seconds without one-core times (docs/silicon.md).

clusters   start-up + max(sum over products of cycles / clock / software share, vector work)
           vector work has all N clusters, fed at 6 bytes a lane and cycle; half of the registers keep a row
cores      start-up + max(sum of products, vector work), each with all cores of its kind
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .energy import Prices
from .mappings import exact, exact_bytes
from .operators import Constants, Costs, distinct
from .products import SUSTAINED, BoxParts, TensorParts, box_least, cluster_parts, least, least_bytes
from .reading import cover
from .silicon import Clusters
from .space import Chips
from .vectors import VectorParts, box_lanes, vector_bytes, vector_seconds
from .works import Lanes, Product, Work

Floats = NDArray[np.float64]
Seconds = Mapping[Work, Floats]


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


def _parts(chips: Clusters, constants: Constants, fan_out: int) -> TensorParts:
    """The clusters of chips, in cycles of their clocks."""
    found = cluster_parts(
        chips.clusters, chips.arrays, chips.rows, chips.columns, chips.operands, chips.sums, chips.port,
        np.full(len(chips), float(fan_out)), chips.global_buffer, chips.global_width,
        chips.hbm_bandwidth * constants.hbm_share / chips.clock,
    )  # fmt: skip
    if not isinstance(chips, ClusterBoxes):
        return found
    corner = {field.name: getattr(found, field.name) for field in fields(found)}
    return BoxParts(
        **corner,
        least_rows=chips.least_rows,
        least_columns=chips.least_columns,
        unit_rate=SUSTAINED * chips.unit_rate / chips.clock,
        ports=chips.ports,
    )


def _lanes(chips: Clusters, constants: Constants) -> VectorParts:
    return VectorParts(
        chips.clusters, chips.lanes, 6.0 * chips.lanes * chips.clock,
        np.minimum(constants.kept_row, 0.5 * chips.registers), chips.clock, chips.global_buffer,
        chips.global_width * chips.clock, chips.hbm_bandwidth * constants.vector_hbm_share,
    )  # fmt: skip


def _lane_seconds(work: Lanes, parts: VectorParts, chips: Clusters) -> Floats:
    return box_lanes(work, parts, chips.lane_rate) if isinstance(chips, ClusterBoxes) else vector_seconds(work, parts)


NOTHING = ("none", "network")
Bytes = tuple[Floats, ...]
"""Seconds of a product, then its HBM, global, edge and port bytes."""


def _vector_joules(lanes: Lanes, parts: VectorParts, prices: Prices) -> Floats:
    moved, fetched = vector_bytes(lanes, parts)
    each = prices.lane * (lanes.operations * lanes.elements) + prices.vector * moved
    return each + prices.shared * (moved + fetched) + prices.hbm * fetched


def _work(
    work: Work, products: list[Bytes], lanes: tuple[Floats, Floats] | None, start: float, prices: Prices | None
) -> tuple[Floats, Floats | None]:
    """Seconds and joules of a work from those of its products and its vector work."""
    seconds = sum((own[0] for own in products), np.zeros(1))
    if lanes is not None:
        seconds = np.maximum(seconds, lanes[0])
    if prices is None:
        return seconds + start, None
    joules = prices.mac * sum(float(p.batch) * p.m * p.n * p.k for p in work.products)
    for _, hbm, moved, edge, port in products:
        joules = joules + prices.edge * edge + prices.port * port + prices.shared * (moved + hbm) + prices.hbm * hbm
    return seconds + start, joules + (0.0 if lanes is None else lanes[1])


def spread_seconds(
    works: Iterable[Work], chips: Clusters | Chips, constants: Constants, fan_out: int, mapped: bool,
    prices: Prices | None = None,
) -> tuple[Seconds, Seconds]:  # fmt: skip
    """The seconds of distinct works on every chip, and with ``prices`` their joules; ``mapped``: products by their best
    mapping, else what none beats. Collectives and what no core runs take nothing here."""
    if not isinstance(chips, Clusters):
        cover(prices is None, "energy on chips of cores")
        costs = Costs(chips, constants, {}, mapped)
        own = {work: np.zeros(len(chips)) if work.core in NOTHING else costs.on_cores(work, "spread") for work in works}
        return own, {}
    whole, vector = _parts(chips, constants, fan_out), _lanes(chips, constants)
    names = [field.name for field in fields(whole)]
    columns, of = distinct([*(getattr(whole, name) for name in names), chips.clock])
    parts, clock = type(whole)(*columns[:-1]), columns[-1]

    def cost(p: Product) -> Bytes:
        if isinstance(parts, BoxParts):
            cover(prices is None and not mapped, "energy in boxes")
            return (box_least(p, parts),)
        if prices is None:
            return ((exact if mapped else least)(p, parts),)
        return (exact_bytes if mapped else least_bytes)(p, parts)

    peak = 2.0 * chips.clusters * chips.arrays * chips.rows * chips.columns
    peak = peak * (chips.clock if constants.rated is None else constants.rated)
    products, lanes = dict[Product, Bytes](), dict[Lanes, tuple[Floats, Floats]]()
    seconds, joules = dict[Work, Floats](), dict[Work, Floats]()
    nothing = np.zeros(len(chips))
    for work in dict.fromkeys(works):
        if work.core in NOTHING:
            seconds[work] = joules[work] = nothing
            continue
        packed = [constants.packed(p) for p in work.products]
        for p in packed:
            if p not in products:
                cycles, *moved = cost(p)
                products[p] = tuple(each[of] for each in (cycles / clock / constants.software, *moved))
        if work.lanes is not None and work.lanes not in lanes:
            spent = nothing if prices is None else _vector_joules(work.lanes, vector, prices)
            lanes[work.lanes] = _lane_seconds(work.lanes, vector, chips), spent
        start = constants.vector_start_up if work.core == "vector" else constants.start_up
        beside = None if work.lanes is None else lanes[work.lanes]
        taken, spent_j = _work(work, [products[p] for p in packed], beside, start, prices)
        if work.kernel is not None and constants.kernels is not None:
            taken = np.asarray(constants.kernels.seconds(work.kernel, peak))
        seconds[work] = taken + nothing
        joules[work] = nothing if spent_j is None else spent_j
    return seconds, joules

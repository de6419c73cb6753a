"""Operators spread over whole chips, of clusters or of cores: seconds without one-core times (docs/silicon.md).

clusters   start-up + max(sum over products of cycles / clock / software share, vector work)
           vector work has all N clusters, fed at 6 bytes a lane and cycle; half of the registers keep a row
cores      start-up + max(sum of products, vector work), each with all cores of its kind
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from .cluster_box import BoxParts, ClusterBoxes, box_cycles, box_lanes, box_parts
from .cluster_products import ClusterParts, best_bytes, best_cycles, least_bytes, least_cycles
from .energy import Prices
from .operators import Constants, Costs, distinct
from .reading import cover
from .silicon import Clusters
from .space import Chips
from .vectors import VectorParts, vector_bytes, vector_seconds
from .works import Lanes, Product, Work

Floats = NDArray[np.float64]
Seconds = Mapping[Work, Floats]


def _parts(chips: Clusters, constants: Constants, fan_out: int) -> ClusterParts:
    found = ClusterParts(
        chips.clusters, chips.arrays, chips.rows, chips.columns, chips.operands, chips.sums, chips.port,
        np.full(len(chips), float(fan_out)), chips.global_buffer, chips.global_width,
        chips.hbm_bandwidth * constants.hbm_share / chips.clock, chips.clock,
    )  # fmt: skip
    return box_parts(chips, found) if isinstance(chips, ClusterBoxes) else found


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
    columns, of = distinct([getattr(whole, f.name) for f in fields(whole)])
    parts = type(whole)(*columns)

    def cost(p: Product) -> Bytes:
        if isinstance(parts, BoxParts):
            cover(prices is None and not mapped, "energy in boxes")
            return (box_cycles(p, parts),)
        if prices is None:
            return ((best_cycles if mapped else least_cycles)(p, parts),)
        return (best_bytes if mapped else least_bytes)(p, parts)

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
                products[p] = tuple(each[of] for each in (cycles / parts.clock / constants.software, *moved))
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

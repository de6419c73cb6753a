"""Operators spread over whole chips, of clusters or of cores: seconds without one-core times (docs/silicon.md).

clusters   start-up + max(sum over products of cycles / clock / software share, vector work)
           vector work has all N clusters, fed at 6 bytes a lane and cycle; half of the registers keep a row
cores      start-up + max(sum of products, vector work), each with all cores of its kind
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cluster_products import ClusterParts, best_cycles, least_cycles
from .operators import Constants, Costs, distinct
from .silicon import Clusters
from .space import Chips
from .vectors import VectorParts, vector_seconds
from .works import Lanes, Product, Work

Floats = NDArray[np.float64]
Seconds = Mapping[Work, Floats]


def _parts(chips: Clusters, constants: Constants, fan_out: int) -> ClusterParts:
    return ClusterParts(
        chips.clusters, chips.arrays, chips.rows, chips.columns, chips.operands, chips.sums, chips.port,
        np.full(len(chips), float(fan_out)), chips.global_buffer, chips.global_width,
        chips.hbm_bandwidth * constants.hbm_share / chips.clock, chips.clock,
    )  # fmt: skip


def _lanes(chips: Clusters, constants: Constants) -> VectorParts:
    return VectorParts(
        chips.clusters, chips.lanes, 6.0 * chips.lanes * chips.clock,
        np.minimum(constants.kept_row, 0.5 * chips.registers), chips.clock, chips.global_buffer,
        chips.global_width * chips.clock, chips.hbm_bandwidth * constants.vector_hbm_share,
    )  # fmt: skip


def _on_clusters(works: Iterable[Work], chips: Clusters, constants: Constants, fan_out: int, mapped: bool) -> Seconds:
    cycles: Callable[[Product, ClusterParts], Floats] = best_cycles if mapped else least_cycles
    whole, vector = _parts(chips, constants, fan_out), _lanes(chips, constants)
    columns, of = distinct([getattr(whole, f.name) for f in fields(whole)])
    parts = ClusterParts(*columns)
    products, lanes, found = dict[Product, Floats](), dict[Lanes, Floats](), dict[Work, Floats]()
    peak = 2.0 * chips.clusters * chips.arrays * chips.rows * chips.columns
    peak = peak * (chips.clock if constants.rated is None else constants.rated)
    for work in works:
        if work.kernel is not None and constants.kernels is not None:
            found[work] = np.asarray(constants.kernels.seconds(work.kernel, peak))
            continue
        total = np.zeros(len(parts))
        for p in map(constants.packed, work.products):
            if p not in products:
                products[p] = cycles(p, parts) / parts.clock / constants.software
            total = total + products[p]
        seconds = total[of]
        if work.lanes is not None:
            if work.lanes not in lanes:
                lanes[work.lanes] = vector_seconds(work.lanes, vector)
            seconds = np.maximum(seconds, lanes[work.lanes])
        found[work] = seconds + (constants.vector_start_up if work.core == "vector" else constants.start_up)
    return found


def spread_seconds(
    works: Iterable[Work], chips: Clusters | Chips, constants: Constants, fan_out: int, mapped: bool
) -> Seconds:
    """The seconds of distinct works on every chip; ``mapped``: products by their best mapping, else what none beats.
    Collectives and what no core runs take nothing here."""
    distinct_works = dict.fromkeys(works)
    run = [work for work in distinct_works if work.core not in ("none", "network")]
    nothing: dict[Work, Floats] = {
        work: np.zeros(len(chips)) for work in distinct_works if work.core in ("none", "network")
    }
    if isinstance(chips, Clusters):
        return {**nothing, **_on_clusters(run, chips, constants, fan_out, mapped)}
    level: dict[str, Any] = {}
    costs = Costs(chips, constants, level, mapped)
    return {**nothing, **{work: costs.on_cores(work, "spread") for work in run}}

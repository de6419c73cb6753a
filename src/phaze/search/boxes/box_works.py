"""What the works of a graph take at least on every chip of boxes, under any schedule rule: seconds
and joules."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.cost.table import CostTable
from phaze.cost.work import Work
from phaze.evaluate.lowered_pass import WorkTimes
from phaze.hardware.calibration import Constants
from phaze.hardware.technology import Technology
from phaze.schedule.rules import Rule
from phaze.search.boxes.box_costs import BoxChips
from phaze.search.rank_graph import RankGraph

Floats = NDArray[np.float64]


def box_work_times(
    works: Sequence[Work], boxes: BoxChips, constants: Constants, rule: Rule
) -> WorkTimes:
    """As :func:`phaze.evaluate.lowered_pass.work_times`, of boxes."""
    if not rule.one_core:
        spread = boxes.column(works, constants).times_s()
        return WorkTimes(spread, spread, np.broadcast_to(0.0, spread.shape))
    rows: dict[Work, int] = {}
    of = [rows.setdefault(work, len(rows)) for work in works]
    distinct = tuple(rows)
    fused = tuple(work if work.core == "both" else Work("none") for work in distinct)
    alone, every = boxes.column(distinct, constants, "one_core"), boxes.column(distinct, constants)
    table = CostTable(distinct, tuple(of), alone, every, boxes.column(fused, constants, "paired"))
    one_s, spread_s = (
        alone.times_s(),
        np.stack([table.spread_s(row, rule.paired) for row in range(len(distinct))]),
    )
    hbm_s = np.zeros_like(one_s)
    if rule.hbm_shared:
        full = np.stack(
            [table.hbm_s(row, boxes.high.hbm_bytes_per_s) for row in range(len(distinct))]
        )
        hbm_s = np.minimum(np.minimum(one_s, spread_s), full)
    return WorkTimes(one_s[of], spread_s[of], hbm_s[of])


def box_layer_works(graph: RankGraph, boxes: BoxChips, constants: Constants) -> WorkTimes:
    """What the works of a graph's layers take at least on every box."""
    works = [work for layer in graph.layers for lowered in layer.passes for work in lowered.works]
    if not works:
        nothing = np.zeros((0, len(boxes)))
        return WorkTimes(nothing, nothing, nothing)
    return box_work_times(works, boxes, constants, graph.layers[0].rule)


def box_joules(
    graph: RankGraph, boxes: BoxChips, constants: Constants, table: Technology
) -> Floats:
    """Joules of both passes of every layer on one device that no chip of a box undercuts, [layers,
    boxes]."""
    works = list(
        dict.fromkeys(
            w
            for layer in graph.layers
            for lowered in (layer.forward, layer.backward)
            for w in lowered.works
        )
    )
    column = boxes.column(works, constants)
    work_joules = {
        work: boxes.joules(column, row, table)
        for row, work in enumerate(works)
        if work.core not in ("none", "network")
    }
    joules = np.zeros((len(graph.layers), len(boxes)))
    for kind, layer in enumerate(graph.layers):
        sent = (layer.forward.sent_bytes + layer.backward.sent_bytes) * table.sent_j_per_byte
        joules[kind] = (
            sent + layer.accumulation_bytes * layer.parameters * table.energy.hbm_j_per_byte
        )
        for lowered in (layer.forward, layer.backward):
            for work in lowered.works:
                joules[kind] += work_joules.get(work, 0.0)
    return joules

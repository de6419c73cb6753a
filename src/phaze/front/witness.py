"""``certificate.json`` of a front (``phaze.certificate/1``): its designs, each with what shows that
it can be had.

    problem, graphs, cost_model, fusion, multipliers   as in that of a search
                                                       (:mod:`phaze.search.witness`)
    gap        in metrics of a run: the one that was requested, or what a front that was stopped has
               shown
    limits     of metrics of a run of several models, relative to no baseline, where models count
               relative to one
    bests      as in that of a search, by metric of a run
    front      designs: values in the order of the metrics (seconds of a batch for throughput), chip
               by axis values, memory, and of each model its plan and schedules

Nothing of the units that were closed is in it: :mod:`phaze.check` proves every one of them anew.
"""

from collections.abc import Sequence
from typing import Any

from phaze.front.answer import StatedDesign
from phaze.front.measures import batch_of
from phaze.front.metrics import RequestedMetrics
from phaze.front.state import FrontState
from phaze.placement.answer import document_of
from phaze.schedule.problem import Schedule
from phaze.search.configurations import works_known
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.objective import Scale
from phaze.search.question_files import Papers
from phaze.search.reference import layers_on
from phaze.search.task import SearchJob
from phaze.search.witness import (
    baseline_score,
    bests_of,
    chip_of,
    heading,
    model_witness,
    needs_schedules,
    proved_score,
    tables_of,
)

Witness = dict[str, Any] | None


def proved_values(
    metrics: RequestedMetrics, scales: Sequence[Scale], design: StatedDesign
) -> list[float]:
    """A design's metrics as they are proved."""
    values = [float(value) for value in design.values[: len(metrics.of)]]
    seconds = [plan.plan.batch_s for _, plan in design.plans]
    for place, metric in enumerate(metrics.of):
        if metric.kind is not None:
            scale = scales[metrics.runs.index(metric)]
            values[place] = proved_score(scale, values[place], seconds)
    return values


def proved_limits(
    job: SearchJob, metrics: RequestedMetrics, scales: Sequence[Scale]
) -> dict[str, float]:
    """The limits of metrics of a run as they are proved, where models count relative to a
    baseline."""
    limits = dict[str, float]()
    if len(job.models) == 1 or job.objective.mean != "geometric":
        return limits
    for metric, value in metrics.within:
        if metric.kind is not None:
            score = batch_of(job) / value if metric.more else value
            limits[metric.name] = score * baseline_score(scales[metrics.runs.index(metric)])
    return limits


def limits_of(
    job: SearchJob, metrics: RequestedMetrics, scales: Sequence[Scale]
) -> dict[str, dict[str, float]]:
    """These as a certificate has them."""
    limits = proved_limits(job, metrics, scales)
    return {"limits": limits} if limits else {}


def design_witness(state: FrontState, design: StatedDesign) -> dict[str, Any] | None:
    """What shows a design, or None where the checker has no rules for it."""
    size, models = state.job.hbm_bytes[design.hbm], []
    chip, value = chip_of(state.chips, design.chip), state.chips.chip(design.chip, size)
    for model, (task, (way, planned)) in enumerate(
        zip(state.networks.tasks_of(design.chip), design.plans, strict=True)
    ):
        solved: Sequence[Schedule] = planned.schedules or ()
        if needs_schedules(task) and planned.schedules is None:
            memo, costs = (
                ScheduleMemo(in_order=[]),
                works_known(state, design.chip, model, value).get(way.graph),
            )
            layers_on(task, way.graph, value, None, (memo, b""), costs=costs)
            solved = memo.in_order or []
        table = {"plan": document_of(planned.plan), "zero": planned.zero}
        models.append(model_witness(task, way, solved, table))
    if chip is None or None in models:
        return None
    values = proved_values(state.metrics, state.front_scales, design)
    return {"values": values, "chip": chip, "hbm_bytes": size, "models": models}


def front_proof(
    state: FrontState, rows: Sequence[Witness], document: dict[str, Any], papers: Papers
) -> dict[str, Any]:
    """The certificate of a front, ``rows`` being the witnesses of its designs in their order."""
    whole = None not in rows
    gap = max(float(document["certificate"]["gap"]), state.job.gap)
    return {
        **heading(papers),
        "gap": gap,
        "front": list(rows) if whole else None,
        **limits_of(state.job, state.metrics, state.front_scales),
        **bests_of(state.front_scales),
        **tables_of(state.job.models, whole),
    }

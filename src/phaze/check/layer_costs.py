"""Seconds and joules of the layers of a graph on many chips, from those of works (docs/plan.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .job import Job
from .layers import RunGraph
from .passes import TimedPass, WorkSeconds
from .plan_graph import LayerSeconds
from .reading import listed
from .works import Work

Floats = NDArray[np.float64]
HOST_SHARE = 0.85
"""Of the host link that offload reaches: docs/plan.md."""


def works_of(graph: RunGraph) -> list[Work]:
    """Every work of its passes."""
    works = list[Work]()
    for layer in graph.layers:
        for run in layer.passes:
            works += run.own.works
    return works


@dataclass(frozen=True, slots=True)
class LayerJoules:
    """Joules of the layers of a graph on every chip: both passes [layers, chips], what modes run
    again [modes, layers, chips]."""

    both: Floats
    again: Floats


def layer_joules(
    graph: RunGraph, job: Job, joules_of: Mapping[Work, Floats], hbm_j: Floats
) -> LayerJoules:
    """All layers on all chips, from the joules of works and of a byte of HBM."""
    shape = len(graph.layers), len(hbm_j)
    both, again = np.zeros(shape), np.zeros((len(graph.names), *shape))

    def joules(run: TimedPass) -> Floats:
        total = np.zeros(len(hbm_j))
        for work in run.own.works:
            total = total + joules_of[work]
        return total

    for at, layer in enumerate(graph.layers):
        forward = joules(layer.forward)
        adding = job.stack.apart * layer.parameters * hbm_j
        both[at] = forward + joules(layer.backward) + adding
        full = forward if layer.trimmed is None else joules(layer.trimmed)
        for mode, rerun in enumerate(layer.again, 1):
            again[mode, at] = layer.modes[mode].share * full if rerun is None else joules(rerun)
        again[-1, at] = full
    return LayerJoules(both, again)


def _slots(graph: RunGraph, schedules: Any) -> dict[int, tuple[Any, str]]:
    """The schedule of every pass, by the pass itself, and where it stands."""
    slots = dict[int, tuple[Any, str]]()
    if schedules is None:
        return slots
    for at, rows in enumerate(listed(schedules, "answer.schedules", len(graph.layers))):
        passes = graph.layers[at].passes
        for number, row in enumerate(listed(rows, "answer.schedules", len(passes))):
            slots[id(passes[number])] = row, f"schedules[{at}][{number}]"
    return slots


def layer_seconds(
    graph: RunGraph,
    job: Job,
    times: WorkSeconds,
    hbm_rate: Floats,
    exact: bool,
    schedules: Any = None,
) -> LayerSeconds:
    """All layers on all chips, from the seconds of works; ``hbm_rate`` is what vector work reaches;
    ``schedules``: of all passes of all layers on one chip, where no formula gives their seconds."""
    chips, shape, stack = len(hbm_rate), (len(graph.layers), len(hbm_rate)), job.stack
    found = LayerSeconds(
        np.zeros(shape),
        np.zeros(shape),
        np.zeros((len(graph.names), *shape)),
        np.zeros(shape),
        exact and (schedules is not None or not stack.schedules),
    )
    slots = _slots(graph, schedules)

    def seconds(run: TimedPass) -> Floats:
        waits = run.waits(job.network)
        if schedules is None:
            return run.least(times, waits)
        return run.answered(times, waits, *slots[id(run)])

    for at, layer in enumerate(graph.layers):
        forward, behind = seconds(layer.forward), seconds(layer.backward)
        adding = stack.apart * layer.parameters / hbm_rate
        found.forward[at] = forward
        found.backward[at] = behind + adding
        if layer.halves is not None:
            weights = seconds(layer.halves[1]) + adding
            both = seconds(layer.halves[0]) + weights
            share = np.divide(weights, both, out=np.zeros(chips), where=both > 0)
            found.weight[at] = found.backward[at] * share
        full = forward if layer.trimmed is None else np.minimum(forward, seconds(layer.trimmed))
        for mode, rerun in enumerate(layer.again, 1):
            kept = layer.modes[mode]
            again = kept.share * full if rerun is None else np.minimum(forward, seconds(rerun))
            if kept.host:
                copies = 2.0 * kept.host / (HOST_SHARE * (job.host_rate or np.inf))
                hidden = (stack.offload or 0.0) * (forward + behind + again)
                again = again + np.maximum(0.0, copies - hidden)
            found.again[mode, at] = again
        found.again[-1, at] = full
    return found

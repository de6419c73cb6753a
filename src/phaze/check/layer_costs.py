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


@dataclass(frozen=True, slots=True)
class WorkJoules:
    """Joules of works on some chips, spread over all cores and, where schedules place operators, on
    one; of a byte that links send, and of one of HBM."""

    spread: Mapping[Work, Floats]
    one: Mapping[Work, Floats]
    sent: Floats
    hbm: Floats

    def taken(self, index: NDArray[np.int64]) -> "WorkJoules":
        """On some of the chips."""
        spread = {work: joules[index] for work, joules in self.spread.items()}
        one = {work: joules[index] for work, joules in self.one.items()}
        return WorkJoules(spread, one, self.sent[index], self.hbm[index])

    def least(self, work: Work) -> Floats:
        """Of a work in its thriftier way."""
        if work not in self.one:
            return self.spread[work]
        return np.minimum(self.spread[work], self.one[work])


def layer_joules(
    graph: RunGraph, job: Job, joules: WorkJoules, schedules: Any = None
) -> LayerJoules:
    """All layers on all chips, from the joules of works; ``schedules``: of all passes of all layers
    on one chip, which say where operators run; else each runs in its thriftier way."""
    shape = len(graph.layers), len(joules.hbm)
    both, again = np.zeros(shape), np.zeros((len(graph.names), *shape))
    slots = _slots(graph, schedules)

    def spent(run: TimedPass) -> Floats:
        total = run.sent_bytes(job.network) * joules.sent
        wide = dict[int, bool]()
        if run.placed is not None and schedules is not None:
            flags = run.placed.spread(slots[id(run)][0])
            for (places, _), is_spread in zip(run.units, flags, strict=False):
                wide |= dict.fromkeys(places, is_spread)
        for place, work in enumerate(run.own.works):
            if place not in wide:
                total = total + joules.least(work)
            else:
                total = total + (joules.spread if wide[place] else joules.one)[work]
        return total

    for number, layer in enumerate(graph.layers):
        forward = spent(layer.forward)
        adding = job.stack.apart * layer.parameters * joules.hbm
        both[number] = forward + spent(layer.backward) + adding
        full = forward if layer.trimmed is None else spent(layer.trimmed)
        for mode, rerun in enumerate(layer.again, 1):
            again[mode, number] = layer.modes[mode].share * full if rerun is None else spent(rerun)
        again[-1, number] = full
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
        np.zeros(shape) if stack.trades and graph.group > 1 else None,
    )
    slots = _slots(graph, schedules)

    def seconds(run: TimedPass) -> Floats:
        waits = run.waits(job.network)
        if schedules is None:
            return run.least(times, waits)
        return run.answered(times, waits, *slots[id(run)])

    for at, layer in enumerate(graph.layers):
        forward, behind = seconds(layer.forward), seconds(layer.backward)
        if found.unmet is not None:
            apart = seconds(layer.forward.met_by_none()) + seconds(layer.backward.met_by_none())
            found.unmet[at] = apart - forward - behind
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

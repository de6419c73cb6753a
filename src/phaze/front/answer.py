"""A front as a document, ``phaze.front/1``: every design with its chip, its plans, its metrics and its proof.

Nothing in it depends on the machine, on time, on the number of workers or on interruptions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze import __version__
from phaze.errors import InfeasibleError, PhazeError
from phaze.front.certificate import Proved, certificate_document, gap_of, proofs, watched
from phaze.front.metrics import METRICS, Metric, known_values
from phaze.front.state import FrontState
from phaze.search.answer import Best, lean
from phaze.search.energy import Electricity, plan_joules
from phaze.search.evaluation import Ran, exact_layers, plan_of
from phaze.search.journal import Closed
from phaze.search.result import chip_document
from phaze.search.shortage import nothing_found
from phaze.search.state import TIE
from phaze.search.task import Job

SCHEMA = "phaze.front/1"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Design:
    """One design of a front: a chip with a memory (its position in the job's list), and how each model runs on it."""

    chip: int
    hbm: int
    ran: tuple[Ran, ...]
    values: Floats


def shown_value(job: Job, metric: Metric, value: float) -> float:
    """A metric as it is shown: throughput instead of the seconds of a batch, or of the score of several models."""
    if not metric.more:
        return value
    return (float(job.models[0].training.batch) if len(job.models) == 1 else 1.0) / value


def shown_unit(job: Job, metric: Metric) -> str:
    """The unit of a metric; throughput of several models is relative to what they are averaged by."""
    return "1/score" if metric.more and len(job.models) > 1 else metric.unit


def _leanest(state: FrontState, unit: int, lane: int) -> tuple[int, tuple[Ran, ...]]:
    """The least memory that keeps a design as it is, where memory counts in no metric."""
    chip, memory = state.place(unit)
    found, hbm = replace(state.evaluated[unit], chip=chip), state.memories[memory]
    if len(state.asked.runs) == 1:
        return (hbm, found.ran) if len(state.memories) > 1 else lean(state, found)
    ran = next(one for one in found.ran if one.way == lane)
    for less in range(hbm) if len(state.memories) == 1 else ():
        priced = state.open(chip).price(0, ran.way, less)
        near = [abs(a - b) <= TIE * b for a, b in ((priced.batch_s, ran.batch_s), (priced.dynamic_j, ran.dynamic_j))]
        if all(near):
            return less, (ran,)
    return hbm, (ran,)


def designs_of(state: FrontState) -> list[Design]:
    """The designs of the front in the order of the metrics that are known, then of the others."""
    rows = sorted(range(state.weighed), key=lambda at: (state.asked.of[at].kind is not None, at))
    order = np.lexsort((state.archive.numbers, *(state.archive.values[row] for row in reversed(rows))))
    found = []
    for at in order.tolist():
        unit, lane = divmod(int(state.archive.numbers[at]), state.lanes)
        hbm, ran = _leanest(state, unit, lane)
        found.append(Design(state.place(unit)[0], hbm, ran, state.archive.values[:, at]))
    return found


def _models(state: FrontState, design: Design) -> list[dict[str, Any]]:
    """How each model runs: its way, its split, its batch and its energy."""
    technology, index, found = state.opened.technology, np.array([design.chip]), []
    network, arrays = int(state.networks.of[design.chip]), state.arrays.taken(index)
    static_w = technology.energy.static_w_per_mm2 * float(state.opened.chips.area_mm2[design.chip])
    for model, (task, ran) in enumerate(zip(state.networks.tasks_of(design.chip), design.ran, strict=True)):
        way, training = task.ways[ran.way], task.training
        graph, electricity = task.graphs[way.graph], Electricity(technology.energy, training.link_bytes_per_s)
        layers = exact_layers(graph, b"%d %d %d" % (network, model, way.graph), arrays, state.known, electricity)
        plan = plan_of(graph, layers.seconds, way.recompute, state.job.hbm_bytes[design.hbm], training)
        if plan is None or abs(plan.batch_s - ran.batch_s) > TIE * ran.batch_s:
            raise PhazeError(f"{task.name}: the plan of a design is not found again")
        dynamic_j = float(plan_joules(graph, plan, layers.joules, electricity, training).sum())
        found.append(
            {
                "name": task.name,
                "throughput_per_s": training.batch / plan.batch_s,
                "batch_s": plan.batch_s,
                "energy_j": dynamic_j + training.devices * static_w * plan.batch_s,
                "pipeline": len(plan.stages),
                "data": plan.data,
                "tensor": graph.width,
                "microbatch": graph.microbatch,
                "recompute": way.recompute,
            }
        )
    return found


def _point(state: FrontState, design: Design, proved: Proved) -> dict[str, Any]:
    job, asked = state.job, state.asked
    metric = asked.of[watched(state)]
    return {
        "chip": chip_document(state.opened, Best(design.chip, design.hbm, 0.0, ()), job.hbm_bytes),
        "metrics": {
            one.name: shown_value(job, one, float(value))
            for one, value in zip(asked.of, design.values[: len(asked.of)], strict=True)
        },
        "models": _models(state, design),
        "certificate": {
            "metric": metric.name,
            "rivals": proved.rivals,
            "bound": shown_value(job, metric, proved.lower),
            "gap": proved.gap,
        },
    }


def nothing_within(state: FrontState) -> PhazeError:
    """What to say when a front has no design."""
    limited = [*state.asked.within]
    if not limited or not len(state.opened) or any(one.error for one in state.evaluated.values()):
        return nothing_found(state)
    if not np.isfinite(state.scored()).any():
        return nothing_found(state)
    sizes = [state.job.hbm_bytes[at] for at in state.memories]
    parts = []
    for metric, value in limited:
        if metric.kind is None:
            best = float(known_values(metric, state.opened, sizes).min())
        else:
            row = state.lower[state.asked.measured.index(metric)]
            best = shown_value(state.job, metric, float(row.min()))
        limit = "at least" if metric.more else "at most"
        word = "the bound of all is" if metric.kind is not None else "the least is"
        parts.append(f"{metric.name} {limit} {value:g} ({word} {best:.6g})")
    sentence = f"No design of the space {state.job.space.name} has {' and '.join(parts)}; widen a limit."
    return InfeasibleError(sentence, {"schema": SCHEMA, "feasible": False})


def front_document(state: FrontState, closed: Sequence[Closed], code: str) -> dict[str, Any]:
    """The whole front."""
    job, asked, designs = state.job, state.asked, designs_of(state)
    proved = proofs(state, np.stack([one.values for one in designs], axis=1))
    evaluated = list(state.evaluated.values())
    return {
        "schema": SCHEMA,
        "name": job.name,
        **asked.document(),
        "units": {one.name: shown_unit(job, one) for one in METRICS if one in asked.of},
        "points": [_point(state, design, own) for design, own in zip(designs, proved, strict=True)],
        "certificate": certificate_document(gap_of(state), job.gap, closed, evaluated, state.opened.kept),
        "study_digest": job.digest,
        "version": __version__,
        "code_digest": code,
    }

"""A front as a document, ``phaze.front/1``: every design with its chip, its plans, its metrics and
its proof.

Nothing in it depends on the machine, on time, on the number of workers or on interruptions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from phaze import __version__
from phaze.errors import InfeasibleError, InputError, PhazeError
from phaze.front.certificate import (
    NO_BOXES,
    DesignProof,
    certificate_document,
    gap_of,
    gap_of_ways,
    proofs,
    watched,
)
from phaze.front.measures import Listed, Measures, batch_of, listed_from, measures_of
from phaze.front.metrics import METRICS, Metric, RequestedMetrics, known_values
from phaze.front.state import FrontState
from phaze.hardware.cluster import cluster_document
from phaze.placement.answer import UNNAMED
from phaze.search.answer import BestDesign, lean
from phaze.search.chips import SpaceChips
from phaze.search.configurations import (
    ConfigurationPlan,
    SharedJoules,
    configuration_names,
    plan_found,
)
from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.journal import PrunedChip
from phaze.search.plausibility import plausibility_of
from phaze.search.result import chip_document
from phaze.search.round_works import share_works
from phaze.search.setting import setting_document
from phaze.search.shortage import nothing_found
from phaze.search.state import TIE, BoxedChips
from phaze.search.task import Configuration, ModelTask, SearchJob

SCHEMA = "phaze.front/1"
# What is stated was found by this program or read from a journal; only the latter can differ.
CHANGED = "the journal was changed: give another --out"
Floats = NDArray[np.float64]
Stated = TypeVar("Stated")


@dataclass(frozen=True, slots=True)
class Design:
    """One design of a front: a chip with a memory (its position in the job's list), and how each
    model runs on it."""

    chip: int
    hbm: int
    ran: tuple[ModelRun, ...]
    values: Floats


def shown_value(job: SearchJob, metric: Metric, value: float) -> float:
    """A metric as it is shown: throughput instead of the seconds of a batch, or of the score of
    several models."""
    return batch_of(job) / value if metric.more else value


def shown_unit(job: SearchJob, metric: Metric) -> str:
    """The unit of a metric; of several models one of a run is relative to what they are averaged
    by."""
    if metric.kind is None or len(job.models) == 1:
        return metric.unit
    return "1/score" if metric.more else "score"


def _leanest(state: FrontState, unit: int, place: int) -> tuple[int, tuple[ModelRun, ...]]:
    """The least memory that keeps a design as it is, where memory counts in no metric."""
    chip, memory = state.place(unit)
    evaluated, hbm = replace(state.evaluated[unit], chip=chip), state.memories[memory]
    if not state.several:
        return (hbm, evaluated.ran) if len(state.memories) > 1 else lean(state, evaluated)
    chosen = next(ran for number, ran, _ in state.designs(state.evaluated[unit]) if number == place)
    for less in range(hbm) if len(state.memories) == 1 else ():
        if all(_as_with_more(state, chip, model, ran, less) for model, ran in enumerate(chosen)):
            return less, chosen
    return hbm, chosen


def _as_with_more(state: FrontState, chip: int, model: int, ran: ModelRun, hbm: int) -> bool:
    """Whether a configuration of a model takes as long and as many joules with that memory."""
    priced = state.open(chip).price(model, ran.configuration, hbm)
    pairs = ((priced.batch_s, ran.batch_s), (priced.dynamic_j, ran.dynamic_j))
    return all(abs(value - other) <= TIE * other for value, other in pairs)


def design_of(state: FrontState, position: int) -> Design:
    """A design of the archive with the least memory that keeps it."""
    unit, place = divmod(int(state.archive.numbers[position]), state.span)
    hbm, ran = _leanest(state, unit, place)
    return Design(state.place(unit)[0], hbm, ran, state.archive.values[:, position])


@dataclass(frozen=True, slots=True)
class StatedDesign:
    """A design as it is written: its models' tables, all its metrics as scores, and how each model
    runs on it."""

    chip: int
    hbm: int
    models: list[dict[str, Any]]
    values: Floats
    plans: tuple[tuple[Configuration, ConfigurationPlan], ...] = ()


def model_table(
    task: ModelTask, configuration: Configuration, planned: ConfigurationPlan, static_w: float
) -> dict[str, Any]:
    """How a model runs: its configuration, its split, its batch and its energy."""
    training, graph, plan = task.training, task.graphs[configuration.graph], planned.plan
    return {
        "name": task.name,
        "throughput_per_s": training.batch / plan.batch_s,
        "batch_s": plan.batch_s,
        "energy_j": planned.dynamic_j + training.devices * static_w * plan.batch_s,
        "pipeline": len(plan.stages),
        "data": plan.data,
        "tensor": graph.width,
        "microbatch": graph.microbatch,
        "recompute": configuration.recompute,
        "zero": planned.zero,
        "chunks": plan.chunks,
        **({"family": plan.family} if plan.family not in UNNAMED else {}),
        "attention": graph.attention,
        **configuration_names(task, configuration),
    }


def _stated(
    state: FrontState, design: Design, measures: Measures, shared: SharedJoules
) -> StatedDesign:
    """A design with the plans of its models, found again."""
    static_w = float(state.chips.static_w()[design.chip])
    stated, seconds, joules, plans = [], list[float](), list[float](), []
    for model, (task, ran) in enumerate(
        zip(state.networks.tasks_of(design.chip), design.ran, strict=True)
    ):
        planned = plan_found(state, design.chip, model, ran.configuration, design.hbm, shared)
        if planned is None or abs(planned.plan.batch_s - ran.batch_s) > TIE * ran.batch_s:
            raise InputError(
                task.name, "the plan that the journal has of a design is not found again", CHANGED
            )
        joules.append(planned.dynamic_j)
        seconds.append(planned.plan.batch_s)
        plans.append((task.configurations[ran.configuration], planned))
        stated.append(model_table(task, *plans[-1], static_w))
    values = measures.values(design.chip, design.hbm, seconds, joules)
    if not np.allclose(values, design.values, rtol=TIE, atol=0.0):
        raise InputError(
            state.job.name,
            "the metrics that the journal has of a design are not found again",
            CHANGED,
        )
    return StatedDesign(design.chip, design.hbm, stated, values, tuple(plans))


def _point(
    measures: Measures,
    chips: SpaceChips,
    design: StatedDesign,
    proof: tuple[Metric, DesignProof] | None,
) -> dict[str, Any]:
    job, metrics = measures.job, measures.metrics
    return {
        "chip": chip_document(chips, BestDesign(design.chip, design.hbm, 0.0, ()), job.hbm_bytes),
        "plausibility": plausibility_of(chips.chip(design.chip, job.hbm_bytes[design.hbm])),
        "metrics": {
            metric.name: shown_value(job, metric, float(value))
            for metric, value in zip(metrics.of, design.values[: len(metrics.of)], strict=True)
        },
        "models": design.models,
        "certificate": None
        if proof is None
        else {
            "metric": proof[0].name,
            "rivals": proof[1].rivals,
            "bound": shown_value(job, proof[0], proof[1].lower),
            "gap": proof[1].gap,
        },
    }


def design_order(metrics: RequestedMetrics, numbers: Sequence[int], values: Floats) -> list[int]:
    """Designs [metrics, designs] in the order of the metrics that are known, then of the others,
    then by number."""
    rows = sorted(
        range(len(metrics.of)), key=lambda index: (metrics.of[index].kind is not None, index)
    )
    order = np.lexsort((np.array(numbers), *(values[row] for row in reversed(rows))))
    return [int(index) for index in order]


def nothing_within(state: FrontState) -> PhazeError:
    """What to say when a front has no design."""
    limited = [*state.metrics.within]
    if (
        not limited
        or not len(state.chips)
        or any(result.error for result in state.evaluated.values())
    ):
        return nothing_found(state)
    if not np.isfinite(state.scored()).any():
        return nothing_found(state)
    sizes = [state.job.hbm_bytes[memory] for memory in state.memories]
    parts = []
    for metric, value in limited:
        if metric.kind is None:
            best = float(known_values(metric, state.chips, sizes).min())
        else:
            row = state.lower[state.metrics.measured.index(metric)]
            best = shown_value(state.job, metric, float(row.min()))
        limit = "at least" if metric.more else "at most"
        word = "the bound of all is" if metric.kind is not None else "the least is"
        parts.append(f"{metric.name} {limit} {value:g} ({word} {best:.6g})")
    sentence = (
        f"No design of the space {state.job.space.name} has {' and '.join(parts)}; widen a limit."
    )
    return InfeasibleError(sentence, {"schema": SCHEMA, "feasible": False})


def _setting(job: SearchJob, chips: SpaceChips, design: StatedDesign) -> dict[str, Any]:
    """Under what all designs were found, as in the answer of a search; where links are an axis each
    has its own."""
    chip = chips.chip(design.chip, job.hbm_bytes[design.hbm])
    setting, cluster = setting_document(job, chips, chip), job.cluster_on(chip)
    network = None if cluster is None else cluster_document(cluster, chip)
    if setting["links"] == "chip":
        del setting["link_bytes_per_s"]
        network = network and {**network, "link_bytes_per_s": None}
    return {"cluster": network, "setting": setting}


def front_view(
    measures: Measures,
    chips: SpaceChips,
    designs: Sequence[StatedDesign],
    listed: Listed | None,
    proof: tuple[Sequence[PrunedChip], Sequence[Evaluated], str],
    boxed: BoxedChips = NO_BOXES,
) -> dict[str, Any]:
    """The whole front, from its designs, the list of closed units with what was found of the opened
    ones, and the code.

    ``listed`` are the bounds of that list, where one metric comes with a run; ``boxed`` are chips
    that are in none.
    """
    job, metrics, (closed, evaluated, code) = measures.job, measures.metrics, proof
    values, proved = (
        np.stack([design.values for design in designs], axis=1),
        list[tuple[Metric, DesignProof] | None](),
    )
    if listed is None:
        gap, proved = gap_of_ways(closed, evaluated, job.gap), [None] * len(designs)
    else:
        gap, metric = gap_of(listed), metrics.of[watched(listed)]
        proved += [(metric, design_proof) for design_proof in proofs(listed, values, boxed)]
    return {
        "schema": SCHEMA,
        "name": job.name,
        **metrics.document(),
        "units": {
            metric.name: shown_unit(job, metric) for metric in METRICS if metric in metrics.of
        },
        **_setting(job, chips, designs[0]),
        "points": [
            _point(measures, chips, design, design_proof)
            for design, design_proof in zip(designs, proved, strict=True)
        ],
        "certificate": certificate_document(
            gap, job.gap, closed, chips.left_out, boxed, len(measures.memories)
        ),
        "study_digest": job.digest,
        "version": __version__,
        "code_digest": code,
    }


def bounds_of(closed: Sequence[PrunedChip]) -> Floats:
    """The bound of every unit of a list, infinite where there is none."""
    return np.array([np.inf if unit.bound is None else unit.bound for unit in closed])


def state_designs(state: FrontState, measures: Measures, stated: dict[int, StatedDesign]) -> None:
    """Every design of the archive that is not among ``stated``, by number, with its plans."""
    numbers = state.archive.numbers.tolist()
    units = [number // state.span for number in numbers if number not in stated]
    share_works(state, units)
    shared = SharedJoules(state, np.unique(np.array(units, np.int64) % max(1, len(state.chips))))
    for position, number in enumerate(numbers):
        if number not in stated:
            stated[number] = _stated(state, design_of(state, position), measures, shared)


def in_order(state: FrontState, stated: Mapping[int, Stated]) -> list[Stated]:
    """What is stated of the designs of a front, by number, as its document lists them."""
    numbers = state.archive.numbers.tolist()
    return [
        stated[numbers[index]]
        for index in design_order(state.metrics, numbers, state.archive.values)
    ]


def front_document(
    state: FrontState,
    closed: Sequence[PrunedChip],
    code: str,
    stated: dict[int, StatedDesign] | None = None,
) -> dict[str, Any]:
    """The whole front of a search that has ended, designs in the order of the metrics that are
    known, then of the others; ``stated`` are designs whose plans are there already, by number, and
    gets all others."""
    measures = measures_of(
        state.job, state.metrics, state.front_scales, state.chips, state.memories
    )
    stated = {} if stated is None else stated
    state_designs(state, measures, stated)
    designs = in_order(state, stated)
    values = np.stack([design.values for design in designs], axis=1)
    listed = None if state.several else listed_from(measures, bounds_of(closed), values)
    proof = (closed, list(state.evaluated.values()), code)
    return front_view(measures, state.chips, designs, listed, proof, state.boxed)

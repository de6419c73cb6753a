"""The answer of a search as a document, ``phaze.result/1``: chip, each model's plan, objective,
certificate.

Nothing in it depends on the machine, on time, on the number of workers or on interruptions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from phaze import __version__
from phaze.documents import dumps
from phaze.evaluate.exchanges import exchange_document
from phaze.evaluate.headroom import DeviceMemory, memory_left
from phaze.evaluate.layer_table import FULL, SELECTIVE
from phaze.evaluate.offloaded import offload_document
from phaze.hardware.chip import Chip
from phaze.hardware.chip_document import clusters_document
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.chip_record import states_clusters
from phaze.hardware.cluster import cluster_document as network_document
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.placement.answer import document_of, require_true
from phaze.schedule.problem import Schedule
from phaze.schedule.solve import Scheduler
from phaze.search.answer import BestDesign
from phaze.search.certificate import Certificate
from phaze.search.chips import SpaceChips
from phaze.search.energy import COMPONENTS
from phaze.search.evaluated import ModelRun
from phaze.search.exact_layers import ExactLayers, ScheduleMemo
from phaze.search.model_figures import with_figures
from phaze.search.objective import UNITS, Scale
from phaze.search.plausibility import axis_ends, plausibility_of
from phaze.search.rank_graph import RankGraph
from phaze.search.rates import chip_rates
from phaze.search.reference import layers_on, placed_on
from phaze.search.setting import setting_document
from phaze.search.state import SearchState
from phaze.search.task import Configuration, ModelTask, SearchJob

SCHEMA = "phaze.result/1"


def chip_document(
    space_chips: SpaceChips, best: BestDesign, hbm_bytes: Sequence[int]
) -> dict[str, Any]:
    """The chip, field by field."""
    chip = space_chips.chip(best.chip, hbm_bytes[best.hbm])
    figures, manufacturing = estimates_of(chip), manufacturing_of(chip, load_terms())
    if figures is None or manufacturing is None:
        raise AssertionError(f"{chip.name}: a chip of a space names a process")
    return {
        "number": space_chips.number(best.chip),
        "name": chip.name,
        "tensor_cores": chip.tensor_cores,
        "rows": chip.clusters.rows,
        "columns": chip.clusters.columns,
        "tensor_buffer_bytes": chip.clusters.operand_bytes // chip.clusters.arrays,
        "vector_cores": chip.vectors.count,
        "lanes": chip.vectors.lanes,
        "vector_buffer_bytes": chip.vectors.register_bytes,
        "global_buffer_bytes": chip.global_buffer.size_bytes,
        "global_bytes_per_s": chip.global_bytes_per_s,
        "hbm_bytes": chip.hbm.size_bytes,
        "hbm_bytes_per_s": chip.hbm.bandwidth_bytes_per_s,
        "link_bytes_per_s": chip.links.bandwidth_bytes_per_s,
        "clock_hz": chip.clock_hz,
        "area_mm2": float(space_chips.area_mm2[best.chip]),
        "design_power_w": figures.design_w,
        "making_usd": manufacturing.usd,
        "making_kgco2e": manufacturing.kgco2e,
        "peak_flops": chip.peak_flops,
        **({"clusters": clusters_document(chip)} if states_clusters(chip) else {}),
    }


def layer_documents(graph: RankGraph, layers: ExactLayers) -> list[dict[str, Any]]:
    """The layers of one graph, with what their schedules take and what is proved of them."""
    times, proved, documents = layers.times, layers.proved, []
    for kind, layer in enumerate(times.layers):
        again_s = times.again_s[:, kind, 0].tolist()
        modes_s = {
            mode.name: seconds
            for mode, seconds in zip(layer.modes[1:-1], again_s[1:-1], strict=True)
        }
        documents.append(
            {
                "name": layer.name,
                "count": graph.calls.count(kind),
                "forward_s": float(times.forward_s[kind, 0]),
                "forward_lower_bound_s": float(proved.forward_s[kind, 0]),
                "backward_s": float(times.backward_s[kind, 0]),
                "backward_lower_bound_s": float(proved.backward_s[kind, 0]),
                "selective_s": again_s[SELECTIVE],
                "full_s": again_s[FULL],
                **({"modes_s": modes_s} if modes_s else {}),
            }
        )
    return documents


def model_document(
    task: ModelTask,
    configuration: Configuration,
    chip: Chip,
    remembered: tuple[ScheduleMemo, bytes] | None = None,
    scheduler: Scheduler = "exact",
) -> dict[str, Any]:
    """One model on the chip: its configuration, plan, layers, throughput and energy; ``remembered``
    and ``scheduler`` as of layers_on."""
    figures, graph, training = estimates_of(chip), task.graphs[configuration.graph], task.training
    if figures is None:
        raise AssertionError(f"{chip.name}: a chip of a space names a process")
    layers = layers_on(task, configuration.graph, chip, figures.technology, remembered, scheduler)
    placed = placed_on(task, configuration, layers, chip.hbm.size_bytes, figures.technology)
    if placed.plan is None:
        raise AssertionError(f"{task.name}: the answer's plan does not fit")
    static_j, plan = training.devices * figures.static_w * placed.batch_s, document_of(placed.plan)
    require_true(placed.problem, plan, task.prices)
    energy_j = placed.dynamic_j + static_j
    return {
        "name": task.name,
        "weight": task.weight,
        "microbatch": graph.microbatch,
        "tensor": graph.width,
        **task.degrees(configuration),
        "sequence_parallel": graph.model.sequence_parallel,
        "attention": graph.attention,
        "recompute": configuration.recompute,
        "zero": placed.problem.zero,
        "batch_s": placed.batch_s,
        "throughput_per_s": training.batch / placed.batch_s,
        "energy_j": energy_j,
        "power_w": energy_j / placed.batch_s / training.devices,
        "energy": {
            **dict(zip(COMPONENTS, placed.joules.tolist(), strict=True)),
            "static": static_j,
        },
        "layers": layer_documents(graph, layers.exact),
        "plan": plan,
        **exchange_document(graph.model, placed.problem, placed.plan, task.setting(chip)),
        **offload_document(graph.model, placed.problem, placed.plan, task.setting(chip)),
        "memory_left": memory_left(
            plan["stages"],
            DeviceMemory(chip.hbm.size_bytes, training.headroom),
            training.machine.stack.saves,
        ),
        "notes": list(task.notes(configuration.graph)),
    }


def _remembered(
    state: SearchState, chip: int, model: int, ran: ModelRun
) -> tuple[ScheduleMemo, bytes] | None:
    """The schedules of a model as the search found them: when it was stopped there is no time to
    solve them anew."""
    if not state.stopped:
        return None
    graph = state.networks.tasks_of(chip)[model].configurations[ran.configuration].graph
    return state.memo, b"%d %d %d" % (state.networks.of[chip], model, graph)


def objective_document(
    job: SearchJob, scale: Scale, score: float, values: Sequence[float]
) -> dict[str, Any]:
    """What was minimised, and for several models how they were averaged; ``values`` are theirs on
    the chip."""
    document: dict[str, Any] = {"kind": job.objective.kind, "score": score}
    if len(job.models) == 1:
        return {**document, "unit": UNITS[job.objective.kind]}
    document |= {"mean": job.objective.mean, "baseline": job.objective.baseline}
    if job.objective.mean != "arithmetic":
        document["baseline_values"] = list(scale.baseline)
    if job.objective.mean == "regret":
        del document["baseline"]
        document["regrets"] = [
            value / least - 1.0 for value, least in zip(values, scale.baseline, strict=True)
        ]
    return document


def _values(job: SearchJob, chip: Chip, models: Sequence[Mapping[str, Any]]) -> list[float]:
    """The models' values on the chip, from what their tables say of time and energy."""
    rates, values = chip_rates(job.objective, chip, job.models[0].training.devices), []
    for model in models:
        dynamic_j = sum(value for name, value in model["energy"].items() if name != "static")
        values.append(float(rates.value(np.asarray(model["batch_s"]), dynamic_j)))
    return values


def answer_view(
    job: SearchJob,
    scale: Scale,
    chips: SpaceChips,
    tasks: Sequence[ModelTask],
    chosen: tuple[int, int],
    configurations: Sequence[Configuration],
    remembered: Sequence[tuple[ScheduleMemo, bytes] | None] | None = None,
    provisional: bool = False,
) -> dict[str, Any]:
    """All of an answer but its proof: ``chosen`` are chip and memory, ``configurations`` those of
    the models.

    ``remembered`` are schedules by model, as of :func:`phaze.search.reference.layers_on`.
    ``provisional``: list schedules, and the answer says so (:mod:`phaze.search.initial_incumbent`).

    All of it follows from these by the reference path, so that nothing of it needs to be believed.
    """
    number, hbm = chosen
    chip = chips.chip(number, job.hbm_bytes[hbm])
    schedules = [None] * len(configurations) if remembered is None else remembered
    scheduler: Scheduler = "list" if provisional else "exact"
    models = [
        with_figures(
            model_document(task, configuration, chip, memo, scheduler),
            task,
            configuration,
            chip,
            job.budget,
        )
        for task, configuration, memo in zip(tasks, configurations, schedules, strict=True)
    ]
    values, cluster = _values(job, chip, models), job.cluster_on(chip)
    return {
        "chip": chip_document(chips, BestDesign(number, hbm, 0.0, ()), job.hbm_bytes),
        "cluster": None if cluster is None else network_document(cluster, chip),
        "models": models,
        "objective": objective_document(job, scale, float(scale.score(np.array(values))), values),
        "setting": setting_document(job, chips, chip),
        "plausibility": plausibility_of(chip),
        **({"at_ends": axis_ends(chips, number)} if states_clusters(chip) else {}),
        **({"provisional": True} if provisional else {}),
    }


def result_view(
    job: SearchJob, answer: Mapping[str, Any], certificate: Certificate, code: str
) -> dict[str, Any]:
    """The whole answer (``phaze.result/1``)."""
    return {
        "schema": SCHEMA,
        "name": job.name,
        **answer,
        "certificate": certificate.document(),
        "study_digest": job.digest,
        "version": __version__,
        "code_digest": code,
    }


def written(document: Mapping[str, Any]) -> str:
    """The text of ``result.json`` or ``front.json``."""
    return dumps(document, pretty=True) + "\n"


class DisagreementError(AssertionError):
    """What was searched is not found again by the reference path: a fault of ours, or a journal
    that was changed."""


@dataclass(frozen=True, slots=True)
class AnswerParts:
    """An answer, the models as they run in it, and by model every schedule that was solved for it,
    in order."""

    document: dict[str, Any]
    tasks: tuple[ModelTask, ...]
    configurations: tuple[Configuration, ...]
    schedules: tuple[list[Schedule], ...]


def answer_of(state: SearchState, best: BestDesign, provisional: bool = False) -> AnswerParts:
    """The answer of a search that has ended; the reference path and the search must agree on it."""
    tasks = state.networks.tasks_of(best.chip)
    configurations = tuple(
        task.configurations[ran.configuration] for task, ran in zip(tasks, best.ran, strict=True)
    )
    scheduler: Scheduler = "list" if provisional else "exact"
    solved = state.memo.solved
    fresh = [
        (ScheduleMemo(scheduler=scheduler, in_order=[], solved=solved), b"") for _ in configurations
    ]
    remembered = [
        None if provisional else _remembered(state, best.chip, model, ran)
        for model, ran in enumerate(best.ran)
    ]
    schedules = [
        new if schedule is None else schedule
        for schedule, new in zip(remembered, fresh, strict=True)
    ]
    answer = answer_view(
        state.job,
        state.scale,
        state.chips,
        tasks,
        (best.chip, best.hbm),
        configurations,
        schedules,
        provisional,
    )
    pairs = [
        (model["batch_s"], ran.batch_s)
        for model, ran in zip(answer["models"], best.ran, strict=True)
    ]
    for plain, searched in (*pairs, (answer["objective"]["score"], best.score)):
        if abs(plain - searched) > 1e-9 * searched:
            raise DisagreementError(f"{state.job.name}: the reference path and the search disagree")
    return AnswerParts(
        answer, tasks, configurations, tuple(memo.in_order or [] for memo, _ in fresh)
    )

"""What a page tells of a model on a chip: its plan, where the time goes, its pipeline, its operators on their cores.

:func:`searched` makes it from a search's answer (rules ``icml24``), :func:`planned` from a plan on hardware that exists
(rules ``cluster``). Both ask the plain path again; nothing is taken over that cannot be recomputed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import chip_arrays
from phaze.errors import InputError
from phaze.evaluate.flow import layer_schedules
from phaze.evaluate.layers import Setting, pass_schedule
from phaze.evaluate.passes import Pass, name_of, problem_on, table_of, times_on
from phaze.graph.fuse import fuse_layer
from phaze.graph.ir import Model, OperatorGraph
from phaze.hardware.chip import Chip
from phaze.placement.event_kernels import events, interleaved_events
from phaze.report.trace import lane_order, lanes
from phaze.report.waterfall import Split, Step, account, plan_parts, search_parts
from phaze.schedule.problem import Schedule
from phaze.schedule.solve import Scheduler
from phaze.search.cluster_plain import way_of
from phaze.search.cluster_task import ClusterTask
from phaze.search.evaluation import limits_of
from phaze.search.task import ModelTask

Floats = NDArray[np.float64]
EXACT = 1e-9
MOST_ROUNDS = 40_000


@dataclass(frozen=True, slots=True)
class Bar:
    """An operator on a row of a Gantt chart."""

    name: str
    core: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Gantt:
    """One pass of a layer: rows of cores, each with its operators, and how the schedule came about."""

    title: str
    end_s: float
    verdict: str
    rows: tuple[tuple[str, tuple[Bar, ...]], ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Starts of every forward and backward of one copy, [stages, microbatches], and their lengths by stage; with
    chunks [stages, microbatches x chunks], and lengths of one piece."""

    forward_s: Floats
    backward_s: Floats
    forward_length_s: Floats
    backward_length_s: Floats
    end_s: float
    chunks: int = 1

    @property
    def rounds(self) -> int:
        """Microbatches."""
        return int(self.forward_s.shape[1]) // self.chunks

    def numbered(self, piece: int) -> str:
        """A microbatch by its number, and where there are chunks which of them."""
        return str(piece) if self.chunks == 1 else f"{piece // self.chunks}, chunk {piece % self.chunks}"


@dataclass(frozen=True, slots=True)
class Story:
    """One model on the chip."""

    name: str
    plan: Mapping[str, Any]
    split: Split
    hbm_bytes: float
    steps: tuple[Step, ...]
    pipeline: Pipeline | None
    gantts: tuple[Gantt, ...]
    layer: str
    batch: int
    sequence: int | None = None


def pipeline_of(plan: Mapping[str, Any], rounds: int) -> Pipeline | None:
    """The events of one copy, or None where they are too many to be kept."""
    stages, chunks = plan["stages"], int(plan.get("chunks", 1))
    if len(stages) * rounds * chunks > MOST_ROUNDS * 8:
        return None
    forward, backward = (np.array([float(stage[key]) for stage in stages]) for key in ("forward_s", "backward_s"))
    starts = np.empty((2, len(stages), rounds * chunks))
    if chunks == 1:
        end_s = float(events(forward, backward, rounds, starts))
    else:
        end_s = float(interleaved_events(forward, backward, rounds, chunks, starts))
    return Pipeline(starts[0], starts[1], forward / chunks, backward / chunks, end_s, chunks)


def _verdict(schedule: Schedule) -> str:
    if schedule.optimal:
        return "proved: no schedule is shorter"
    return f"at most {schedule.gap:.2%} above the least"


def _scheduled(title: str, one: Pass, times: tuple[Floats, Floats], cores: tuple[int, int], found: Schedule) -> Gantt:
    problem = problem_on(one, times[0].tolist(), times[1].tolist(), cores)
    rows: dict[str, list[Bar]] = {}
    names = one.names or tuple(f"operator {at}" for at in range(len(one.works)))
    for operator, slot, name in zip(problem.operators, found.slots, names, strict=True):
        for lane in lanes(operator, slot):
            rows.setdefault(lane, []).append(Bar(name, operator.core, slot.start_s, slot.end_s))
    ordered = tuple((lane, tuple(rows[lane])) for lane in sorted(rows, key=lane_order))
    return Gantt(title, found.makespan_s, _verdict(found), ordered)


def _require_layers(plan: Mapping[str, Any], calls: Sequence[int], where: str) -> None:
    """Refuse a plan of more or fewer layers than its model has."""
    placed = sum(len(stage["layers"]) for stage in plan["stages"])
    if placed != len(calls):
        raise InputError(where, f"its stages hold {placed:,} layers and its model has {len(calls):,}", "make it again")


def _require(plan: Mapping[str, Any], steps: Sequence[Step], where: str) -> None:
    total = sum(step.seconds for step in steps)
    if abs(total - plan["batch_s"]) > EXACT * plan["batch_s"]:
        raise InputError(
            where,
            f"its batch takes {plan['batch_s']:.9g} s and by this phaze {total:.9g} s",
            "make it again with this version",
        )


def searched(
    task: ModelTask, found: Mapping[str, Any], chip: Chip, where: str, scheduler: Scheduler = "exact"
) -> Story:
    """A model of a search's answer; ``found`` is its table in ``phaze.result/1``, ``scheduler`` made its schedules."""
    if isinstance(task, ClusterTask):
        return _placed(task, found, chip, where)
    graphs = [g for g in task.graphs if (g.width, g.microbatch) == (found["tensor"], found["microbatch"])]
    if not graphs:
        raise InputError(where, f"{task.name} was not studied at this width and microbatch", "make the run again")
    prepared = graphs[0]
    schedules = layer_schedules(prepared, chip, limits_of(scheduler), scheduler)
    table, first, times = table_of(prepared.passes, chip_arrays([chip])), 0, []
    for one in prepared.passes:
        singles, spreads = times_on(one, table, first)
        times.append((singles[:, 0], spreads[:, 0]))
        first += len(one.works)
    parts = search_parts(prepared, chip, schedules, [spread.tolist() for _, spread in times])
    plan, total = found["plan"], task.training.microbatches(prepared.microbatch)
    split = Split(task.training.devices, total, -(-total // plan["data"]))
    _require_layers(plan, prepared.calls, where)
    steps = account(plan, parts, prepared.calls, split)
    _require(plan, steps, where)
    most = max(range(len(prepared.layers)), key=prepared.calls.count)
    cores = (chip.tensor_cores, chip.vector_cores)
    gantts = tuple(
        _scheduled(title, prepared.passes[at], times[at], cores, schedules[at])
        for title, at in (("forward", 2 * most), ("backward", 2 * most + 1))
    )
    layer = prepared.layers[most].name
    pipeline = pipeline_of(plan, split.rounds)
    return Story(
        task.name, plan, split, chip.hbm.size_bytes, tuple(steps), pipeline, gantts, layer, task.training.batch
    )


def _placed(task: ClusterTask, found: Mapping[str, Any], chip: Chip, where: str) -> Story:
    """The same under rules ``cluster``: told as a plan on hardware that exists."""
    way = way_of(task, found)
    if way is None:
        raise InputError(where, f"{task.name} was not studied at this width and microbatch", "make the run again")
    model, job = task.graph(way.graph).model, task.job
    return planned(model, job.setting(chip), found["plan"], job.devices, job.batch, where)


def _under_rule(title: str, graph: OperatorGraph, setting: Setting, backward: bool) -> Gantt:
    """A pass as its stack schedules it; what runs in pieces is drawn on its cores and on the network."""
    one, schedule = pass_schedule(graph, setting, backward)
    rows: dict[str, list[Bar]] = {"tensor": [], "vector": [], "network": []}
    for unit, slot in zip(one.units, schedule.slots, strict=True):
        if slot.end_s <= slot.start_s:
            continue
        name = " + ".join(dict.fromkeys(name_of(graph.operators[place]) for place in unit.places))
        core = "network" if unit.core == "none" else unit.core
        drawn = {"both": ("tensor", "vector"), "tensor": ("tensor",), "vector": ("vector",)}.get(core, ())
        for row in (*drawn, *(("network",) if unit.network else ())):
            rows[row].append(Bar(name, core, slot.start_s, slot.end_s))
    names = {"tensor": "tensor cores", "vector": "vector cores", "network": "network"}
    kept = tuple((names[row], tuple(bars)) for row, bars in rows.items() if bars)
    return Gantt(title, schedule.makespan_s, f"schedule rule {schedule.rules}, host time not drawn", kept)


def planned(model: Model, setting: Setting, plan: Mapping[str, Any], devices: int, batch: int, where: str) -> Story:
    """A plan (``phaze.plan/1``) of a model in a setting."""
    parts, _ = plan_parts(model, setting)
    total = -(-batch // model.microbatch)
    split = Split(devices, total, -(-total // plan["data"]))
    calls = [call.layer for call in model.calls]
    _require_layers(plan, calls, where)
    steps = account(plan, parts, calls, split)
    _require(plan, steps, where)
    most = max(range(len(model.layers)), key=model.count)
    fused = fuse_layer(model.layers[most], setting.stack.fusion)
    gantts = (
        _under_rule("forward", fused.forward, setting, False),
        _under_rule("backward", fused.backward, setting, True),
    )
    pipeline = pipeline_of(plan, split.rounds)
    hbm, layer = float(setting.chip.hbm.size_bytes), model.layers[most].name
    return Story(model.name, plan, split, hbm, tuple(steps), pipeline, gantts, layer, batch, model.sequence)

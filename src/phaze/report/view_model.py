"""What a page tells of a model on a chip: its plan, where the time goes, its pipeline, its
operators on their cores.

:func:`searched` makes it from a search's answer, :func:`planned` from a plan on hardware that
exists. Both ask the reference path again; nothing is taken over that cannot be recomputed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.evaluate.layers import EXACT, SchedulingEffort, Setting, pass_schedule
from phaze.evaluate.lowered_pass import LoweredPass
from phaze.evaluate.pass_schedule import name_of
from phaze.evaluate.schedule_operators import Unit
from phaze.graph.fuse import fuse_layer
from phaze.graph.ir import Model, OperatorGraph
from phaze.graph.rewrites import run_layer
from phaze.hardware.chip import Chip
from phaze.pipeline.families import named_family
from phaze.pipeline.family import Family
from phaze.pipeline.replica import StageSeconds, events
from phaze.report.drawings import Block, BlockKind, Timeline
from phaze.report.step_time import Step
from phaze.report.trace import lane_order, lanes
from phaze.report.waterfall import Split, account, plan_parts
from phaze.schedule.problem import Schedule, ScheduledOperator, Slot
from phaze.schedule.solve import Scheduler
from phaze.schedule.solved import SolvedSchedules
from phaze.search.reference import way_of
from phaze.search.schedule_limits import limits_of
from phaze.search.task import ModelTask
from phaze.units import show

Floats = NDArray[np.float64]
AGREEMENT = 1e-9
"""Rows of the waterfall are sums of the same terms in another order."""
MOST_ROUNDS = 40_000
"""Events are simulated one by one; beyond it a page would take minutes."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Starts of every forward and backward of one replica, [stages, microbatches], and their
    lengths by stage; with chunks [stages, microbatches x chunks], and lengths of one piece. Where
    gradients of weights run apart, ``weight_s`` and its lengths likewise, and backward is gradients
    of inputs."""

    forward_s: Floats
    backward_s: Floats
    forward_length_s: Floats
    backward_length_s: Floats
    end_s: float
    chunks: int = 1
    family: str = "1f1b"
    weight_s: Floats | None = None
    weight_length_s: Floats | None = None

    @property
    def passes(self) -> list[tuple[str, Floats, Floats]]:
        """Name, starts and lengths of every kind of pass."""
        found = [
            ("forward", self.forward_s, self.forward_length_s),
            ("backward", self.backward_s, self.backward_length_s),
        ]
        if self.weight_s is not None and self.weight_length_s is not None:
            found.append(("weight", self.weight_s, self.weight_length_s))
        return found

    @property
    def rounds(self) -> int:
        """Microbatches."""
        return int(self.forward_s.shape[1]) // self.chunks

    def numbered(self, piece: int) -> str:
        """A microbatch by its number, and where there are chunks which of them."""
        return (
            str(piece)
            if self.chunks == 1
            else f"{piece // self.chunks}, chunk {piece % self.chunks}"
        )


@dataclass(frozen=True, slots=True)
class Story:
    """One model on the chip."""

    name: str
    plan: Mapping[str, Any]
    split: Split
    hbm_bytes: float
    steps: tuple[Step, ...]
    pipeline: Pipeline | None
    layer_passes: Mapping[str, Timeline]
    layer: str
    batch: int
    sequence: int | None = None


def _family(plan: Mapping[str, Any], rounds: int) -> Family:
    """The pipeline family of a plan; an InputError where it cannot have its chunks, stages or
    microbatches."""
    chunks, stages, name = int(plan.get("chunks", 1)), len(plan["stages"]), plan.get("family")
    try:
        family = named_family(name, chunks)
    except ValueError as fault:
        raise InputError(
            "plan.family", str(fault), "give what phaze plan ... --json prints"
        ) from None
    if name is not None and (family.chunks != chunks or not family.divides(rounds, stages)):
        seen = (
            f"{name} with {chunks} chunks, {stages} stages and {rounds} microbatches of a replica"
        )
        raise InputError(
            "plan.family", f"there is no {seen}", "give what phaze plan ... --json prints"
        )
    return family


def pipeline_of(plan: Mapping[str, Any], rounds: int) -> Pipeline | None:
    """The events of one replica, or None where they are too many to be kept."""
    stages, chunks = plan["stages"], int(plan.get("chunks", 1))
    if len(stages) * rounds * chunks > MOST_ROUNDS * 8:
        return None
    family = _family(plan, rounds)
    keys = ("forward_s", "backward_s", "weight_s", "forward_transfer_s", "backward_transfer_s")
    columns = {key: [float(stage.get(key, 0.0)) for stage in stages] for key in keys}
    columns["weight_s"] = list(map(min, columns["weight_s"], columns["backward_s"]))
    seconds = StageSeconds(**columns)
    started = events(family, seconds, rounds)
    ahead, back, last = seconds.passes_s(family) / family.chunks
    weight_length_s = last if family.split else None
    return Pipeline(
        started.forward_s, started.backward_s, ahead, back, started.end_s, chunks, family.name,
        started.weight_s,
        weight_length_s,
    )  # fmt: skip


def _verdict(schedule: Schedule) -> str:
    if schedule.optimal:
        return "proved: no schedule is shorter"
    return f"at most {schedule.gap:.2%} above the least"


def _require_layers(plan: Mapping[str, Any], calls: Sequence[int], where: str) -> None:
    """Refuse a plan of more or fewer layers than its model has."""
    placed = sum(len(stage["layers"]) for stage in plan["stages"])
    if placed != len(calls):
        raise InputError(
            where,
            f"its stages hold {placed:,} layers and its model has {len(calls):,}",
            "make it again",
        )


def _require(plan: Mapping[str, Any], steps: Sequence[Step], where: str) -> None:
    total = sum(step.seconds for step in steps)
    if abs(total - plan["batch_s"]) > AGREEMENT * plan["batch_s"]:
        raise InputError(
            where,
            f"its batch takes {plan['batch_s']:.9g} s and by this phaze {total:.9g} s",
            "make it again with this version",
        )


def searched(
    task: ModelTask,
    found: Mapping[str, Any],
    chip: Chip,
    where: str,
    scheduler: Scheduler = "exact",
    solved: SolvedSchedules | None = None,
) -> Story:
    """A model of a search's answer; ``found`` is its table in ``phaze.result/1``, ``scheduler``
    made its schedules, ``solved`` are some of them, where it is the process that made them which
    asks."""
    configuration = way_of(task, found)
    if configuration is None:
        raise InputError(
            where, f"{task.name} was not studied at this width and microbatch", "search again"
        )
    model, job = task.graphs[configuration.graph].model, task.training
    at = (task.setting(chip), found["plan"], job.devices, job.batch, where)
    effort = SchedulingEffort(limits_of(scheduler), scheduler, solved=solved or SolvedSchedules())
    return planned(model, *at, effort=effort)


def _rows(one: LoweredPass, operator: ScheduledOperator, unit: Unit, slot: Slot) -> Sequence[str]:
    """The rows that an operator is drawn on: single cores where a spread operator has the chip to
    itself, else kinds; what runs in pieces on its cores and on the network."""
    if one.rule.one_core and one.rule.alone:
        return lanes(operator, slot)
    kinds = {
        "both": ("tensor cores", "vector cores"),
        "tensor": ("tensor cores",),
        "vector": ("vector cores",),
    }
    return (*kinds.get(unit.core, ()), *(("network",) if unit.network else ()))


def _layer_pass(
    title: str, graph: OperatorGraph, setting: Setting, backward: bool, effort: SchedulingEffort
) -> Timeline:
    """A pass of a layer as its stack schedules it: rows of cores, each with its operators, and how
    the schedule came about."""
    one, problem, schedule = pass_schedule(graph, setting, backward, effort)
    rows: dict[str, list[Block]] = {}
    by_core = one.rule.one_core and one.rule.alone
    for unit, operator, slot in zip(one.units, problem.operators, schedule.slots, strict=True):
        if slot.end_s > slot.start_s:
            name = " + ".join(
                dict.fromkeys(name_of(graph.operators[place]) for place in unit.places)
            )
            kind: BlockKind = "network" if unit.core == "none" else unit.core
            block = Block(slot.start_s, slot.end_s, name, "", kind)
            for row in _rows(one, operator, unit, slot):
                rows.setdefault(row, []).append(block)
    verdict = (
        _verdict(schedule) if by_core else f"schedule rule {schedule.rules}, host time not drawn"
    )
    order = ("tensor cores", "vector cores", "network")
    ordered = sorted(rows, key=lane_order) if by_core else [row for row in order if row in rows]
    end_s = schedule.makespan_s
    lanes_in_order = [(row, rows[row]) for row in ordered]
    return Timeline(lanes_in_order, end_s, f"{title.capitalize()}, {show(end_s, 's')}", verdict)


def accounted(
    model: Model,
    setting: Setting,
    plan: Mapping[str, Any],
    devices: int,
    batch: int,
    where: str,
    *,
    effort: SchedulingEffort = EXACT,
) -> tuple[Split, tuple[Step, ...]]:
    """How the batch of a plan lies on its devices, and where its time goes, in steps that sum to
    it."""
    parts, _ = plan_parts(model, setting, effort)
    total = -(-batch // model.microbatch)
    split = Split(devices, total, -(-total // plan["data"]))
    calls = [call.layer for call in model.calls]
    _require_layers(plan, calls, where)
    steps = account(plan, parts, calls, split)
    _require(plan, steps, where)
    return split, tuple(steps)


def planned(
    model: Model,
    setting: Setting,
    plan: Mapping[str, Any],
    devices: int,
    batch: int,
    where: str,
    *,
    effort: SchedulingEffort = EXACT,
) -> Story:
    """A plan (``phaze.plan/1``) of a model in a setting; ``effort`` as of plan_parts."""
    split, steps = accounted(model, setting, plan, devices, batch, where, effort=effort)
    most = max(range(len(model.layers)), key=model.count)
    fused = fuse_layer(
        run_layer(model.layers[most], setting.stack, setting.precision), setting.stack.fusion
    )
    passes = {
        "forward": _layer_pass("forward", fused.forward, setting, False, effort),
        "backward": _layer_pass("backward", fused.backward, setting, True, effort),
    }
    pipeline = pipeline_of(plan, split.rounds)
    hbm, layer = float(setting.chip.hbm.size_bytes), model.layers[most].name
    return Story(
        model.name, plan, split, hbm, steps, pipeline, passes, layer, batch, model.sequence
    )

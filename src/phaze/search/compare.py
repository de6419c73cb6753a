"""Chips side by side: each model under the experts' split and under the best one, as ratios to the baseline chip.

The experts' split (pipeline, data, tensor) cuts the layers into stages of equal numbers of blocks, the prologue with
the first and the epilogue with the last, and has as many copies as there are devices for (on 1024 those published); its
microbatch and recompute choice are the best that fit. The rule of thumb
takes the widest tensor split, the fewest such stages that fit, doubled each time, and copies with the rest. A ratio is
throughput over that of the baseline chip under the same kind of placement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.flow import Prepared, graph_of, layer_schedules, placement_of, seconds_of
from phaze.hardware.chip import Chip
from phaze.placement.pipeline import Cut, fits, price
from phaze.placement.problem import Plan, Problem
from phaze.placement.solve import fastest_plan
from phaze.search.cluster_compare import best_plan
from phaze.search.cluster_task import ClusterTask
from phaze.search.evaluation import LIMITS
from phaze.search.task import Job, ModelTask

Split = tuple[int, int, int]
KINDS = ("experts", "rule of thumb", "searched")


@dataclass(frozen=True, slots=True)
class Row:
    """One model on one chip under one kind of placement; None where nothing fits."""

    model: str
    chip: str
    placement: str
    throughput_per_s: float | None
    ratio: float | None
    pipeline: int | None
    data: int | None
    tensor: int | None
    microbatch: int | None
    recompute: str | None


def even_cuts(layers: int, stages: int, again: bool) -> list[Cut]:
    """Blocks in equal numbers, the first stages one more; prologue and epilogue with their neighbours."""
    blocks = layers - 2
    if not 1 <= stages <= blocks:
        raise InputError("experts", f"{stages} stages cannot share {blocks} blocks", "use fewer stages")
    sizes = [blocks // stages + (at < blocks % stages) for at in range(stages)]
    sizes[0] += 1
    sizes[-1] += 1
    cuts, start = [], 0
    for at, size in enumerate(sizes):
        cuts.append(Cut(tuple(range(start, start + size)), again and at < stages - 1))
        start += size
    return cuts


def _experts_plan(problem: Problem, graph: Prepared, split: Split, again: bool) -> Plan | None:
    pipeline, _, tensor = split
    data = min(problem.devices // (pipeline * tensor), problem.microbatches)
    if graph.width != tensor or data < 1 or pipeline > len(graph.calls) - 2:
        return None
    plan = price(problem, tensor, data, even_cuts(len(graph.calls), pipeline, again))
    return plan if fits(problem, plan) else None


def _thumb_plan(problem: Problem, graph: Prepared, again: bool) -> Plan | None:
    """The rule of thumb: the fewest stages, doubled until they fit, and copies with the rest."""
    pipeline = 1
    while pipeline <= len(graph.calls) - 2 and graph.width * pipeline <= problem.devices:
        data = min(problem.devices // (graph.width * pipeline), problem.microbatches)
        plan = price(problem, graph.width, data, even_cuts(len(graph.calls), pipeline, again))
        if fits(problem, plan):
            return plan
        pipeline *= 2
    return None


def _best(task: ModelTask, chip: Chip, kind: str, split: Split | None) -> tuple[Plan, int, str] | None:
    """The fastest plan of a model on a chip, its microbatch and recompute choice."""
    if isinstance(task, ClusterTask):
        return best_plan(task, chip, kind, split)
    widest = max(graph.width for graph in task.graphs)
    schedules = [layer_schedules(graph, chip, LIMITS) for graph in task.graphs]
    found: list[tuple[Plan, int, str]] = []
    for way in task.ways:
        graph = task.graphs[way.graph]
        layers = graph_of(graph, seconds_of(schedules[way.graph]))
        problem = placement_of([layers], graph.microbatch, way.recompute, chip.hbm.size_bytes, task.training)
        again = way.recompute == "full"
        plan: Plan | None = None
        if kind == "searched":
            plan = fastest_plan(problem)
        elif kind == "experts" and split is not None:
            plan = _experts_plan(problem, graph, split, again)
        elif kind == "rule of thumb" and graph.width == widest:
            plan = _thumb_plan(problem, graph, again)
        if plan is not None:
            found.append((plan, graph.microbatch, way.recompute))
    return min(found, key=lambda one: one[0].batch_s, default=None)


def compare(job: Job, chips: Sequence[Chip], experts: Mapping[str, Split]) -> list[Row]:
    """Every model on every chip; the first chip is the baseline."""
    rows: list[Row] = []
    for task in job.models:
        for kind in KINDS if task.name in experts else KINDS[1:]:
            base: float | None = None
            for chip in chips:
                best = _best(task, chip, kind, experts.get(task.name))
                if best is None:
                    rows.append(Row(task.name, chip.name, kind, *(None,) * 7))
                    continue
                plan, microbatch, recompute = best
                rate = task.training.batch / plan.batch_s
                base = rate if chip is chips[0] else base
                ratio = None if base is None else rate / base
                split = (len(plan.stages), plan.data, plan.tensor)
                rows.append(Row(task.name, chip.name, kind, rate, ratio, *split, microbatch, recompute))
    return rows


def compare_document(rows: Sequence[Row], baseline: str) -> dict[str, Any]:
    """The rows as plain values."""
    return {"schema": "phaze.comparison/1", "baseline": baseline, "rows": [asdict(row) for row in rows]}

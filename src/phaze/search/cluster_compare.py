"""Chips side by side under rules ``cluster``: the plan that people choose and the best one, on one chip.

The experts' split keeps its pipeline and width and takes as many copies as there are devices and microbatches for; its
blocks are cut evenly. Its microbatch, sequence parallelism, order and one mode of recompute for all stages are the best
that fit. The rule of thumb takes the widest split and the fewest such stages that fit, doubled each time.
"""

from collections.abc import Iterator

from phaze.errors import InputError
from phaze.evaluate.fixed import even_cuts
from phaze.evaluate.layers import layer_costs
from phaze.hardware.chip import Chip
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import fits, price
from phaze.placement.cluster_problem import ORDERS, ClusterProblem
from phaze.placement.cluster_solve import fastest_plan
from phaze.placement.problem import Plan
from phaze.search.cluster_task import ClusterTask, SerialGraph, problem_of

Split = tuple[int, int, int]


def _evenly(task: ClusterTask, graph: SerialGraph, problem: ClusterProblem, stages: int) -> Plan | None:
    """The fastest plan of so many stages cut evenly, all in one mode, that fits; None if none does."""
    copies = min(problem.devices // (stages * graph.width), problem.microbatches)
    if copies < 1:
        return None
    found = []
    for mode in problem.modes:
        cuts = even_cuts(graph.model, stages, mode)
        for order in ORDERS:
            plan = price(problem, Shape(graph.width, stages, copies, order), cuts, task.prices)
            found += [plan] if fits(problem, plan) else []
    return min(found, key=lambda plan: plan.batch_s, default=None)


def _by_thumb(task: ClusterTask, graph: SerialGraph, problem: ClusterProblem) -> Plan | None:
    stages = 1
    while True:
        try:
            plan = _evenly(task, graph, problem, stages)
        except InputError:
            return None
        if plan is not None or stages * graph.width > problem.devices:
            return plan
        stages *= 2


def _plans(task: ClusterTask, chip: Chip, kind: str, split: Split | None) -> Iterator[tuple[Plan, int]]:
    """The plan of every way that has one, and its microbatch."""
    widest = max(graph.width for graph in task.graphs)
    for way in task.ways:
        graph = task.graph(way.graph)
        wanted = {"experts": 0 if split is None else split[2], "rule of thumb": widest}.get(kind, graph.width)
        if graph.width != wanted:
            continue
        setting = task.job.setting(chip)
        costs = layer_costs(graph.model, setting)
        problem = problem_of(task, graph, way.recompute, chip.hbm.size_bytes, costs, setting.hbm_bytes_per_s)
        if kind == "searched":
            plan = fastest_plan(problem, task.prices)
        elif kind == "experts" and split is not None:
            plan = _evenly(task, graph, problem, split[0])
        else:
            plan = _by_thumb(task, graph, problem)
        if plan is not None:
            yield plan, graph.microbatch


def best_plan(task: ClusterTask, chip: Chip, kind: str, split: Split | None) -> tuple[Plan, int, str] | None:
    """The fastest plan of a kind on a chip, its microbatch, and how its stages recompute."""
    found = min(_plans(task, chip, kind, split), key=lambda one: one[0].batch_s, default=None)
    if found is None:
        return None
    plan, microbatch = found
    return plan, microbatch, ", ".join(sorted({stage.recompute for stage in plan.stages}))

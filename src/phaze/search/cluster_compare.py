"""Chips side by side under rules ``cluster``: the plan that people choose and the best one, on one chip.

The experts' split keeps its pipeline and width and takes as many copies as there are devices and microbatches for; its
blocks are cut evenly. Its microbatch, sequence parallelism, order and one mode of recompute for all stages are the best
that fit, by the study's objective. The rule of thumb takes the widest split and the fewest such stages that fit,
doubled each time.
"""

import numpy as np

from phaze.errors import InputError
from phaze.evaluate.fixed import even_cuts
from phaze.hardware.chip import Chip
from phaze.placement.one.layout import Shape
from phaze.placement.one.pipeline import Cut, fits, price
from phaze.placement.one.problem import Problem
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Plan
from phaze.search.cluster_plain import Choose, placed_on
from phaze.search.cluster_task import ClusterTask, SerialGraph
from phaze.search.objective import Objective
from phaze.search.plain import Offer, energy_table
from phaze.search.rates import chip_rates

Split = tuple[int, int, int]


def _evenly(task: ClusterTask, graph: SerialGraph, problem: Problem, stages: int) -> Plan | None:
    """The fastest plan of so many stages cut evenly, all in one mode, that fits; None if none does."""
    copies = min(problem.devices // (stages * graph.width), problem.microbatches)
    if copies < 1:
        return None
    found = []
    for mode in problem.modes():
        cuts = [Cut(cut.layers, mode) for cut in even_cuts(graph.model, stages, mode)]
        for order in problem.rules.orders:
            plan = price(problem, Shape(graph.width, stages, copies, order), cuts, task.prices)
            found += [plan] if fits(problem, plan) else []
    return min(found, key=lambda plan: plan.batch_s, default=None)


def _by_thumb(task: ClusterTask, graph: SerialGraph, problem: Problem) -> Plan | None:
    stages = 1
    while True:
        try:
            plan = _evenly(task, graph, problem, stages)
        except InputError:
            return None
        if plan is not None or stages * graph.width > problem.devices:
            return plan
        stages *= 2


def _choose(task: ClusterTask, graph: SerialGraph, kind: str, split: Split | None) -> Choose | None:
    """How a kind of placement places a graph; None where it does not use that width."""
    widest = max(own.width for own in task.graphs)
    wanted = {"experts": 0 if split is None else split[2], "rule of thumb": widest}.get(kind, graph.width)
    if graph.width != wanted:
        return None
    if kind == "searched":
        return lambda problem, _, below_s: fastest_plan(problem, task.prices, below_s)
    if kind == "experts" and split is not None:
        return lambda problem, _, below_s: _evenly(task, graph, problem, split[0])
    return lambda problem, _, below_s: _by_thumb(task, graph, problem)


def best_offer(task: ClusterTask, chip: Chip, kind: str, split: Split | None, objective: Objective) -> Offer | None:
    """The plan of a kind with the least value on a chip."""
    rates = chip_rates(objective, chip, task.training.devices)
    table = energy_table(chip) if objective.needs_energy else None
    found: list[Offer] = []
    for way in task.ways:
        choose = _choose(task, task.graph(way.graph), kind, split)
        if choose is None:
            continue
        placed = placed_on(task, way, chip, table, choose=choose)
        if placed.plan is not None:
            value = float(rates.value(np.asarray(placed.plan.batch_s), placed.dynamic_j))
            found.append(Offer(way, placed.plan, value))
    return min(found, key=lambda offer: offer.value, default=None)

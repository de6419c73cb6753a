"""A model on one chip under rules ``cluster`` by the plain path: what ``phaze plan`` computes, no cache, no arrays.

What a search found is checked against it, a baseline chip is priced by it, and answers are written from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import chip_arrays
from phaze.evaluate.headroom import memory_left
from phaze.evaluate.layers import LayerCost, layer_costs
from phaze.evaluate.prices import LevelPrices
from phaze.hardware.chip import Chip
from phaze.hardware.technology import EnergyTable, Technology, chip_areas
from phaze.placement.answer import document_of
from phaze.placement.one.check import objections
from phaze.placement.one.problem import Problem
from phaze.placement.one.shortage import shortage_of
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Plan
from phaze.placement.shortage import Shortage
from phaze.search.cluster_energy import joules_on, plan_joules
from phaze.search.cluster_task import ClusterTask, problem_of
from phaze.search.energy import COMPONENTS
from phaze.search.objective import Rates
from phaze.search.task import Way

Floats = NDArray[np.float64]
Choose = Callable[[Problem, LevelPrices, float], Plan | None]


@dataclass(frozen=True, slots=True)
class Placed:
    """One way of a model on a chip: its layers, the problem, the fastest plan, and joules of a batch by component."""

    costs: tuple[LayerCost, ...]
    problem: Problem
    plan: Plan | None
    joules: Floats

    @property
    def dynamic_j(self) -> float:
        return float(self.joules.sum())


def prices_of(task: ClusterTask) -> LevelPrices:
    """The prices of the task's cluster, none remembered."""
    return LevelPrices(task.job.machine.cluster, task.job.machine.basis)


def placed_on(
    task: ClusterTask,
    way: Way,
    chip: Chip,
    table: EnergyTable | None,
    below_s: float = np.inf,
    choose: Choose = fastest_plan,
    costs: tuple[LayerCost, ...] | None = None,
) -> Placed:
    """One way on a chip with its own memory; without a plan where nothing fits or nothing takes less.

    ``costs`` are those of the way's layers where they are known already; they depend on no memory.
    """
    setting, graph = task.job.setting(chip), task.graph(way.graph)
    costs = layer_costs(graph.model, setting) if costs is None else costs
    problem = problem_of(task, graph, way.recompute, chip.hbm.size_bytes, costs, setting.hbm_bytes_per_s)
    plan = choose(problem, prices_of(task), below_s)
    joules = np.zeros(len(COMPONENTS))
    if plan is not None and table is not None:
        layers = joules_on(graph, chip_arrays([chip]), setting.constants, table)
        joules = plan_joules(graph, problem, plan, layers, table)
    return Placed(costs, problem, plan, joules)


def cluster_value(
    task: ClusterTask, chip: Chip, rates: Rates, table: EnergyTable | None, last_s: float = np.inf
) -> float:
    """The least value of a model on a chip over all its ways; infinite if none fits, or none within ``last_s``, which
    only counts where energy does not."""
    best = float("inf")
    for way in task.ways:
        below_s = min(last_s, best / float(rates.rate)) * (1 + 1e-9) if table is None else np.inf
        found = placed_on(task, way, chip, table, below_s)
        if found.plan is not None:
            best = min(best, float(rates.value(np.asarray(found.plan.batch_s), found.dynamic_j)))
    return best


def _layers(task: ClusterTask, way: Way, costs: tuple[LayerCost, ...]) -> list[dict[str, Any]]:
    calls = task.graphs[way.graph].calls
    return [
        {
            "name": cost.name,
            "count": calls.count(at),
            "forward_s": cost.forward_s,
            "backward_s": cost.backward_s,
            "selective_s": cost.selective_s,
            "full_s": cost.full_s,
        }
        for at, cost in enumerate(costs)
    ]


def cluster_document(task: ClusterTask, way: Way, chip: Chip, technology: Technology) -> dict[str, Any]:
    """One model on the chip, as the answer of a search has it: its way, its plan, its layers, its energy."""
    graph, training = task.graph(way.graph), task.job
    found = placed_on(task, way, chip, technology.energy)
    if found.plan is None:
        raise AssertionError(f"{task.name}: the answer's plan does not fit")
    batch_s = found.plan.batch_s
    static_j = (
        training.devices * technology.energy.static_w_per_mm2 * float(chip_areas(technology, chip).total()) * batch_s
    )
    energy_j, plan = found.dynamic_j + static_j, document_of(found.plan)
    return {
        "name": task.name,
        "weight": task.weight,
        "microbatch": graph.microbatch,
        "tensor": graph.width,
        "sequence_parallel": graph.model.sequence_parallel,
        "attention": graph.attention,
        "recompute": way.recompute,
        "batch_s": batch_s,
        "throughput_per_s": training.batch / batch_s,
        "energy_j": energy_j,
        "power_w": energy_j / batch_s / training.devices,
        "energy": {**dict(zip(COMPONENTS, found.joules.tolist(), strict=True)), "static": static_j},
        "layers": _layers(task, way, found.costs),
        "plan": plan,
        "memory_left": memory_left(plan["stages"], chip.hbm.size_bytes, training.headroom),
        "notes": list(graph.notes),
    }


def plan_objections(task: ClusterTask, way: Way, chip: Chip, plan: Mapping[str, Any]) -> list[str]:
    """What the placement's checker finds wrong with a plan that a result states."""
    setting, graph = task.job.setting(chip), task.graph(way.graph)
    costs = layer_costs(graph.model, setting)
    problem = problem_of(task, graph, way.recompute, chip.hbm.size_bytes, costs, setting.hbm_bytes_per_s)
    return objections(problem, plan, prices_of(task))


def way_of(task: ClusterTask, said: Mapping[str, Any]) -> Way | None:
    """The way that a model's table in a result names."""
    wanted = (said["microbatch"], said["tensor"], said["sequence_parallel"], said["recompute"])
    for way in task.ways:
        graph = task.graph(way.graph)
        own = (graph.microbatch, graph.width, graph.model.sequence_parallel, way.recompute)
        if own == wanted and graph.attention == said.get("attention"):
            return way
    return None


def least_shortage(task: ClusterTask, chip: Chip) -> tuple[float, Shortage] | None:
    """What the most frugal way of a model lacks on a chip; None if one fits."""
    found: list[tuple[float, Shortage]] = []
    for way in task.ways:
        placed = placed_on(task, way, chip, None)
        if placed.plan is not None:
            return None
        shortage = shortage_of(placed.problem, prices_of(task))
        stage = shortage.tightest
        found.append((float("inf") if stage is None else stage.memory.total_bytes, shortage))
    return min(found, key=lambda one: one[0])

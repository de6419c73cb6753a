"""Rules ``cluster`` in a search: layer times of all chips, bounds from arrays, and opened chips placed exactly."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.hardware.technology import EnergyTable
from phaze.placement.one.problem import Problem
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Recompute
from phaze.schedule.bounds import Bound
from phaze.schedule.solve import KnownPart
from phaze.search.bound import LayerTimes
from phaze.search.cluster_bound import SLACK, task_bounds
from phaze.search.cluster_energy import SerialJoules, joule_floors, joules_on, layer_floors, plan_joules
from phaze.search.cluster_shapes import Tables, tables_of
from phaze.search.cluster_task import ClusterTask, SerialGraph, SerialTimes, problem_of, serial_times
from phaze.search.deadline import NEVER, Deadline
from phaze.search.evaluation import NOTHING, Opened, Priced
from phaze.search.task import Job, ModelTask

Floats = NDArray[np.float64]


def _is_cluster(task: ModelTask) -> ClusterTask:
    assert isinstance(task, ClusterTask)
    return task


def _are_serial(times: Sequence[LayerTimes]) -> list[SerialTimes]:
    found = [own for own in times if isinstance(own, SerialTimes)]
    assert len(found) == len(times)
    return found


def cluster_times(
    job: Job, arrays: ChipArrays, energy: EnergyTable | None, use: Sequence[Bound], deadline: Deadline = NEVER
) -> list[list[LayerTimes]]:
    """The layers of all models on some chips, by model and graph: exact where formulas give them, else bounds by what
    is in ``use``; with ``energy`` also their joules."""
    found: list[list[LayerTimes]] = []
    for model in job.models:
        task, own = _is_cluster(model), list[LayerTimes]()
        for at in range(len(task.graphs)):
            deadline.check()
            times = serial_times(task.graph(at), arrays, task.job.constants, lambda one, own: one.bound(own, use))
            if energy is not None:
                joules = layer_floors(task.graph(at), arrays, task.job.constants, energy)
                times = replace(times, dynamic_j=joules)
            own.append(times)
        found.append(own)
    return found


def _tables(task: ClusterTask, way: int, hbm_bytes: int) -> Tables:
    chosen = task.ways[way]
    graph = task.graph(chosen.graph)
    return task.shelf.take((way, hbm_bytes), lambda: tables_of(task, graph, chosen.recompute, hbm_bytes))


def cluster_bounds(
    model: ModelTask,
    times: Sequence[LayerTimes],
    hbm_bytes: Sequence[int],
    cut_s: float,
    cuts: bool,
    deadline: Deadline = NEVER,
) -> Floats:
    """Bounds on the batch time of every way, [ways, memories, chips]; ``cuts``: also by the best cuts."""
    task = _is_cluster(model)
    tables = list[list[Tables]]()
    for way in range(len(task.ways)):
        deadline.check()
        tables.append([_tables(task, way, size) for size in hbm_bytes])
    return task_bounds(task, tables, _are_serial(times), cut_s, cuts, deadline)


def cluster_floors(model: ModelTask, times: Sequence[LayerTimes]) -> Floats:
    """Bounds on the dynamic joules of a batch of every graph, [graphs, chips]; zero where energy does not count."""
    task = _is_cluster(model)
    return np.array(
        [
            np.zeros(own.forward_s.shape[1])
            if own.dynamic_j is None
            else joule_floors(task, task.graph(at), own.dynamic_j) * (1 - SLACK)
            for at, own in enumerate(times)
        ]
    )


@dataclass(slots=True)
class ClusterOpened(Opened):
    """One chip under rules ``cluster``: its layers by (model, graph), found when they are asked for."""

    times: dict[tuple[int, int], tuple[SerialTimes, SerialTimes]] = field(default_factory=dict)
    joules: dict[tuple[int, int], tuple[SerialJoules, ...]] = field(default_factory=dict)

    def price(self, model: int, way: int, hbm: int, below_s: float = float("inf")) -> Priced:
        """A batch of a model run that way, or that no plan takes less than ``below_s``.

        Where energy counts there is no limit: which of equally fast plans is found must not depend on it.
        """
        task = _is_cluster(self.tasks[model])
        chosen, key = task.ways[way], (model, task.ways[way].graph)
        graph = task.graph(chosen.graph)
        times, least = self._times(task, key)
        problem = self._problem(task, graph, chosen.recompute, hbm, times)
        self.known.placements += 1
        limit = below_s if self.energy is None else float("inf")
        plan = fastest_plan(problem, task.prices, limit)
        if plan is None and least is times:
            return NOTHING if limit == float("inf") else replace(NOTHING, lower_s=limit)
        lower_s = limit if plan is None else plan.batch_s
        if least is not times:
            # Some schedule is not proved: no plan with the bounds of all schedules is faster than this.
            proved = fastest_plan(self._problem(task, graph, chosen.recompute, hbm, least), task.prices, limit)
            lower_s = limit if proved is None else proved.batch_s
        if plan is None:
            return NOTHING if lower_s == float("inf") else replace(NOTHING, lower_s=lower_s)
        if self.energy is None:
            return Priced(plan.batch_s, 0.0, lower_s)
        if key not in self.joules:
            self.joules[key] = joules_on(graph, self.arrays, task.job.constants, self.energy)
        joules = float(plan_joules(graph, problem, plan, self.joules[key], self.energy).sum())
        return Priced(plan.batch_s, joules, lower_s)

    def _problem(
        self, task: ClusterTask, graph: SerialGraph, recompute: Recompute, hbm: int, times: SerialTimes
    ) -> Problem:
        costs, rate = times.costs(graph, 0), float(times.hbm_bytes_per_s[0])
        return problem_of(task, graph, recompute, self.job.hbm_bytes[hbm], costs, rate)

    def _times(self, task: ClusterTask, key: tuple[int, int]) -> tuple[SerialTimes, SerialTimes]:
        """The layers by their schedules, and by what was proved of them: the same where all are optimal."""
        if key not in self.times:
            graph, constants = task.graph(key[1]), task.job.constants
            schedules = task.shelf.take("schedules", dict[str, KnownPart])
            found = serial_times(graph, self.arrays, constants, lambda one, at: one.device_s(at, known=schedules))
            least = serial_times(
                graph, self.arrays, constants, lambda one, at: one.device_s(at, known=schedules, proved=True)
            )
            self.times[key] = found, found if found.alike(least) else least
        return self.times[key]

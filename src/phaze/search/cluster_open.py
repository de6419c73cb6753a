"""Rules ``cluster`` in a search: layer times of all chips, bounds from arrays, and opened chips placed exactly."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.placement.cluster_solve import fastest_plan
from phaze.search.chips import SpaceChips
from phaze.search.cluster_bound import SLACK, task_bounds
from phaze.search.cluster_energy import SerialJoules, joule_floors, joules_on, layer_floors, plan_joules
from phaze.search.cluster_shapes import Tables, tables_of
from phaze.search.cluster_task import ClusterTask, SerialTimes, problem_of, serial_times
from phaze.search.evaluation import NOTHING, Opened, Priced
from phaze.search.task import Job, Networks

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _task(job: Job, model: int) -> ClusterTask:
    task = job.models[model]
    assert isinstance(task, ClusterTask)
    return task


@dataclass(slots=True, kw_only=True)
class ClusterOpened(Opened):
    """One chip under rules ``cluster``; ``times`` are those of all chips, by model and graph."""

    times: list[list[SerialTimes]]
    joules: dict[tuple[int, int], tuple[SerialJoules, ...]] = field(default_factory=dict)

    def price(self, model: int, way: int, hbm: int, below_s: float = float("inf")) -> Priced:
        """A batch of a model run that way, or that no plan takes less than ``below_s``.

        Where energy counts the limit does not: of plans that take equally long, any may then be the one found.
        """
        task, chosen = _task(self.job, model), self.job.models[model].ways[way]
        graph, times = task.graph(chosen.graph), self.times[model][chosen.graph]
        costs = times.costs(graph, self.chip)
        rate = float(times.hbm_bytes_per_s[self.chip])
        problem = problem_of(task, graph, chosen.recompute, self.job.hbm_bytes[hbm], costs, rate)
        self.known.placements += 1
        limit = below_s if self.energy is None else float("inf")
        plan = fastest_plan(problem, task.prices, limit)
        if plan is None:
            return NOTHING if limit == float("inf") else replace(NOTHING, lower_s=limit)
        if self.energy is None:
            return Priced(plan.batch_s, 0.0, plan.batch_s)
        key = (model, chosen.graph)
        if key not in self.joules:
            self.joules[key] = joules_on(graph, self.arrays, task.job.constants, self.energy)
        joules = float(plan_joules(graph, problem, plan, self.joules[key], self.energy).sum())
        return Priced(plan.batch_s, joules, plan.batch_s)


@dataclass(slots=True)
class ClusterRules:
    """What a search asks of rules ``cluster``; ``tables`` by model, way and memory are made when they are asked for."""

    step: str = "cut"
    tables: dict[tuple[int, int, int], Tables] = field(default_factory=dict)

    def layer_times(
        self, job: Job, opened: SpaceChips, networks: Networks, arrays: ChipArrays
    ) -> list[list[SerialTimes]]:
        """The layers of all models on all chips, exact."""
        energy = opened.technology.energy if job.objective.needs_energy else None
        found = []
        for at in range(len(job.models)):
            task = _task(job, at)
            own = [serial_times(task.graph(g), arrays, task.job.constants) for g in range(len(task.graphs))]
            if energy is not None:
                floors = [
                    layer_floors(task.graph(g), arrays, task.job.constants, energy) for g in range(len(task.graphs))
                ]
                own = [replace(times, joules=joules) for times, joules in zip(own, floors, strict=True)]
            found.append(own)
        return found

    def tighter_times(self, state: Any, index: Integers) -> list[list[SerialTimes]]:
        """Layer times are exact from the beginning."""
        return [[own.taken(index) for own in model] for model in state.times]

    def bounds(
        self,
        state: Any,
        index: Integers,
        times: Sequence[Sequence[SerialTimes]],
        cuts: Sequence[float],
        general: bool,
    ) -> list[Floats]:
        """Bounds on batch times by model, [ways, memories, chips]; ``general``: also by the best cuts."""
        job, found = state.job, []
        for model, cut_s in enumerate(cuts):
            task = _task(job, model)
            tables = [
                [self._tables(task, model, way, job.hbm_bytes[at], at) for at in state.memories]
                for way in range(len(task.ways))
            ]
            found.append(task_bounds(task, tables, times[model], cut_s, general))
        return found

    def _tables(self, task: ClusterTask, model: int, way: int, hbm_bytes: int, memory: int) -> Tables:
        key, chosen = (model, way, memory), task.ways[way]
        if key not in self.tables:
            self.tables[key] = tables_of(task, task.graph(chosen.graph), chosen.recompute, hbm_bytes)
        return self.tables[key]

    def floors(self, job: Job, times: Sequence[Sequence[SerialTimes]]) -> list[Floats]:
        """Bounds on the dynamic joules of a batch by model, [graphs, chips]."""
        found = []
        for model, own in enumerate(times):
            task, rows = _task(job, model), []
            for graph, one in enumerate(own):
                joules = np.zeros(one.forward_s.shape[1])
                if one.joules is not None:
                    joules = joule_floors(task, task.graph(graph), one.joules) * (1 - SLACK)
                rows.append(joules)
            found.append(np.array(rows))
        return found

    def open(self, state: Any, chip: int) -> ClusterOpened:
        """One chip, to be evaluated."""
        return ClusterOpened(
            state.job, state.scale, state.rates, chip, state.arrays.taken(np.array([chip])),
            state.networks.tasks_of(chip), int(state.networks.of[chip]), state.known, state.energy,
            times=state.times,
        )  # fmt: skip

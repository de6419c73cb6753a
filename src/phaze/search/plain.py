"""A model on one chip by the plain path: every pass scheduled anew, the general placement solver, no cache, no arrays.

What a search found is checked against it, a baseline chip is priced by it, and answers are written from it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import chip_arrays
from phaze.errors import InputError
from phaze.evaluate.flow import LayerSeconds, Prepared, layer_schedules, seconds_of
from phaze.evaluate.passes import table_of
from phaze.hardware.chip import Chip
from phaze.hardware.technology import EnergyTable
from phaze.hardware.technology_files import load_technology
from phaze.placement.problem import Plan
from phaze.schedule.problem import Schedule
from phaze.search.cluster_plain import cluster_value
from phaze.search.cluster_task import ClusterTask
from phaze.search.energy import COMPONENTS, Electricity, LayerJoules, layer_joules, plan_joules, spread_of
from phaze.search.evaluation import LIMITS, plan_of
from phaze.search.objective import Objective
from phaze.search.rates import chip_rates
from phaze.search.task import ModelTask, Way

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlainLayers:
    """The layers of one graph on one chip: schedules of all passes, seconds, and where they are asked for joules."""

    schedules: tuple[Schedule, ...]
    seconds: tuple[LayerSeconds, ...]
    joules: tuple[LayerJoules, ...]


@dataclass(frozen=True, slots=True)
class PlainPlan:
    """The fastest plan of a way, and joules of a batch by component, without static ones."""

    plan: Plan
    joules: Floats

    @property
    def dynamic_j(self) -> float:
        return float(self.joules.sum())

    def document(self, static_w: float, devices: int) -> dict[str, float]:
        """Joules of a batch by component."""
        found = dict(zip(COMPONENTS, self.joules.tolist(), strict=True))
        return {**found, "static": devices * static_w * self.plan.batch_s}


def energy_table(chip: Chip) -> EnergyTable:
    """The energies of a chip's technology."""
    if chip.technology is None:
        raise InputError("chip", f"{chip.name} names no technology", "choose a chip that does")
    return load_technology(chip.technology).energy


def layers_on(graph: Prepared, chip: Chip, electricity: Electricity | None) -> PlainLayers:
    """The layers of one graph on a chip."""
    schedules = layer_schedules(graph, chip, LIMITS)
    joules: tuple[LayerJoules, ...] = ()
    if electricity is not None:
        arrays = chip_arrays([chip])
        spread = [spread_of(schedule) for schedule in schedules]
        joules = layer_joules(graph, table_of(graph.passes, arrays), arrays, electricity, spread)
    return PlainLayers(schedules, seconds_of(schedules), joules)


def planned(
    task: ModelTask, way: Way, layers: PlainLayers, hbm_bytes: float, electricity: Electricity | None
) -> PlainPlan | None:
    """The fastest plan of one way, or None when nothing fits."""
    graph = task.graphs[way.graph]
    plan = plan_of(graph, layers.seconds, way.recompute, hbm_bytes, task.training)
    if plan is None:
        return None
    if electricity is None:
        return PlainPlan(plan, np.zeros(len(COMPONENTS)))
    return PlainPlan(plan, plan_joules(graph, plan, layers.joules, electricity, task.training))


def value_on(task: ModelTask, chip: Chip, objective: Objective) -> float:
    """The least value of a model on a chip with its own memory, over all its ways; infinite if none fits."""
    rates, electricity = chip_rates(objective, chip, task.training.devices), None
    if isinstance(task, ClusterTask):
        return cluster_value(task, chip, rates, energy_table(chip) if objective.needs_energy else None)
    if objective.needs_energy:
        electricity = Electricity(energy_table(chip), task.training.link_bytes_per_s)
    layers = [layers_on(graph, chip, electricity) for graph in task.graphs]
    best = float("inf")
    for way in task.ways:
        found = planned(task, way, layers[way.graph], chip.hbm.size_bytes, electricity)
        if found is not None:
            best = min(best, float(rates.value(np.asarray(found.plan.batch_s), found.dynamic_j)))
    return best

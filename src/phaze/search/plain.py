"""A model on one chip by the plain path: every pass scheduled anew, the general placement solver, no cache, no arrays.

What a search found is checked against it, a baseline chip is priced by it, and answers are written from it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import chip_arrays
from phaze.errors import InputError
from phaze.evaluate.flow import LayerSeconds, Prepared, graph_of, layer_schedules, placement_of
from phaze.evaluate.passes import table_of
from phaze.hardware.chip import Chip
from phaze.hardware.technology import EnergyTable
from phaze.hardware.technology_files import technology_of
from phaze.placement.one.problem import Plan, Problem
from phaze.placement.one.solve import fastest_plan
from phaze.schedule.solve import Scheduler
from phaze.search.cluster_plain import cluster_value
from phaze.search.cluster_task import ClusterTask
from phaze.search.energy import COMPONENTS, Electricity, LayerJoules, layer_joules, plan_joules, spread_of
from phaze.search.evaluation import Found, limits_of
from phaze.search.objective import Objective
from phaze.search.rates import chip_rates
from phaze.search.task import ModelTask, Way

Floats = NDArray[np.float64]
Choose = Callable[[Problem], Plan | None]


@dataclass(frozen=True, slots=True)
class PlainLayers:
    """The layers of one graph on one chip: makespans, bounds and spreads of passes; seconds; joules if asked."""

    schedules: tuple[Found, ...]
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
    technology = technology_of(chip)
    if technology is None:
        raise InputError("chip", f"{chip.name} names no technology", "choose a chip that does")
    return technology.energy


def layers_on(
    graph: Prepared,
    chip: Chip,
    electricity: Electricity | None,
    known: Sequence[Found] | None = None,
    scheduler: Scheduler = "exact",
) -> PlainLayers:
    """The layers of one graph on a chip; ``known`` are their schedules where there is no time to find them anew."""
    if known is None:
        solved = layer_schedules(graph, chip, limits_of(scheduler), scheduler)
        known = [(one.makespan_s, one.lower_bound_s, spread_of(one)) for one in solved]
    joules: tuple[LayerJoules, ...] = ()
    if electricity is not None:
        arrays = chip_arrays([chip])
        spread = [flags for _, _, flags in known]
        joules = layer_joules(graph, table_of(graph.passes, arrays), arrays, electricity, spread)
    seconds = [makespan_s for makespan_s, _, _ in known]
    pairs = zip(seconds[::2], seconds[1::2], strict=True)
    return PlainLayers(tuple(known), tuple(LayerSeconds(*pair) for pair in pairs), joules)


def planned(
    task: ModelTask,
    way: Way,
    layers: PlainLayers,
    hbm_bytes: float,
    electricity: Electricity | None,
    choose: Choose = fastest_plan,
) -> PlainPlan | None:
    """The plan that is chosen for one way, the fastest if nothing else is said; None when nothing fits."""
    graph = task.graphs[way.graph]
    placed = [graph_of(graph, layers.seconds)]
    plan = choose(placement_of(placed, graph.microbatch, way.recompute, hbm_bytes, task.training))
    if plan is None:
        return None
    if electricity is None:
        return PlainPlan(plan, np.zeros(len(COMPONENTS)))
    return PlainPlan(plan, plan_joules(graph, plan, layers.joules, electricity, task.training))


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan of a model on a chip, the way that it runs, and its value under the objective."""

    way: Way
    plan: Plan
    value: float


def electricity_on(task: ModelTask, chip: Chip, objective: Objective) -> Electricity | None:
    """What energies of a model on a chip depend on, where they count."""
    if not objective.needs_energy:
        return None
    return Electricity(energy_table(chip), task.training.link_bytes_per_s)


def offers_on(
    task: ModelTask,
    chip: Chip,
    objective: Objective,
    layers: Sequence[PlainLayers],
    choice: Callable[[Way], Choose | None] = lambda _: fastest_plan,
) -> list[Offer]:
    """What every way of a model reaches on a chip with its own memory; ``choice`` says how a way is placed, if at all.

    ``layers`` are those of the task's graphs on the chip.
    """
    rates, electricity = chip_rates(objective, chip, task.training.devices), electricity_on(task, chip, objective)
    found = []
    for way in task.ways:
        choose = choice(way)
        if choose is not None:
            plan = planned(task, way, layers[way.graph], chip.hbm.size_bytes, electricity, choose)
            if plan is not None:
                value = float(rates.value(np.asarray(plan.plan.batch_s), plan.dynamic_j))
                found.append(Offer(way, plan.plan, value))
    return found


def value_on(task: ModelTask, chip: Chip, objective: Objective) -> float:
    """The least value of a model on a chip with its own memory, over all its ways; infinite if none fits."""
    if isinstance(task, ClusterTask):
        rates = chip_rates(objective, chip, task.training.devices)
        return cluster_value(task, chip, rates, energy_table(chip) if objective.needs_energy else None)
    layers = [layers_on(graph, chip, electricity_on(task, chip, objective)) for graph in task.graphs]
    return min((offer.value for offer in offers_on(task, chip, objective, layers)), default=float("inf"))

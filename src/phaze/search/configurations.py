"""A model's configurations on one chip: the fastest plan of each and its joules, by the reference
path.

A front states its designs by it and checks them, an explanation the plans of its answers. Layers
are costed and scheduled once for every graph, since they depend on no memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.lowered_pass import WorkTimes
from phaze.hardware.chip import Chip
from phaze.hardware.technology import Technology
from phaze.placement.answer import document_of, require_true
from phaze.placement.plan import Plan
from phaze.schedule.problem import Schedule
from phaze.search.energy import OperatorJoules, operator_joules
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.reference import ReferenceLayers, layers_on, placed_on
from phaze.search.state import SearchState
from phaze.search.task import Configuration, ModelTask


@dataclass(frozen=True, slots=True)
class ConfigurationPlan:
    """The fastest plan of a configuration, its stage of ZeRO, its joules of a batch beyond static
    ones, and the schedules of its layers' passes in order, where each is at hand."""

    plan: Plan
    zero: int
    dynamic_j: float
    schedules: tuple[Schedule, ...] | None = None


@dataclass(frozen=True, slots=True)
class ChipConfigurations:
    """A model on one chip; ``table`` None: joules do not count. ``known``: schedules found before,
    and the name of the graph in them without its number. ``works`` and ``joules``: what works take
    there by graph, as far as that is known."""

    task: ModelTask
    chip: Chip
    table: Technology | None
    schedules: tuple[ScheduleMemo, bytes] | None = None
    layers: dict[int, ReferenceLayers] = field(default_factory=dict)
    works: Mapping[int, WorkTimes] = field(default_factory=dict)
    joules: Mapping[int, OperatorJoules] = field(default_factory=dict)

    def plan(self, configuration: Configuration, hbm_bytes: int) -> ConfigurationPlan | None:
        """The fastest plan of a configuration with that memory, or None when nothing fits."""
        if configuration.graph not in self.layers:
            schedules = (
                None
                if self.schedules is None
                else (self.schedules[0], b"%s %d" % (self.schedules[1], configuration.graph))
            )
            graph, costs = configuration.graph, self.works.get(configuration.graph)
            operators = self.joules.get(graph)
            layers = layers_on(
                self.task, graph, self.chip, self.table, schedules, costs=costs, operators=operators
            )
            self.layers[graph] = layers
        layers = self.layers[configuration.graph]
        placed = placed_on(self.task, configuration, layers, hbm_bytes, self.table)
        if placed.plan is None:
            return None
        require_true(placed.problem, document_of(placed.plan), self.task.prices)
        solved = tuple(schedule for schedule in layers.exact.schedules if schedule is not None)
        whole = solved if len(solved) == len(layers.exact.schedules) else None
        return ConfigurationPlan(placed.plan, placed.problem.zero, placed.dynamic_j, whole)


def configuration_names(task: ModelTask, configuration: Configuration) -> dict[str, Any]:
    """What names a configuration beside width, microbatch and recompute."""
    graph = task.graphs[configuration.graph]
    return {
        **task.degrees(configuration),
        "sequence_parallel": graph.model.sequence_parallel,
        "attention": graph.attention,
    }


@dataclass(frozen=True, slots=True)
class SharedJoules:
    """Joules of operators on some chips of a search, ascending, computed for all of them when one
    asks: a chip alone takes nearly as long."""

    state: SearchState
    chips: NDArray[np.int64]
    operators: dict[tuple[int, int], OperatorJoules] = field(default_factory=dict)

    def of(self, model: int, graph: int, chip: int) -> OperatorJoules | None:
        """Those of a graph of a model on one of the chips."""
        column, task, energy = (
            int(np.searchsorted(self.chips, chip)),
            self.state.job.models[model],
            self.state.chips.space.technology,
        )
        if column == len(self.chips) or self.chips[column] != chip:
            return None
        if (model, graph) not in self.operators:
            arrays = self.state.arrays.taken(self.chips)
            rank_graph, constants = task.graphs[graph], task.constants
            self.operators[model, graph] = operator_joules(rank_graph, arrays, constants, energy)
        return self.operators[model, graph].of_chip(column)


def plan_found(
    state: SearchState,
    chip: int,
    model: int,
    configuration: int,
    hbm: int,
    joules: SharedJoules | None = None,
) -> ConfigurationPlan | None:
    """The plan of a configuration on a chip of a search, its joules counted; schedules that were
    found are not solved again."""
    task, value = (
        state.networks.tasks_of(chip)[model],
        state.chips.chip(chip, state.job.hbm_bytes[hbm]),
    )
    schedules = (state.memo, b"%d %d" % (state.networks.of[chip], model))
    works, chosen = works_known(state, chip, model, value), task.configurations[configuration]
    # Joules of works are those of all chips where the chip has no constants of its own.
    shared = (
        joules.of(model, chosen.graph, chip)
        if joules is not None and chosen.graph in works
        else None
    )
    joules_by_graph = {} if shared is None else {chosen.graph: shared}
    configurations = ChipConfigurations(
        task, value, state.chips.space.technology, schedules, works=works, joules=joules_by_graph
    )
    return configurations.plan(chosen, value.hbm.size_bytes)


def works_known(state: SearchState, number: int, model: int, chip: Chip) -> dict[int, WorkTimes]:
    """What works of a model take on a chip of a search, by graph, as far as that is kept
    (:mod:`phaze.search.round_works`); nothing where the chip has constants of its own."""
    task = state.job.models[model]
    if task.setting(chip).constants != task.constants:
        return {}
    return {
        graph: works
        for (of, graph, position), works in state.memo.works.items()
        if (of, position) == (model, number)
    }

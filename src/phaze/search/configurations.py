"""A model's configurations on one chip: the fastest plan of each and its joules, by the reference path.

A front states its designs by it and checks them, an explanation the plans of its answers. Layers are costed and
scheduled once for every graph, since they depend on no memory.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from phaze.dataclass import dataclass
from phaze.evaluate.ruled_pass import WorkTimes
from phaze.hardware.chip import Chip
from phaze.hardware.silicon.design import EnergyModel
from phaze.placement.plan import Plan
from phaze.search.evaluation import ScheduleMemo
from phaze.search.reference import ReferenceLayers, layers_on, placed_on
from phaze.search.state import SearchState
from phaze.search.task import Configuration, ModelTask


@dataclass(frozen=True, slots=True)
class ConfigurationPlan:
    """The fastest plan of a configuration, its stage of ZeRO, and its joules of a batch beyond static ones."""

    plan: Plan
    zero: int
    dynamic_j: float


@dataclass(frozen=True, slots=True)
class ChipConfigurations:
    """A model on one chip; ``table`` None: joules do not count. ``known``: schedules found before, and the name of the
    graph in them without its number. ``works``: what works take there by graph, as far as that is known."""

    task: ModelTask
    chip: Chip
    table: EnergyModel | None
    known: tuple[ScheduleMemo, bytes] | None = None
    layers: dict[int, ReferenceLayers] = field(default_factory=dict)
    works: Mapping[int, WorkTimes] = field(default_factory=dict)

    def plan(self, configuration: Configuration, hbm_bytes: int) -> ConfigurationPlan | None:
        """The fastest plan of a configuration with that memory, or None when nothing fits."""
        if configuration.graph not in self.layers:
            known = None if self.known is None else (self.known[0], b"%s %d" % (self.known[1], configuration.graph))
            graph, costs = configuration.graph, self.works.get(configuration.graph)
            self.layers[graph] = layers_on(self.task, graph, self.chip, self.table, known, costs=costs)
        placed = placed_on(self.task, configuration, self.layers[configuration.graph], hbm_bytes, self.table)
        return None if placed.plan is None else ConfigurationPlan(placed.plan, placed.problem.zero, placed.dynamic_j)


def configuration_names(task: ModelTask, configuration: Configuration) -> dict[str, Any]:
    """What names a configuration beside width, microbatch and recompute."""
    graph = task.graphs[configuration.graph]
    return {
        **task.degrees(configuration),
        "sequence_parallel": graph.model.sequence_parallel,
        "attention": graph.attention,
    }


def plan_found(state: SearchState, chip: int, model: int, configuration: int, hbm: int) -> ConfigurationPlan | None:
    """The plan of a configuration on a chip of a search, its joules counted; schedules that were found are not solved
    again."""
    task, value = state.networks.tasks_of(chip)[model], state.opened.chip(chip, state.job.hbm_bytes[hbm])
    known = (state.known, b"%d %d" % (state.networks.of[chip], model))
    works = works_known(state, chip, model, value)
    return ChipConfigurations(task, value, state.opened.energy, known, works=works).plan(
        task.configurations[configuration], value.hbm.size_bytes
    )


def works_known(state: SearchState, number: int, model: int, chip: Chip) -> dict[int, WorkTimes]:
    """What works of a model take on a chip of a search, by graph, as far as that is kept
    (:mod:`phaze.search.round_works`); nothing where the chip has constants of its own."""
    job = state.job.models[model].training
    if job.setting(chip).constants != job.constants:
        return {}
    return {graph: own for (of, graph, at), own in state.known.works.items() if (of, at) == (model, number)}

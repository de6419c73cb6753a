"""A model's ways on one chip, whatever its rules: the fastest plan of each and its joules, by the plain path.

A front states its designs by it and checks them, an explanation the plans of its answers. Layers are costed and
scheduled once for every graph, since they depend on no memory.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phaze.evaluate.layers import LayerCost, layer_costs
from phaze.evaluate.passes import table_of
from phaze.hardware.chip import Chip
from phaze.hardware.technology import EnergyTable
from phaze.schedule.solve import KnownPart
from phaze.search.cluster_plain import placed_on
from phaze.search.cluster_task import ClusterTask
from phaze.search.energy import Electricity
from phaze.search.evaluation import Found, exact_passes
from phaze.search.plain import PlainLayers, PlainPlan, layers_on, planned
from phaze.search.state import State
from phaze.search.task import ModelTask, Way


@dataclass(frozen=True, slots=True)
class WaysOnChip:
    """A model on one chip; ``table`` None: joules do not count. ``schedules`` are parts of passes solved before,
    ``passes`` whole ones by graph."""

    task: ModelTask
    chip: Chip
    table: EnergyTable | None
    schedules: dict[str, KnownPart] | None = None
    passes: dict[int, list[Found]] = field(default_factory=dict)
    layers: dict[int, PlainLayers] = field(default_factory=dict)
    costs: dict[int, tuple[LayerCost, ...]] = field(default_factory=dict)

    def plan(self, way: Way, hbm_bytes: int) -> PlainPlan | None:
        """The fastest plan of a way with that memory, or None when nothing fits."""
        task = self.task
        if isinstance(task, ClusterTask):
            return self._placed(task, way, hbm_bytes)
        link = task.training.link_bytes_per_s
        electricity = None if self.table is None else Electricity(self.table, link)
        if way.graph not in self.layers:
            known = self.passes.get(way.graph)
            self.layers[way.graph] = layers_on(task.graphs[way.graph], self.chip, electricity, known)
        return planned(task, way, self.layers[way.graph], hbm_bytes, electricity)

    def _placed(self, task: ClusterTask, way: Way, hbm_bytes: int) -> PlainPlan | None:
        chip = replace(self.chip, hbm=replace(self.chip.hbm, size_bytes=hbm_bytes))
        if way.graph not in self.costs:
            model = task.graph(way.graph).model
            self.costs[way.graph] = layer_costs(model, task.job.setting(chip), self.schedules)
        found = placed_on(task, way, chip, self.table, costs=self.costs[way.graph])
        return None if found.plan is None else PlainPlan(found.plan, found.joules)


def way_names(task: ModelTask, way: Way) -> dict[str, Any]:
    """What names a way beside width, microbatch and recompute, where its rules know such choices."""
    if not isinstance(task, ClusterTask):
        return {}
    graph = task.graph(way.graph)
    return {"sequence_parallel": graph.model.sequence_parallel, "attention": graph.attention}


def zero_of(task: ModelTask) -> int:
    """The ZeRO stage that a model is trained with; 0 where its rules know none."""
    return task.job.zero if isinstance(task, ClusterTask) else 0


def plan_found(state: State, chip: int, model: int, way: int, hbm: int) -> PlainPlan | None:
    """The plan of a way on a chip of a search, its joules counted; schedules that were found are not solved again."""
    task, value = state.networks.tasks_of(chip)[model], state.opened.chip(chip, state.job.hbm_bytes[hbm])
    chosen, table = task.ways[way], state.opened.technology.energy
    if isinstance(task, ClusterTask):
        schedules = task.shelf.take("schedules", dict[str, KnownPart])
        return WaysOnChip(task, value, table, schedules).plan(chosen, value.hbm.size_bytes)
    graph, arrays = task.graphs[chosen.graph], state.arrays.taken(np.array([chip]))
    name = b"%d %d %d" % (state.networks.of[chip], model, chosen.graph)
    passes = {chosen.graph: exact_passes(graph, name, arrays, table_of(graph.passes, arrays), state.known)}
    return WaysOnChip(task, value, table, None, passes).plan(chosen, value.hbm.size_bytes)

"""Bounds on the layer times of all models on some chips, a chunk of chips and a network of the
space at a time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.table import cost_table
from phaze.evaluate.layer_table import CHUNK, LayerTable, empty_table, layer_works
from phaze.evaluate.lowered_pass import table_times
from phaze.schedule.bounds import Bound
from phaze.search.bounds.model_bounds import CHEAP, layer_bounds
from phaze.search.bounds.part_loads import PartLoads, part_floors, peak_floors
from phaze.search.chips import SpaceChips
from phaze.search.deadline import NEVER, Deadline
from phaze.search.rank_graph import RankGraph
from phaze.search.task import ModelTask, Networks, SearchJob

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def layer_times_on(
    job: SearchJob,
    space_chips: SpaceChips,
    networks: Networks,
    arrays: ChipSet,
    index: Integers,
    use: Sequence[Bound],
    deadline: Deadline = NEVER,
    wanted: Sequence[Flags] | None = None,
) -> list[list[LayerTable]]:
    """Bounds on all layers of all models on the chips of ``index``, by model and graph.

    ``wanted`` by model [graphs, chips of ``index``]: on other pairs nothing is computed, and
    seconds are infinite.
    """
    energy = space_chips.space.technology if job.objective.needs_energy else None
    times: list[list[LayerTable]] = []
    for model, task in enumerate(job.models):
        times.append([])
        for graph, prepared in enumerate(task.graphs):
            whole = empty_table(prepared.layers, len(index), energy is not None)
            places = np.arange(len(index))
            if wanted is not None:
                whole.forget()
                places = np.flatnonzero(wanted[model][graph])
            for start in range(0, len(places), CHUNK):
                there = places[start : start + CHUNK]
                part = index[there]
                groups, chips = (
                    list(networks.groups(part)),
                    arrays if len(part) == len(arrays) else arrays.taken(part),
                )
                # What works take is the same on every network.
                costs = (
                    layer_works(prepared.layers, chips, task.constants) if len(groups) > 1 else None
                )
                for members, tasks in groups:
                    some, works = (
                        (chips, None)
                        if costs is None
                        else (chips.taken(members), costs.taken(members))
                    )
                    mine = tasks[model]
                    bounds = layer_bounds(
                        mine, mine.graphs[graph], some, use, energy, deadline, works
                    )
                    whole.put(there[members], bounds)
            times[-1].append(whole)
    return times


def open_times_on(
    job: SearchJob,
    networks: Networks,
    arrays: ChipSet,
    index: Integers,
    cuts_s: Sequence[float],
    deadline: Deadline,
) -> tuple[list[list[LayerTable]], list[Floats]]:
    """The cheap bounds on all layers of all models on the chips of ``index``, by model and graph,
    and what no batch of a graph undercuts by peak rates and by the loads of parts, by model
    [graphs, chips]. Where that is above a model's ``cuts_s``, the layers are not considered, and
    their seconds are infinite."""
    times, floors = list[list[LayerTable]](), list[Floats]()
    for model, task in enumerate(job.models):
        times.append([])
        floors.append(np.zeros((len(task.graphs), len(index))))
        for graph, prepared in enumerate(task.graphs):
            whole = empty_table(prepared.layers, len(index), False)
            whole.forget()
            for members, tasks in networks.groups(index):
                deadline.check()
                chips, mine = arrays.taken(index[members]), tasks[model]
                cheap = _open_bounds(mine, mine.graphs[graph], chips, cuts_s[model], deadline)
                floors[-1][graph, members] = cheap.floors_s
                if cheap.bounds is not None:
                    whole.put(members[cheap.open], cheap.bounds)
            times[-1].append(whole)
    return times, floors


@dataclass(frozen=True, slots=True)
class _OpenBounds:
    """Floors of a graph on some chips, which of them are below a cut, and bounds on the layers
    there."""

    floors_s: Floats
    open: Integers
    bounds: LayerTable | None


def _open_bounds(
    task: ModelTask, graph: RankGraph, chips: ChipSet, cut_s: float, deadline: Deadline
) -> _OpenBounds:
    """A graph on chips of one network: peak rates, loads of parts where these are below the cut,
    then its layers."""
    floors = peak_floors(task, graph, chips)
    near = np.flatnonzero(floors <= cut_s)
    if not len(near):
        return _OpenBounds(floors, near, None)
    works, those = (
        [work for layer in graph.layers for lowered in layer.passes for work in lowered.works],
        chips.taken(near),
    )
    table = cost_table(works, those, task.constants)
    floors[near] = np.maximum(floors[near], part_floors(task, graph, PartLoads(table, those)))
    left = np.flatnonzero(floors[near] <= cut_s)
    if not len(left):
        return _OpenBounds(floors, left, None)
    some = those.taken(left)
    costs = table_times(table.taken(left), some, graph.layers[0].rule)
    return _OpenBounds(
        floors, near[left], layer_bounds(task, graph, some, CHEAP, None, deadline, costs)
    )

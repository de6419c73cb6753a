"""Bounds on the layer times of all models on some chips, a chunk of chips and a network of the space at a time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet, table_of
from phaze.cost.parts import ChipArrays
from phaze.evaluate.layer_times import layer_works
from phaze.evaluate.ruled_pass import table_times
from phaze.schedule.bounds import Bound
from phaze.search.bounds.model_bounds import CHEAP, layer_bounds
from phaze.search.bounds.part_loads import PartLoads, part_floors
from phaze.search.deadline import NEVER, Deadline
from phaze.search.rank_graph import CHUNK, GraphTimes, empty_times
from phaze.search.spaces import EnumeratedSpace
from phaze.search.task import Networks, SearchJob

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def layer_times_on(
    job: SearchJob,
    opened: EnumeratedSpace,
    networks: Networks,
    arrays: ChipSet,
    index: Integers,
    use: Sequence[Bound],
    deadline: Deadline = NEVER,
    wanted: Sequence[Flags] | None = None,
) -> list[list[GraphTimes]]:
    """Bounds on all layers of all models on the chips of ``index``, by model and graph.

    ``wanted`` by model [graphs, chips of ``index``]: on other pairs nothing is worked out, and seconds are infinite.
    """
    energy = opened.energy if job.objective.needs_energy else None
    times: list[list[GraphTimes]] = []
    for model, task in enumerate(job.models):
        times.append([])
        for graph, prepared in enumerate(task.graphs):
            whole = empty_times(prepared, len(index), energy is not None)
            places = np.arange(len(index))
            if wanted is not None:
                whole.forget()
                places = np.flatnonzero(wanted[model][graph])
            for start in range(0, len(places), CHUNK):
                there = places[start : start + CHUNK]
                part = index[there]
                groups, chips = list(networks.groups(part)), arrays if len(part) == len(arrays) else arrays.taken(part)
                # What works take is the same on every network.
                costs = layer_works(prepared.layers, chips, task.training.constants) if len(groups) > 1 else None
                for own, tasks in groups:
                    some, known = (chips, None) if costs is None else (chips.taken(own), costs.taken(own))
                    mine = tasks[model]
                    bounds = layer_bounds(mine, mine.graphs[graph], some, use, energy, deadline, known)
                    whole.put(there[own], bounds)
            times[-1].append(whole)
    return times


def open_times_on(
    job: SearchJob, networks: Networks, arrays: ChipArrays, index: Integers, cuts_s: Sequence[float], deadline: Deadline
) -> tuple[list[list[GraphTimes]], list[Floats]]:
    """The cheap bounds on all layers of all models on the chips of ``index``, by model and graph, and what no batch of
    a graph undercuts by the loads of parts, by model [graphs, chips]. Where that is above a model's ``cuts_s``, the
    layers are not looked at, and their seconds are infinite."""
    chips, times, floors = arrays.taken(index), list[list[GraphTimes]](), list[Floats]()
    for model, task in enumerate(job.models):
        times.append([])
        floors.append(np.zeros((len(task.graphs), len(index))))
        for graph, prepared in enumerate(task.graphs):
            deadline.check()
            works = [work for layer in prepared.layers for one in layer.passes for work in one.works]
            table, whole = table_of(works, chips, task.training.constants), empty_times(prepared, len(index), False)
            loads, least_s = PartLoads(table, chips), floors[-1][graph]
            whole.forget()
            for own, tasks in networks.groups(index):
                mine = tasks[model]
                least_s[own] = part_floors(mine, mine.graphs[graph], loads)[own]
                some = own[least_s[own] <= cuts_s[model]]
                if len(some):
                    those = chips.taken(some)
                    costs = table_times(table.taken(some), those, prepared.layers[0].rule)
                    bounds = layer_bounds(mine, mine.graphs[graph], those, CHEAP, None, deadline, costs)
                    whole.put(some, bounds)
            times[-1].append(whole)
    return times, floors

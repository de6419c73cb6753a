"""Bounds on the layer times of all models on some chips, a chunk of chips and a network of the space at a time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.layer_times import layer_works
from phaze.schedule.bounds import Bound
from phaze.search.bounds.model_bounds import layer_bounds
from phaze.search.deadline import NEVER, Deadline
from phaze.search.rank_graph import CHUNK, GraphTimes, empty_times
from phaze.search.spaces import EnumeratedSpace
from phaze.search.task import Networks, SearchJob

Integers = NDArray[np.int64]


def layer_times_on(
    job: SearchJob,
    opened: EnumeratedSpace,
    networks: Networks,
    arrays: ChipSet,
    index: Integers,
    use: Sequence[Bound],
    deadline: Deadline = NEVER,
) -> list[list[GraphTimes]]:
    """Bounds on all layers of all models on the chips of ``index``, by model and graph."""
    energy = opened.energy if job.objective.needs_energy else None
    times: list[list[GraphTimes]] = []
    for model, task in enumerate(job.models):
        times.append([])
        for graph, prepared in enumerate(task.graphs):
            whole = empty_times(prepared, len(index), energy is not None)
            for start in range(0, len(index), CHUNK):
                part = index[start : start + CHUNK]
                groups, chips = list(networks.groups(part)), arrays if len(part) == len(arrays) else arrays.taken(part)
                # What works take is the same on every network.
                costs = layer_works(prepared.layers, chips, task.training.constants) if len(groups) > 1 else None
                for own, tasks in groups:
                    some, known = (chips, None) if costs is None else (chips.taken(own), costs.taken(own))
                    mine = tasks[model]
                    bounds = layer_bounds(mine, mine.graphs[graph], some, use, energy, deadline, known)
                    whole.put(start + own, bounds)
            times[-1].append(whole)
    return times

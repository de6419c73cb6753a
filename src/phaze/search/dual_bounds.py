"""Bounds on the batch times of some chips of a search, and the finer ones of those that may still
win.

The antichain dual of a schedule takes longer than all cheap bounds together, so it is computed
for pairs of graph and chip only: those with a configuration whose cheap bound is within the last
batch time that matters.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.layer_table import LayerTable
from phaze.search.bounds.chip_times import layer_times_on
from phaze.search.bounds.model_bounds import DUAL, model_bounds
from phaze.search.rates import alike
from phaze.search.state import SearchState

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def bounds_on(
    state: SearchState,
    index: Integers,
    times: list[list[LayerTable]],
    cuts: Sequence[Floats | float],
    general: bool = False,
    floors: Sequence[Floats] | None = None,
) -> list[Floats]:
    """Bounds on batch times of the chips of ``index``; ``times`` are theirs, by model and graph,
    and ``cuts`` by model of all of them or of each; ``floors`` by model what is known where times
    are infinite."""
    hbm = [state.job.hbm_bytes[memory] for memory in state.memories]
    bounds = []
    for model, (task, cut) in enumerate(zip(state.job.models, cuts, strict=True)):
        whole = np.full((len(task.configurations), len(hbm), len(index)), np.inf)
        for positions, tasks in state.networks.groups(index):
            for memories, within in alike(
                np.isfinite(state.rates.rate[state.memories][:, index[positions]])
            ):
                chips = positions[within]
                some = (
                    times[model]
                    if len(chips) == len(index)
                    else [t.taken(chips) for t in times[model]]
                )
                sizes, limit = (
                    [hbm[memory] for memory in memories],
                    cut[chips] if isinstance(cut, np.ndarray) else cut,
                )
                least_s = None if floors is None else floors[model][:, chips]
                found_s = model_bounds(
                    tasks[model], some, sizes, limit, general, state.deadline, least_s=least_s
                )
                whole[np.ix_(np.arange(len(task.configurations)), memories, chips)] = found_s
        bounds.append(whole)
    return bounds


def finer_times(
    state: SearchState, index: Integers, wanted: Sequence[Flags] | None = None
) -> list[list[LayerTable]]:
    """The best bounds on the layers of some chips: with the antichain dual, or what is known where
    that is exact; ``wanted`` as of :func:`~phaze.search.bounds.chip_times.layer_times_on`."""
    if state.times and all(graph.has_formula for task in state.job.models for graph in task.graphs):
        return [[table.taken(index) for table in model] for model in state.times]

    def work_out(some: Integers, wanted: Sequence[Flags] | None = None) -> list[list[LayerTable]]:
        table = (state.job, state.chips, state.networks, state.arrays, some, DUAL, state.deadline)
        return layer_times_on(*table, wanted)

    if state.shared is None:
        return work_out(index, wanted)
    return state.shared.finer_times(state.job, state.chips, index, work_out)


def _open_graphs(state: SearchState, index: Integers, limits: Sequence[Floats]) -> list[Flags]:
    """By model the graphs with a configuration whose bound on a chip of ``index`` is within its
    limit, [graphs, chips]."""
    open_graphs = []
    for task, bounds, limit in zip(state.job.models, state.bounds, limits, strict=True):
        near: Flags = np.any(bounds[:, :, index] <= limit, axis=1)
        of = np.array([configuration.graph for configuration in task.configurations])
        open_graphs.append(
            np.array([near[of == graph].any(axis=0) for graph in range(len(task.graphs))])
        )
    return open_graphs


def raise_open(state: SearchState, index: Integers, limits: Sequence[Floats]) -> None:
    """The finer bounds of some chips up to batch times by model, the better ones kept. A graph
    whose bounds on a chip are all beyond them keeps these: its schedules there decide nothing."""
    wanted = _open_graphs(state, index, limits)
    finer = bounds_on(state, index, finer_times(state, index, wanted), limits, general=True)
    for task, bounds, graphs in zip(state.job.models, finer, wanted, strict=True):
        wanted_rows = graphs[[configuration.graph for configuration in task.configurations]]
        bounds[np.broadcast_to(~wanted_rows[:, None, :], bounds.shape)] = 0.0
    state.raise_bounds(index, finer)

"""What the works of a round of chips take, and what no schedule of them undercuts, on all of them
at once: a chip alone takes nearly as long."""

from collections.abc import Sequence

import numpy as np

from phaze.evaluate.layer_table import layer_works
from phaze.search.bounds.model_bounds import DUAL, layer_bounds
from phaze.search.state import SearchState

# How far above the best bound of a chip its configurations are expected to be considered: exactly,
# and by their duals.
NEAR, BOUNDED = 0.05, 0.25


def share_works(state: SearchState, chips: Sequence[int]) -> None:
    """Cost the works of a round on all its chips at once, of the graphs whose bounds are near the
    best of a chip, and where layers need schedules bound these; what is requested beyond that is
    computed then. Units of a front are chips by memory."""
    index = np.unique(np.asarray(chips, np.int64) % len(state.arrays))
    works, duals = state.memo.works, state.memo.duals
    works.clear()
    duals.clear()
    for model, task in enumerate(state.job.models if len(index) else ()):
        values = state.values(model, index).min(axis=1)
        graph_of = np.array([configuration.graph for configuration in task.configurations])
        for graph, rank_graph in enumerate(task.graphs):
            exactly = rank_graph.has_formula or state.memo.scheduler != "exact"
            near = values[graph_of == graph] <= values.min(axis=0) * (
                1 + (NEAR if exactly else BOUNDED)
            )
            some = index[near.any(axis=0)]
            if not len(some):
                continue
            costs = layer_works(rank_graph.layers, state.arrays.taken(some), task.constants)
            for place, chip in enumerate(some.tolist()):
                works[model, graph, chip] = costs.taken(np.array([place]))
            if exactly:
                continue
            for of, tasks in state.networks.groups(some):
                mine, there = tasks[model], costs.taken(of)
                dual = layer_bounds(
                    mine, mine.graphs[graph], state.arrays.taken(some[of]), DUAL, costs=there
                )
                for place, chip in enumerate(some[of].tolist()):
                    duals[model, graph, chip] = dual.taken(np.array([place]))

"""What the works of a round of chips take, costed on all of them at once: a chip alone takes nearly as long."""

from collections.abc import Sequence

import numpy as np

from phaze.evaluate.layer_times import layer_works
from phaze.search.state import SearchState

# How far above the best bound of a chip its configurations are expected to be looked at.
NEAR = 0.05


def share_works(state: SearchState, chips: Sequence[int]) -> None:
    """Cost the works of a round on all its chips at once, of the graphs whose bounds are near the best of a chip; what
    is asked for beyond that is costed then. Units of a front are chips by memory."""
    works, index = state.known.works, np.unique(np.asarray(chips, np.int64) % len(state.arrays))
    works.clear()
    for model, task in enumerate(state.job.models if len(index) else ()):
        values = state.values(model, index).min(axis=1)
        near = values <= values.min(axis=0) * (1 + NEAR)
        graph_of = np.array([configuration.graph for configuration in task.configurations])
        for graph, own in enumerate(task.graphs):
            some = index[near[graph_of == graph].any(axis=0)]
            if len(some):
                costs = layer_works(own.layers, state.arrays.taken(some), task.training.constants)
                for at, chip in enumerate(some.tolist()):
                    works[model, graph, chip] = costs.taken(np.array([at]))

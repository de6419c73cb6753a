"""Bytes of parameters that stages have: which some stage reaches, which are priced, and experts
among them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.placement.prepared_width import Width
from phaze.placement.problem import PlacementProblem
from phaze.placement.stage_kernels import StageTable
from phaze.search.rank_graph import RankGraph

Floats = NDArray[np.float64]
# Prices are asked for so many sizes of a largest stage at the most; of more the next smaller one
# counts.
MOST_SIZES = 1024


@dataclass(frozen=True, slots=True)
class StageSizes:
    """Bytes of parameters and of experts among them that stages have, each pair once, by ascending
    bytes."""

    parameter_bytes: Floats
    expert_bytes: Floats

    def least(self, amounts: Floats, sizes_bytes: Floats) -> Floats:
        """By size, the least amount of any stage of at least that many bytes of parameters;
        ``amounts`` by pair."""
        least = np.minimum.accumulate(np.append(amounts, np.inf)[::-1])[::-1]
        leasts = least[np.searchsorted(self.parameter_bytes, sizes_bytes * (1 - 1e-12))]
        return np.where(np.isinf(leasts), 0.0, leasts)

    def stepped_bytes(self, problem: PlacementProblem, width: Width) -> Floats:
        """Bytes of parameters that a rank updates under ZeRO with one replica, by pair: of d
        replicas 1 / d of it."""
        dense, ranks = (
            self.parameter_bytes - self.expert_bytes,
            problem.sharing.group / width.graph.width,
        )
        return dense / problem.sharing.context + self.expert_bytes * ranks


def stage_sizes(table: StageTable) -> StageSizes:
    """The sizes of the stages of a table."""
    pairs = np.unique(np.stack([table.parameter_bytes, table.expert_bytes], axis=1), axis=0)
    return StageSizes(pairs[:, 0].copy(), pairs[:, 1].copy())


def reached_bytes(graph: RankGraph, problem: PlacementProblem, width: Width) -> Floats:
    """w_S by depth S, 0 at 0: parameter bytes that some stage has at the least."""
    free = {graph.calls[layer.id] for layer in width.graph.layers}
    free -= {
        graph.calls[layer.id]
        for layer in problem.graph(width.graph.width).layers
        if layer.tied is not None
    }
    depths = np.arange(1, width.depth + 1)
    reached = np.maximum(
        width.parameter_bytes / depths, float(width.cut_sets.parameter_bytes.max())
    )
    for kind in free:
        reached = np.maximum(
            reached, -(-graph.calls.count(kind) // depths) * graph.layers[kind].parameter_bytes
        )
    return np.append(0.0, reached)


def first_bytes(width: Width) -> float:
    """Parameter bytes that a first stage has at the least: those of a layer that nothing leads
    to."""
    heads = {edge.head for edge in width.graph.edges}
    return min(
        layer.parameter_bytes
        for index, layer in enumerate(width.graph.layers)
        if index not in heads
    )


def priced_sizes(table: StageTable, reached: Floats) -> Floats:
    """The sizes of a largest stage that prices are asked for, ascending."""
    sizes = np.unique(np.append(reached, table.parameter_bytes))
    sizes = sizes[sizes >= reached.min(initial=np.inf)]
    return np.asarray(sizes[:: max(1, -(-len(sizes) // MOST_SIZES))])

"""A layer graph as arrays for the kernels: layers, edges, and the closed sets that stages are cut
from.

A set of layers is *closed* if it holds every successor of its layers: what is left for the later
stages of a pipeline. From closed set U a stage X may be taken if U - X is closed too; taking the
layers of X in topological order, every step is again a closed set, so all stages are walks along
single removals. A chain of n layers has n + 1 closed sets.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phaze.errors import InputError
from phaze.placement.layers import LayerGraph

# Tables over so many sets and 100 stages are 80 MB; a chain of n layers has n + 1.
MOST_CLOSED_SETS = 100_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class CutSets(NamedTuple):
    """Layers by position, edges grouped by head (``in_``) and by tail (``out_``), closed sets by
    ascending size.

    Closed set 0 is empty and the last one is the whole graph. Set u loses layer ``step_layer[k]``
    and becomes set ``step_set[k]`` for ``step_start[u] <= k < step_start[u + 1]``, by ascending
    layer. ``unsplit`` counts layers of the set that are not sharded, ``size`` all of them.
    """

    forward_s: Floats
    backward_s: Floats
    parameter_bytes: Floats
    activation_bytes: Floats
    sharded: Flags
    in_start: Ints
    in_tail: Ints
    in_bytes: Floats
    out_start: Ints
    out_head: Ints
    out_bytes: Floats
    step_start: Ints
    step_layer: Ints
    step_set: Ints
    size: Ints
    unsplit: Ints


def is_chain(graph: LayerGraph) -> bool:
    """Whether only one topological order exists; edges that skip layers do not matter."""
    return (
        len({edge.tail for edge in graph.edges if edge.head == edge.tail + 1})
        == len(graph.layers) - 1
    )


def closed_sets(graph: LayerGraph) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """All closed sets as bit masks by ascending size, and from each its removals (layer, index of
    what is left)."""
    n = len(graph.layers)
    after = [0] * n
    before = [0] * n
    for edge in graph.edges:
        after[edge.tail] |= 1 << edge.head
        before[edge.head] |= 1 << edge.tail
    index, sets = {0: 0}, [0]
    level = {0: sum(1 << layer for layer in range(n) if not after[layer])}
    for _ in range(n):
        next_level: dict[int, int] = {}
        for mask, addable in level.items():
            rest = addable
            while rest:
                bit = rest & -rest
                rest ^= bit
                if mask | bit not in next_level:
                    next_level[mask | bit] = (addable ^ bit) | _ready(
                        mask | bit, before[bit.bit_length() - 1], after
                    )
        if len(sets) + len(next_level) > MOST_CLOSED_SETS:
            raise InputError(
                f"widths.{graph.width}.edges",
                (
                    f"the layers branch into more than {MOST_CLOSED_SETS:,} sets that a "
                    "pipeline could be cut at"
                ),
                "merge layers that run in parallel, or add edges that put them in order",
            )
        level = next_level
        for mask in sorted(next_level):
            index[mask] = len(sets)
            sets.append(mask)
    return sets, [_removals(mask, before, index) for mask in sets]


def _ready(mask: int, candidates: int, after: list[int]) -> int:
    """Those of ``candidates`` whose successors all lie in ``mask``."""
    ready = 0
    while candidates:
        bit = candidates & -candidates
        candidates ^= bit
        if not after[bit.bit_length() - 1] & ~mask:
            ready |= bit
    return ready


def _removals(mask: int, before: list[int], index: dict[int, int]) -> list[tuple[int, int]]:
    steps, rest = [], mask
    while rest:
        bit = rest & -rest
        rest ^= bit
        if not before[bit.bit_length() - 1] & mask:
            steps.append((bit.bit_length() - 1, index[mask ^ bit]))
    return steps


def _grouped(keys: Ints, others: Ints, sizes: Floats, n: int) -> tuple[Ints, Ints, Floats]:
    order = np.lexsort((sizes, others, keys))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=n), out=start[1:])
    return start, others[order], sizes[order]


def cut_sets_of(graph: LayerGraph) -> CutSets:
    """The arrays of ``graph``; an :class:`InputError` when it has too many closed sets."""
    layers, edges = graph.layers, graph.edges
    n = len(layers)
    rows = [(la.forward_s, la.backward_s, la.parameter_bytes, la.activation_bytes) for la in layers]
    forward_s, backward_s, parameter_bytes, activation_bytes = np.array(rows, np.float64).T.copy()
    sharded = np.array([layer.sharded for layer in layers], np.bool_)
    tails = np.array([edge.tail for edge in edges], np.int64)
    heads = np.array([edge.head for edge in edges], np.int64)
    sizes = np.array([edge.size_bytes for edge in edges], np.float64)
    if is_chain(graph):
        steps = np.arange(n, dtype=np.int64)
        step_start, step_layer, step_set = (
            np.maximum(np.arange(-1, n + 1, dtype=np.int64), 0),
            steps[::-1].copy(),
            steps,
        )
        size = np.arange(n + 1, dtype=np.int64)
        unsplit = np.zeros(n + 1, np.int64)
        np.cumsum(~sharded[::-1], out=unsplit[1:])
    else:
        sets, removals = closed_sets(graph)
        flat = np.array([step for steps_ in removals for step in steps_], np.int64).reshape(-1, 2)
        step_start = np.zeros(len(sets) + 1, np.int64)
        np.cumsum([len(steps_) for steps_ in removals], out=step_start[1:])
        step_layer, step_set = flat[:, 0].copy(), flat[:, 1].copy()
        plain = sum(1 << position for position, layer in enumerate(layers) if not layer.sharded)
        size = np.array([mask.bit_count() for mask in sets], np.int64)
        unsplit = np.array([(mask & plain).bit_count() for mask in sets], np.int64)
    return CutSets(
        forward_s,
        backward_s,
        parameter_bytes,
        activation_bytes,
        sharded,
        *_grouped(heads, tails, sizes, n),
        *_grouped(tails, heads, sizes, n),
        step_start,
        step_layer,
        step_set,
        size,
        unsplit,
    )

"""The published method for placing layers: a table with an axis for devices, here in numpy, for
chains (rules icml24).

Let T(i, j, s) be the time of a stage of the layers i .. j-1 that is the s-th from the end, infinite
where it does not fit, and a(i, j) the devices it takes. The least greatest stage time of the layers
i .. n-1 in s stages on at most k devices is

    g(n, 0, k) = 0,   g(i, s, k) = min over j of max( T(i, j, s), g(j, s - 1, k - a(i, j)) )

and the batch takes, over d copies of S stages whose first has the layers 0 .. j-1,

    max( T(0, j, S), g(j, S - 1, K/d - a(0, j)) ) (ceil(M/d) + S - 1) + 4 (d - 1)/d w(0, j) / B.

It shares no code with :mod:`phaze.placement.solve`, which has no axis for devices, and is checked
against it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.placement.layers import LayerGraph
from phaze.placement.problem import PlacementProblem

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Stages:
    """Of every stage i .. j-1: its times, bytes and devices; the last axis of a table is j - 1."""

    stash_s: Floats
    again_s: Floats
    parameter_bytes: Floats
    activation_bytes: Floats
    entering_bytes: Floats
    devices: NDArray[np.int64]


def _stages(problem: PlacementProblem, graph: LayerGraph) -> _Stages:
    n, rate = len(graph.layers), problem.rules.link_bytes_per_s or np.inf
    forward, stash, again = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    weights, kept, entering = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    devices = np.ones((n, n), np.int64)
    for i in range(n):
        end = weight = saved = bytes_in = 0.0
        for j in range(i, n):
            layer = graph.layers[j]
            arriving = [e.size_bytes for e in graph.edges if e.head == j and e.tail < i]
            end = max([end, *(size / rate for size in arriving)]) + layer.forward_s
            weight, saved = weight + layer.parameter_bytes, saved + layer.activation_bytes
            bytes_in += sum(arriving)
            forward[i, j], weights[i, j], kept[i, j], entering[i, j] = end, weight, saved, bytes_in
            devices[i, j] = graph.width if layer.sharded or (j > i and devices[i, j - 1] > 1) else 1
    for j in range(n):
        plain = waiting = own = 0.0
        for i in range(j, -1, -1):
            layer = graph.layers[i]
            leaving = [e.size_bytes / rate for e in graph.edges if e.tail == i and e.head > j]
            waiting = max([waiting, *leaving]) + layer.backward_s if waiting or leaving else 0.0
            plain, own = plain + layer.backward_s, own + layer.forward_s
            stash[i, j] = forward[i, j] + max(plain, waiting)
            again[i, j] = forward[i, j] + max(own + plain, waiting)
    return _Stages(stash, again, weights, kept, entering, devices)


def _times(problem: PlacementProblem, stages: _Stages, number: int) -> Floats:
    """T of every stage as the ``number``-th from the end; infinite where nothing fits."""
    held = (
        problem.state.total / problem.sent_bytes * stages.parameter_bytes + stages.activation_bytes
    )
    room = problem.hbm_bytes * (1 + 1e-12)
    stash = np.where(held + (number - 1) * stages.activation_bytes <= room, stages.stash_s, np.inf)
    if number == 1 or problem.recompute == "none":
        return stash
    again = np.where(held + (number - 1) * stages.entering_bytes <= room, stages.again_s, np.inf)
    return again if problem.recompute == "full" else np.minimum(stash, again)


def _shifted(rows: Floats, devices: NDArray[np.int64]) -> Floats:
    """Row j with what ``devices[j]`` devices fewer leave."""
    found = np.full(rows.shape, np.inf)
    for taken in np.unique(devices[devices < rows.shape[1]]):
        of = devices == taken
        found[of, taken:] = rows[of, : rows.shape[1] - taken]
    return found


def _best_of_width(problem: PlacementProblem, graph: LayerGraph) -> float:
    n, devices = len(graph.layers), problem.devices
    stages = _stages(problem, graph)
    data = np.arange(1, min(devices, problem.microbatches) + 1)
    rounds, share = -(-problem.microbatches // data), devices // data
    sync = 4 * (data - 1) / data / (problem.rules.link_bytes_per_s or np.inf)
    before = np.full((n + 1, devices + 1), np.inf)
    before[n] = 0.0
    best = np.inf
    for number in range(1, n + 1):
        times = _times(problem, stages, number)
        now = np.full((n + 1, devices + 1), np.inf)
        for i in range(n - number + 1):
            last = slice(i, n - number + 1)
            reached = np.maximum(
                times[i, last, None],
                _shifted(before[i + 1 : n - number + 2], stages.devices[i, last]),
            )
            now[i] = reached.min(axis=0)
            if i == 0:
                batch = (
                    reached[:, share] * (rounds + number - 1)
                    + sync * stages.parameter_bytes[0, last, None]
                )
                best = min(best, float(batch.min()))
        before = now
    return best


def least_batch_s(problem: PlacementProblem) -> float:
    """The least batch time over all widths, copies, stages and cuts; infinite when nothing fits."""
    return min(_best_of_width(problem, graph) for graph in problem.graphs)

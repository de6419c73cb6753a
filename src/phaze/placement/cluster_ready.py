"""One width of a problem under rules ``cluster`` made ready for the kernels: its stages, transfers and sums."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from phaze.errors import InputError
from phaze.placement import cluster_kernels as kernels
from phaze.placement.charts import Chart, chart_of
from phaze.placement.cluster_prices import Prices
from phaze.placement.cluster_problem import MODES, ClusterProblem, Extra
from phaze.placement.problem import ROUNDING, LayerGraph

MOST_PAIRS = 4_000_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Width:
    """One width made ready: every stage of every closed set, transfers by level and set, and sums for bounds.

    ``sizes_bytes`` are the different parameter bytes of stages and ``size_of`` tells which a stage has. ``fitting``
    remembers, by copies and microbatches, which depths fit; ``gathered``, by members, the seconds of a gather of the
    layers of each closed set; ``least`` the tables of completions.
    """

    graph: LayerGraph
    chart: Chart
    pairs: kernels.Pairs
    moves_s: Floats
    seconds: float
    tied_bytes: Floats
    tied_members: Ints
    parameter_bytes: float
    largest_bytes: float
    sizes_bytes: Floats
    size_of: Ints
    fitting: dict[tuple[int, int], Ints] = field(default_factory=dict, compare=False)
    gathered: dict[tuple[int, ...], Floats] = field(default_factory=dict, compare=False)
    least: dict[tuple[int, ...], Floats] = field(default_factory=dict, compare=False)

    @property
    def least_move_s(self) -> float:
        """The least that a transfer between stages takes."""
        inner = self.moves_s[:-1, 1:-1]
        return float(inner.min()) if inner.size else 0.0


def _kept(graph: LayerGraph, extras: tuple[Extra, ...]) -> kernels.Kept:
    entering = np.zeros(len(graph.layers))
    for edge in graph.edges:
        entering[edge.head] += edge.size_bytes
    kept, again = np.zeros((len(graph.layers), 3)), np.zeros((len(graph.layers), 3))
    for i, (layer, extra) in enumerate(zip(graph.layers, extras, strict=True)):
        known = extra.selective_bytes is not None
        kept[i] = layer.activation_bytes, extra.selective_bytes if known else layer.activation_bytes, entering[i]
        whole = layer.forward_s if extra.full_s is None else extra.full_s
        again[i] = 0.0, extra.selective_s if known else 0.0, whole
    names = sorted({extra.tied for extra in extras if extra.tied is not None})
    group = np.array([names.index(e.tied) if e.tied is not None else -1 for e in extras], np.int64)
    sizes = np.array([next(e.tied_bytes for e in extras if e.tied == name) for name in names], np.float64)
    members = np.array([int((group == g).sum()) for g in range(len(names))], np.int64)
    last = np.array([int(np.flatnonzero(group == g)[-1]) for g in range(len(names))], np.int64)
    return kernels.Kept(kept, again, group, sizes, members, last)


def room_of(problem: ClusterProblem, copies: int) -> kernels.Room:
    """What a stage must fit into when there are so many copies."""
    there = problem.hbm_bytes * (1 + ROUNDING) - problem.stack.reserve_bytes
    allowed = np.array([mode in problem.modes for mode in MODES], np.int64)
    sent = problem.sent_bytes
    return kernels.Room(there, problem.held(copies).total / sent, problem.working(copies).total / sent, allowed)


def ready(problem: ClusterProblem, graph: LayerGraph, extras: tuple[Extra, ...], prices: Prices) -> Width:
    """The arrays of one width."""
    chart = chart_of(graph)
    kept = _kept(graph, extras)
    room = room_of(problem, problem.devices)
    most = max(0.0, room.hbm_bytes) / max(room.state, 1e-30) * (1 + ROUNDING)
    count, pairs = kernels.pairs_of(chart, kept, most, len(graph.layers) * (len(graph.layers) + 1) // 2)
    if count > len(pairs.rest):
        if count > MOST_PAIRS:
            raise InputError(
                f"widths.{graph.width}.edges", f"the layers branch into {count:,} possible stages", "merge layers"
            )
        count, pairs = kernels.pairs_of(chart, kept, most, count)
    pairs = pairs._replace(**{n: getattr(pairs, n)[:count] for n in pairs._fields if n != "start"})
    lanes = graph.width if problem.stack.scatter_gather else 1
    carried = kernels.cut_bytes(chart) / lanes
    moves = [prices.transfer_s(level, carried) for level in range(len(problem.cluster.levels))]
    seconds = chart.forward_s + chart.backward_s
    shared = float((kept.group_bytes * (kept.group_size - 1)).sum())
    return Width(
        graph,
        chart,
        pairs,
        np.vstack([*moves, np.zeros_like(carried)]),
        float(seconds.sum()),
        kept.group_bytes,
        kept.group_size,
        float(chart.parameter_bytes.sum()) - shared,
        float(chart.parameter_bytes.max()),
        *np.unique(pairs.parameter_bytes, return_inverse=True),
    )


def inside(chart: Chart, amounts: Floats) -> Floats:
    """The sum of an amount of each layer over the layers of every closed set."""
    inside = np.zeros(len(chart.size))
    for place in range(1, len(chart.size)):
        step = chart.step_start[place]
        inside[place] = inside[chart.step_set[step]] + amounts[chart.step_layer[step]]
    return inside

r"""The shapes of a model on a cluster, on no chip: what fits, and what every plan of a shape takes at the least.

A shape is a width t, a depth S, d copies and an order. What depends on no chip is tabled once for a graph, a recompute
choice and a memory, with w_S = max(W / S, largest layer, ceil(n_k / S) w_k) a size that some stage reaches (W all
parameters, n_k layers of kind k, w_k the bytes of one; one of S stages holds ceil(n_k / S) of them):

    laps       m - 1 = ceil(M / d) - 1
    moves      2 sum over boundaries of the transfer of the smallest cut, at the level that the boundary crosses
    waits      (1 - h) sum over layers of ZeRO's collectives of a microbatch                                  z = 2, 3
    ends       (1 - h) sync_d(w_S), and Y where tied layers lie at both ends of a chain
    step       optimizer bytes of w_S, shared by the copies under ZeRO
    again      fewest layers computed again over all cuts into S stages that fit                (:func:`fewest_again`)

Plans are told apart by their largest stage: class i has one above g_(i-1) and at most g_i bytes of parameters, so ends
and step count its least such size, and its cuts hold no larger stage. Copies with equal laps and order count with the
least of each. More copies never need more memory, nor do fewer
microbatches in flight, so what fits at depth S is tried with the most copies that it can have.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.placement.batch_end import least_synchronisation_s as synchronisation_s
from phaze.placement.charts import is_chain
from phaze.placement.layout import Shape, boundary_levels, replicas_by_level
from phaze.placement.prepared_width import Width, flying_of, prepared, room_of, stages_of
from phaze.placement.problem import Problem
from phaze.placement.rules import ORDERS
from phaze.placement.shapes import inside
from phaze.placement.stage_kernels import StageTable, cut_bytes
from phaze.search.problem import pattern_of
from phaze.search.rank_graph import RankGraph
from phaze.search.shape_kernels import Shapes, Stages, fewest_again, highest_numbers
from phaze.search.task import ModelTask, Way

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Finer classes bound the end of a batch better, and each costs a look: a tenth in size leaves little of it open.
CLASSES = 40
# Columns of a shape beside those by class: laps, moves, move, waits, rank.
PLAIN = 5


@dataclass(frozen=True, slots=True)
class Tables:
    """What a graph takes on no chip: its shapes, its stages, how many layers of each kind it has, which repeat."""

    shapes: Shapes
    stages: Stages
    numbers: Integers
    repeated: Floats


def _most_copies(problem: Problem, width: Width, stages: int) -> int:
    taken = int(width.fewest_devices(np.array([stages]))[0])
    return max(1, min(problem.microbatches, problem.devices // taken))


def _fewest(problem: Problem, width: Width, table: StageTable, depth: int) -> Integers:
    """Fewest layers recomputed at every depth, -1 where nothing fits."""
    found, known = np.full(depth + 1, -1, np.int64), dict[tuple[int, int], Integers]()
    (family,) = problem.rules.families
    for stages in range(1, depth + 1):
        copies = _most_copies(problem, width, stages)
        rounds = problem.rounds(copies)
        key = (depth if rounds >= stages else rounds, copies if problem.zero else 1)
        if key not in known:
            known[key] = fewest_again(table, room_of(problem, copies), flying_of(family, key[0], None, depth))
        found[stages] = known[key][stages]
    return found


def _moves(problem: Problem, shape: Shape, prices_s: Floats) -> tuple[float, float, int]:
    """All transfers of a microbatch, the least of one, and the rank of the cheapest level; ``prices_s`` by level."""
    if shape.stages == 1:
        return 0.0, 0.0, len(prices_s) - 1
    if len(prices_s) == 1:
        return 2 * (shape.stages - 1) * float(prices_s[0]), float(prices_s[0]), 0
    levels = boundary_levels(problem.cluster, shape)
    crossed, ranks = prices_s[levels], _ranks(prices_s)
    return 2 * float(crossed.sum()), float(crossed.min()), int(ranks[levels].min())


def _ranks(prices_s: Floats) -> Integers:
    """The place of every level when they are put in the order of their prices."""
    return np.argsort(np.argsort(prices_s, kind="stable"), kind="stable")


def _least_prices(task: ModelTask, problem: Problem, width: Width) -> Floats:
    """By level, the transfer of the smallest cut; nothing where edges arrive inside stages."""
    if problem.rules.stage != "layers":
        return np.zeros(len(problem.cluster.levels))
    cuts, lanes = cut_bytes(width.chart)[1:-1], width.graph.width if problem.scatter_gather else 1
    carried = np.array([cuts.min() / lanes if len(cuts) else 0.0])
    return np.array([float(task.prices.transfer_s(at, carried)[0]) for at in range(len(problem.cluster.levels))])


def _waits(task: ModelTask, problem: Problem, width: Width, members: tuple[int, ...]) -> float:
    if problem.zero < 2:
        return 0.0
    once_s = float(task.prices.gather_s(members, width.chart.parameter_bytes).sum())
    return (1 - problem.rules.hidden) * sum(problem.gathers) * once_s


def _tied(task: ModelTask, problem: Problem, width: Width) -> float:
    """Y of a chain whose tied layers lie at its two ends, on the level where it is least; else nothing."""
    layers, extras = problem.graph(width.graph.width)
    ends = (extras[0].tied, extras[-1].tied)
    if not is_chain(layers) or ends[0] is None or ends[0] != ends[1]:
        return 0.0
    count, levels = sum(extra.tied == ends[0] for extra in extras), len(problem.cluster.levels)
    size = np.array([extras[0].tied_bytes])
    groups = [tuple(count if at == level else 1 for at in range(levels)) for level in range(levels)]
    return min(float(task.prices.all_reduce_s(group, size)[0]) for group in groups)


def _reached(graph: RankGraph, problem: Problem, width: Width, stages: int) -> float:
    """w_S: parameter bytes that some stage has at the least."""
    _, extras = problem.graph(width.graph.width)
    free = {graph.calls[layer.id] for layer in width.graph.layers}
    free -= {graph.calls[layer.id] for layer, e in zip(width.graph.layers, extras, strict=True) if e.tied is not None}
    many = [-(-graph.calls.count(kind) // stages) * graph.layers[kind].parameter_bytes for kind in free]
    return max(width.parameter_bytes / stages, float(width.chart.parameter_bytes.max()), *many, 0.0)


def _first(width: Width) -> float:
    """Parameter bytes that a first stage has at the least: those of a layer that nothing leads to."""
    heads = {edge.head for edge in width.graph.edges}
    return min(layer.parameter_bytes for at, layer in enumerate(width.graph.layers) if at not in heads)


def _classes(width: Width, table: StageTable) -> tuple[Floats, Floats]:
    """The greatest and the least size of a largest stage of each class, ascending."""
    sizes, largest = np.unique(table.parameter_bytes), float(width.chart.parameter_bytes.max())
    sizes = sizes[sizes >= largest]
    if not len(sizes):
        sizes = np.array([largest])
    wanted = np.geomspace(max(sizes[0], 1.0), max(sizes[-1], 1.0), CLASSES)
    ends = np.unique(np.searchsorted(sizes, wanted * (1 + 1e-9), side="right"))
    ends = np.unique(np.append(ends[ends > 0], len(sizes)))
    return sizes[ends - 1], sizes[np.concatenate([[0], ends[:-1]])]


def _rows(task: ModelTask, graph: RankGraph, problem: Problem, width: Width, stages: int, least: Floats) -> Floats:
    """laps, moves, move, waits, rank, and by class ends and step bytes of the shapes of a depth, those of equal laps
    and order as one."""
    most = _most_copies(problem, width, stages)
    copies = np.arange(1, most + 1)
    laps = -(-problem.microbatches // copies) - 1
    reached = np.maximum(_reached(graph, problem, width, stages), least)
    if problem.rules.end == "first":
        reached = np.full_like(least, _first(width))
    prices_s = _least_prices(task, problem, width)
    tied_s = _tied(task, problem, width) if stages > 1 else 0.0
    traffic = reached / problem.sent_bytes * problem.optimizer_traffic_bytes
    found = []
    several = stages > 1 and len(problem.cluster.levels) > 1
    for order in ORDERS if several else ORDERS[:1]:
        rows = np.empty((most, PLAIN + 2 * len(least)))
        for at, data in enumerate(copies.tolist()):
            shape = Shape(graph.width, stages, data, order)
            members = replicas_by_level(problem.cluster, shape)
            moves_s, move_s, rank = _moves(problem, shape, prices_s)
            rows[at, :PLAIN] = laps[at], moves_s, move_s, _waits(task, problem, width, members), rank
            rows[at, PLAIN : PLAIN + len(least)] = synchronisation_s(problem, shape, task.prices, reached) + tied_s
            rows[at, PLAIN + len(least) :] = traffic / (data if problem.zero else 1)
        starts = np.flatnonzero(np.diff(laps, prepend=-1))
        found.append(np.minimum.reduceat(rows, starts, axis=0))
    return _undominated(np.concatenate(found))


def _undominated(rows: Floats) -> Floats:
    """Rows that no other is at most as great as in every column; of equals the first."""
    kept: list[Floats] = []
    for row in rows[np.lexsort(rows.T[::-1])]:
        if not any((other <= row).all() for other in kept):
            kept.append(row)
    return np.array(kept)


def _stages(
    task: ModelTask, graph: RankGraph, problem: Problem, width: Width, pairs: StageTable, depth: int, most_bytes: Floats
) -> Stages:
    chart = width.chart
    kinds = np.array([graph.calls[layer.id] for layer in width.graph.layers])
    top = np.repeat(np.arange(len(pairs.start) - 1), np.diff(pairs.start))
    held = [inside(chart, (kinds == kind).astype(np.float64)) for kind in range(len(graph.layers))]
    counts = np.stack([own[top] - own[pairs.rest] for own in held], axis=1)
    copies = _most_copies(problem, width, 1)
    room, rounds = room_of(problem, copies), problem.rounds(copies)
    (family,) = problem.rules.families
    many, few = (highest_numbers(pairs, room, flying_of(family, m, None, depth)) for m in (depth, rounds))
    most = [problem.rounds(_most_copies(problem, width, s)) >= s for s in range(1, depth + 1)]
    deep = np.array([True, *most], np.int64)
    ranks = _ranks(_least_prices(task, problem, width))
    move_s = np.stack([width.moves_s[:-1][ranks >= rank].min(axis=0) for rank in range(len(ranks))])
    sizes = (pairs.parameter_bytes, most_bytes)
    return Stages(pairs.start, pairs.rest, counts, _repeated(graph, problem), few, many, deep, move_s, *sizes)


def _repeated(graph: RankGraph, problem: Problem) -> Floats:
    """1 for kinds of layers that are computed again in a stage that recomputes, else 0."""
    again = 1 if problem.rules.plain_layers else 2
    return np.array([float(graph.calls.count(kind) >= again) for kind in range(len(graph.layers))])


def tables_of(task: ModelTask, way: Way, hbm_bytes: float) -> Tables:
    """The tables of a configuration and a memory."""
    graph, problem = task.graphs[way.graph], pattern_of(task, way, hbm_bytes)
    width = prepared(problem, problem.graphs[0], problem.extras[0], task.prices)
    table = stages_of(problem, width)
    depth = width.depth
    again, (most_bytes, least) = _fewest(problem, width, table, depth), _classes(width, table)
    nothing = np.empty((0, PLAIN + 2 * len(least)))
    rows = [nothing]
    for stages in range(1, depth + 1):
        rows.append(_rows(task, graph, problem, width, stages, least) if again[stages] >= 0 else nothing)
    start, terms = np.cumsum([0, *(len(own) for own in rows)]).astype(np.int64), np.concatenate(rows)
    (laps, moves_s, move_s, waits_s, ranks), ends = np.ascontiguousarray(terms[:, :PLAIN].T), PLAIN + len(least)
    counted = again if way.recompute == "best" else np.zeros_like(again)
    by_class = (terms[:, PLAIN:ends].copy(), terms[:, ends:].copy())
    shapes = Shapes(start, laps, moves_s, move_s, waits_s, ranks.astype(np.int64), *by_class, counted)
    numbers = np.array([graph.calls.count(kind) for kind in range(len(graph.layers))], np.int64)
    # Where the last stage never recomputes, no layer is sure to be computed again.
    repeated = _repeated(graph, problem) if problem.rules.last_stage_recomputes else np.zeros(len(graph.layers))
    return Tables(shapes, _stages(task, graph, problem, width, table, depth, most_bytes), numbers, repeated)

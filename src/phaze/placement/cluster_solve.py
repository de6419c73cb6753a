"""The fastest plan under rules ``cluster``, over widths, depths, data degrees, orders, cuts and what each stage saves.

Best first over shapes (t, S, d, order). No plan of a shape is faster than

    (m - 1) P(S) + max(C, P(S))         C the time of all layers at width t and of the S - 1 least transfers, there and
                                        back, P(S) the least greatest stage time of a cut into S stages, each transfer
                                        on its fastest level, in the memory that the most copies leave
      + E of max(W / S, largest layer)  W all parameters, as prices do not fall with size

so shapes are taken by that bound, and each is solved exactly (:func:`phaze.placement.cut_kernels.best_cut`) until the
next bound is no less than the best plan. Under ZeRO 2 and 3 what is not hidden of their collectives joins C, and P(S)
is at least C / S. A depth at which nothing fits is left out at once: more copies never need
more memory, so it is enough to try the most copies. What the labels promise is priced anew by
:mod:`phaze.placement.cluster_pipeline`, and the two must agree; the answer is its own lower bound.
"""

import heapq
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.errors import InputError, PhazeError
from phaze.placement import cluster_kernels as kernels
from phaze.placement import cut_kernels
from phaze.placement.charts import Chart
from phaze.placement.cluster_layout import Shape, boundary_levels, copies_by_level
from phaze.placement.cluster_pipeline import ModeCut, end_seconds, price, synchronisation_s
from phaze.placement.cluster_prices import Prices, RingPrices
from phaze.placement.cluster_problem import MODES, ORDERS, ClusterProblem
from phaze.placement.cluster_ready import Width, inside, ready, room_of
from phaze.placement.problem import ROUNDING, LayerGraph, Plan

MOST_KEPT = 5_000_000
# With more stages than this in all widths they are searched one after another, so that one at a time is in memory.
MANY_PAIRS = 600_000
AGREEMENT = 1e-9
# Every number of copies up to the most is looked at, which takes memory and minutes beyond this.
MOST_COPIES = 2**24

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def _shapes(problem: ClusterProblem, widths: list[Width]) -> tuple[list[Ints], Floats]:
    """Every (index of width, stages, copies), and what no plan of it can beat even if its end took no time."""
    rows, bounds = [], []
    for index, width in enumerate(widths):
        pace_s = _paces(problem, width)
        for stages in range(1, min(len(width.graph.layers), problem.devices // width.graph.width) + 1):
            if pace_s[stages] == inf:
                continue
            copies = np.arange(1, min(problem.microbatches, problem.devices // (width.graph.width * stages)) + 1)
            laps = -(-problem.microbatches // copies) - 1
            whole_s = width.seconds + 2 * (stages - 1) * width.least_move_s * (1 - ROUNDING)
            bounds.append(laps * pace_s[stages] + np.maximum(whole_s, pace_s[stages]))
            rows.append(np.stack([np.full_like(copies, index), np.full_like(copies, stages), copies]))
    if not rows:
        return [np.empty(0, np.int64)] * 3, np.empty(0)
    table = np.concatenate(rows, axis=1)
    return [table[0], table[1], table[2]], np.concatenate(bounds)


def _fewest_rounds(problem: ClusterProblem, width: Width, stages: int) -> int:
    """The least microbatches that a copy of so many stages can run."""
    return problem.rounds(max(1, min(problem.microbatches, problem.devices // (width.graph.width * stages))))


def _paces(problem: ClusterProblem, width: Width) -> Floats:
    """P(S) for every depth, with no more microbatches in flight than a copy of that depth must have."""
    depth = min(len(width.graph.layers), problem.devices // width.graph.width)
    copies = max(1, min(problem.microbatches, problem.devices // width.graph.width))
    room, gpipe = room_of(problem, copies), problem.schedule == "gpipe"
    move_s = width.moves_s[:-1].min(axis=0) * (1 - ROUNDING)
    found: Floats = kernels.paces(width.pairs, room, problem.rounds(copies), gpipe, depth, move_s)
    full = [s for s in range(2, depth + 1) if not gpipe and _fewest_rounds(problem, width, s) >= s]
    if full and problem.rounds(copies) < depth:
        found[full] = kernels.paces(width.pairs, room, depth, gpipe, depth, move_s)[full]
    return found


def _completions(problem: ClusterProblem, width: Width, shape: Shape, job: cut_kernels.Job, best_s: float) -> Floats:
    """The table of completions that serves a shape; what it leaves out could not beat the best plan at any copies."""
    flying = job.rounds if job.gpipe else min(job.rounds, job.stages)
    members = copies_by_level(problem.cluster, shape) if problem.zero >= 2 else ()
    key = (job.stages, flying, shape.data if problem.zero >= 1 else 1, *members)
    if key not in width.least:
        laps = _fewest_rounds(problem, width, shape.stages) - 1
        limit_s = (best_s - job.least_s) / laps * (1 + AGREEMENT) if laps else inf
        while width.least and sum(table.size for table in width.least.values()) > MOST_KEPT:
            del width.least[next(iter(width.least))]
        width.least[key] = cut_kernels.completions(width.pairs, job, limit_s)
    return width.least[key]


def _fits(problem: ClusterProblem, width: Width, stages: int) -> bool:
    """Whether some cut into that many stages fits, with as many copies as there can be."""
    copies = min(problem.microbatches, problem.devices // (width.graph.width * stages))
    depth = min(len(width.graph.layers), problem.devices // width.graph.width)
    rounds = problem.rounds(copies)
    flying = depth if problem.schedule == "1f1b" and rounds >= stages else rounds
    # More in flight and fewer copies need no less, so powers of two on the safe side serve many depths at once.
    for many, few in ((1 << (flying - 1).bit_length(), 1 << (copies.bit_length() - 1)), (flying, copies)):
        key = (many, few if problem.zero >= 1 else 1)
        if key not in width.fitting:
            room, gpipe = room_of(problem, few), problem.schedule == "gpipe"
            width.fitting[key] = kernels.depths_that_fit(width.pairs, room, many, gpipe, depth)
        if width.fitting[key][stages]:
            return True
    return False


def _gathered(problem: ClusterProblem, width: Width, shape: Shape, prices: Prices) -> Floats:
    """Seconds of one gather of the layers of every closed set; empty where there is none."""
    if problem.zero < 2:
        return np.empty(0)
    members = copies_by_level(problem.cluster, shape)
    if members not in width.gathered:
        width.gathered[members] = inside(width.chart, prices.gather_s(members, width.chart.parameter_bytes))
    return width.gathered[members]


def _job(problem: ClusterProblem, width: Width, shape: Shape, prices: Prices) -> cut_kernels.Job:
    pairs, levels = width.pairs, boundary_levels(problem.cluster, shape)
    none, sizes = len(problem.cluster.levels), width.sizes_bytes
    sync_s = synchronisation_s(problem, shape, prices, sizes)
    if problem.hbm_bytes_per_s is not None:
        shared = shape.data if problem.zero >= 1 else 1
        traffic = sizes / problem.sent_bytes * problem.stack.optimizer_traffic_bytes
        sync_s = sync_s + traffic / shared / problem.hbm_bytes_per_s
    tied = np.zeros(len(width.tied_bytes))
    if shape.stages > 1:
        for g, count in enumerate(width.tied_members.tolist()):
            members = [1] * none
            members[int(levels.max())] = count
            tied[g] = prices.all_reduce_s(tuple(members), width.tied_bytes[g : g + 1])[0]
    gathered, (ahead, behind) = _gathered(problem, width, shape, prices), problem.gathers
    return cut_kernels.Job(
        stages=shape.stages,
        rounds=problem.rounds(shape.data),
        gpipe=problem.schedule == "gpipe",
        level=np.array([none, *levels[::-1], none], np.int64),
        moves_s=width.moves_s,
        ahead_s=ahead * gathered,
        behind_s=behind * gathered,
        shown=1 - problem.stack.hidden_synchronisation,
        end_s=sync_s,
        tied_s=pairs.tied @ tied,
        room=room_of(problem, shape.data),
        least_s=_least_seconds(problem, width, gathered),
        size=width.chart.size,
        size_of=width.size_of,
    )


def _least_seconds(problem: ClusterProblem, width: Width, gathered: Floats) -> float:
    """C: all layers, and what is not hidden of their collectives, whose sums are rounded apart from those of stages."""
    waits = sum(problem.gathers) * float(gathered[-1]) if len(gathered) else 0.0
    return (width.seconds + (1 - problem.stack.hidden_synchronisation) * waits) * (1 - ROUNDING)


def _bound(problem: ClusterProblem, width: Width, shape: Shape, first_s: float, prices: Prices) -> float:
    """The bound of a shape with the least that its end can take."""
    least = max(width.parameter_bytes / shape.stages, width.largest_bytes)
    if problem.zero >= 2:
        whole_s = _least_seconds(problem, width, _gathered(problem, width, shape, prices))
        first_s = max(first_s, (problem.rounds(shape.data) - 1) * whole_s / shape.stages + whole_s)
    return first_s + sum(end_seconds(problem, shape, prices, least))


def _cuts(width: Width, path: Ints, modes: Ints) -> list[ModeCut]:
    place, layers = len(width.chart.size) - 1, width.graph.layers
    cuts = []
    for pair, mode in zip(path.tolist(), modes.tolist(), strict=True):
        rest = int(width.pairs.rest[pair])
        ids = sorted(_members(width.chart, place) - _members(width.chart, rest))
        cuts.append(ModeCut(tuple(layers[i].id for i in ids), MODES[mode]))
        place = rest
    return cuts


def _members(chart: Chart, place: int) -> set[int]:
    inside = set()
    while place:
        step = int(chart.step_start[place])
        inside.add(int(chart.step_layer[step]))
        place = int(chart.step_set[step])
    return inside


@dataclass(frozen=True, slots=True)
class _Best:
    """The best plan so far, as its labels promise it."""

    cost_s: float = inf
    shape: Shape | None = None
    cuts: tuple[ModeCut, ...] = ()


def _search(problem: ClusterProblem, widths: list[Width], prices: Prices, best: _Best) -> _Best:
    """The best plan of some widths, or ``best`` if none is faster."""
    (indices, depths, copies), first = _shapes(problem, widths)
    order, at, heap = np.argsort(first, kind="stable"), 0, list[tuple[float, int, int]]()
    while True:
        while at < len(order) and first[order[at]] < best.cost_s and (not heap or first[order[at]] <= heap[0][0]):
            row = int(order[at])
            at += 1
            width = widths[indices[row]]
            if _fits(problem, width, int(depths[row])):
                both = depths[row] > 1 and copies[row] > 1 and len(problem.cluster.levels) > 1
                for which, name in enumerate(ORDERS if both else ORDERS[:1]):
                    shape = Shape(width.graph.width, int(depths[row]), int(copies[row]), name)
                    heapq.heappush(heap, (_bound(problem, width, shape, float(first[row]), prices), row, which))
        if not heap or heap[0][0] >= best.cost_s:
            return best
        _, row, which = heapq.heappop(heap)
        width = widths[indices[row]]
        shape = Shape(width.graph.width, int(depths[row]), int(copies[row]), ORDERS[which])
        job = _job(problem, width, shape, prices)
        least = _completions(problem, width, shape, job, best.cost_s)
        cost_s, path, modes = cut_kernels.best_cut(width.pairs, job, least, best.cost_s)
        if cost_s < best.cost_s:
            best = _Best(cost_s, shape, tuple(_cuts(width, path, modes)))


def something_fits(problem: ClusterProblem) -> bool:
    """Whether any plan fits, whatever its time."""
    for graph, extras in zip(problem.graphs, problem.extras, strict=True):
        depth = min(len(graph.layers), problem.devices // graph.width)
        if depth:
            width = ready(problem, graph, extras, RingPrices(problem.cluster))
            if any(_fits(problem, width, stages) for stages in range(1, depth + 1)):
                return True
    return False


def least_seconds(problem: ClusterProblem, prices: Prices) -> float:
    """What no plan undercuts, with chunks or without: the least over shapes of m P(S) and the least end; inf if nothing
    fits. Chunks shorten the bubble, and they need no less memory."""
    least_s = inf
    for graph, extras in zip(problem.graphs, problem.extras, strict=True):
        width = ready(problem, graph, extras, prices)
        for stages, pace_s in enumerate(_paces(problem, width).tolist()):
            most = min(problem.microbatches, problem.devices // (graph.width * max(1, stages)))
            for data in range(most, 0, -1) if 0 < pace_s < inf else ():
                first_s = problem.rounds(data) * pace_s
                if first_s >= least_s:
                    break
                for order in ORDERS:
                    shape = Shape(graph.width, stages, data, order)
                    held = max(width.parameter_bytes / stages, width.largest_bytes)
                    least_s = min(least_s, first_s + sum(end_seconds(problem, shape, prices, held)))
    return least_s


def _quick_bound(problem: ClusterProblem, graph: LayerGraph) -> float:
    """What no plan of a width undercuts, with free transfers, ends and memory."""
    times = [layer.forward_s + layer.backward_s for layer in graph.layers]
    stages = np.arange(1, min(len(times), problem.devices // graph.width) + 1)
    rounds = -(-problem.microbatches // np.minimum(problem.microbatches, problem.devices // (graph.width * stages)))
    return float(np.min((rounds - 1) * np.maximum(sum(times) / stages, max(times)) + sum(times), initial=inf))


def fastest_plan(problem: ClusterProblem, prices: Prices, below_s: float = inf) -> Plan | None:
    """The plan with the least batch time, or None when nothing fits, or nothing that takes less than ``below_s``."""
    copies = min(problem.microbatches, problem.devices // problem.graphs[0].width)
    if copies > MOST_COPIES:
        raise InputError(
            "microbatches", f"{copies:,} copies of the model are possible", f"give at most {MOST_COPIES:,} microbatches"
        )
    given, best = list(zip(problem.graphs, problem.extras, strict=True)), _Best(below_s)
    if sum(len(graph.layers) * (len(graph.layers) + 1) // 2 for graph in problem.graphs) <= MANY_PAIRS:
        best = _search(problem, [ready(problem, *one, prices) for one in given], prices, best)
    else:
        for one in sorted(given, key=lambda one: _quick_bound(problem, one[0])):
            best = _search(problem, [ready(problem, *one, prices)], prices, best)
    if best.shape is None:
        return None
    plan = price(problem, best.shape, best.cuts, prices)
    if abs(plan.batch_s - best.cost_s) > AGREEMENT * best.cost_s:
        raise PhazeError(f"the labels promised {best.cost_s!r} s and the plan takes {plan.batch_s!r} s")
    return replace(plan, lower_bound_s=plan.batch_s)

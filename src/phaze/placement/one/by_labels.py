r"""The fastest plan where sums of stage times count: best first over shapes, each solved exactly by labels.

No plan of a shape (t, S, d, order, family) is faster than

    alpha P(S) + beta max(C, P(S))      C the time of all layers at width t, of the S - 1 least transfers there and back
                                        and of starting chunks; P(S) the least greatest stage time of a cut into S
                                        stages, each transfer on its fastest level, in the memory that the most
                                        replicas leave, with the fewest microbatches in flight (bottleneck table)
      + E of max(W / S, largest layer)  W all parameters, as prices do not fall with size; where E is that of the first
                                        stage, E of the smallest stage

so shapes are taken by that bound, and each is solved exactly (:func:`phaze.placement.one.label_kernels.best_cut`) until
the next bound is no less than the best plan. P of v chunks is at least that of 1; it is computed only for families
whose shapes may still win. Under ZeRO 2 and 3 what is exposed of their collectives joins C, and P(S) is at least C / S.
A depth at which nothing fits is left out at once: more replicas never need more memory.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from phaze.placement.charts import Chart
from phaze.placement.cluster_prices import Prices
from phaze.placement.one import bottleneck_kernels, label_kernels
from phaze.placement.one.by_table import AGREEMENT, Found
from phaze.placement.one.end import step_s, synchronisation_s, tied_s
from phaze.placement.one.layout import Shape, boundary_levels, replicas_by_level
from phaze.placement.one.prepare import Width, flying_of, room_of, stages_of, transfers_of, whole_blocks
from phaze.placement.one.problem import ROUNDING, Family, Problem
from phaze.placement.one.stage_kernels import StageTable

# Numbers of completions that one width remembers: 40 MB.
MOST_KEPT = 5_000_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    """One width and family of a problem, with the stages that its chunks allow; ``known`` remembers what shapes share."""

    problem: Problem
    prices: Prices
    width: Width
    family: Family
    table: StageTable
    sizes_bytes: Floats
    size_of: Ints
    known: dict[tuple[object, ...], object] = field(default_factory=dict, compare=False)

    def remembered(self, key: tuple[object, ...], compute: Callable[[], T]) -> T:
        """What was computed for a key before, or now."""
        if key not in self.known:
            self.known[key] = compute()
        return cast(T, self.known[key])

    def most_replicas(self, stages: int, unsplit: int = 0) -> int:
        """The most replicas of so many stages."""
        taken = self.width.taken * (stages - unsplit) + unsplit
        return min(self.problem.microbatches, self.problem.devices // taken)


def cases_of(problem: Problem, width: Width, families: tuple[Family, ...], prices: Prices) -> list[Case]:
    """One case for each family that the width allows."""
    table = stages_of(problem, width)
    found = []
    for family in families:
        if family.chunks > 1 and family.chunks > width.blocks:
            continue
        own = whole_blocks(table, family.chunks)
        if own.start[-1] > own.start[-2]:
            found.append(Case(problem, prices, width, family, own, *np.unique(own.parameter_bytes, return_inverse=True)))
    return found


def least_moves(case: Case) -> Floats:
    """The least transfer into each closed set, rounded down."""
    moves = transfers_of(case.problem, case.width, case.family, None)
    return np.asarray(moves[:-1].min(axis=0) * (1 - ROUNDING))


def paces(case: Case) -> Floats:
    """P by (at least so many unsplit stages, S), with no more in flight than a replica of that depth must have."""
    width, depth = case.width, case.width.depth
    fewest = int(width.fewest_devices(np.ones(1, np.int64))[0])
    replicas = max(1, min(case.problem.microbatches, case.problem.devices // fewest))
    room, limit = room_of(case.problem, replicas), np.full(depth + 2, inf)

    def solved(rounds: int) -> Floats:
        flying = flying_of(case.family, rounds, None, depth)
        g = bottleneck_kernels.bottleneck(
            width.chart, case.table, room, flying, (width.kinds, least_moves(case), limit)
        )
        return np.asarray(np.minimum.accumulate(g[-1][::-1], axis=0)[::-1])

    rounds = case.problem.rounds(replicas)
    found = solved(rounds)
    # Depths whose replicas have microbatches enough to fill them hold as many as their number says.
    full = [
        s
        for s in range(2, depth + 1)
        if case.family.flying == "capped" and case.problem.rounds(max(1, _most_of_any(case, s))) >= 2 * s
    ]
    if full and case.family.in_flight(rounds, depth, depth) < case.family.in_flight(2 * depth, depth, depth):
        found[:, full] = solved(2 * depth)[:, full]
    return found


def _most_of_any(case: Case, stages: int) -> int:
    """The most replicas of so many stages, as many unsplit as there can be."""
    fewest = int(case.width.fewest_devices(np.array([stages]))[0])
    return min(case.problem.microbatches, case.problem.devices // fewest)


def rows_of(case: Case, best_s: float, pace_s: Floats) -> tuple[Ints, Floats]:
    """Every (stages, replicas, unsplit needed) of a case with its bound, end aside, below ``best_s``."""
    problem, width, family = case.problem, case.width, case.family
    moves, more = least_moves(case), family.chunks - 1
    inner = moves[1:-1]
    stages = np.arange(width.depth + 1)
    between_s = float(inner.min()) if len(inner) else 0.0
    ends_s = more * (float(width.around_s.min()) + problem.rules.piece_start_s)
    whole_s = width.seconds + 2 * (np.maximum(stages - 1, 0) * between_s + ends_s) * (1 - ROUNDING)
    offset = -1.0 if family.pace_stages else -family.fill
    return cast(
        tuple[Ints, Floats],
        bottleneck_kernels.shape_rows(
            pace_s,
            (width.taken, problem.devices, problem.microbatches, family.chunks),
            (float(family.pace_stages), offset, family.beta),
            whole_s,
            best_s,
        ),
    )


def fits(case: Case, stages: int, needed: int) -> bool:
    """Whether some cut into that many stages, so many unsplit at least, fits with as many replicas as there can be."""
    problem, width = case.problem, case.width
    for unsplit in range(needed, width.kinds):
        replicas = case.most_replicas(stages, unsplit) if unsplit <= stages else 0
        if not replicas:
            continue
        flying = flying_of(case.family, problem.rounds(replicas), stages, stages)
        # More in flight and fewer replicas need no less, so powers of two on the safe side serve many depths at once.
        safe = flying_of(case.family, max(1, 1 << (problem.rounds(replicas) - 1).bit_length()), None, width.depth)
        sides = [(flying, replicas)]
        if case.family.chunks == 1:
            sides.insert(0, (safe, 1 << (replicas.bit_length() - 1)))
        for held, few in sides:
            room = room_of(problem, few)
            known = case.remembered(
                ("fits", held.tobytes(), few if problem.zero else 1),
                lambda held=held, room=room: bottleneck_kernels.depths_that_fit(  # type: ignore[misc]
                    width.chart, case.table, room, held, width.kinds
                ),
            )
            if known[unsplit, stages]:
                return True
    return False


def _gathered(case: Case, shape: Shape) -> Floats:
    """Seconds of one gather of the layers of every closed set; empty where there is none."""
    if case.problem.zero < 2:
        return np.empty(0)
    members = replicas_by_level(case.problem.cluster, shape)
    sizes = case.width.chart.parameter_bytes
    return case.remembered(
        ("gathered", members), lambda: inside(case.width.chart, case.prices.gather_s(members, sizes))
    )


def inside(chart: Chart, amounts: Floats) -> Floats:
    """The sum of an amount of each layer over the layers of every closed set."""
    found = np.zeros(len(chart.size))
    for place in range(1, len(chart.size)):
        step = chart.step_start[place]
        found[place] = found[chart.step_set[step]] + amounts[chart.step_layer[step]]
    return found


def _least_seconds(case: Case, gathered: Floats) -> float:
    """C: all layers, and what is exposed of their collectives, whose sums are rounded apart from those of stages."""
    waits = sum(case.problem.gathers) * float(gathered[-1]) if len(gathered) else 0.0
    return (case.width.seconds + (1 - case.problem.rules.hidden) * waits) * (1 - ROUNDING)


def end_s(case: Case, shape: Shape, sizes_bytes: Floats) -> Floats:
    """E of stages with so many bytes of parameters."""
    exposed = synchronisation_s(case.problem, shape, case.prices, sizes_bytes)
    return exposed + step_s(case.problem, shape.data, sizes_bytes)


def bound(case: Case, shape: Shape, first_s: float) -> float:
    """The bound of a shape with the least that its end can take."""
    width, problem = case.width, case.problem
    least = max(width.parameter_bytes / shape.stages, float(width.chart.parameter_bytes.max()))
    if problem.rules.end == "first":
        least = float(case.sizes_bytes[0])
    if problem.zero >= 2:
        whole_s = _least_seconds(case, _gathered(case, shape))
        alpha = case.family.alpha(problem.rounds(shape.data), shape.stages)
        first_s = max(first_s, alpha * whole_s / shape.stages + case.family.beta * whole_s)
    return first_s + float(end_s(case, shape, np.array([least]))[0])


def costs_of(case: Case, shape: Shape, needed: int) -> label_kernels.ShapeCosts:
    """What a shape makes its stages cost."""
    problem, width, family = case.problem, case.width, case.family
    levels, none = boundary_levels(problem.cluster, shape), len(problem.cluster.levels)
    groups = np.zeros(len(width.saved.group_bytes))
    if shape.stages > 1:
        for g, count in enumerate(width.saved.group_size.tolist()):
            groups[g] = tied_s(problem, shape, case.prices, count, float(width.saved.group_bytes[g]))
    gathered, (ahead, behind) = _gathered(case, shape), problem.gathers
    rounds = problem.rounds(shape.data)
    return label_kernels.ShapeCosts(
        stages=shape.stages,
        alpha=family.alpha(rounds, shape.stages),
        beta=family.beta,
        apart=family.apart,
        first_end=problem.rules.end == "first",
        grows=width.grows,
        flying=flying_of(family, rounds, shape.stages, shape.stages),
        level=np.array([none, *levels[::-1], none], np.int64),
        moves_s=transfers_of(problem, width, family, int(levels.max(initial=0))),
        ahead_s=ahead * gathered,
        behind_s=behind * gathered,
        shown=1 - problem.rules.hidden,
        end_s=end_s(case, shape, case.sizes_bytes),
        tied_s=case.table.tied @ groups,
        room=room_of(problem, shape.data),
        least_s=_least_seconds(case, gathered),
        size=width.chart.size,
        size_of=case.size_of,
        unsplit=width.chart.unsplit,
        unsplit_needed=needed,
    )


def _completions(case: Case, shape: Shape, costs: label_kernels.ShapeCosts, best_s: float) -> Floats:
    """The table of completions that serves a shape; what it leaves out could not beat the best plan at any degree."""
    problem = case.problem
    members = replicas_by_level(problem.cluster, shape) if problem.zero >= 2 else ()
    around = float(costs.moves_s[-1, 0]) if case.family.chunks > 1 else 0.0
    key = ("least", costs.stages, costs.flying.tobytes(), shape.data if problem.zero >= 1 else 1, around, *members)
    if key not in case.known:
        alpha = case.family.alpha(problem.rounds(max(1, _most_of_any(case, shape.stages))), shape.stages)
        room_s = best_s - case.family.beta * costs.least_s
        limit_s = room_s / alpha * (1 + AGREEMENT) if alpha > 0 else inf
        tables = [known for known in case.known if known[0] == "least"]
        while tables and sum(cast(Floats, case.known[name]).size for name in tables) > MOST_KEPT:
            del case.known[tables.pop(0)]
        case.known[key] = label_kernels.completions(case.table, costs, limit_s)
    return cast(Floats, case.known[key])


def fastest(cases: list[Case], best: Found | None, below_s: float) -> Found | None:
    """The best plan of some cases, or ``best`` if none is faster than it or than ``below_s``."""
    best_s = below_s if best is None else best.cost_s
    plain: dict[int, Floats] = {}
    rows, bounds, owner = [], [], []
    for index, case in enumerate(cases):
        # P of one chunk bounds that of more, as these have fewer stages to choose from and no less to do.
        if case.family.chunks == 1 or id(case.width) not in plain:
            plain[id(case.width)] = paces(case)
        own_rows, own_bounds = rows_of(case, best_s, plain[id(case.width)])
        rows.append(own_rows)
        bounds.append(own_bounds)
        owner.append(np.full(len(own_bounds), index))
    if not rows:
        return best
    table, first, case_of = np.concatenate(rows), np.concatenate(bounds), np.concatenate(owner)
    return _best_first(cases, (table, first, case_of), best, best_s)


def _sharper(case: Case, shape: Shape, needed: int, first_s: float) -> float:
    """The bound of a shape from the P of its own family."""
    if case.family.chunks == 1:
        return first_s
    pace_s = float(case.remembered(("paces",), lambda: paces(case))[needed, shape.stages])
    alpha, beta = case.family.alpha(case.problem.rounds(shape.data), shape.stages), case.family.beta
    return max(first_s, (alpha + beta) * pace_s)


def _best_first(cases: list[Case], shapes: tuple[Ints, Floats, Ints], best: Found | None, best_s: float) -> Found | None:
    table, first, case_of = shapes
    order, at, heap = np.argsort(first, kind="stable"), 0, list[tuple[float, int, int]]()

    def shape_of(row: int, which: int) -> tuple[Case, Shape, int]:
        case = cases[case_of[row]]
        stages, data, needed = (int(value) for value in table[row])
        name = case.problem.rules.orders[which]
        chunks, family = case.family.chunks, case.family.name
        return case, Shape(case.width.graph.width, stages, data, name, chunks, family), needed

    while True:
        while at < len(order) and first[order[at]] < best_s and (not heap or first[order[at]] <= heap[0][0]):
            row = int(order[at])
            at += 1
            case, shape, needed = shape_of(row, 0)
            sharp_s = _sharper(case, shape, needed, float(first[row]))
            if sharp_s < best_s and fits(case, shape.stages, needed):
                both = shape.stages > 1 and shape.data > 1 and len(case.problem.cluster.levels) > 1
                for which in range(len(case.problem.rules.orders) if both else 1):
                    heapq.heappush(heap, (bound(case, shape_of(row, which)[1], sharp_s), row, which))
        if not heap or heap[0][0] >= best_s:
            return best
        _, row, which = heapq.heappop(heap)
        case, shape, needed = shape_of(row, which)
        costs = costs_of(case, shape, needed)
        least = _completions(case, shape, costs, best_s)
        cost_s, path, modes = label_kernels.best_cut(case.table, costs, least, best_s)
        if cost_s < best_s:
            best_s = float(cost_s)
            best = Found(best_s, case.width, case.table, shape.data, case.family, path, modes, shape.order)

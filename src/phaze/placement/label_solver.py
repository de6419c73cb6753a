r"""The fastest plan where sums of stage times count: best first over shapes, each solved exactly by
labels.

No plan of a shape (t, S, d, order, family) is faster than

    alpha P(S) + beta max(C, P(S))      C the time of all layers at width t, of the S - 1 least
                                        transfers there and back and of starting chunks; P(S) the
                                        least greatest stage time of a cut into S stages, each
                                        transfer on its fastest level, in the memory that the most
                                        replicas leave, with the fewest microbatches in flight
                                        (bottleneck table)
      + E of max(W / S, largest layer)  W all parameters, as prices do not fall with size; where E
                                        is that of the first stage, E of the smallest stage

Where backward passes are split, beta counts not max(C, P(S)) but the fill terms of D at the sums of
all layers, which no sum of greatest terms undercuts. So shapes are taken by that bound, and each is
solved exactly (:func:`phaze.placement.label_kernels.best_cut`) until the next bound is no less than
the best plan. P of v chunks is at least that of 1; it is computed only for families whose shapes
may still win. The levels that a shape's boundaries cross bound its pace and its sum anew
(:func:`phaze.placement.paces.sent_bound`); under ZeRO 2 and 3 what is exposed of their collectives
joins C there. A depth at which nothing fits is left out at once: more replicas never need more
memory.
"""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import cast

import numpy as np
import numpy.typing as npt

from phaze.pipeline.families import ONE_F_ONE_B
from phaze.placement import label_kernels
from phaze.placement.batch_end import tied_s
from phaze.placement.bottleneck_solver import AGREEMENT, BottleneckPlan
from phaze.placement.layout import Shape, boundary_levels
from phaze.placement.paces import pace, paces, sent_bound
from phaze.placement.prepared_width import in_flight_of, starts_s, transfers_of
from phaze.placement.shapes import (
    WidthCase,
    alone_share,
    beside_s,
    end_s,
    fits,
    gathered_s,
    least_end,
    least_fill,
    least_seconds,
    least_sums,
    rows_of,
    shared_members,
    timed_table,
)

# Numbers of completions that one case remembers: 40 MB.
MOST_KEPT = 5_000_000

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# By width, stage of ZeRO and family.
PlainPaces = dict[tuple[int, int, str], Floats]


def _ends(case: WidthCase, shape: Shape) -> tuple[Floats, Ints]:
    """E of every size that stages have, ascending, and which of them each stage has."""
    if not case.problem.has_experts:
        return end_s(case, shape, case.sizes[0]), case.sizes[1]
    sizes_bytes, experts_bytes, which = case.mixed_sizes
    ends_s = end_s(case, shape, sizes_bytes, experts_bytes)
    order = np.argsort(ends_s, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return ends_s[order], place[which]


def costs_of(case: WidthCase, shape: Shape, needed: int) -> label_kernels.ShapeCosts:
    """What a shape makes its stages cost."""
    problem, width, family = case.problem, case.width, case.family
    levels, none = boundary_levels(problem.cluster, shape), len(problem.cluster.levels)
    groups = np.zeros(len(width.saved.group_bytes))
    if shape.stages > 1:
        for g, count in enumerate(width.saved.group_size.tolist()):
            groups[g] = tied_s(
                problem, shape, case.prices, count, float(width.saved.group_bytes[g])
            )
    # What a stage adds to the sum beside its passes: reductions of tied parameters, and exchanges
    # of experts beyond the pace.
    added_s, added = case.table.tied @ groups, beside_s(case)
    if len(added):
        added_s = added_s + family.beta(shape.stages) * (1 - alone_share(case, shape)) * added
    gathered = gathered_s(case, shape)
    ahead_s, behind_s = (
        gathered if problem.rules.prefetch == "stage" else (np.empty(0), np.empty(0))
    )
    rounds, (ends_s, size_of) = problem.rounds(shape.data), _ends(case, shape)
    return label_kernels.ShapeCosts(
        stages=shape.stages,
        alpha=family.alpha(rounds, shape.stages),
        beta=family.beta(shape.stages),
        separate_passes=family.separate_passes,
        first_end=problem.rules.end == "first",
        grows=width.grows,
        in_flight=in_flight_of(family, rounds, shape.stages, shape.stages),
        level=np.array([none, *levels[::-1], none], np.int64),
        moves_s=transfers_of(width, family, int(levels.max(initial=0))),
        start_s=starts_s(problem, family),
        unpaired=problem.rules.unpaired_share(family, rounds, shape.stages),
        ahead_s=ahead_s,
        behind_s=behind_s,
        shown=problem.rules.sharded_cost,
        end_s=ends_s,
        tied_s=added_s,
        room=case.room(shape.data),
        least_s=least_fill(case, shape.stages) if family.split else least_seconds(case, gathered),
        size=width.cut_sets.size,
        size_of=size_of,
        unsplit=width.cut_sets.unsplit,
        unsplit_needed=needed,
        fill_terms=family.coefficients(shape.stages),
        weight_s=case.weight_s if family.split else np.empty(0),
    )


def _completions(
    case: WidthCase, shape: Shape, costs: label_kernels.ShapeCosts, best_s: float
) -> Floats:
    """The table of completions that serves a shape; what it leaves out could not beat the best plan
    at any degree."""
    problem = case.problem
    members: tuple[object, ...] = shared_members(case, shape) if problem.zero >= 2 else ()
    if problem.has_experts:  # the order of ends is that of the shape
        members = (*members, shape.data, shape.order)
    alone = alone_share(case, shape) if problem.runs_exchanges_beside else 1.0
    around = (float(costs.moves_s[-1, 0]) if case.family.chunks > 1 else 0.0, costs.unpaired, alone)
    key = (
        "least",
        costs.stages,
        costs.in_flight.tobytes(),
        shape.data if problem.zero >= 1 else 1,
        *around,
        *members,
    )
    if key not in case.tables:
        alpha = case.family.alpha(
            problem.rounds(max(1, case.most_replicas(shape.stages))), shape.stages
        )
        room_s = best_s - costs.beta * costs.least_s
        limit_s = room_s / alpha * (1 + AGREEMENT) if alpha > 0 else inf
        tables = [table_key for table_key in case.tables if table_key[0] == "least"]
        while tables and sum(cast(Floats, case.tables[name]).size for name in tables) > MOST_KEPT:
            del case.tables[tables.pop(0)]
        case.tables[key] = label_kernels.completions(timed_table(case, shape), costs, limit_s)
    return cast(Floats, case.tables[key])


def plain_key(case: WidthCase) -> tuple[int, int, str]:
    """What P of a case is taken of: its width, its stage of ZeRO, and the family itself where its
    stages have one chunk and whole backward passes, else 1F1B, which bounds that of chunks and of
    split backward passes: these have fewer stages to choose from, no less to do and no less in
    flight."""
    simple = case.family.chunks == 1 and not case.family.split
    return id(case.width), case.problem.zero, case.family.name if simple else ONE_F_ONE_B.name


def plain_paces(case: WidthCase, computed: PlainPaces) -> Floats:
    """P of that."""
    key = plain_key(case)
    if key not in computed:
        computed[key] = paces(
            case if case.family.name == key[2] else replace(case, family=ONE_F_ONE_B, tables={})
        )
    return computed[key]


def best_by_labels(
    cases: list[WidthCase],
    best: BottleneckPlan | None,
    below_s: float,
    plain: PlainPaces | None = None,
) -> BottleneckPlan | None:
    """The best plan of some cases, or ``best`` if none is faster than it or than ``below_s``;
    ``plain`` holds what :func:`plain_paces` found before."""
    best_s = below_s if best is None else best.cost_s
    plain = {} if plain is None else plain
    rows, bounds, owner = [], [], []
    for index, case in enumerate(cases):
        for key in [
            key for key in case.tables if key[0] == "least"
        ]:  # completions below another limit
            del case.tables[key]
        own_rows, own_bounds = rows_of(case, best_s, plain_paces(case, plain))
        rows.append(own_rows)
        bounds.append(own_bounds)
        owner.append(np.full(len(own_bounds), index))
    if not rows:
        return best
    table, first, case_of = np.concatenate(rows), np.concatenate(bounds), np.concatenate(owner)
    return _best_first(cases, (table, first, case_of), best, best_s)


def _sharper(case: WidthCase, degrees: tuple[int, int, int], first_s: float) -> float:
    """The bound of stages, replicas and unsplit stages from the P of their own family."""
    family, (stages, data, needed) = case.family, degrees
    if family.chunks == 1 and not family.split:
        return first_s
    pace_s = pace(case, needed, stages)
    alpha, beta = family.alpha(case.problem.rounds(data), stages), family.beta(stages)
    if family.split:
        return max(first_s, alpha * pace_s + beta * least_fill(case, stages))
    return max(first_s, alpha * pace_s + max(beta * pace_s, float(least_sums(case)[stages])))


def _shape(case: WidthCase, stages: int, data: int, which: int) -> Shape:
    """A shape of a case in one of the orders of its rules."""
    order, family = case.problem.rules.orders[which], case.family
    return Shape(case.width.graph.width, stages, data, order, family.chunks, family.name)


def _ordered(case: WidthCase, stages: int, data: int) -> Iterator[tuple[int, Shape]]:
    """The orders in which experts and state can be shared out; one of them where a replica or a
    level is alone, so that orders make no difference."""
    alike = stages == 1 or data == 1 or len(case.problem.cluster.levels) == 1
    for which in range(len(case.problem.rules.orders)):
        shape = _shape(case, stages, data, which)
        if case.problem.sharing.allows(shape):
            yield which, shape
            if alike:
                return


def _best_first(
    cases: list[WidthCase],
    shapes: tuple[Ints, Floats, Ints],
    best: BottleneckPlan | None,
    best_s: float,
) -> BottleneckPlan | None:
    table, first, case_of = shapes
    order, position, heap = np.argsort(first, kind="stable"), 0, list[tuple[float, int, int]]()

    def case_at(row: int) -> tuple[WidthCase, int, int, int]:
        stages, data, needed = table[row].tolist()
        return cases[case_of[row]], stages, data, needed

    while True:
        while (
            position < len(order)
            and first[order[position]] < best_s
            and (not heap or first[order[position]] <= heap[0][0])
        ):
            row = int(order[position])
            position += 1
            case, stages, data, needed = case_at(row)
            sharp_s = _sharper(case, (stages, data, needed), float(first[row]))
            if sharp_s >= best_s or not fits(case, stages, needed):
                continue
            for which, shape in _ordered(case, stages, data):
                least_s = max(sharp_s, sent_bound(case, shape))
                if least_s < best_s:
                    heapq.heappush(heap, (least_s + least_end(case, shape), row, which))
        if not heap or heap[0][0] >= best_s:
            return best
        _, row, which = heapq.heappop(heap)
        case, stages, data, needed = case_at(row)
        shape = _shape(case, stages, data, which)
        costs = costs_of(case, shape, needed)
        least = _completions(case, shape, costs, best_s)
        cost_s, path, modes = label_kernels.best_cut(timed_table(case, shape), costs, least, best_s)
        if cost_s < best_s:
            best_s = float(cost_s)
            chosen = (case.width, case.table, shape.data, case.family, path, modes, shape.order)
            best = BottleneckPlan(best_s, *chosen, case.problem.zero)

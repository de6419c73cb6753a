r"""P(S): the least greatest stage time of a cut into S stages that fits into memory, by depth, and
what it bounds.

P takes every transfer over the fastest level. What the boundaries of a shape cross is a bound of
its own: with x_b >= v (the least transfer of any cut over the level of boundary b), the way around
at both ends and c the starts of chunks, :func:`sent_bound` takes

    pace  >=  max over stages of entry + exit + 2 c          a device sends no faster than its links
    pace  >=  (C + rho 2 X) / S,    sum D >= C + 2 X         X = sum of x_b, of the way around and
          of S starts

as T' = max(f, x) + rho min(f, x) + max(b, y) + rho min(b, y) + 2 c is no less than x + y + 2 c, nor
than f + b + rho (x + y) + 2 c, rho = 1 where transfers block.
"""

from collections.abc import Iterator
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.placement import bottleneck_kernels
from phaze.placement.layout import Shape, boundary_levels
from phaze.placement.prepared_width import in_flight_of, starts_s
from phaze.placement.problem import ROUNDING
from phaze.placement.shapes import WidthCase, gathered_s, least_fill, least_moves, least_seconds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Depths that share one table of paces: the finer the tighter the bounds, and the more tables there
# are.
ALIKE = 1.5


def paces(case: WidthCase) -> Floats:
    """P by (at least so many unsplit stages, S), with no more in flight than a replica of that
    depth must have, in the memory that its most replicas leave: of depths with nearly as many of
    them, those of the least."""
    by_depth = np.full((case.width.kinds, case.width.depth + 1), inf)
    for first, last in _depths_together(case):
        by_depth[:, first : last + 1] = _paces_of(case, first, last)
    return by_depth


def pace(case: WidthCase, needed: int, stages: int) -> float:
    """P of one depth."""
    first, last = next(row for row in _depths_together(case) if row[0] <= stages <= row[1])
    of_range = case.remembered(("paces", first), lambda: _paces_of(case, first, last))
    return float(of_range[needed, stages - first])


def _paces_of(case: WidthCase, first: int, last: int) -> Floats:
    """P of the depths from ``first`` to ``last`` in the memory that the most replicas of the first
    leave."""
    width, problem, family = case.width, case.problem, case.family
    most = case.most_by_depth[first - 1 : last]
    replicas = int(most[0])
    # P of 1F1B bounds that of chunks too, whose transfers may be overlapped.
    shown = not problem.rules.overlapped_transfers or family.split
    moves = (
        least_moves(case) if shown else np.full(len(width.cut_sets.size), starts_s(problem, family))
    )
    room = case.room(replicas)

    def solved(rounds: int, upto: int) -> Floats:
        limits = width.kinds, moves, np.full(upto + 2, inf)
        in_flight = in_flight_of(family, rounds, None, upto)
        g = bottleneck_kernels.bottleneck(
            width.cut_sets, case.table_at(replicas), room, in_flight, limits
        )
        return np.asarray(np.minimum.accumulate(g[-1][::-1], axis=0)[::-1])

    rounds = problem.rounds(replicas)
    by_depth = solved(rounds, last)[:, first:]
    filled = family.in_flight(2 * last, last, last)
    if (
        family.in_flight_rule in ("capped", "depth")
        and family.in_flight(rounds, last, last) < filled
    ):
        # Depths whose replicas have microbatches enough to fill them hold as many as their numbers
        # say.
        fewest = -(-problem.microbatches // most)
        full = [
            s for s, m in enumerate(fewest.tolist(), first) if m >= family.in_flight(2 * s, s, s)
        ]
        if full:
            by_depth[:, [s - first for s in full]] = solved(2 * last, max(full))[:, full]
    return by_depth


def _alike_depths(most: Ints) -> Iterator[tuple[int, int]]:
    """The depths 1, 2, ... in rows (first, last) of which no depth has less than 1/ALIKE of the
    most replicas of the first."""
    first, counts = 1, most.tolist()
    for stages, replicas in enumerate(counts, 1):
        if replicas * ALIKE < counts[first - 1]:
            yield first, stages - 1
            first = stages
    yield first, len(counts)


def _depths_together(case: WidthCase) -> list[tuple[int, int]]:
    """Depths that share a table of paces, first and last; all where replicas make no difference."""
    if case.problem.zero == 0 and case.family.in_flight_rule not in ("capped", "depth"):
        return [(1, case.width.depth)]
    return case.remembered(("alike",), lambda: list(_alike_depths(case.most_by_depth)))


def depth_bound(case: WidthCase, pace_s: Floats, fill: float) -> float:
    """What no plan of a width and stage of ZeRO undercuts, end aside, under families that count the
    sum of stages ``fill`` times at least and the pace m - ``fill`` times: that falls with replicas,
    so that the most are enough."""
    stages = np.arange(1, case.width.depth + 1)
    most = np.minimum(
        case.problem.microbatches, case.problem.devices // case.width.fewest_devices(stages)
    )
    rounds = -(-case.problem.microbatches // np.maximum(1, most))
    least_s = pace_s[0, 1 : len(stages) + 1]
    there = np.isfinite(least_s) & (most > 0)
    least_s = np.where(there, least_s, 0.0)
    bounds_s = (rounds - fill) * least_s + fill * np.maximum(case.width.seconds, least_s)
    return float(np.min(bounds_s, initial=inf, where=there)) * (1 - ROUNDING)


def sent_bound(case: WidthCase, shape: Shape) -> float:
    """What no plan of a shape undercuts, end aside, as its boundaries cross the levels that they
    cross."""
    problem, width, family = case.problem, case.width, case.family
    rounds, stages = problem.rounds(shape.data), shape.stages
    levels = boundary_levels(problem.cluster, shape)
    between_s = _least_by_level(case)[levels]
    wraparound_s = (
        family.wraparound_transfers
        * float(width.wraparound_s[levels.max(initial=0)])
        * (1 - ROUNDING)
    )
    sent_s = np.concatenate([[wraparound_s], between_s, [wraparound_s]])
    start_s = 2 * starts_s(problem, family)
    unpaired = problem.rules.unpaired_share(family, rounds, stages)
    whole_s = least_seconds(case, gathered_s(case, shape)) + stages * start_s
    moved_s = 2 * float(sent_s[:-1].sum())
    pace_s = max(
        float((sent_s[:-1] + sent_s[1:]).max()) + start_s, (whole_s + unpaired * moved_s) / stages
    )
    counted_s = least_fill(case, stages) if family.split else whole_s + moved_s
    return (family.alpha(rounds, stages) * pace_s + family.beta(stages) * counted_s) * (
        1 - ROUNDING
    )


def _least_by_level(case: WidthCase) -> Floats:
    """By level, the least that the chunks of a family send over a boundary in a pass, rounded
    down."""

    def least_s() -> Floats:
        between_s = case.width.moves_s[:-1, 1:-1].min(axis=1, initial=inf)
        return np.asarray(case.family.chunks * between_s * (1 - ROUNDING))

    return case.remembered(("sent",), least_s)

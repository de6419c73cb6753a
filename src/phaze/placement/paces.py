"""P(S): the least greatest stage time of a cut into S stages that fits into memory, by depth, and what it bounds."""

from collections.abc import Iterator
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.placement import bottleneck_kernels
from phaze.placement.prepared_width import flying_of, starts_s
from phaze.placement.problem import ROUNDING
from phaze.placement.shapes import WidthCase, least_moves

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Depths that share one table of paces: the finer the tighter the bounds, and the more tables there are.
ALIKE = 1.5


def paces(case: WidthCase) -> Floats:
    """P by (at least so many unsplit stages, S), with no more in flight than a replica of that depth must have, in the
    memory that its most replicas leave: of depths with nearly as many of them, those of the least."""
    found = np.full((case.width.kinds, case.width.depth + 1), inf)
    for first, last in _depths_together(case):
        found[:, first : last + 1] = _paces_of(case, first, last)
    return found


def pace(case: WidthCase, needed: int, stages: int) -> float:
    """P of one depth."""
    first, last = next(row for row in _depths_together(case) if row[0] <= stages <= row[1])
    found = case.remembered(("paces", first), lambda: _paces_of(case, first, last))
    return float(found[needed, stages - first])


def _paces_of(case: WidthCase, first: int, last: int) -> Floats:
    """P of the depths from ``first`` to ``last`` in the memory that the most replicas of the first leave."""
    width, problem, family = case.width, case.problem, case.family
    most = case.most_by_depth[first - 1 : last]
    replicas = int(most[0])
    # P of 1F1B bounds that of chunks too, whose transfers may be overlapped.
    shown = not problem.rules.overlapped_transfers or family.split
    moves = least_moves(case) if shown else np.full(len(width.cut_sets.size), starts_s(problem, family))
    room = case.room(replicas)

    def solved(rounds: int, upto: int) -> Floats:
        limits = width.kinds, moves, np.full(upto + 2, inf)
        flying = flying_of(family, rounds, None, upto)
        g = bottleneck_kernels.bottleneck(width.cut_sets, case.table_at(replicas), room, flying, limits)
        return np.asarray(np.minimum.accumulate(g[-1][::-1], axis=0)[::-1])

    rounds = problem.rounds(replicas)
    found = solved(rounds, last)[:, first:]
    filled = family.in_flight(2 * last, last, last)
    if family.flying in ("capped", "depth") and family.in_flight(rounds, last, last) < filled:
        # Depths whose replicas have microbatches enough to fill them hold as many as their numbers say.
        fewest = -(-problem.microbatches // most)
        full = [s for s, m in enumerate(fewest.tolist(), first) if m >= family.in_flight(2 * s, s, s)]
        if full:
            found[:, [s - first for s in full]] = solved(2 * last, max(full))[:, full]
    return found


def _alike_depths(most: Ints) -> Iterator[tuple[int, int]]:
    """The depths 1, 2, ... in rows (first, last) of which no depth has less than 1/ALIKE of the most replicas of the
    first."""
    first, counts = 1, most.tolist()
    for stages, replicas in enumerate(counts, 1):
        if replicas * ALIKE < counts[first - 1]:
            yield first, stages - 1
            first = stages
    yield first, len(counts)


def _depths_together(case: WidthCase) -> list[tuple[int, int]]:
    """Depths that share a table of paces, first and last; all where replicas make no difference."""
    if case.problem.zero == 0 and case.family.flying not in ("capped", "depth"):
        return [(1, case.width.depth)]
    return case.remembered(("alike",), lambda: list(_alike_depths(case.most_by_depth)))


def depth_bound(case: WidthCase, pace_s: Floats, fill: float) -> float:
    """What no plan of a width and stage of ZeRO undercuts, end aside, under families that count the sum of stages
    ``fill`` times at least and the pace m - ``fill`` times: that falls with replicas, so that the most are enough."""
    stages = np.arange(1, case.width.depth + 1)
    most = np.minimum(case.problem.microbatches, case.problem.devices // case.width.fewest_devices(stages))
    rounds = -(-case.problem.microbatches // np.maximum(1, most))
    least_s = pace_s[0, 1 : len(stages) + 1]
    there = np.isfinite(least_s) & (most > 0)
    least_s = np.where(there, least_s, 0.0)
    found = (rounds - fill) * least_s + fill * np.maximum(case.width.seconds, least_s)
    return float(np.min(found, initial=inf, where=there)) * (1 - ROUNDING)

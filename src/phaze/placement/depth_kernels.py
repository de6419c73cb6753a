"""Compiled: which depths of a pipeline fit into memory, and the least time of every depth and
number of replicas.

Closed sets are those of :mod:`phaze.placement.cut_sets`.
"""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit
from phaze.placement.bottleneck_kernels import NO_MODE, mode_of
from phaze.placement.stage_kernels import Room, StageTable

if TYPE_CHECKING:
    from phaze.placement.cut_sets import CutSets, Floats, Ints


@njit(cache=True, nogil=True)
def depths_that_fit(
    cut_sets: "CutSets", table: StageTable, room: Room, in_flight: "Floats", kinds: int
) -> "Ints":
    """By (q, S): 1 if some cut into S stages of which q are unsplit fits."""
    sets, most = table.start.shape[0] - 1, in_flight.shape[0] - 1
    start, rests, fits = table.start, table.rest, np.zeros((most + 1, sets, kinds), np.int64)
    fits[0, 0, 0] = 1
    reached, now = np.zeros(sets, np.bool_), np.zeros(sets, np.bool_)
    reached[0] = True
    for s in range(1, most + 1):
        now[:] = False
        for top in range(1, sets):
            if cut_sets.size[top] < s:
                continue
            for pair in range(start[top], start[top + 1]):
                rest = rests[pair]
                if not reached[rest] or mode_of(table, room, pair, in_flight[s]) == NO_MODE:
                    continue
                now[top], shift = True, table.unsplit[pair] if kinds > 1 else 0
                for q in range(kinds - shift):
                    fits[s, top, q + shift] |= fits[s - 1, rest, q]
                if kinds == 1:
                    break
        reached[:] = now
    by_kinds: Ints = fits[:, sets - 1].T.copy()
    return by_kinds


@njit(cache=True, nogil=True)
def shape_rows(
    pace_s: "Floats",
    degrees: "tuple[int, int, int]",
    multiples: "tuple[int, int]",
    family: "tuple[float, float, float]",
    sums_s: "Floats",
    best: float,
) -> "tuple[Ints, Floats]":
    """Every (stages, replicas, unsplit stages needed) with a lower bound on the batch time, end
    aside, below ``best``.

    ``pace_s`` is P by (at least so many unsplit, S); ``degrees`` are width, devices, microbatches;
    ``multiples`` whether only multiples of S are allowed as microbatches of a replica, and the
    least multiple; ``family`` is slope, offset and how often the sum of stages counts that is at
    least P; ``sums_s`` is what it counts with all, by S.
    """
    width, devices, microbatches = degrees
    (whole, fewest_rounds), (slope, offset, beta) = multiples, family
    kinds, depth = pace_s.shape[0], pace_s.shape[1] - 1
    rows, bounds, count = np.empty((64, 3), np.int64), np.empty(64), 0
    for stages in range(1, depth + 1):
        if pace_s[0, stages] == np.inf:
            continue
        fewest = width * max(0, stages - (kinds - 1)) + min(stages, kinds - 1)
        for data in range(1, min(microbatches, devices // fewest) + 1):
            rounds, needed = -(-microbatches // data), 0
            if (whole and rounds % stages) or rounds < fewest_rounds * stages:
                continue
            if width * stages > devices // data:
                needed = -(-(width * stages - devices // data) // (width - 1))
            least_s = pace_s[needed, stages]
            bound = (rounds + slope * stages + offset) * least_s + max(
                sums_s[stages], beta * least_s
            )
            if bound >= best:
                continue
            if count == bounds.shape[0]:
                larger, more = np.empty((2 * count, 3), np.int64), np.empty(2 * count)
                larger[:count], more[:count] = rows, bounds
                rows, bounds = larger, more
            rows[count, 0], rows[count, 1], rows[count, 2], bounds[count] = (
                stages,
                data,
                needed,
                bound,
            )
            count += 1
    return rows[:count], bounds[:count]

"""Compiled: the bottleneck table of one width for chip after chip, whose layers differ in nothing
but their seconds.

The table and what is read off it are those of :mod:`phaze.placement.bottleneck_kernels`, the limits
those of :mod:`phaze.placement.bottleneck_solver` with a chip's own cut as the guess.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from phaze.compiled import njit
from phaze.placement.bottleneck_kernels import ReplicaDegrees, best_of_table, bottleneck, longest_of
from phaze.placement.stage_kernels import Room, Saved, stage_table

if TYPE_CHECKING:
    from phaze.placement.cut_sets import CutSets, Floats

# Products of the same times in another order differ by less: a limit a little too high leaves
# nothing out.
AGREEMENT = 1e-9


class ChipFreeTable(NamedTuple):
    """What the table of a width depends on beside seconds: memory at the most replicas and at one,
    microbatches in flight by number, least alpha by stages from 1 on, numbers of unsplit stages
    distinguished, data degrees, seconds of a first stage's byte, and room for stages."""

    device: Room
    room: Room
    in_flight: "Floats"
    alpha: "Floats"
    kinds: int
    degrees: ReplicaDegrees
    sync_s_per_byte: float
    stages: int


@njit(cache=True, nogil=True)
def stage_limits(alpha: "Floats", seconds: tuple[float, float], guess_s: float) -> "Floats":
    """limit(S) for S = 0 .. most + 1, never rising; ``seconds`` are those of all layers and of the
    longest."""
    whole_s, longest_s = seconds
    most = 0
    allowed = np.zeros(alpha.shape[0] + 2)
    for place in range(alpha.shape[0]):
        if alpha[place] < np.inf:
            limit = guess_s * (1 + AGREEMENT) / alpha[place]
            if limit >= max(whole_s / (place + 1), longest_s):
                allowed[place + 1], most = limit, place + 1
    for place in range(most - 1, 0, -1):
        allowed[place] = max(allowed[place], allowed[place + 1])
    allowed[0] = allowed[1]
    return allowed[: most + 2]


@njit(cache=True, nogil=True)
def table_floors(
    cut_sets: "CutSets",
    saved: Saved,
    fixed: ChipFreeTable,
    times: "tuple[Floats, Floats]",
    cuts_s: "Floats",
) -> "Floats":
    """The least batch time of every chip, or its cut if that is less; ``times`` of both passes are
    [layers, chips].

    The seconds of ``cut_sets`` and ``saved`` are written over: give arrays of their own.
    """
    forward_s, backward_s = times
    bounds, free = cuts_s.copy(), np.zeros(cut_sets.size.shape[0])
    saved.again_s[:] = 0.0
    for chip in range(cuts_s.shape[0]):
        cut_sets.forward_s[:], cut_sets.backward_s[:] = forward_s[:, chip], backward_s[:, chip]
        saved.again_s[:, -1] = forward_s[:, chip]
        both = cut_sets.forward_s + cut_sets.backward_s
        limit_s = stage_limits(fixed.alpha, (both.sum(), both.max()), cuts_s[chip])
        if limit_s.shape[0] <= 2:
            continue
        longest_s = longest_of(cut_sets, limit_s)
        count, table = stage_table(cut_sets, saved, fixed.device, longest_s, fixed.stages)
        if count > fixed.stages:
            count, table = stage_table(cut_sets, saved, fixed.device, longest_s, count)
        in_flight = fixed.in_flight[: limit_s.shape[0] - 1]
        g = bottleneck(cut_sets, table, fixed.room, in_flight, (fixed.kinds, free, limit_s))
        rest_of = (g, limit_s, fixed.degrees, fixed.sync_s_per_byte, cuts_s[chip])
        chosen = best_of_table(cut_sets, table, fixed.room, in_flight, rest_of)
        if chosen[4] > 0:
            bounds[chip] = chosen[0]
    return bounds

"""Compiled: which cuts and stages fit on no chip, and which rows of a table none beats; for
:mod:`phaze.search.bounds.shape_tables`."""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit
from phaze.placement.bottleneck_kernels import NO_MODE, held_bytes, highest, mode_of
from phaze.placement.stage_kernels import Room, StageTable

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats, Ints


@njit(cache=True, nogil=True)
def fewest_again(pairs: StageTable, room: Room, in_flight: "Floats") -> "Ints":
    """For every depth S: the least sum over stages of what a mode recomputes; -1 where no cut
    fits."""
    sets, depth = pairs.start.shape[0] - 1, in_flight.shape[0] - 1
    least, fewest = np.full((depth + 1, sets), np.inf), np.full(depth + 1, -1, np.int64)
    least[0, 0] = 0.0
    for s in range(1, depth + 1):
        for top in range(1, sets):
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                below = least[s - 1, pairs.rest[pair]]
                if below < least[s, top]:
                    mode = mode_of(pairs, room, pair, in_flight[s])
                    if mode != NO_MODE:
                        least[s, top] = min(least[s, top], below + pairs.backward_s[pair, mode])
        if least[s, sets - 1] < np.inf:
            fewest[s] = int(least[s, sets - 1])
    return fewest


@njit(cache=True, nogil=True)
def unbeaten_rows(rows: "Floats") -> "Ints":
    """Which rows no other is at most as great as in every column; of equals the first. They ascend
    by their first column, then by their sum, so that none comes before a row that beats it."""
    count, columns = rows.shape
    unbeaten, many = np.empty(count, np.int64), 0
    for row in range(count):
        beaten = False
        for place in range(many - 1, -1, -1):
            beaten = True
            for column in range(columns):
                if rows[unbeaten[place], column] > rows[row, column]:
                    beaten = False
                    break
            if beaten:
                break
        if not beaten:
            unbeaten[many] = row
            many += 1
    return unbeaten[:many]


@njit(cache=True, nogil=True)
def highest_numbers(table: StageTable, room: Room, in_flight: "Floats") -> "Ints":
    """The greatest number from the end at which every stage fits in each mode, 0 if at none;
    ``in_flight`` by number."""
    numbers, depth = (
        np.zeros((table.rest.shape[0], table.kept_bytes.shape[1]), np.int64),
        in_flight.shape[0] - 1,
    )
    for stage in range(table.rest.shape[0]):
        state_bytes = held_bytes(table, room, stage)
        allowed = room.last if table.rest[stage] == 0 else room.allowed
        for mode in range(table.kept_bytes.shape[1]):
            if allowed[mode]:
                need = state_bytes + table.live_bytes[stage, mode]
                numbers[stage, mode] = highest(
                    need, table.kept_bytes[stage, mode], room.hbm_bytes, in_flight, depth
                )
    return numbers

r"""Compiled: what no plan undercuts where the sum of stage times counts, for every chip.

The formulas stand in :mod:`phaze.search.shape_bound`, the tables in :mod:`phaze.search.shape_tables`.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from phaze.placement.bottleneck_kernels import NO_MODE, held_bytes, highest, mode_of
from phaze.placement.stage_kernels import Room, StageTable

if TYPE_CHECKING:
    from phaze.placement.charts import Floats, Ints


class Shapes(NamedTuple):
    """The shapes of each depth S, at ``start[S]`` .. ``start[S + 1]``, none of which another one dominates.

    ``laps`` are microbatches of a copy less one, ``moves_s`` the least of all transfers of a microbatch, ``move_s`` of
    one, ``waits_s`` what is not hidden of ZeRO's collectives, ``rank`` the cheapest level that it crosses, by price
    ascending. By class of the largest stage [rows, classes]: ``ends_s``
    synchronisation and tied parameters, ``step_bytes`` the optimizer's traffic. ``again`` are the fewest layers that
    are computed again at each depth.
    """

    start: "Ints"
    laps: "Floats"
    moves_s: "Floats"
    move_s: "Floats"
    waits_s: "Floats"
    rank: "Ints"
    ends_s: "Floats"
    step_bytes: "Floats"
    again: "Ints"


class Stages(NamedTuple):
    """Every stage of every closed set: what is left, layers of each kind, whether such a kind is recomputed, and up to
    which number it fits in each mode; ``deep`` says at which depths all microbatches may be in flight that 1F1B wants,
    ``move_s`` is the least transfer into each closed set across levels of a rank or above [ranks, sets]. A stage has
    ``size_bytes`` of parameters, and the largest stage of a class at most ``most_bytes``."""

    start: "Ints"
    rest: "Ints"
    counts: "Floats"
    repeated: "Floats"
    few: "Ints"
    many: "Ints"
    deep: "Ints"
    move_s: "Floats"
    size_bytes: "Floats"
    most_bytes: "Floats"


@njit(cache=True, nogil=True)
def fewest_again(pairs: StageTable, room: Room, flying: "Floats") -> "Ints":
    """For every depth S: the least sum over stages of what a mode recomputes; -1 where no cut fits."""
    sets, depth = pairs.start.shape[0] - 1, flying.shape[0] - 1
    least, found = np.full((depth + 1, sets), np.inf), np.full(depth + 1, -1, np.int64)
    least[0, 0] = 0.0
    for s in range(1, depth + 1):
        for top in range(1, sets):
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                below = least[s - 1, pairs.rest[pair]]
                if below < least[s, top]:
                    mode = mode_of(pairs, room, pair, flying[s])
                    if mode < NO_MODE:
                        least[s, top] = min(least[s, top], below + pairs.backward_s[pair, mode])
        if least[s, sets - 1] < np.inf:
            found[s] = int(least[s, sets - 1])
    return found


@njit(cache=True, nogil=True)
def highest_numbers(table: StageTable, room: Room, flying: "Floats") -> "Ints":
    """The greatest number from the end at which every stage fits in each mode, 0 if at none; ``flying`` by number."""
    found, depth = np.zeros((table.rest.shape[0], 3), np.int64), flying.shape[0] - 1
    for stage in range(table.rest.shape[0]):
        held = held_bytes(table, room, stage)
        allowed = room.last if table.rest[stage] == 0 else room.allowed
        for mode in range(3):
            if allowed[mode]:
                need = held + table.live_bytes[stage, mode]
                found[stage, mode] = highest(need, table.kept_bytes[stage, mode], room.hbm_bytes, flying, depth)
    return found


@njit(cache=True, nogil=True)
def _ended(
    shapes: Shapes, at: tuple[int, int], stages: int, pace_s: float, sum_s: float, second_per_byte: float
) -> float:
    """What a shape and class take whose longest stage, transfers with it, and whose sum without them are so long."""
    j, size = at
    whole = sum_s + shapes.moves_s[j] + shapes.waits_s[j]
    longest = max(pace_s, whole / stages)
    end = shapes.ends_s[j, size] + shapes.step_bytes[j, size] * second_per_byte
    return float(shapes.laps[j] * longest + max(whole, longest) + end)


@njit(cache=True, nogil=True)
def _counted(numbers: "Ints", layer_s: "Floats", stages: int, move: float) -> float:
    """The least longest stage by counting: two stages have one transfer, the others two, or a layer less."""
    pace = 0.0
    for kind in range(layer_s.shape[0]):
        own, most = layer_s[kind], -(-numbers[kind] // stages)
        ends = 2 * most + (stages - 2) * (most - 1) >= numbers[kind]
        pace = max(pace, most * own + move + (0.0 if ends else min(move, own)))
    return pace


@njit(cache=True, nogil=True)
def shape_floors(
    shapes: Shapes, numbers: "Ints", layer_s: "Floats", again_s: "Floats", second_per_byte: "Floats"
) -> "Floats":
    """For each chip what no plan of the shapes undercuts, by counting; ``layer_s`` are [kinds, chips], ``numbers`` how
    many layers of each kind there are, ``again_s`` the least that computing one again takes."""
    kinds, chips = layer_s.shape
    found, own, depth, recent = np.empty(chips), np.empty(kinds), shapes.start.shape[0] - 2, 1
    for chip in range(chips):
        total = 0.0
        for kind in range(kinds):
            own[kind] = layer_s[kind, chip]
            total += numbers[kind] * own[kind]
        best = np.inf
        for turn in range(depth + 1):
            stages = recent if turn == 0 else turn
            if turn == recent:
                continue
            whole, after = total + shapes.again[stages] * again_s[chip], best
            for j in range(shapes.start[stages], shapes.start[stages + 1]):
                if _ended(shapes, (j, 0), stages, 0.0, whole, second_per_byte[chip]) < after:
                    pace = _counted(numbers, own, stages, shapes.move_s[j])
                    after = min(after, _ended(shapes, (j, 0), stages, pace, whole, second_per_byte[chip]))
            if after < best:
                best, recent = after, stages
        found[chip] = best
    return found


@njit(cache=True, nogil=True)
def _sums(stages: Stages, flying: "Ints", times: "Floats", total: "Floats") -> None:
    """Least sum of stage times, transfers left out, by (closed set, depth); ``times`` are [stage, mode]."""
    sets, depth = total.shape[0], total.shape[1] - 1
    total[:] = np.inf
    total[0, 0] = 0.0
    for top in range(1, sets):
        for pair in range(stages.start[top], stages.start[top + 1]):
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            for mode in range(3):
                own, up_to = times[pair, mode], min(depth, flying[pair, mode])
                if up_to > 0:
                    for s in range(covered + 1 if own >= slowest else 1, up_to + 1):
                        total[top, s] = min(total[top, s], own + total[rest, s - 1])
                    covered, slowest = max(covered, up_to), max(slowest, own)


@njit(cache=True, nogil=True)
def _paces(stages: Stages, flying: "Ints", times: "Floats", most_bytes: float, rank: int, pace: "Floats") -> None:
    """Least greatest stage time, transfers across a rank with it, by (closed set, depth), no stage having more
    parameters."""
    sets, depth = pace.shape[0], pace.shape[1] - 1
    pace[:] = np.inf
    pace[0, 0] = 0.0
    for top in range(1, sets):
        entry = 0.0 if top == sets - 1 else stages.move_s[rank, top]
        for pair in range(stages.start[top], stages.start[top + 1]):
            if stages.size_bytes[pair] > most_bytes:
                continue
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            moved = entry + (0.0 if rest == 0 else stages.move_s[rank, rest])
            for mode in range(3):
                own, up_to = times[pair, mode] + moved, min(depth, flying[pair, mode])
                if up_to > 0:
                    for s in range(covered + 1 if own >= slowest else 1, up_to + 1):
                        pace[top, s] = min(pace[top, s], max(own, pace[rest, s - 1]))
                    covered, slowest = max(covered, up_to), max(slowest, own)


@njit(cache=True, nogil=True)
def _sum_within(stages: Stages, flying: "Ints", times: "Floats", depth: int, limit: float) -> float:
    """Least sum of the times of so many stages, none of which takes longer than ``limit`` with its transfers."""
    sets = stages.start.shape[0] - 1
    total = np.full((sets, depth + 1), np.inf)
    total[0, 0] = 0.0
    for top in range(1, sets):
        entry = 0.0 if top == sets - 1 else stages.move_s[0, top]
        for pair in range(stages.start[top], stages.start[top + 1]):
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            moved = entry + (0.0 if rest == 0 else stages.move_s[0, rest])
            for mode in range(3):
                own, up_to = times[pair, mode], min(depth, flying[pair, mode])
                if up_to > 0 and own + moved <= limit:
                    for s in range(covered + 1 if own >= slowest else 1, up_to + 1):
                        total[top, s] = min(total[top, s], own + total[rest, s - 1])
                    covered, slowest = max(covered, up_to), max(slowest, own)
    return float(total[sets - 1, depth])


@njit(cache=True, nogil=True)
def _longest(shapes: Shapes, s: int, free: "Floats", sum_s: float, rate: float, best: float) -> float:
    """The longest that a stage of a plan of so many stages may take that beats ``best``; 0 if none does."""
    found = 0.0
    for j in range(shapes.start[s], shapes.start[s + 1]):
        if _ended(shapes, (j, 0), s, free[shapes.rank[j], s], sum_s, rate) < best:
            whole = sum_s + shapes.moves_s[j] + shapes.waits_s[j]
            room = best - whole - shapes.ends_s[j, 0] - shapes.step_bytes[j, 0] * rate
            found = max(found, room / shapes.laps[j] * (1 + 1e-9) if shapes.laps[j] > 0 else np.inf)
    return found


@njit(cache=True, nogil=True)
def _of_class(shapes: Shapes, deep: "Ints", at: tuple[int, int], pace: "Floats", total: "Floats", rate: float) -> float:
    """The least of a class and rank over the depths that ``deep`` marks, from the longest stage and the sum of each."""
    best, (size, rank) = np.inf, at
    for s in range(1, pace.shape[0]):
        if deep[s] and pace[s] < np.inf:
            for j in range(shapes.start[s], shapes.start[s + 1]):
                if shapes.rank[j] == rank:
                    best = min(best, _ended(shapes, (j, size), s, pace[s], total[s], rate))
    return best


@njit(cache=True, nogil=True)
def _deepest(shapes: Shapes, whole_s: float, rate: float, best: float) -> int:
    """The greatest depth that could beat ``best`` if all its stages were alike."""
    for s in range(shapes.start.shape[0] - 2, 0, -1):
        for j in range(shapes.start[s], shapes.start[s + 1]):
            if _ended(shapes, (j, 0), s, 0.0, whole_s, rate) < best:
                return s
    return 0


@njit(cache=True, nogil=True)
def _cut_floor(
    shapes: Shapes, stages: Stages, times: "Floats", whole_s: float, many: bool, rate: float, best: float
) -> float:
    """The least of ``best`` and of the depths at which so many microbatches are in flight.

    The longest stage of any class is no shorter than without a limit on its size, so most classes need no cut.
    """
    sets, depth = stages.start.shape[0] - 1, _deepest(shapes, whole_s, rate, best)
    if depth == 0:
        return best
    flying = stages.many if many else stages.few
    deep = stages.deep if many else 1 - stages.deep
    total, pace = np.empty((sets, depth + 1)), np.empty((sets, depth + 1))
    _sums(stages, flying, times, total)
    sums, free = total[sets - 1].copy(), np.full((stages.move_s.shape[0], depth + 1), np.inf)
    for rank in range(stages.move_s.shape[0]):
        if (shapes.rank == rank).any():
            _paces(stages, flying, times, np.inf, rank, pace)
            free[rank] = pace[sets - 1]
    for s in range(1, depth + 1):
        if deep[s]:
            limit = _longest(shapes, s, free, sums[s], rate, best)
            if 0.0 < limit < np.inf:
                sums[s] = max(sums[s], _sum_within(stages, flying, times, s, limit))
    for rank in range(stages.move_s.shape[0]):
        for size in range(stages.most_bytes.shape[0]):
            if _of_class(shapes, deep, (size, rank), free[rank], sums, rate) < best:
                _paces(stages, flying, times, stages.most_bytes[size], rank, pace)
                best = min(best, _of_class(shapes, deep, (size, rank), pace[sets - 1], sums, rate))
    return best


@njit(cache=True, nogil=True)
def cut_floors(
    shapes: Shapes,
    stages: Stages,
    numbers: "Ints",
    layer_s: "Floats",
    mode_s: "Floats",
    second_per_byte: "Floats",
    below: "Floats",
) -> "Floats":
    """The lesser of ``below`` and what no plan undercuts by the best cuts of every depth and class, for each chip.

    ``layer_s`` are [kinds, chips] without anything computed again, which takes ``mode_s`` [modes, kinds, chips].
    """
    kinds, chips = layer_s.shape
    pairs = stages.rest.shape[0]
    found, times = np.empty(chips), np.empty((pairs, 3))
    for chip in range(chips):
        for pair in range(pairs):
            own = 0.0
            for kind in range(kinds):
                own += stages.counts[pair, kind] * layer_s[kind, chip]
            for mode in range(3):
                times[pair, mode] = own
                for kind in range(kinds):
                    again = stages.counts[pair, kind] * stages.repeated[kind]
                    times[pair, mode] += again * mode_s[mode, kind, chip]
        whole, rate = 0.0, second_per_byte[chip]
        for kind in range(kinds):
            whole += numbers[kind] * layer_s[kind, chip]
        best = _cut_floor(shapes, stages, times, whole, True, rate, below[chip])
        if not stages.deep[1:].all():
            best = _cut_floor(shapes, stages, times, whole, False, rate, best)
        found[chip] = best
    return found

r"""Compiled: what no plan undercuts where the sum of stage times counts, for every chip.

The formulas stand in :mod:`phaze.search.shape_bound`, the tables in :mod:`phaze.search.shape_tables`.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats, Ints


class Shapes(NamedTuple):
    """The shapes of each depth S, at ``start[S]`` .. ``start[S + 1]``, none of which another one dominates.

    ``laps`` is how many times the longest stage counts, ``sums`` how many times all stages together: alpha and beta of
    the family. ``moves_s`` is the least of all transfers of a microbatch, ``move_s`` of one, ``waits_s`` what is not
    hidden of ZeRO's collectives, ``again`` the fewest layers that are computed again, ``pattern`` which levels its
    boundaries cross, of the stages' list of that depth. By class of the largest stage [rows, classes]: ``ends_s``
    synchronisation and tied parameters, ``step_bytes`` the optimizer's traffic.
    """

    start: "Ints"
    laps: "Floats"
    sums: "Floats"
    moves_s: "Floats"
    move_s: "Floats"
    waits_s: "Floats"
    again: "Floats"
    pattern: "Ints"
    ends_s: "Floats"
    step_bytes: "Floats"


class Stages(NamedTuple):
    """Every stage of every closed set in a pipeline of one depth: what is left, layers of each kind, whether a kind is
    recomputed, and up to which number it fits in each mode. ``crossed`` is the level that the stage of a number, from
    the end, is entered by [patterns, numbers], ``move_s`` the transfer into each closed set [levels, sets], ``least_s``
    the least of any level, ``end_s`` what chunks add at each end of the pipeline [patterns]. A stage has ``size_bytes``
    of parameters, and the largest stage of a class at most ``most_bytes``."""

    start: "Ints"
    rest: "Ints"
    counts: "Floats"
    repeated: "Floats"
    highest: "Ints"
    crossed: "Ints"
    move_s: "Floats"
    least_s: "Floats"
    end_s: "Floats"
    size_bytes: "Floats"
    most_bytes: "Floats"


@njit(cache=True, nogil=True)
def _ended(
    shapes: Shapes, at: tuple[int, int], stages: int, pace_s: float, sum_s: float, second_per_byte: float
) -> float:
    """What a shape and class take whose longest stage, transfers with it, and whose sum without them are so long."""
    j, size = at
    whole = sum_s + shapes.moves_s[j] + shapes.waits_s[j]
    longest = max(pace_s, whole / stages)
    end = shapes.ends_s[j, size] + shapes.step_bytes[j, size] * second_per_byte
    return float(shapes.laps[j] * longest + shapes.sums[j] * max(whole, longest) + end)


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
def _last_totals(shapes: Shapes, depths: "Ints", again_s: float, second_per_byte: float, cut_s: float) -> "Floats":
    """For each shape the seconds of all layers from which on it takes ``cut_s`` at the least, whatever its stages are;
    ``again_s`` and ``second_per_byte`` are the least of all chips.

        (laps / S + sums) (total + again + moves + waits) + ends + step >= cut
    """
    found = np.empty(depths.shape[0])
    for j in range(depths.shape[0]):
        end = shapes.ends_s[j, 0] + shapes.step_bytes[j, 0] * second_per_byte
        passes = shapes.laps[j] / depths[j] + shapes.sums[j]
        found[j] = (cut_s - end) / passes - shapes.again[j] * again_s - shapes.moves_s[j] - shapes.waits_s[j]
    return found


@njit(cache=True, nogil=True)
def shape_floors(
    shapes: Shapes, numbers: "Ints", layer_s: "Floats", again_s: "Floats", second_per_byte: "Floats", cut_s: float
) -> "Floats":
    """For each chip what no plan of the shapes undercuts, by counting, or ``cut_s`` if that is less; infinite where
    there is no shape. ``layer_s`` are [kinds, chips], ``numbers`` how many layers of each kind there are, ``again_s``
    the least that computing one again takes.

    Shapes are looked at in the order of what they leave to the layers under the cut, and only as far as a chip's layers
    take less.
    """
    kinds, chips = layer_s.shape
    rows = shapes.laps.shape[0]
    if rows == 0 or chips == 0:
        return np.full(chips, np.inf)
    depths = np.empty(rows, np.int64)
    for stages in range(shapes.start.shape[0] - 1):
        depths[shapes.start[stages] : shapes.start[stages + 1]] = stages
    last = _last_totals(shapes, depths, again_s.min(), second_per_byte.min(), cut_s)
    order = np.argsort(-last)
    found, own, recent = np.full(chips, cut_s), np.empty(kinds), order[0]
    for chip in range(chips):
        total, rate, best = 0.0, second_per_byte[chip], cut_s
        for kind in range(kinds):
            own[kind] = layer_s[kind, chip]
            total += numbers[kind] * own[kind]
        for turn in range(-1, rows):
            j = recent if turn < 0 else order[turn]
            if last[j] <= total:
                if turn < 0:
                    continue
                break
            whole = total + shapes.again[j] * again_s[chip]
            if _ended(shapes, (j, 0), depths[j], 0.0, whole, rate) < best:
                pace = _counted(numbers, own, depths[j], shapes.move_s[j])
                after = _ended(shapes, (j, 0), depths[j], pace, whole, rate)
                if after < best:
                    best, recent = after, j
        found[chip] = best
    return found


@njit(cache=True, nogil=True)
def depth_floors(shapes: Shapes, whole_s: "Floats", second_per_byte: "Floats", below: "Floats") -> "Floats":
    """For each depth how near a plan of it comes to ``below`` on the chip where it comes nearest, if all its stages
    were alike: 1 or more where none is below."""
    depth, chips = shapes.start.shape[0] - 2, whole_s.shape[0]
    found = np.full(depth + 1, np.inf)
    for stages in range(1, depth + 1):
        for j in range(shapes.start[stages], shapes.start[stages + 1]):
            for chip in range(chips):
                own = _ended(shapes, (j, 0), stages, 0.0, whole_s[chip], second_per_byte[chip])
                found[stages] = min(found[stages], own / below[chip] if below[chip] < np.inf else 0.0)
    return found


@njit(cache=True, nogil=True)
def _sums(stages: Stages, times: "Floats", limit: float, total: "Floats") -> None:
    """Least sum of stage times, transfers left out, by (closed set, depth), no stage taking longer than ``limit`` with
    its transfers; ``times`` are [stage, mode]."""
    sets, depth, end = total.shape[0], total.shape[1] - 1, stages.end_s.min()
    total[:] = np.inf
    total[0, 0] = 0.0
    for top in range(1, sets):
        entry = end if top == sets - 1 else stages.least_s[top]
        for pair in range(stages.start[top], stages.start[top + 1]):
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            moved = entry + (end if rest == 0 else stages.least_s[rest])
            if times[pair, 0] + moved > limit:
                continue
            for mode in range(3):
                own, up_to = times[pair, mode], min(depth, stages.highest[pair, mode])
                if up_to > 0 and own + moved <= limit:
                    for s in range(covered + 1 if own >= slowest else 1, up_to + 1):
                        total[top, s] = min(total[top, s], own + total[rest, s - 1])
                    covered, slowest = max(covered, up_to), max(slowest, own)


@njit(cache=True, nogil=True)
def _paces(stages: Stages, times: "Floats", limits: tuple[float, float], pattern: int, pace: "Floats") -> None:
    """Least greatest stage time, transfers with it, by (closed set, number), no stage having more parameters or taking
    longer than ``limits``."""
    most_bytes, limit = limits
    sets, depth, end = pace.shape[0], pace.shape[1] - 1, stages.end_s[pattern]
    pace[:] = np.inf
    pace[0, 0] = 0.0
    for top in range(1, sets):
        for pair in range(stages.start[top], stages.start[top + 1]):
            if stages.size_bytes[pair] > most_bytes or times[pair, 0] > limit:
                continue
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            for mode in range(3):
                own, up_to = times[pair, mode], min(depth, stages.highest[pair, mode])
                if up_to > 0:
                    for s in range(covered + 1 if own >= slowest else 1, up_to + 1):
                        moved = end if s == depth else stages.move_s[stages.crossed[pattern, s], top]
                        moved += end if s == 1 else stages.move_s[stages.crossed[pattern, s - 1], rest]
                        pace[top, s] = min(pace[top, s], max(own + moved, pace[rest, s - 1]))
                    covered, slowest = max(covered, up_to), max(slowest, own)


@njit(cache=True, nogil=True)
def _longest(shapes: Shapes, depth: int, free: "Floats", sum_s: float, rate: float, best: float) -> float:
    """The longest that a stage of a plan of so many stages may take that beats ``best``; 0 if none does. ``free`` is
    known of the longest, by pattern, nothing if it is empty."""
    found = 0.0
    for j in range(shapes.start[depth], shapes.start[depth + 1]):
        pace = free[shapes.pattern[j]] if free.shape[0] > 0 else 0.0
        if _ended(shapes, (j, 0), depth, pace, sum_s, rate) < best:
            whole = sum_s + shapes.moves_s[j] + shapes.waits_s[j]
            room = best - shapes.sums[j] * whole - shapes.ends_s[j, 0] - shapes.step_bytes[j, 0] * rate
            found = max(found, room / shapes.laps[j] * (1 + 1e-9) if shapes.laps[j] > 0 else np.inf)
    return found


@njit(cache=True, nogil=True)
def _of_class(shapes: Shapes, depth: int, at: tuple[int, int], pace: float, sum_s: float, rate: float) -> float:
    """The least of a class and pattern, from the longest stage and the sum of all."""
    best, (size, pattern) = np.inf, at
    for j in range(shapes.start[depth], shapes.start[depth + 1]):
        if shapes.pattern[j] == pattern:
            best = min(best, _ended(shapes, (j, size), depth, pace, sum_s, rate))
    return best


@njit(cache=True, nogil=True)
def _cut_floor(
    shapes: Shapes, stages: Stages, depth: int, times: "Floats", limit: float, rate: float, best: float
) -> float:
    """The least of ``best`` and of a depth, no stage of which may take longer than ``limit``.

    The longest stage of any class is no shorter than without a limit on its size, so most classes need no cut.
    """
    sets, patterns = stages.start.shape[0] - 1, stages.end_s.shape[0]
    table, free = np.empty((sets, depth + 1)), np.full(patterns, np.inf)
    _sums(stages, times, limit, table)
    sum_s = table[sets - 1, depth]
    if sum_s == np.inf:
        return best
    for pattern in range(patterns):
        if _of_class(shapes, depth, (0, pattern), 0.0, sum_s, rate) < best:
            _paces(stages, times, (np.inf, limit), pattern, table)
            free[pattern] = table[sets - 1, depth]
    limit = _longest(shapes, depth, free, sum_s, rate, best)
    if limit == 0.0:
        return best
    if limit < np.inf:
        _sums(stages, times, limit, table)
        sum_s = max(sum_s, table[sets - 1, depth])
    for pattern in range(patterns):
        for size in range(stages.most_bytes.shape[0]):
            if free[pattern] < np.inf and _of_class(shapes, depth, (size, pattern), free[pattern], sum_s, rate) < best:
                _paces(stages, times, (stages.most_bytes[size], limit), pattern, table)
                pace = table[sets - 1, depth]
                if pace < np.inf:
                    best = min(best, _of_class(shapes, depth, (size, pattern), pace, sum_s, rate))
    return best


@njit(cache=True, nogil=True)
def cut_floors(
    shapes: Shapes,
    stages: Stages,
    depth: int,
    layer_s: "Floats",
    whole_s: "Floats",
    mode_s: "Floats",
    second_per_byte: "Floats",
    below: "Floats",
) -> "Floats":
    """The lesser of ``below`` and what no plan of a depth undercuts by its best cuts of every class, for each chip.

    ``layer_s`` are [kinds, chips] without anything computed again, which takes ``mode_s`` [modes, kinds, chips];
    ``whole_s`` all layers together.
    """
    kinds, chips = layer_s.shape
    pairs = stages.rest.shape[0]
    found, times, nothing = below.copy(), np.empty((pairs, 3)), np.empty(0)
    for chip in range(chips):
        rate = second_per_byte[chip]
        limit = _longest(shapes, depth, nothing, whole_s[chip], rate, below[chip])
        if limit == 0.0:
            continue
        for pair in range(pairs):
            own = 0.0
            for kind in range(kinds):
                own += stages.counts[pair, kind] * layer_s[kind, chip]
            for mode in range(3):
                times[pair, mode] = own
                for kind in range(kinds):
                    again = stages.counts[pair, kind] * stages.repeated[kind]
                    times[pair, mode] += again * mode_s[mode, kind, chip]
        found[chip] = _cut_floor(shapes, stages, depth, times, limit, rate, below[chip])
    return found

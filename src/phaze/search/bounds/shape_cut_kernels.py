r"""Compiled: what no plan of a depth undercuts by its best cuts, for every chip.

The formulas stand in :mod:`phaze.search.bounds.shape_bounds`, the tables in
:mod:`phaze.search.bounds.shape_tables`.
"""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit
from phaze.search.bounds.shape_kernels import Shapes, Stages, ended

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats

# How often the longest stage and the sum of all tighten each other; two or three times are enough
# for most chips.
TURNS = 8


@njit(cache=True, nogil=True)
def _sums(stages: Stages, times: "Floats", limits: tuple[float, float], total: "Floats") -> None:
    """Least sum of stage times, transfers left out, by (closed set, depth), no stage having more
    parameters or taking longer, with its transfers, than ``limits``; ``times`` are [stage,
    mode]."""
    most_bytes, limit = limits
    sets, depth, end = total.shape[0], total.shape[1] - 1, stages.end_s.min()
    total[:] = np.inf
    total[0, 0] = 0.0
    for top in range(1, sets):
        entry = end if top == sets - 1 else stages.least_s[top]
        for pair in range(stages.start[top], stages.start[top + 1]):
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            moved = entry + (end if rest == 0 else stages.least_s[rest])
            if stages.size_bytes[pair] > most_bytes or times[pair, 0] + moved > limit:
                continue
            for mode in range(times.shape[1]):
                stage_s, up_to = times[pair, mode], min(depth, stages.highest[pair, mode])
                if up_to > 0 and stage_s + moved <= limit:
                    for s in range(covered + 1 if stage_s >= slowest else 1, up_to + 1):
                        total[top, s] = min(total[top, s], stage_s + total[rest, s - 1])
                    covered, slowest = max(covered, up_to), max(slowest, stage_s)


@njit(cache=True, nogil=True)
def _paces(
    stages: Stages, times: "Floats", limits: tuple[float, float], pattern: int, pace: "Floats"
) -> None:
    """Least greatest stage time, transfers with it, by (closed set, number), no stage having more
    parameters or taking longer than ``limits``."""
    most_bytes, limit = limits
    sets, depth, end = pace.shape[0], pace.shape[1] - 1, stages.end_s[pattern]
    pace[:] = np.inf
    pace[0, 0] = 0.0
    for top in range(1, sets):
        for pair in range(stages.start[top], stages.start[top + 1]):
            if stages.size_bytes[pair] > most_bytes or times[pair, 0] > limit:
                continue
            rest, covered, slowest = stages.rest[pair], 0, 0.0
            for mode in range(times.shape[1]):
                stage_s, up_to = times[pair, mode], min(depth, stages.highest[pair, mode])
                if up_to > 0:
                    for s in range(covered + 1 if stage_s >= slowest else 1, up_to + 1):
                        moved = (
                            end if s == depth else stages.move_s[stages.crossed[pattern, s], top]
                        )
                        moved += (
                            end if s == 1 else stages.move_s[stages.crossed[pattern, s - 1], rest]
                        )
                        pace[top, s] = min(pace[top, s], max(stage_s + moved, pace[rest, s - 1]))
                    covered, slowest = max(covered, up_to), max(slowest, stage_s)


@njit(cache=True, nogil=True)
def _room(shapes: Shapes, place: tuple[int, int], sum_s: float, rate: float, best: float) -> float:
    """The longest that a stage of a plan of a shape and class may take that beats ``best``."""
    j, size = place
    whole = sum_s + shapes.moves_s[j] + shapes.waits_s[j]
    room = (
        best - shapes.sums[j] * whole - shapes.ends_s[j, size] - shapes.step_bytes[j, size] * rate
    )
    # The slack keeps a stage that ties within rounding: a limit too high only weakens the bound.
    return float(room / shapes.laps[j] * (1 + 1e-9)) if shapes.laps[j] > 0 else np.inf


@njit(cache=True, nogil=True)
def _longest(
    shapes: Shapes, depth: int, free: "Floats", sum_s: float, rate: float, best: float
) -> float:
    """The longest that a stage of a plan of so many stages may take that beats ``best``; 0 if none
    does. ``free`` is known of the longest, by pattern, nothing if it is empty."""
    longest = 0.0
    for j in range(shapes.start[depth], shapes.start[depth + 1]):
        pace = free[shapes.pattern[j]] if free.shape[0] > 0 else 0.0
        if ended(shapes, (j, 0), depth, pace, sum_s, rate) < best:
            longest = max(longest, _room(shapes, (j, 0), sum_s, rate, best))
    return longest


@njit(cache=True, nogil=True)
def _of_class(
    shapes: Shapes,
    depth: int,
    place: tuple[int, int],
    pace: float,
    sum_s: float,
    rate: float,
    best: float,
) -> tuple[float, float]:
    """The least of a class and pattern, from the longest stage and the sum of all, and the longest
    that a stage of such a plan may take that beats ``best``."""
    (size, pattern), least, longest = place, np.inf, 0.0
    for j in range(shapes.start[depth], shapes.start[depth + 1]):
        if shapes.pattern[j] == pattern:
            total_s = ended(shapes, (j, size), depth, pace, sum_s, rate)
            least = min(least, total_s)
            if total_s < best:
                longest = max(longest, _room(shapes, (j, size), sum_s, rate, best))
    return least, longest


@njit(cache=True, nogil=True)
def _class_floor(
    shapes: Shapes,
    stages: Stages,
    depth: int,
    place: tuple[int, int],
    times: "Floats",
    terms: tuple[float, float, float],
    rate: float,
    best: float,
    table: "Floats",
) -> float:
    """The lesser of ``best`` and of a class and pattern; ``terms`` of all classes are the longest
    stage, the sum of all, and the longest that a stage may take.

    What the sum leaves to the longest stage shortens it, and stages that are no longer have a
    greater sum: in turns, until neither changes.
    """
    (size, pattern), (free, sum_s, limit) = place, terms
    if _of_class(shapes, depth, place, free, sum_s, rate, best)[0] >= best:
        return best
    _paces(stages, times, (stages.most_bytes[size], limit), pattern, table)
    pace = table[-1, depth]
    # Stopping early is safe: each turn ends with a bound that holds.
    for _ in range(TURNS):
        least, longest = _of_class(shapes, depth, place, pace, sum_s, rate, best)
        if least >= best or pace > longest:
            return best
        _sums(stages, times, (stages.most_bytes[size], min(limit, longest)), table)
        if table[-1, depth] <= sum_s:
            break
        sum_s = table[-1, depth]
    return min(best, _of_class(shapes, depth, place, pace, sum_s, rate, best)[0])


@njit(cache=True, nogil=True)
def _cut_floor(
    shapes: Shapes,
    stages: Stages,
    depth: int,
    times: "Floats",
    limit: float,
    rate: float,
    best: float,
) -> float:
    """The least of ``best`` and of a depth, no stage of which may take longer than ``limit``.

    The longest stage of any class is no shorter than without a limit on its size, so most classes
    need no cut.
    """
    sets, patterns = stages.start.shape[0] - 1, stages.end_s.shape[0]
    table, free = np.empty((sets, depth + 1)), np.full(patterns, np.inf)
    _sums(stages, times, (np.inf, limit), table)
    sum_s = table[sets - 1, depth]
    if sum_s == np.inf:
        return best
    for pattern in range(patterns):
        if _of_class(shapes, depth, (0, pattern), 0.0, sum_s, rate, best)[0] < best:
            _paces(stages, times, (np.inf, limit), pattern, table)
            free[pattern] = table[sets - 1, depth]
    limit = _longest(shapes, depth, free, sum_s, rate, best)
    if limit == 0.0:
        return best
    if limit < np.inf:
        _sums(stages, times, (np.inf, limit), table)
        sum_s = max(sum_s, table[sets - 1, depth])
    for pattern in range(patterns):
        for size in range(stages.most_bytes.shape[0]):
            if free[pattern] < np.inf:
                terms = (free[pattern], sum_s, limit)
                best = _class_floor(
                    shapes, stages, depth, (size, pattern), times, terms, rate, best, table
                )
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
    """The lesser of ``below`` and what no plan of a depth undercuts by its best cuts of every
    class, for each chip.

    ``layer_s`` are [kinds, chips] without anything recomputed, which takes ``mode_s`` [modes,
    kinds, chips]; ``whole_s`` all layers together.
    """
    kinds, chips = layer_s.shape
    pairs = stages.rest.shape[0]
    bounds, times, nothing = below.copy(), np.empty((pairs, mode_s.shape[0])), np.empty(0)
    for chip in range(chips):
        rate = second_per_byte[chip]
        limit = _longest(shapes, depth, nothing, whole_s[chip], rate, below[chip])
        if limit == 0.0:
            continue
        for pair in range(pairs):
            stage_s = 0.0
            for kind in range(kinds):
                stage_s += stages.counts[pair, kind] * layer_s[kind, chip]
            for mode in range(mode_s.shape[0]):
                times[pair, mode] = stage_s
                for kind in range(kinds):
                    again = stages.counts[pair, kind] * stages.repeated[kind]
                    times[pair, mode] += again * mode_s[mode, kind, chip]
        bounds[chip] = _cut_floor(shapes, stages, depth, times, limit, rate, below[chip])
    return bounds

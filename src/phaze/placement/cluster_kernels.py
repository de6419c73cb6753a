"""Compiled, for rules ``cluster``: every stage of every closed set, which depths fit, and the best cut of one shape.

A *shape* fixes width, stages S, copies and order. Then the cost (m - 1) max T + sum T + max E + Y is minimised by
labels over (number s, closed set U): a label holds the greatest T, the sum of T and of the tied reductions, and the
greatest E of a cut of U into s stages; it is dropped if another of the same (s, U) is no worse in all three, or if even
the best completion, (m - 1) max(T, P/(S - s)) + sum + P + E with P the time of the layers before U, does not beat what
is known. Both keep an optimal plan, as the cost rises with each of the three.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from phaze.placement.charts import Chart, Floats, Ints


class Kept(NamedTuple):
    """By layer: bytes kept and seconds computed again in modes none, selective and full; shared parameters.

    ``group`` is the number of the layer's tied group or -1; ``group_bytes``, ``group_size`` and ``group_last`` (the
    last member in topological order) are by group.
    """

    kept_bytes: "Floats"
    again_s: "Floats"
    group: "Ints"
    group_bytes: "Floats"
    group_size: "Ints"
    group_last: "Ints"


class Pairs(NamedTuple):
    """Every stage of every closed set u, at ``start[u]`` .. ``start[u + 1]``: what is left, and its sums by mode."""

    start: "Ints"
    rest: "Ints"
    time_s: "Floats"
    parameter_bytes: "Floats"
    kept_bytes: "Floats"
    live_bytes: "Floats"
    tied: "Floats"


class Job(NamedTuple):
    """One shape: stages, microbatches, whether all are in flight, the level below each number, and its stages' costs.

    ``most`` is the greatest number of microbatches in flight at which a stage fits, by mode; -1 where a mode is not
    allowed. ``moves_s`` are transfers by level and closed set, its last row no transfer at all, as before the first and
    after the last stage; ``before_s`` is the time of the layers before each closed set, ``size`` its layers.
    """

    stages: int
    rounds: int
    gpipe: bool
    level: "Ints"
    moves_s: "Floats"
    end_s: "Floats"
    tied_s: "Floats"
    most: "Ints"
    before_s: "Floats"
    size: "Ints"


@njit(cache=True)
def pairs_of(chart: "Chart", kept: Kept, most_parameter_bytes: float, room: int) -> tuple[int, Pairs]:
    """All stages with no more parameters than that; how many there are, which may be more than there is ``room``."""
    n, sets, groups = chart.forward_s.shape[0], chart.size.shape[0], kept.group_size.shape[0]
    pairs = Pairs(
        np.zeros(sets + 1, np.int64),
        np.empty(room, np.int64),
        np.empty((room, 3)),
        np.empty(room),
        np.empty((room, 3)),
        np.empty((room, 3)),
        np.zeros((room, groups)),
    )
    place, taken, step = np.empty(n + 1, np.int64), np.full(n + 1, -1), np.empty(n + 1, np.int64)
    sums, seen, count = np.zeros((n + 1, 10)), np.zeros((n + 1, groups), np.int64), 0
    for top in range(sets):
        pairs.start[top] = count
        place[0], step[0], depth = top, chart.step_start[top], 0
        while depth >= 0:
            if step[depth] == chart.step_start[place[depth] + 1]:
                depth -= 1
                continue
            layer, rest = chart.step_layer[step[depth]], chart.step_set[step[depth]]
            step[depth] += 1
            if layer < taken[depth]:
                continue
            group = kept.group[layer]
            shared = kept.group_bytes[group] if group >= 0 and seen[depth, group] > 0 else 0.0
            parameters = sums[depth, 0] + chart.parameter_bytes[layer] - shared
            if parameters > most_parameter_bytes:
                continue
            depth += 1
            taken[depth], place[depth], step[depth] = layer, rest, chart.step_start[rest]
            seen[depth] = seen[depth - 1]
            if group >= 0:
                seen[depth, group] += 1
            sums[depth, 0] = parameters
            both_s = chart.forward_s[layer] + chart.backward_s[layer]
            for mode in range(3):
                own = kept.kept_bytes[layer, mode]
                sums[depth, 1 + mode] = sums[depth - 1, 1 + mode] + both_s + kept.again_s[layer, mode]
                sums[depth, 4 + mode] = sums[depth - 1, 4 + mode] + own
                sums[depth, 7 + mode] = max(sums[depth - 1, 7 + mode], chart.activation_bytes[layer] - own)
            if count < room:
                pairs.rest[count], pairs.parameter_bytes[count] = rest, parameters
                pairs.time_s[count], pairs.kept_bytes[count] = sums[depth, 1:4], sums[depth, 4:7]
                pairs.live_bytes[count] = sums[depth, 7:10]
                for g in range(groups):
                    last = (taken[1 : depth + 1] == kept.group_last[g]).any()
                    if last and seen[depth, g] < kept.group_size[g]:
                        pairs.tied[count, g] = 1.0
            count += 1
    pairs.start[sets] = count
    return count, pairs


@njit(cache=True)
def cut_bytes(chart: "Chart") -> "Floats":
    """Bytes of the edges that lead into each closed set from outside."""
    n, sets = chart.forward_s.shape[0], chart.size.shape[0]
    total, inside = np.zeros(sets), np.zeros(n, np.bool_)
    for place in range(sets):
        inside[:] = False
        at = place
        while at != 0:
            inside[chart.step_layer[chart.step_start[at]]] = True
            at = chart.step_set[chart.step_start[at]]
        for layer in range(n):
            if inside[layer]:
                for edge in range(chart.in_start[layer], chart.in_start[layer + 1]):
                    if not inside[chart.in_tail[edge]]:
                        total[place] += chart.in_bytes[edge]
    return total


@njit(cache=True)
def most_in_flight(pairs: Pairs, state_factor: float, hbm: float, cap: int, allowed: "Ints") -> "Ints":
    """By stage and mode: how many microbatches may be in flight, at most ``cap``; -1 where the mode is not allowed."""
    count = pairs.rest.shape[0]
    most = np.full((count, 3), -1)
    for pair in range(count):
        held = state_factor * pairs.parameter_bytes[pair]
        for mode in range(3):
            kept, live = pairs.kept_bytes[pair, mode], pairs.live_bytes[pair, mode]
            if allowed[mode] == 0 or held + live > hbm:
                continue
            number = cap
            if held + live + cap * kept > hbm:
                number = int((hbm - held - live) / kept)
                while held + live + (number + 1) * kept <= hbm:
                    number += 1
                while number > 0 and held + live + number * kept > hbm:
                    number -= 1
            most[pair, mode] = number
    return most


@njit(cache=True)
def depths_that_fit(pairs: Pairs, most: "Ints", rounds: int, gpipe: bool, depth: int) -> "Ints":
    """For S = 0 .. ``depth``: 1 if some cut into S stages fits."""
    sets = pairs.start.shape[0] - 1
    fits, found = np.zeros((depth + 1, sets), np.bool_), np.zeros(depth + 1, np.int64)
    fits[0, 0] = True
    for s in range(1, depth + 1):
        flying = rounds if gpipe else min(rounds, s)
        for top in range(1, sets):
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                if fits[s - 1, pairs.rest[pair]] and most[pair].max() >= flying:
                    fits[s, top] = True
                    break
        found[s] = fits[s, sets - 1]
    return found


@njit(cache=True)
def paces(pairs: Pairs, most: "Ints", rounds: int, gpipe: bool, depth: int) -> "Floats":
    """For S = 0 .. ``depth``: the least greatest stage time of a cut into S stages, transfers left out."""
    sets = pairs.start.shape[0] - 1
    g = np.full((sets, depth + 1), np.inf)
    g[0, 0] = 0.0
    for top in range(1, sets):
        row = g[top]
        for pair in range(pairs.start[top], pairs.start[top + 1]):
            below, begin = g[pairs.rest[pair]], 1
            for mode in range(3):
                up_to = depth if rounds <= most[pair, mode] else (0 if gpipe else min(depth, most[pair, mode]))
                own_s = pairs.time_s[pair, mode]
                for s in range(begin, up_to + 1):
                    row[s] = min(row[s], max(own_s, below[s - 1]))
                begin = max(begin, up_to + 1)
    whole: Floats = g[sets - 1]
    return whole


@njit(cache=True)
def _grown(values: "Floats") -> "Floats":
    larger = np.empty((2 * values.shape[0], values.shape[1]))
    larger[: values.shape[0]] = values
    return larger


@njit(cache=True)
def _insert(labels: "Floats", begin: int, count: int, new: tuple[float, float, float, float, float]) -> int:
    """Put a label among those from ``begin`` on unless one is no worse; drop those that it is no worse than."""
    at = begin
    while at < count:
        row = labels[at]
        if row[0] <= new[0] and row[1] <= new[1] and row[2] <= new[2]:
            return count
        if new[0] <= row[0] and new[1] <= row[1] and new[2] <= row[2]:
            count -= 1
            labels[at] = labels[count]
            continue
        at += 1
    labels[count, 0], labels[count, 1], labels[count, 2], labels[count, 3], labels[count, 4] = new
    return count + 1


@njit(cache=True)
def _mode_of(most: "Ints", pair: int, flying: int) -> int:
    """The first, fastest mode in which the stage fits; 3 if there is none."""
    for mode in range(3):
        if most[pair, mode] >= flying:
            return mode
    return 3


@njit(cache=True)
def best_cut(pairs: Pairs, job: Job, best: float) -> tuple[float, "Ints", "Ints"]:
    """The cheapest cut of a shape below ``best``: its cost, its stages as pairs first to last, and their modes."""
    depth, laps, sets = job.stages, job.rounds - 1, pairs.start.shape[0] - 1
    before_s, whole_s, size = job.before_s, job.before_s[0], job.size
    labels, count = np.zeros((4096, 5)), 1
    begin = np.ones((depth + 1, sets + 1), np.int64)
    begin[0, 0] = 0
    for s in range(1, depth + 1):
        flying = job.rounds if job.gpipe else min(job.rounds, s)
        begin[s, 0] = count
        for top in range(1, sets):
            begin[s, top] = count
            pace_s = before_s[top] / max(1, depth - s)
            least_s = max(pace_s, (whole_s - before_s[top]) / s)
            possible = size[top] >= s and size[sets - 1] - size[top] >= depth - s and (top < sets - 1 or s == depth)
            if not possible or (s == depth and top < sets - 1) or laps * least_s + whole_s >= best:
                continue
            entry_s = job.moves_s[job.level[s], top]
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                rest = pairs.rest[pair]
                mode = 3 if begin[s - 1, rest] == begin[s - 1, rest + 1] else _mode_of(job.most, pair, flying)
                if mode == 3:
                    continue
                own_s = pairs.time_s[pair, mode] + entry_s + job.moves_s[job.level[s - 1], rest]
                if laps * max(own_s, pace_s) + whole_s >= best:
                    continue
                for label in range(begin[s - 1, rest], begin[s - 1, rest + 1]):
                    longest, total = max(own_s, labels[label, 0]), own_s + job.tied_s[pair] + labels[label, 1]
                    end = max(job.end_s[pair], labels[label, 2])
                    if laps * max(longest, pace_s) + total + before_s[top] + end >= best:
                        continue
                    if count == labels.shape[0]:
                        labels = _grown(labels)
                    new = (longest, total, end, float(pair), float(label))
                    count = _insert(labels, begin[s, top], count, new)
                    if s == depth:
                        best = min(best, laps * longest + total + end)
        begin[s, sets] = count
    return _path(job, labels, begin[depth, sets - 1], count)


@njit(cache=True)
def _path(job: Job, labels: "Floats", begin: int, end: int) -> tuple[float, "Ints", "Ints"]:
    """Follow the cheapest of the labels of the whole graph back; nothing and an infinite cost if there is none."""
    cost, chosen = np.inf, -1
    for label in range(begin, end):
        value = (job.rounds - 1) * labels[label, 0] + labels[label, 1] + labels[label, 2]
        if value < cost:
            cost, chosen = value, label
    path, modes = np.empty(job.stages, np.int64), np.empty(job.stages, np.int64)
    if chosen >= 0:
        for i in range(job.stages):
            s = job.stages - i
            path[i] = int(labels[chosen, 3])
            modes[i] = _mode_of(job.most, path[i], job.rounds if job.gpipe else min(job.rounds, s))
            chosen = int(labels[chosen, 4])
    return cost, path, modes

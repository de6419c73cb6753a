"""Compiled, for rules ``cluster``: the best cut of one shape (width, stages S, copies, order).

The cost (m - 1) (max A + max B) + sum T + max E + Y is minimised over cuts; under 1F1B A is a stage's time T and B is
0, under GPipe they are its forward and its backward time. With *states* (s, U), closed set U cut into s stages:

1. For every state the least max A, max B, sum of T and max E over all ways to cut what lies before U into S - s stages,
   each by itself (completions). At (0, nothing left) they bound the whole shape.
2. Labels over states from the end of the pipeline: max A, max B, sum of T and of tied reductions, max E of a cut of U.
   A label is dropped if another of its state is no worse in all four, or if it does not beat the best plan known even
   with the least of each that step 1 allows. Both keep an optimal plan, as the cost rises with each of the four.

Labels are made twice: first only the most promising one of each state is kept, which gives a plan and with it a limit;
then all (best_cut).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from phaze.placement.cluster_kernels import Pairs, Room, mode_of

if TYPE_CHECKING:
    from phaze.placement.charts import Floats, Ints


class Job(NamedTuple):
    """One shape: stages, microbatches, whether all are in flight, the level below each number, and its stages' costs.

    ``moves_s`` are transfers by level and closed set, its last row no transfer at all, as before the first and after
    the last stage. ``ahead_s`` and ``behind_s`` are the collectives of ZeRO 2 and 3 of the layers in each closed set,
    of which ``shown`` is the share that the stack does not hide. ``least_s`` is less than any stages take together,
    ``size`` counts the layers of a closed set.
    """

    stages: int
    rounds: int
    gpipe: bool
    level: "Ints"
    moves_s: "Floats"
    ahead_s: "Floats"
    behind_s: "Floats"
    shown: float
    end_s: "Floats"
    tied_s: "Floats"
    room: Room
    least_s: float
    size: "Ints"


@njit(cache=True)
def stage_seconds(pairs: Pairs, job: Job, pair: int, top: int, number: int) -> tuple[float, float]:
    """Forward and backward of a stage of that number, transfers included; infinite if it does not fit."""
    mode = mode_of(pairs, job.room, pair, job.rounds if job.gpipe else min(job.rounds, number))
    if mode == 3:
        return np.inf, np.inf
    rest = pairs.rest[pair]
    forward_s, backward_s = pairs.forward_s[pair], pairs.backward_s[pair, mode]
    if job.ahead_s.shape[0] > 0:
        ahead_s, behind_s = job.ahead_s[top] - job.ahead_s[rest], job.behind_s[top] - job.behind_s[rest]
        forward_s = max(forward_s + job.shown * ahead_s, ahead_s)
        backward_s = max(backward_s + job.shown * behind_s, behind_s)
    return forward_s + job.moves_s[job.level[number], top], backward_s + job.moves_s[job.level[number - 1], rest]


@njit(cache=True)
def _possible(job: Job, number: int, top: int, rest: int) -> bool:
    """Whether the layers before, in and behind the stage of that number are enough for their stages."""
    last = job.size.shape[0] - 1
    before = job.size[last] - job.size[top] >= job.stages - number and (number == job.stages) == (top == last)
    return bool(before and job.size[rest] >= number - 1 and (number == 1) == (rest == 0))


@njit(cache=True)
def completions(pairs: Pairs, job: Job, best: float) -> "Floats":
    """By (what, s, U), what being max A, max B, sum of T, max E: the least of it over cuts of what lies before U."""
    sets, laps = pairs.start.shape[0] - 1, job.rounds - 1
    least = np.full((4, job.stages + 1, sets), np.inf)
    least[:, job.stages, sets - 1] = 0.0
    for s in range(job.stages - 1, -1, -1):
        for top in range(sets - 1, 0, -1):
            if least[0, s + 1, top] == np.inf:
                continue
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                rest = pairs.rest[pair]
                if not _possible(job, s + 1, top, rest):
                    continue
                forward_s, backward_s = stage_seconds(pairs, job, pair, top, s + 1)
                both_s = forward_s + backward_s
                if laps * both_s + job.least_s >= best:
                    continue
                a, b = (forward_s, backward_s) if job.gpipe else (both_s, 0.0)
                least[0, s, rest] = min(least[0, s, rest], max(a, least[0, s + 1, top]))
                least[1, s, rest] = min(least[1, s, rest], max(b, least[1, s + 1, top]))
                least[2, s, rest] = min(least[2, s, rest], both_s + job.tied_s[pair] + least[2, s + 1, top])
                least[3, s, rest] = min(least[3, s, rest], max(job.end_s[pair], least[3, s + 1, top]))
    return least


@njit(cache=True)
def _grown(values: "Floats") -> "Floats":
    larger = np.empty((2 * values.shape[0], values.shape[1]))
    larger[: values.shape[0]] = values
    return larger


@njit(cache=True)
def _insert(labels: "Floats", begin: int, count: int, new: "Floats") -> int:
    """Put a label among those from ``begin`` on unless one is no worse; drop those that it is no worse than."""
    at = begin
    while at < count:
        row = labels[at]
        if row[0] <= new[0] and row[1] <= new[1] and row[2] <= new[2] and row[3] <= new[3]:
            return count
        if new[0] <= row[0] and new[1] <= row[1] and new[2] <= row[2] and new[3] <= row[3]:
            count -= 1
            labels[at] = labels[count]
            continue
        at += 1
    labels[count] = new
    return count + 1


@njit(cache=True)
def _labelled(pairs: Pairs, job: Job, least: "Floats", best: float, single: bool) -> tuple[float, "Ints", "Ints"]:
    """The cheapest cut below ``best`` that labels find; with ``single`` one label a state, the most promising."""
    depth, laps, sets = job.stages, job.rounds - 1, pairs.start.shape[0] - 1
    labels, count, new = np.zeros((4096, 7)), 1, np.empty(7)
    begin = np.ones((depth + 1, sets + 1), np.int64)
    begin[0, 0] = 0
    for s in range(1, depth + 1):
        begin[s, 0] = count
        for top in range(1, sets):
            begin[s, top] = count
            if least[0, s, top] == np.inf:
                continue
            least_a, least_b, least_sum, least_end = (
                least[0, s, top],
                least[1, s, top],
                least[2, s, top],
                least[3, s, top],
            )
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                rest = pairs.rest[pair]
                if begin[s - 1, rest] == begin[s - 1, rest + 1] or not _possible(job, s, top, rest):
                    continue
                forward_s, backward_s = stage_seconds(pairs, job, pair, top, s)
                own_s = forward_s + backward_s + job.tied_s[pair]
                a, b = (forward_s, backward_s) if job.gpipe else (forward_s + backward_s, 0.0)
                if laps * (max(a, least_a) + max(b, least_b)) + job.least_s >= best:
                    continue
                for label in range(begin[s - 1, rest], begin[s - 1, rest + 1]):
                    row = labels[label]
                    new[0], new[1], new[2] = max(a, row[0]), max(b, row[1]), own_s + row[2]
                    new[3], new[4], new[5] = max(job.end_s[pair], row[3]), float(pair), float(label)
                    whole_s = laps * (max(new[0], least_a) + max(new[1], least_b))
                    new[6] = whole_s + new[2] + least_sum + max(new[3], least_end)
                    if new[6] >= best:
                        continue
                    if count == labels.shape[0]:
                        labels = _grown(labels)
                    if not single:
                        count = _insert(labels, begin[s, top], count, new)
                    elif count == begin[s, top] or new[6] < labels[count - 1, 6]:
                        count = begin[s, top] + 1
                        labels[count - 1] = new
                    if s == depth:
                        best = min(best, new[6])
        begin[s, sets] = count
    return _path(pairs, job, labels[: begin[depth, sets]], begin[depth, sets - 1])


@njit(cache=True)
def _path(pairs: Pairs, job: Job, labels: "Floats", begin: int) -> tuple[float, "Ints", "Ints"]:
    """Follow the cheapest of the labels of the whole graph back; nothing and an infinite cost if there is none."""
    cost, chosen = np.inf, -1
    for label in range(begin, labels.shape[0]):
        if labels[label, 6] < cost:
            cost, chosen = labels[label, 6], label
    path, modes = np.empty(job.stages, np.int64), np.empty(job.stages, np.int64)
    if chosen >= 0:
        for i in range(job.stages):
            path[i] = int(labels[chosen, 4])
            flying = job.rounds if job.gpipe else min(job.rounds, job.stages - i)
            modes[i] = mode_of(pairs, job.room, path[i], flying)
            chosen = int(labels[chosen, 5])
    return cost, path, modes


@njit(cache=True)
def best_cut(pairs: Pairs, job: Job, best: float) -> tuple[float, "Ints", "Ints"]:
    """The cheapest cut of a shape below ``best``: its cost, its stages as pairs first to last, and their modes."""
    least = completions(pairs, job, best)
    whole = least[:, 0, 0]
    if (job.rounds - 1) * (whole[0] + whole[1]) + whole[2] + whole[3] >= best:
        return np.inf, np.empty(0, np.int64), np.empty(0, np.int64)
    quick = _labelled(pairs, job, least, best, True)
    exact = _labelled(pairs, job, least, min(best, quick[0]), False)
    return exact if exact[0] < quick[0] else quick

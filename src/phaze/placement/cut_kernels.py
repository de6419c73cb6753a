"""Compiled, for rules ``cluster``: the best cut of one shape (width, stages S, copies, order).

The cost (m - 1) (max A + max B) + sum T + max E + Y is minimised over cuts; under 1F1B A is a stage's time T and B is
0, under GPipe they are its forward and its backward time. With *states* (s, U), closed set U cut into s stages:

1. For every state the least max A, max B, sum of T and greatest parameter bytes of a stage over all ways to cut what
   lies before U into S - s stages, each by itself, with the least that a transfer can take (completions). E does not
   fall with parameter bytes, so this serves all shapes with the same width, depth, memory and microbatches in flight.
2. Labels over states from the end of the pipeline: max A, max B, sum of T and of tied reductions, greatest size of a
   cut of U. A label is dropped if another of its state is no worse in all four, or if it does not beat the best plan
   known even with the least of each that step 1 allows. Both keep an optimal plan, as the cost rises with all four.

Labels are made twice: first only the most promising one of each state is kept, which gives a plan and with it a limit;
then all (best_cut).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from phaze.placement.cluster_kernels import Pairs, Room, mode_of, most_in_flight

if TYPE_CHECKING:
    from phaze.placement.charts import Floats, Ints


class Job(NamedTuple):
    """One shape: stages, microbatches, whether all are in flight, the level below each number, and its stages' costs.

    ``moves_s`` are transfers by level and closed set, its last row no transfer at all, as before the first and after
    the last stage. ``ahead_s`` and ``behind_s`` are the collectives of ZeRO 2 and 3 of the layers in each closed set,
    of which ``shown`` is the share that the stack does not hide. ``end_s`` is E by number of a stage's size,
    ``least_s`` is less than any stages take together, ``size`` counts the layers of a closed set, ``size_of`` numbers
    the parameter bytes of every stage in their order.
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
    size_of: "Ints"


@njit(cache=True, nogil=True)
def stage_seconds(pairs: Pairs, job: Job, pair: int, top: int, mode: int) -> tuple[float, float]:
    """Forward and backward of a stage in a mode, without transfers."""
    forward_s, backward_s = pairs.forward_s[pair], pairs.backward_s[pair, mode]
    if job.ahead_s.shape[0] > 0:
        rest = pairs.rest[pair]
        ahead_s, behind_s = job.ahead_s[top] - job.ahead_s[rest], job.behind_s[top] - job.behind_s[rest]
        forward_s = max(forward_s + job.shown * ahead_s, ahead_s)
        backward_s = max(backward_s + job.shown * behind_s, behind_s)
    return forward_s, backward_s


@njit(cache=True, nogil=True)
def _numbers(pairs: Pairs, job: Job, pair: int, top: int) -> tuple[int, int]:
    """The least and greatest number that a stage can have: there are layers enough before and behind it."""
    last, rest = job.size.shape[0] - 1, pairs.rest[pair]
    low, high = max(1 if rest == 0 else 2, job.stages - job.size[last] + job.size[top]), job.stages
    if top < last:
        high -= 1
    else:
        low = job.stages
    return low, min(high, 1 if rest == 0 else job.size[rest] + 1)


@njit(cache=True, nogil=True)
def completions(pairs: Pairs, job: Job, limit_s: float) -> "Floats":
    """By (what, U, s), what being max A, max B, sum of T, greatest size: the least of it over cuts of what lies before
    U, none of whose stages takes longer than ``limit_s``."""
    sets = pairs.start.shape[0] - 1
    least = np.full((4, sets, job.stages + 1), np.inf)
    least[:, sets - 1, job.stages] = 0.0
    move_s = np.zeros(sets)
    for top in range(1, sets - 1):
        move_s[top] = job.moves_s[:-1, top].min()
    chain = sets == job.size[sets - 1] + 1
    for top in range(sets - 1, 0, -1):
        for pair in range(pairs.start[top], pairs.start[top + 1]):
            # The stages of a chain's closed set grow by one layer each time.
            if chain and pairs.forward_s[pair] + pairs.backward_s[pair, 0] > limit_s:
                break
            rest, size, covered, slowest_s = pairs.rest[pair], float(job.size_of[pair]), 0, 0.0
            low, high = _numbers(pairs, job, pair, top)
            for mode in range(3):
                most = most_in_flight(pairs, job.room, pair, mode, job.rounds)
                up_to = job.stages if most >= job.rounds else (0 if job.gpipe else most)
                a, b = stage_seconds(pairs, job, pair, top, mode)
                a, b = a + move_s[top], b + move_s[rest]
                both_s = a + b
                if both_s > limit_s or up_to == 0:
                    continue
                if not job.gpipe:
                    a, b = both_s, 0.0
                for number in range(max(low, covered + 1 if both_s >= slowest_s else 1), min(high, up_to) + 1):
                    least[0, rest, number - 1] = min(least[0, rest, number - 1], max(a, least[0, top, number]))
                    least[1, rest, number - 1] = min(least[1, rest, number - 1], max(b, least[1, top, number]))
                    least[2, rest, number - 1] = min(least[2, rest, number - 1], both_s + least[2, top, number])
                    least[3, rest, number - 1] = min(least[3, rest, number - 1], max(size, least[3, top, number]))
                covered, slowest_s = max(covered, up_to), max(slowest_s, both_s)
    return least


@njit(cache=True, nogil=True)
def shape_bound(job: Job, least: "Floats") -> float:
    """What no cut of the shape can beat."""
    whole = least[:, 0, 0]
    if whole[0] == np.inf:
        return np.inf
    return float((job.rounds - 1) * (whole[0] + whole[1]) + whole[2] + job.end_s[int(whole[3])])


@njit(cache=True, nogil=True)
def _grown(values: "Floats") -> "Floats":
    larger = np.empty((2 * values.shape[0], values.shape[1]))
    larger[: values.shape[0]] = values
    return larger


@njit(cache=True, nogil=True)
def _insert(labels: "Floats", begin: int, count: int, new: "Floats", single: bool) -> int:
    """Put a label among those from ``begin`` on unless one is no worse; drop those that it is no worse than. With
    ``single`` only the most promising is kept."""
    if single and count > begin and new[6] >= labels[begin, 6]:
        return count
    at, count = begin, begin if single else count
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


@njit(cache=True, nogil=True)
def _labelled(pairs: Pairs, job: Job, least: "Floats", best: float, single: bool) -> tuple[float, "Ints", "Ints"]:
    """The cheapest cut below ``best`` that labels find; with ``single`` one label a state, the most promising."""
    depth, laps, sets = job.stages, job.rounds - 1, pairs.start.shape[0] - 1
    labels, count, new = np.zeros((4096, 7)), 1, np.empty(7)
    begin = np.ones((depth + 1, sets + 1), np.int64)
    begin[0, 0], chain = 0, sets == job.size[sets - 1] + 1
    for s in range(1, depth + 1):
        begin[s, 0], flying = count, job.rounds if job.gpipe else min(job.rounds, s)
        for top in range(1, sets):
            begin[s, top] = count
            if least[0, top, s] == np.inf:
                continue
            least_a, least_b, least_sum, least_size = least[:, top, s]
            entry_s = job.moves_s[job.level[s], top]
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                if chain and laps * (pairs.forward_s[pair] + pairs.backward_s[pair, 0]) + job.least_s >= best:
                    break
                rest = pairs.rest[pair]
                if begin[s - 1, rest] == begin[s - 1, rest + 1]:
                    continue
                mode = mode_of(pairs, job.room, pair, flying)
                if mode == 3:
                    continue
                forward_s, backward_s = stage_seconds(pairs, job, pair, top, mode)
                forward_s, backward_s = forward_s + entry_s, backward_s + job.moves_s[job.level[s - 1], rest]
                own_s = forward_s + backward_s + job.tied_s[pair]
                a, b = (forward_s, backward_s) if job.gpipe else (forward_s + backward_s, 0.0)
                if laps * (max(a, least_a) + max(b, least_b)) + job.least_s >= best:
                    continue
                for label in range(begin[s - 1, rest], begin[s - 1, rest + 1]):
                    row = labels[label]
                    new[0], new[1], new[2] = max(a, row[0]), max(b, row[1]), own_s + row[2]
                    new[3], new[4], new[5] = max(float(job.size_of[pair]), row[3]), float(pair), float(label)
                    whole_s = laps * (max(new[0], least_a) + max(new[1], least_b))
                    new[6] = whole_s + new[2] + least_sum + job.end_s[int(max(new[3], least_size))]
                    if new[6] >= best:
                        continue
                    if count == labels.shape[0]:
                        labels = _grown(labels)
                    count = _insert(labels, begin[s, top], count, new, single)
                    if s == depth:
                        best = min(best, new[6])
        begin[s, sets] = count
    return _path(pairs, job, labels[: begin[depth, sets]], begin[depth, sets - 1])


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def best_cut(pairs: Pairs, job: Job, least: "Floats", best: float) -> tuple[float, "Ints", "Ints"]:
    """The cheapest cut of a shape below ``best``: its cost, its stages as pairs first to last, and their modes."""
    if shape_bound(job, least) >= best:
        return np.inf, np.empty(0, np.int64), np.empty(0, np.int64)
    quick = _labelled(pairs, job, least, best, True)
    exact = _labelled(pairs, job, least, min(best, quick[0]), False)
    return exact if exact[0] < quick[0] else quick

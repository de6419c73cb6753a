"""Plans of any chain of layers on one chip, exactly: does one of a shape beat a goal? Of equal blocks: :mod:`.labels`.

In a chain every call hands on to the next, so stage p of a plan holds the calls from cut i to cut j. With T[p, i, j]
the time of a stage at the pace, in the fastest mode that fits there, and D[p, i, j] what it adds to the sum,

    pace[p, i] = min over j of max(T[p, i, j], pace[p + 1, j])      no cut of what follows i has a lesser greatest stage
    rest[p, i] = min over j of D[p, i, j] + rest[p + 1, j]          nor a lesser sum

and cuts are built from the first stage on, with (greatest stage, of apart passes each of both; sum; greatest end) of
each: one is dropped if another that ends at the same cut is no worse in all, or if with pace and rest it does not beat
the goal.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import Intervals, even
from .job import Job, Shape, boundary_levels, step_bytes, synchronised
from .network import transfer
from .plan_graph import PlanGraph
from .plans import around_bytes, gathered, reduced_block, sent_behind
from .shapes import Chipwise

Floats = NDArray[np.float64]
Label = tuple[float, float, float, float]


def _work(job: Job, own: Floats, waits: Floats, counts: Floats, whole: Floats) -> Floats:
    """A pass of every stage: work of a call of each layer, ZeRO's collectives of one, how many calls there are;
    ``whole`` is the work with all that is recomputed."""
    shown = 1 - job.stack.hidden
    if job.stack.paired:
        return np.asarray(counts @ np.maximum(own + shown * waits, waits))
    return np.maximum(whole + shown * (counts @ waits), counts @ waits)


def _transfers(graph: PlanGraph, job: Job, shape: Shape) -> tuple[Floats, float]:
    """Seconds at every boundary of the pipeline if it lies at each cut, [boundaries, cuts], and around the pipeline."""
    lanes, levels = shape.tensor if job.stack.scatters else 1, boundary_levels(job.network, shape)
    cuts = [sum(s for tail, head, s in graph.edges if tail < cut <= head) for cut in range(len(graph.calls) + 1)]
    chunks, sizes = shape.family.chunks, np.array(cuts) / lanes
    rows = [chunks * transfer(job.network, level, sizes) for level in levels]
    around = 0.0
    if chunks > 1 and not shape.family.folded:
        size = np.array([around_bytes(graph) / lanes])
        around = (chunks - 1) * float(transfer(job.network, max([0, *levels]), size)[0])
    return np.array(rows).reshape(len(levels), len(cuts)), around


@dataclass(frozen=True, slots=True)
class _Timed:
    """[stages, cuts, cuts]: seconds at the pace, of these the backward pass where it is apart, what is summed; ends of
    every interval."""

    seconds: Floats
    other: Floats
    filled: Floats
    ends: Floats


def _timed(
    graph: PlanGraph, own: Intervals, modes: tuple[int, ...], room: float, job: Job, shape: Shape, rounds: int,
    chip: Chipwise,
) -> _Timed:  # fmt: skip
    times, count, waits = chip.times, shape.stages, gathered(graph, job, shape)
    between, around = _transfers(graph, job, shape)
    ahead = own.counts @ times.forward[:, 0]
    ahead = _work(job, times.forward[:, 0], waits[0], own.counts, ahead)
    weight = own.counts @ times.weight[:, 0]
    size = (count, *own.at.shape)
    seconds, waited, filled, other = np.full(size, np.inf), np.full(size, np.inf), np.zeros(size), np.zeros(size)
    there = (own.at >= 0) & np.where(own.at >= 0, even(own, shape)[own.at], False)
    for mode in modes:
        single = times.backward[:, 0] + times.again[mode][:, 0]
        whole = own.counts @ times.backward[:, 0] + own.again @ times.again[mode][:, 0]
        if job.stack.paired:
            plain = _work(job, times.backward[:, 0], waits[1], own.counts - own.again, whole)
            back = plain + _work(job, single, waits[1], own.again, whole)
        else:
            back = _work(job, single, waits[1], own.counts, whole)
        for place in range(count):
            fits = own.held[mode].needed(job, shape, shape.family.flying(rounds, count - place, count)) <= room
            enter = between[place - 1][:, None] if place else np.full((len(own.at), 1), around)
            leave = between[place][None, :] if place < count - 1 else np.full((1, len(own.at)), around)
            (first, less), (last, fewer) = (
                sent_behind(job, shape, rounds, work[own.at], sent) for work, sent in ((ahead, enter), (back, leave))
            )
            better = there & fits[own.at] & (first + last < waited[place])
            fill = shape.family.filled(first, last, weight[own.at], count)
            waited[place] = np.where(better, first + last, waited[place])
            seconds[place] = np.where(better, first + last - less - fewer, seconds[place])
            filled[place] = np.where(better, fill, filled[place])
            other[place] = np.where(better, last if shape.family.apart else 0.0, other[place])
    sizes, block = own.held[modes[0]].size(job), reduced_block(graph, job, times)
    ends = synchronised(job, shape, sizes, graph.low, (*block[:2], float(block[2][0])))
    return _Timed(seconds, other, filled, ends + step_bytes(job, shape, sizes) / float(chip.rate[0]))


def least_of_chain(
    graph: PlanGraph, own: Intervals, modes: tuple[int, ...], room: float, job: Job, shape: Shape, rounds: int,
    chip: Chipwise, goal: float, undominated: Callable[[list[Label]], list[Label]],
) -> float:  # fmt: skip
    """The least of laps x pace + share x sum of D + greatest end below ``goal``, or that."""
    timed = _timed(graph, own, modes, room, job, shape, rounds, chip)
    laps, share, count = shape.family.laps(rounds), shape.family.share(shape.stages), shape.stages
    cuts = len(own.at)
    pace, rest = np.full((count + 1, cuts), np.inf), np.full((count + 1, cuts), np.inf)
    pace[count, -1] = rest[count, -1] = 0.0
    for place in range(count - 1, -1, -1):
        there = np.isfinite(timed.seconds[place])
        pace[place] = np.maximum(timed.seconds[place], pace[place + 1][None, :]).min(axis=1)
        rest[place] = np.where(there, timed.filled[place] + rest[place + 1][None, :], np.inf).min(axis=1)
    labels: dict[int, list[Label]] = {0: [(0.0, 0.0, 0.0, 0.0)]}
    for place in range(count):
        grown: dict[int, list[Label]] = {}
        for start, every in labels.items():
            there = np.flatnonzero(np.isfinite(timed.seconds[place, start] + pace[place + 1]))
            bound = laps * np.maximum(timed.seconds[place, start, there], pace[place + 1, there])
            bound += share * (timed.filled[place, start, there] + rest[place + 1, there])
            for cut in there[bound < goal].tolist():
                back, number = float(timed.other[place, start, cut]), int(own.at[start, cut])
                here, fill = float(timed.seconds[place, start, cut]), float(timed.filled[place, start, cut])
                for first, last, total, end in every:
                    new = max(first, here - back), max(last, back), total + fill, max(end, float(timed.ends[number]))
                    most = max(new[0] + new[1], float(pace[place + 1, cut]))
                    if laps * most + share * (new[2] + float(rest[place + 1, cut])) + new[3] < goal:
                        grown.setdefault(cut, []).append(new)
        labels = {cut: undominated(every) for cut, every in grown.items()}
    found = [laps * (a + b) + share * total + end for a, b, total, end in labels.get(cuts - 1, [])]
    return min([goal, *found])

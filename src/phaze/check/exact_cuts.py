"""Plans of a chain of layers on one chip, exactly: does one of a row beat a goal?

In a chain every call hands on to the next, so stage p of a plan holds the calls from cut i to cut j. With T[p, i, j]
the time of a stage at the pace, in the fastest mode that fits there, and D[p, i, j] what it adds to the sum,

    pace[p, i] = min over j of max(T[p, i, j], pace[p + 1, j])      no cut of what follows i has a lesser greatest stage
    rest[p, i] = min over j of D[p, i, j] + rest[p + 1, j]          nor a lesser sum

Cuts are built from the first stage on, each with its label: the greatest stage (of passes that run apart, of each of
both), the sum of D, the greatest end of a batch. One is dropped if another that ends at the same cut is no worse in
all, or if with pace and rest it does not beat the goal. The batch time rises with each of them, so the best plan stays.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .intervals import Intervals, even, something_fits
from .job import Job, Shape, boundary_levels, step_bytes, synchronised
from .plan_bounds import Chipwise, row_bound
from .plan_classes import PlanSpace, Row
from .plan_graph import PlanGraph
from .plans import around_seconds, gathered, reduced_block, sent_behind, sent_seconds, tied_seconds

Floats = NDArray[np.float64]
Label = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Stages:
    """[stages, cuts, cuts]: seconds at the pace, infinite where nothing fits, of these the backward pass where it is
    apart, what is summed; ends of every interval."""

    seconds: Floats
    other: Floats
    filled: Floats
    ends: Floats


def _work(job: Job, own: Floats, waits: Floats, counts: Floats, whole: Floats) -> Floats:
    """A pass of every stage: work of a call of each layer, ZeRO's collectives of one, how many calls there are;
    ``whole`` is the work with all that is recomputed."""
    shown = 1 - job.stack.hidden
    if job.stack.paired:
        return np.asarray(counts @ np.maximum(own + shown * waits, waits))
    return np.maximum(whole + shown * (counts @ waits), counts @ waits)


def _transfers(space: PlanSpace, job: Job, shape: Shape) -> tuple[list[Floats], float]:
    """Seconds at every boundary of the pipeline if it lies at each cut, and around the pipeline."""
    graph, levels = space.graph, boundary_levels(job.network, shape)
    sizes = np.zeros(len(graph.calls) + 1)
    for tail, head, size in graph.edges:
        sizes[tail + 1 : head + 1] += size
    rows = [shape.family.chunks * sent_seconds(graph, job, level, sizes) for level in levels]
    return rows, around_seconds(graph, job, shape.family, max([0, *levels]), space.parts.around)


def _backward(every: Intervals, job: Job, chip: Chipwise, mode: int, waits: Floats) -> Floats:
    """The backward pass of every stage in a mode, with what it recomputes."""
    times = chip.times
    plain, again = times.backward[:, 0], times.again[mode][:, 0]
    whole = every.counts @ plain + every.again @ again
    if not job.stack.paired:
        return _work(job, plain + again, waits, every.counts, whole)
    kept = _work(job, plain, waits, every.counts - every.again, whole)
    return kept + _work(job, plain + again, waits, every.again, whole)


def _stages(space: PlanSpace, job: Job, shape: Shape, rounds: int, chip: Chipwise) -> _Stages:
    """Every stage of every place, in the mode in which it is fastest."""
    graph, every, family, count = space.graph, space.parts.intervals, shape.family, shape.stages
    room, times, waits = job.room(space.hbm_bytes), chip.times, gathered(graph, job, shape)
    between, around = _transfers(space, job, shape)
    ahead = _work(job, times.forward[:, 0], waits[0], every.counts, every.counts @ times.forward[:, 0])
    weight = (every.counts @ times.weight[:, 0])[every.at]
    size = (count, *every.at.shape)
    seconds, waited, filled, other = np.full(size, np.inf), np.full(size, np.inf), np.zeros(size), np.zeros(size)
    there = (every.at >= 0) & even(every, shape)[every.at]
    modes = (0,) if family.split else space.modes
    for mode in modes:
        behind = _backward(every, job, chip, mode, waits[1])
        for place in range(count):
            flying = family.flying(rounds, count - place, count)
            fits = every.held[mode].needed(job, shape, flying) <= room
            enter = between[place - 1][:, None] if place else around
            leave = between[place][None, :] if place < count - 1 else around
            first, less = sent_behind(job, shape, rounds, ahead[every.at], enter)
            last, fewer = sent_behind(job, shape, rounds, behind[every.at], leave)
            # A mode that is faster with its transfers waited for is no slower where they are hidden.
            better = there & fits[every.at] & (first + last < waited[place])
            fill = family.filled(first, last, weight, count)
            waited[place] = np.where(better, first + last, waited[place])
            seconds[place] = np.where(better, first + last - less - fewer, seconds[place])
            filled[place] = np.where(better, fill, filled[place])
            other[place] = np.where(better, last if family.apart else 0.0, other[place])
    sizes, block = every.held[modes[0]].size(job), reduced_block(graph, job, times)
    ends = synchronised(job, shape, sizes, graph.low, block)
    ends = ends + step_bytes(job, shape, sizes) / float(chip.rate[0])
    return _Stages(seconds, other, filled, ends[every.at])


def _completions(stages: _Stages) -> tuple[Floats, Floats]:
    """By place and cut: the least greatest stage, and the least sum of D, of all that follows."""
    count, cuts, _ = stages.seconds.shape
    pace, rest = np.full((count + 1, cuts), np.inf), np.full((count + 1, cuts), np.inf)
    pace[count, -1] = rest[count, -1] = 0.0
    filled = np.where(np.isfinite(stages.seconds), stages.filled, np.inf)
    for place in range(count - 1, -1, -1):
        pace[place] = np.maximum(stages.seconds[place], pace[place + 1]).min(axis=1)
        rest[place] = (filled[place] + rest[place + 1]).min(axis=1)
    return pace, rest


def _least(stages: _Stages, laps: float, share: float, goal: float) -> float:
    """The least of laps x pace + share x sum of D + greatest end below ``goal``, or that."""
    pace, rest = _completions(stages)
    labels: dict[int, list[Label]] = {0: [(0.0, 0.0, 0.0, 0.0)]}
    for place, here in enumerate(stages.seconds):
        grown: dict[int, list[Label]] = {}
        for start, every in labels.items():
            slowest = np.maximum(here[start], pace[place + 1])
            total = stages.filled[place, start] + rest[place + 1]
            with np.errstate(invalid="ignore"):
                beats = laps * slowest + share * total < goal
            for cut in np.flatnonzero(np.isfinite(slowest) & beats).tolist():
                behind, fill = float(stages.other[place, start, cut]), float(stages.filled[place, start, cut])
                ahead, end = float(here[start, cut]) - behind, float(stages.ends[start, cut])
                after, left = float(pace[place + 1, cut]), float(rest[place + 1, cut])
                for first, last, whole, stop in every:
                    new = max(first, ahead), max(last, behind), whole + fill, max(stop, end)
                    if laps * max(new[0] + new[1], after) + share * (new[2] + left) + new[3] < goal:
                        grown.setdefault(cut, []).append(new)
        labels = {cut: _undominated(every) for cut, every in grown.items()}
    last_cut = stages.seconds.shape[1] - 1
    found = [laps * (first + last) + share * whole + end for first, last, whole, end in labels.get(last_cut, [])]
    return min([goal, *found])


def _undominated(every: list[Label]) -> list[Label]:
    """The labels that no other is no worse than in all."""
    best: list[Label] = []
    for new in sorted(every):
        if not any(all(a <= b for a, b in zip(old, new, strict=True)) for old in best):
            best.append(new)
    return best


def least_of_row(space: PlanSpace, row: Row, chip: Chipwise, goal: float) -> float:
    """The least batch time of the plans of a row on one chip, as far as it is below the goal."""
    job = space.job if chip.links == 0 else space.job.at_links(chip.links)
    # More replicas never need more memory.
    most, room = space.shape(row, row.most, "data"), job.room(space.hbm_bytes)
    if not something_fits(space.parts.intervals, space.modes_of(row), room, job, most, row.rounds):
        return goal
    laps, share = row.family.laps(row.rounds), row.family.share(row.stages)
    for data in range(row.most, row.fewest - 1, -1):
        for order in row.orders[: 1 if row.stages == 1 else 2]:
            shape = space.shape(row, data, order)
            if not shape.allowed:
                continue
            alone = replace(row, fewest=data, most=data, orders=(order,))
            if float(row_bound(space, alone, chip, np.array([goal]), True)[0]) >= goal:
                continue
            tied = _tied(space.graph, job, shape)
            least = _least(_stages(space, job, shape, row.rounds, chip), laps, share, goal - tied)
            # Taking off and adding what ties take would lose the goal's last digits.
            goal = least + tied if least < goal - tied else goal
    return goal


def _tied(graph: PlanGraph, job: Job, shape: Shape) -> float:
    """What the ties of the first and the last call add, wherever stages are cut."""
    owner = {call: min(call, shape.stages - 1) for call in range(len(graph.calls))}
    return tied_seconds(graph, job, shape, owner)

"""Plans of equal blocks on one chip, exactly: does one of a shape beat a goal?

With the degrees given, a plan is how many blocks each stage has and the mode that it runs in; of the modes that fit the
fastest. Stages are appended from the first to the last, plans that have placed as many blocks are told apart by

    label = greatest stage time, sum of stage times, greatest end of a batch

and one is dropped if another is no worse in all three, or if it does not beat the goal with the least sum and the least
greatest stage that any completion has (:func:`_completions`). The batch time rises with each of the three, so the best
plan is always kept.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .job import Shape, replicas_by_level, step_bytes, synchronised
from .plans import GATHERS, gathered, in_flight, moves, reduced_block, tied_seconds
from .rows import ORDERS, Row, Space
from .shapes import Chipwise, row_bound

Floats = NDArray[np.float64]
Label = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _Stages:
    """Seconds and ends of stages by place, first one first, and blocks; infinite where they do not fit."""

    seconds: Floats
    ends: Floats


def _owner(space: Space, shape: Shape) -> dict[int, int]:
    """Some cut into stages: what crosses a boundary of equal blocks is the same wherever it lies."""
    return {call: min(call, shape.stages - 1) for call in range(len(space.graph.calls))}


def _stages(space: Space, shape: Shape, rounds: int, chip: Chipwise) -> _Stages:
    graph, job = space.graph, space.job if chip.links == 0 else space.job.at_links(chip.links)
    count, v, count_b = shape.stages, shape.chunks, sum(graph.block)
    numbers = np.arange(count, 0, -1)
    k = np.arange(count_b + 1.0)
    kind, calls = graph.calls[graph.block.index(True)], graph.calls
    first = [calls[0]] if not graph.block[0] else []
    last = [calls[-1]] if not graph.block[-1] else []
    waits = gathered(graph, job, shape) if shape.zero >= 2 else np.zeros(len(graph.layers))
    moved = moves(graph, job, shape, _owner(space, shape))
    seconds, ends = np.full((count, count_b + 1), np.inf), np.zeros((count, count_b + 1))
    block, members = reduced_block(graph, chip.times), replicas_by_level(job.network, shape)
    room = job.room(space.hbm_bytes)
    for at, number in enumerate(numbers.tolist()):
        around = [*(first if at == 0 else []), *(last if at == count - 1 else [])]
        part = "only" if count == 1 else "first" if at == 0 else "last" if at == count - 1 else "inner"
        ahead = k * chip.times.forward[kind, 0] + sum(float(chip.times.forward[o, 0]) for o in around)
        behind = k * chip.times.backward[kind, 0] + sum(float(chip.times.backward[o, 0]) for o in around)
        once = k * waits[kind] + sum(float(waits[o]) for o in around)
        flying, gathers = in_flight(shape, rounds, number), GATHERS.get(shape.zero, (0, 0))
        for mode in space.modes:
            held = space.stages(part, mode)
            fits = held.needed(job, shape, flying) <= room
            again = k * float(chip.times.again[mode, kind, 0])
            total = np.zeros(count_b + 1)
            for work, times in ((ahead, gathers[0]), (behind + again, gathers[1])):
                total = total + np.maximum(work + (1 - job.stack.hidden) * times * once, times * once)
            seconds[at] = np.minimum(seconds[at], np.where(fits, total, np.inf))
        seconds[at] += moved[at] + moved[at + 1]
        sizes = np.asarray(space.stages(part, space.modes[0]).parameters)
        ends[at] = synchronised(job, members, shape.zero, sizes, (block[0], float(block[1][0])))
        ends[at] += step_bytes(job, shape.data, shape.zero, sizes) / float(chip.rate[0])
        wrong = (k % v > 0) | (k == 0) if v > 1 else (k == 0) & (not around)
        seconds[at, wrong] = np.inf
    return _Stages(seconds, ends)


def _tied(space: Space, shape: Shape, chip: Chipwise) -> float:
    """What the ties of calls around the blocks add."""
    job = space.job if chip.links == 0 else space.job.at_links(chip.links)
    return tied_seconds(space.graph, job, shape, _owner(space, shape))


def _completions(own: _Stages) -> tuple[Floats, Floats]:
    """By place and blocks that are left: the least sum of stage times, and the least greatest one."""
    count, blocks = own.seconds.shape
    total, pace = np.full((count + 1, blocks), np.inf), np.full((count + 1, blocks), np.inf)
    total[count, 0] = pace[count, 0] = 0.0
    for at in range(count - 1, -1, -1):
        for left in range(blocks):
            here = own.seconds[at, : left + 1]
            total[at, left] = (here + total[at + 1, left::-1]).min()
            pace[at, left] = np.maximum(here, pace[at + 1, left::-1]).min()
    return total, pace


def _least(own: _Stages, laps: float, share: float, goal: float) -> float:
    """The least of laps x greatest + share x sum + greatest end below ``goal``, or that."""
    total, pace = _completions(own)
    count, size = own.seconds.shape
    labels: dict[int, list[Label]] = {size - 1: [(0.0, 0.0, 0.0)]}
    for at in range(count):
        grown: dict[int, list[Label]] = {}
        for left, every in labels.items():
            for k in range(left + 1):
                here, rest = float(own.seconds[at, k]), left - k
                if here == np.inf or total[at + 1, rest] == np.inf:
                    continue
                for slowest, whole, end in every:
                    new = max(slowest, here), whole + here, max(end, float(own.ends[at, k]))
                    most = max(new[0], float(pace[at + 1, rest]))
                    if laps * most + share * (new[1] + float(total[at + 1, rest])) + new[2] < goal:
                        grown.setdefault(rest, []).append(new)
        labels = {left: _undominated(every) for left, every in grown.items()}
    found = [laps * slowest + share * whole + end for slowest, whole, end in labels.get(0, [])]
    return min([goal, *found])


def _undominated(every: list[Label]) -> list[Label]:
    kept: list[Label] = []
    for new in sorted(every):
        if not any(all(a <= b for a, b in zip(old, new, strict=True)) for old in kept):
            kept.append(new)
    return kept


def least_of_row(space: Space, row: Row, chip: Chipwise, goal: float) -> float:
    """The least batch time of the plans of a row on one chip, as far as it is below the goal."""
    for data in range(row.most, row.fewest - 1, -1):
        alone = replace(row, fewest=data, most=data)
        if float(row_bound(space, alone, chip, np.array([goal]), True)[0]) >= goal:
            continue
        for order in ORDERS[: 1 if row.stages == 1 else 2]:
            shape = space.shape(row, data, order)
            more = _tied(space, shape, chip)
            own = _stages(space, shape, row.rounds, chip)
            goal = _least(own, row.rounds - 1 / row.chunks, 1 / row.chunks, goal - more) + more
    return goal

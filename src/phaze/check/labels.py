"""Plans of equal blocks on one chip, exactly: does one of a shape beat a goal?

With the degrees given, a plan is how many blocks each stage has and the mode that it runs in; of the modes that fit the
fastest. Stages are appended from the first to the last, plans that have placed as many blocks are told apart by

    label = greatest stage time (of a family whose passes are apart: of either pass), sum of D, greatest end of a batch

and one is dropped if another is no worse in all of them, or if it does not beat the goal with the least sum and the
least greatest stage that any completion has (:func:`_completions`). The batch time rises with each of them, so the best
plan is always kept.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .chains import least_of_chain
from .intervals import something_fits
from .job import Job, Shape, step_bytes, synchronised
from .plans import gathered, moves, reduced_block, sent_behind, tied_seconds
from .rows import Row, Space
from .shapes import Chipwise, row_bound

Floats = NDArray[np.float64]
Label = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Stages:
    """Seconds of stages by place, first one first, and blocks, infinite where they do not fit; what of them is the pace
    of the other pass; D; ends."""

    seconds: Floats
    other: Floats
    filled: Floats
    ends: Floats


def _owner(space: Space, shape: Shape) -> dict[int, int]:
    """Some cut into stages: what crosses a boundary of equal blocks is the same wherever it lies."""
    return {call: min(call, shape.stages - 1) for call in range(len(space.graph.calls))}


def _exposed(job: Job, counts: Floats, each: tuple[float, float], around: list[tuple[float, float]]) -> Floats:
    """A pass of k blocks, each with its work and ZeRO's collectives, and of what lies around them."""
    hidden = 1 - job.stack.hidden
    if job.stack.paired:
        own = max(each[0] + hidden * each[1], each[1])
        return counts * own + sum(max(work + hidden * wait, wait) for work, wait in around)
    work, wait = (counts * each[i] + sum(other[i] for other in around) for i in (0, 1))
    return np.maximum(work + hidden * wait, wait)


def _stages(space: Space, shape: Shape, rounds: int, chip: Chipwise) -> _Stages:
    graph, job = space.graph, space.job if chip.links == 0 else space.job.at_links(chip.links)
    count, family, count_b, times = shape.stages, shape.family, sum(graph.block), chip.times
    k, v = np.arange(count_b + 1.0), family.chunks
    kind, calls = graph.calls[graph.block.index(True)], graph.calls
    waits, moved = gathered(graph, job, shape), moves(graph, job, shape, _owner(space, shape))
    seconds, filled, waited = (np.full((count, count_b + 1), np.inf) for _ in range(3))
    other, ends = np.zeros((count, count_b + 1)), np.zeros((count, count_b + 1))
    block, room = reduced_block(graph, job, times), job.room(space.hbm_bytes)
    behind = times.forward[:, 0], times.backward[:, 0]
    for at in range(count):
        around = [calls[0]] if at == 0 and not graph.block[0] else []
        around += [calls[-1]] if at == count - 1 and not graph.block[-1] else []
        part = "only" if count == 1 else "first" if at == 0 else "last" if at == count - 1 else "inner"
        flying = family.flying(rounds, count - at, count)
        weight = k * float(times.weight[kind, 0]) + sum(float(times.weight[o, 0]) for o in around)
        for mode in space.modes if not family.split else (0,):
            fits = space.stages(part, mode).needed(job, shape, flying) <= room
            more = 0.0, float(times.again[mode, kind, 0])
            work = [
                _exposed(
                    job, k, (float(behind[i][kind]) + more[i], float(waits[i][kind])),
                    [(float(behind[i][o]), float(waits[i][o])) for o in around],
                )
                for i in (0, 1)
            ]  # fmt: skip
            (ahead, less), (back, fewer) = (sent_behind(job, shape, rounds, work[i], moved[at + i]) for i in (0, 1))
            total, fill = ahead + back, family.filled(ahead, back, weight, count)
            # A mode that is faster with its transfers waited for is no slower where they are hidden.
            better = fits & (total < waited[at])
            waited[at], filled[at] = np.where(better, total, waited[at]), np.where(better, fill, filled[at])
            seconds[at] = np.where(better, total - less - fewer, seconds[at])
            other[at] = np.where(better, back if family.apart else 0.0, other[at])
        size = space.stages(part, space.modes[0]).size(job)
        ends[at] = synchronised(job, shape, size, graph.low, (*block[:2], float(block[2][0])))
        ends[at] += step_bytes(job, shape, size) / float(chip.rate[0])
        wrong = (k % v > 0) | (k == 0) if v > 1 else (k == 0) & (not around)
        seconds[at, wrong] = np.inf
    return _Stages(seconds, other, filled, ends)


def _tied(space: Space, shape: Shape, chip: Chipwise) -> float:
    """What the ties of calls around the blocks add."""
    job = space.job if chip.links == 0 else space.job.at_links(chip.links)
    return tied_seconds(space.graph, job, shape, _owner(space, shape))


def _completions(own: _Stages) -> tuple[Floats, Floats]:
    """By place and blocks that are left: the least sum of D, and the least greatest stage."""
    count, blocks = own.seconds.shape
    total, pace = np.full((count + 1, blocks), np.inf), np.full((count + 1, blocks), np.inf)
    total[count, 0] = pace[count, 0] = 0.0
    filled = np.where(np.isinf(own.seconds), np.inf, own.filled)
    for at in range(count - 1, -1, -1):
        for left in range(blocks):
            total[at, left] = (filled[at, : left + 1] + total[at + 1, left::-1]).min()
            pace[at, left] = np.maximum(own.seconds[at, : left + 1], pace[at + 1, left::-1]).min()
    return total, pace


def _least(own: _Stages, laps: float, share: float, goal: float) -> float:
    """The least of laps x pace + share x sum of D + greatest end below ``goal``, or that."""
    total, pace = _completions(own)
    count, size = own.seconds.shape
    labels: dict[int, list[Label]] = {size - 1: [(0.0, 0.0, 0.0, 0.0)]}
    for at in range(count):
        grown: dict[int, list[Label]] = {}
        for left, every in labels.items():
            for k in range(left + 1):
                here, rest = float(own.seconds[at, k]), left - k
                if here == np.inf or total[at + 1, rest] == np.inf:
                    continue
                back, fill, stop = float(own.other[at, k]), float(own.filled[at, k]), float(own.ends[at, k])
                for ahead, behind, whole, end in every:
                    new = max(ahead, here - back), max(behind, back), whole + fill, max(end, stop)
                    most = max(new[0] + new[1], float(pace[at + 1, rest]))
                    if laps * most + share * (new[2] + float(total[at + 1, rest])) + new[3] < goal:
                        grown.setdefault(rest, []).append(new)
        labels = {left: _undominated(every) for left, every in grown.items()}
    found = [laps * (ahead + behind) + share * whole + end for ahead, behind, whole, end in labels.get(0, [])]
    return min([goal, *found])


def _undominated(every: list[Label]) -> list[Label]:
    kept: list[Label] = []
    for new in sorted(every):
        if not any(all(a <= b for a, b in zip(old, new, strict=True)) for old in kept):
            kept.append(new)
    return kept


def _least_of_shape(space: Space, shape: Shape, row: Row, chip: Chipwise, goal: float) -> float:
    if space.simple:
        laps, share = row.family.laps(row.rounds), row.family.share(row.stages)
        return _least(_stages(space, shape, row.rounds, chip), laps, share, goal)
    job, modes = space.job if chip.links == 0 else space.job.at_links(chip.links), space.modes_of(row)
    room, every = space.job.room(space.hbm_bytes), space.intervals
    return least_of_chain(space.graph, every, modes, room, job, shape, row.rounds, chip, goal, _undominated)


def least_of_row(space: Space, row: Row, chip: Chipwise, goal: float) -> float:
    """The least batch time of the plans of a row on one chip, as far as it is below the goal."""
    if not space.simple:  # more replicas never need more memory
        most, room = space.shape(row, row.most, "data"), space.job.room(space.hbm_bytes)
        if not something_fits(space.intervals, space.modes_of(row), room, space.job, most, row.rounds):
            return goal
    for data in range(row.most, row.fewest - 1, -1):
        for order in row.orders[: 1 if row.stages == 1 else 2]:
            shape = space.shape(row, data, order)
            if not shape.allowed:
                continue
            alone = replace(row, fewest=data, most=data, orders=(order,))
            if float(row_bound(space, alone, chip, np.array([goal]), True)[0]) >= goal:
                continue
            more = _tied(space, shape, chip)
            # Taking off and adding what ties take would lose the goal's last digits.
            least = _least_of_shape(space, shape, row, chip, goal - more)
            goal = least + more if least < goal - more else goal
    return goal

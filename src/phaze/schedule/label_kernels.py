"""Compiled loops of the labels over order ideals: one pass for one goal. The mathematics stands in
``labels.py``."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phaze.compiled import njit
from phaze.schedule.part import Floats, Ints, Masks, Tables

# Later than any time; a time added to it stays within 64 bits.
FAR = 2**62
# Sums of 63 floats of up to 2^40 are right to this.
FUZZ = 0.01


class LabelSpace(NamedTuple):
    """What is known of every ideal and operator before labels are made; see ``labels.py``."""

    masks: Masks
    levels: Ints
    nexts: NDArray[np.int32]
    g: Ints
    closing: Ints
    h: Floats
    rate: Floats
    tail: Ints
    key: Ints


class Pool(NamedTuple):
    """Room for labels: parallel arrays, and the running operators of all labels one after another.

    ``head[ideal]`` is the ideal's first label, ``link`` its next; ``used`` holds the numbers of
    labels and of running operators in use, and of comparisons made.
    """

    head: Ints
    link: NDArray[np.int32]
    ideal: NDArray[np.int32]
    parent: NDArray[np.int32]
    step: NDArray[np.int16]
    time: Ints
    bound: Ints
    first: Ints
    running: NDArray[np.int16]
    step_of: NDArray[np.int16]
    end_of: Ints
    used: Ints


@njit(cache=True, nogil=True)
def _releases(
    tables: Tables, steps: NDArray[np.int16], ends: Ints, count: int, now: int, release: Ints
) -> None:
    """``release[resource, code]``: from when on nothing, one, or all of a resource can be had."""
    for resource in range(3):
        used, soonest, latest = 0, FAR, now
        for r in range(count):
            code = tables.holds[steps[r] >> 1, steps[r] & 1, resource]
            if code > 0:
                used += 1 if code == 1 else tables.cores[resource]
                soonest = min(soonest, ends[r])
                latest = max(latest, ends[r])
        release[resource, 0] = now
        release[resource, 1] = now if used < tables.cores[resource] else soonest
        release[resource, 2] = latest


@njit(cache=True, nogil=True)
def _starts(
    tables: Tables,
    space: LabelSpace,
    ideal: int,
    now: int,
    steps: NDArray[np.int16],
    ends: Ints,
    count: int,
    starts: Ints,
) -> int:
    """``starts[j, mode]``: the earliest start of each operator that may be next (FAR: none); the
    least of them."""
    release = np.empty((3, 3), np.int64)
    _releases(tables, steps, ends, count, now, release)
    least = FAR
    for j in range(len(tables.below)):
        starts[j, 0] = starts[j, 1] = FAR
        if space.nexts[ideal, j] < 0:
            continue
        ready = now
        for r in range(count):
            if tables.below[j] >> np.uint64(steps[r] >> 1) & np.uint64(1):
                ready = max(ready, ends[r])
        for mode in range(2):
            # A spread sink that runs alone comes last in some optimum: it is part of ``closing``,
            # never a step.
            if tables.time[j, mode] == 0 or (mode == 1 and tables.alone and not tables.above[j]):
                continue
            start = ready
            for resource in range(3):
                start = max(start, release[resource, tables.holds[j, mode, resource]])
            starts[j, mode] = start
            least = min(least, start)
    return least


@njit(cache=True, nogil=True)
def _bound(
    space: LabelSpace, ideal: int, now: int, steps: NDArray[np.int16], ends: Ints, count: int
) -> int:
    """The greatest of the lower bounds of ``labels.py`` on a label's makespan."""
    best = now + space.g[ideal]
    for r in range(count):
        best = max(best, ends[r] + space.tail[steps[r] >> 1])
    for k in range(space.h.shape[1]):
        credit = space.h[ideal, k]
        for r in range(count):
            credit += (ends[r] - now) * space.rate[k, steps[r] >> 1, steps[r] & 1]
        # Rounded up, since makespans are integers, but never above the true bound by rounding of
        # the sum.
        best = max(best, now + np.int64(np.ceil(credit - FUZZ)))
    return int(best)


@njit(cache=True, nogil=True)
def _no_worse(
    space: LabelSpace, now: int, steps: NDArray[np.int16], ends: Ints, count: int,
    other_now: int, other_steps: NDArray[np.int16], other_ends: Ints, other_count: int,
) -> bool:  # fmt: skip
    """The first label is no later than the second in its time and in every running operator."""
    if now > other_now:
        return False
    index = 0
    for r in range(count):
        key = space.key[steps[r]]
        while index < other_count and space.key[other_steps[index]] < key:
            index += 1
        if index < other_count and space.key[other_steps[index]] == key:
            if ends[r] > other_ends[index]:
                return False
            index += 1
        elif ends[r] > other_now:
            return False
    return True


@njit(cache=True, nogil=True)
def _enter(
    space: LabelSpace,
    pool: Pool,
    ideal: int,
    now: int,
    steps: NDArray[np.int16],
    ends: Ints,
    count: int,
) -> bool:
    """Whether a label is new to its ideal; those that it makes needless are taken out."""
    before, label = -1, pool.head[ideal]
    while label >= 0:
        pool.used[2] += 1
        first, running, after = pool.first[label], pool.running[label], pool.link[label]
        old_steps, old_ends = (
            pool.step_of[first : first + running],
            pool.end_of[first : first + running],
        )
        if _no_worse(
            space, pool.time[label], old_steps, old_ends, running, now, steps, ends, count
        ):
            return False
        if _no_worse(
            space, now, steps, ends, count, pool.time[label], old_steps, old_ends, running
        ):
            if before < 0:
                pool.head[ideal] = after
            else:
                pool.link[before] = after
        else:
            before = label
        label = after
    return True


@njit(cache=True, nogil=True)
def _append(
    tables: Tables,
    space: LabelSpace,
    pool: Pool,
    label: int,
    step: int,
    start: int,
    steps: NDArray[np.int16],
    ends: Ints,
) -> int:
    """The running operators of ``label`` once ``step`` starts, in order of key, later ends first;
    how many."""
    end = start + tables.time[step >> 1, step & 1]
    count, placed = 0, False
    for r in range(pool.first[label], pool.first[label] + pool.running[label]):
        other, other_end = pool.step_of[r], pool.end_of[r]
        if other_end <= start:
            continue
        key, other_key = space.key[step], space.key[other]
        if not placed and (key < other_key or (key == other_key and end > other_end)):
            steps[count], ends[count], placed = step, end, True
            count += 1
        steps[count], ends[count] = other, other_end
        count += 1
    if not placed:
        steps[count], ends[count] = step, end
        count += 1
    return count


@njit(cache=True, nogil=True)
def _store(
    pool: Pool,
    ideal: int,
    parent: int,
    step: int,
    now: int,
    bound: int,
    steps: NDArray[np.int16],
    ends: Ints,
    n: int,
) -> None:
    label, first = pool.used[0], pool.used[1]
    pool.bound[label] = bound
    pool.ideal[label], pool.parent[label], pool.step[label] = ideal, parent, step
    pool.time[label], pool.first[label], pool.running[label] = now, first, n
    for r in range(n):
        pool.step_of[first + r], pool.end_of[first + r] = steps[r], ends[r]
    pool.link[label] = pool.head[ideal]
    pool.head[ideal] = label
    pool.used[0], pool.used[1] = label + 1, first + n


@njit(cache=True, nogil=True)
def _child(
    tables: Tables, space: LabelSpace, pool: Pool, label: int, step: int, start: int, result: Ints,
    steps: NDArray[np.int16], ends: Ints, starts: Ints,
) -> None:  # fmt: skip
    """Extend ``label`` by ``step``; ``result`` is (goal, best label, least bound that was cut
    off)."""
    ideal = space.nexts[pool.ideal[label], step >> 1]
    count = _append(tables, space, pool, label, step, start, steps, ends)
    latest = start
    for r in range(count):
        latest = max(latest, ends[r])
    now = _starts(tables, space, ideal, start, steps, ends, count, starts)
    if now == FAR:
        now = latest
    running = 0
    for r in range(count):
        if ends[r] > now:
            steps[running], ends[running] = steps[r], ends[r]
            running += 1
    bound = _bound(space, ideal, now, steps, ends, running)
    if bound >= result[0]:
        result[2] = min(result[2], bound)
        return
    if not _enter(space, pool, ideal, now, steps, ends, running):
        return
    _store(pool, ideal, label, step, now, bound, steps, ends, running)
    if space.closing[ideal] >= 0 and latest + space.closing[ideal] < result[0]:
        result[0] = latest + space.closing[ideal]
        result[1] = pool.used[0] - 1


@njit(cache=True, nogil=True)
def _worth(pool: Pool, first: int, last: int, beam: int) -> int:
    """The bound up to which the labels of the ideals ``first`` to ``last`` are extended: ``beam``
    of them, and ties."""
    bounds = np.empty(pool.used[0], np.int64)
    count = 0
    for ideal in range(first, last):
        label = pool.head[ideal]
        while label >= 0:
            bounds[count] = pool.bound[label]
            count += 1
            label = pool.link[label]
    return FAR if count <= beam else np.partition(bounds[:count], beam)[beam]


@njit(cache=True, nogil=True)
def label_pass(
    tables: Tables, space: LabelSpace, pool: Pool, goal: int, beam: int, effort: int
) -> tuple[int, int, int]:
    """All schedules that may end before ``goal``: (least makespan found or goal, its label, least
    bound cut off).

    With ``beam`` > 0 only about that many labels of each size of ideal are extended, and nothing is
    proved. The label is -1 when there is none, and -2 when ``effort`` comparisons or the room for
    labels did not suffice.
    """
    n = len(tables.below)
    steps, ends = np.empty(n + 1, np.int16), np.empty(n + 1, np.int64)
    starts, next_starts = np.empty((n, 2), np.int64), np.empty((n, 2), np.int64)
    result = np.array([goal, -1, FAR])
    pool.head[: len(space.masks)] = -1
    pool.used[:] = 0
    _store(pool, 0, -1, -1, 0, 0, steps, ends, 0)
    if 0 <= space.closing[0] < goal:
        result[0], result[1] = space.closing[0], 0
    level, worth = 0, FAR
    for ideal in range(len(space.masks) - 1):
        if beam > 0 and ideal == space.levels[level]:
            worth = _worth(pool, ideal, space.levels[level + 1], beam)
            level += 1
        label = pool.head[ideal]
        while label >= 0:
            # One label has at most 2 n children, each with at most n running operators.
            if pool.used[0] + 2 * n > len(pool.link) or pool.used[1] + 2 * n * n > len(pool.end_of):
                return result[0], -2, result[2]
            if pool.used[2] > effort:
                return result[0], -2, result[2]
            first, running = pool.first[label], pool.running[label]
            old_steps, old_ends = (
                pool.step_of[first : first + running],
                pool.end_of[first : first + running],
            )
            if pool.bound[label] <= min(worth, result[0] - 1):
                _starts(
                    tables, space, ideal, pool.time[label], old_steps, old_ends, running, starts
                )
                _expand(tables, space, pool, label, starts, result, steps, ends, next_starts)
            label = pool.link[label]
    return result[0], result[1], result[2]


@njit(cache=True, nogil=True)
def _expand(
    tables: Tables, space: LabelSpace, pool: Pool, label: int, starts: Ints, result: Ints,
    steps: NDArray[np.int16], ends: Ints, next_starts: Ints,
) -> None:  # fmt: skip
    """Every next step, but none that waits while another operator could run on one core and be done
    by then."""
    n = len(tables.below)
    soonest, second, who = FAR, FAR, -1
    for j in range(n):
        if starts[j, 0] < FAR:
            end = starts[j, 0] + tables.time[j, 0]
            if end < soonest:
                soonest, second, who = end, soonest, j
            elif end < second:
                second = end
    for j in range(n):
        done = second if j == who else soonest
        for mode in range(2):
            if starts[j, mode] < FAR and starts[j, mode] < done:
                _child(
                    tables,
                    space,
                    pool,
                    label,
                    2 * j + mode,
                    starts[j, mode],
                    result,
                    steps,
                    ends,
                    next_starts,
                )

"""List schedules: upper bounds, from several priority rules, the spread-or-single decision, and a
short local search.

At each moment when an operator ends, the ready operators that fit are started, highest priority
first (:func:`list_pass <phaze.schedule.list_kernels.list_pass>`). Priorities: longest path to the
end (by shortest or by one-core times), and the number of operators that wait. First decisions:
spread all that gain, spread where P is under half of L, spread none. From each start single
decisions are flipped and priorities of two operators exchanged as long as that shortens the
schedule, up to a given amount of work."""

from dataclasses import dataclass

import numpy as np

from phaze.schedule.list_kernels import improve, list_pass
from phaze.schedule.order import bits
from phaze.schedule.part import Component, Floats, Ints, Tables, longest_paths

# Work in operators squared: a pass over n operators looks at about n * n of them.
QUICK = 30_000
THOROUGH = 12_000_000


@dataclass(frozen=True, slots=True)
class Decisions:
    """A schedule as decisions: (operator of the component, mode) in order of start, and the
    makespan in units."""

    steps: tuple[tuple[int, int], ...]
    makespan: int


def _nearest_before(part: Component) -> tuple[Ints, Ints]:
    """The predecessors that no other predecessor implies, of all operators one after another, and
    where each begins."""
    preds: list[int] = []
    first = [0]
    for mask in part.order.below:
        implied = 0
        for i in bits(mask):
            implied |= part.order.below[i]
        preds += bits(mask & ~implied)
        first.append(len(preds))
    return np.array([*preds, 0], np.int64), np.array(first, np.int64)


def _priorities(part: Component) -> list[Floats]:
    count = len(part)
    ties = 1e-6 * np.arange(count, 0, -1) / (count + 1)
    path = np.array(longest_paths(part), float)
    single = np.zeros(count)
    for i in reversed(range(count)):
        after = bits(part.above[i])
        single[i] = (part.times[i][0] or part.times[i][1]) + max(
            (single[j] for j in after), default=0.0
        )
    waiting = np.array([part.above[i].bit_count() for i in range(count)], float)
    return [path + ties, single + ties, waiting + ties]


def _decisions(part: Component) -> list[Ints]:
    starts = []
    for most in (1.0, 0.5, 0.0):
        flags = [int(alone == 0 or 0 < spread < most * alone) for alone, spread in part.times]
        starts.append(np.array(flags, np.int64))
    return starts


def list_schedule(part: Component, tables: Tables, goal: int, work: int = QUICK) -> Decisions:
    """The best list schedule found with about ``work`` from each start, at least one pass; stops at
    ``goal``."""
    preds, first = _nearest_before(part)
    passes = work // len(part) ** 2
    priorities = _priorities(part)[: 1 if work <= QUICK else 3]
    best: tuple[int, Ints, Floats] | None = None
    for spread in _decisions(part):
        for priority in priorities:
            flags, rank = spread.copy(), priority.copy()
            reached = int(improve(tables, preds, first, flags, rank, passes, goal))
            if best is None or reached < best[0]:
                best = (reached, flags, rank)
            if reached <= goal:
                break
    assert best is not None
    makespan, flags, rank = best
    starts = np.zeros(len(part), np.int64)
    list_pass(tables, preds, first, flags, rank, starts)
    by_start = sorted(range(len(part)), key=lambda i: (int(starts[i]), i))
    return Decisions(tuple((i, int(flags[i])) for i in by_start), makespan)

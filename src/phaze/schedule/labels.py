"""The exact method: labels over order ideals, with deepening bounds.

**Labels.** Start operators one by one in order of start. A label is (S, t, R): the ideal S of
started operators, the earliest moment t at which any further operator can start, and the operators
R that still run at t with their ends. Its successors: every operator j that may be next, in each
way to run, at its earliest start s_j >= t that precedence and what runs allow. Some optimal
schedule is such a sequence: take one with the least sum of starts, sorted by start; if an operator
could start earlier given those before it, moving it there would disturb nobody (it ends no later
than before).

**Dominance** among labels of one ideal: (t, R) makes (t', R') needless when t <= t' and every
operator of R ends no later than it does in R' (than t', if it does not run there): whatever can
follow the second can follow the first. Operators that nothing waits for are interchangeable when
they hold the same cores, so only their sorted ends are compared.

**No idling.** j is not started at s_j if some ready k, on one core from its earliest start, would
have ended by s_j: moving k there makes the sum of starts less and disturbs nobody.

**Spread sinks come last** (icml24): a spread operator that nothing waits for can be taken out, all
after it moved up by its time, and put at the end. So when only such operators are left,
``closing(S) = sum of P`` ends the schedule, and no label spreads a sink. Both rules hold at once:
among optimal schedules with spread sinks last take one with the least sum of starts; the move of
"no idling" keeps spread sinks last. Twins (``part.py``) change places without changing that sum.

**Bound of a label**, the greatest of
    t + g(S)                                        the rest without core limits (``ideals.py``),
    e_r + g(all that is not above r)                for r in R with end e_r: what waits for r,
    t + h_k(S) + sum_{r in R} (e_r - t) u_kr/d_r    for each vector k of credits (``dual.py``).

**Deepening.** One pass keeps the labels with bound < goal. It finds the least makespan below the
goal if there is one; else the least bound that was cut off is a proven lower bound, and the next
goal lies further above it (0.1 %, doubled each time). A pass that needs more than its effort (a
number of comparisons of labels) ends the search: what earlier passes proved stands. A first pass
with a beam (only the most promising labels of each size) proves nothing but often finds the
optimum, and then the goal is never above it. A wider beam comes after every pass that kept more
labels than the last beam: a goal far above the optimum costs several times as much as the optimum.
Where the next goal but one would reach the best schedule, that is the goal: a pass just below the
optimum costs as much as the one that proves it.
"""

from dataclasses import dataclass

import numpy as np

from phaze.schedule.ideals import Ideals
from phaze.schedule.kernels import closing, potentials
from phaze.schedule.label_kernels import LabelSpace, Pool, label_pass
from phaze.schedule.list_schedule import Decisions
from phaze.schedule.part import Component, Floats, Tables

# The first goal lies so little above the bound: most optima do.
FIRST_STEP = 0.001
# Narrow passes that look for a better schedule first; none changes what is proved.
BEAMS = (16, 256)
# How much wider each further beam is; it takes as many times the comparisons, or somewhat more.
WIDER = 4
# Running operators a label has room for on average.
MEAN_RUNNING = 8


@dataclass(frozen=True, slots=True)
class Deepened:
    """What the passes found: the best decisions, the proven bound in units, and the labels of the
    largest pass."""

    best: Decisions
    bound: int
    labels: int

    @property
    def proved(self) -> bool:
        """Nothing shorter exists."""
        return self.bound >= self.best.makespan


def _rates(part: Component, credits: Floats) -> Floats:
    rate = np.zeros((len(credits), len(part), 2))
    for i, times in enumerate(part.times):
        for mode, time in enumerate(times):
            if time > 0:
                rate[:, i, mode] = credits[:, i] / time
    return rate


def _keys(part: Component) -> list[int]:
    """Equal for steps whose running may be exchanged: sinks that hold the same, else a number for
    each step."""
    count = len(part)
    keys = []
    for i in range(count):
        for mode in range(2):
            tensor, vector, network = part.holds[i][mode]
            keys.append(
                2 * i + mode if part.above[i] else 2 * count + 9 * tensor + 3 * vector + network
            )
    return keys


def space_of(
    part: Component, tables: Tables, ideals: Ideals, credits: tuple[Floats, ...]
) -> LabelSpace:
    """What the passes need to know of every ideal."""
    vectors = np.array(credits) if credits else np.zeros((0, len(part)))
    return LabelSpace(
        ideals.masks,
        ideals.levels,
        ideals.nexts,
        ideals.g,
        closing(tables, ideals.masks),
        potentials(vectors, ideals.masks),
        _rates(part, vectors),
        ideals.tail,
        np.array(_keys(part), np.int64),
    )


def _pool(ideals: int, labels: int) -> Pool:
    return Pool(
        head=np.empty(ideals, np.int64),
        link=np.empty(labels, np.int32),
        ideal=np.empty(labels, np.int32),
        parent=np.empty(labels, np.int32),
        step=np.empty(labels, np.int16),
        time=np.empty(labels, np.int64),
        bound=np.empty(labels, np.int64),
        first=np.empty(labels, np.int64),
        running=np.empty(labels, np.int16),
        step_of=np.empty(MEAN_RUNNING * labels, np.int16),
        end_of=np.empty(MEAN_RUNNING * labels, np.int64),
        used=np.zeros(3, np.int64),
    )


def _decisions(part: Component, pool: Pool, label: int, makespan: int) -> Decisions:
    steps: list[tuple[int, int]] = []
    while label >= 0 and pool.step[label] >= 0:
        steps.append((int(pool.step[label]) >> 1, int(pool.step[label]) & 1))
        label = int(pool.parent[label])
    steps.reverse()
    started = {i for i, _ in steps}
    steps += [(i, 1) for i in range(len(part)) if i not in started]
    return Decisions(tuple(steps), makespan)


def deepen(
    part: Component,
    tables: Tables,
    ideals: Ideals,
    credits: tuple[Floats, ...],
    best: Decisions,
    bound: int,
    most_labels: int,
    effort: int,
) -> Deepened:
    """Raise ``bound`` and improve on ``best`` until they meet or the effort is used up."""
    space = space_of(part, tables, ideals, credits)
    bound = max(bound, int(ideals.g[0]))
    pool, labels = _pool(len(ideals), most_labels), 0
    beams, step, narrow = list(BEAMS), FIRST_STEP, np.zeros(3, np.int64)
    while bound < best.makespan:
        if beams:
            makespan, label, _ = label_pass(tables, space, pool, best.makespan, beams[0], effort)
            labels, narrow = max(labels, int(pool.used[0])), pool.used.copy()
            if label >= 0:
                best = _decisions(part, pool, label, int(makespan))
            beam = beams.pop(0)
            continue
        last = int(bound * (1 + 3 * step)) >= best.makespan
        goal = best.makespan if last else int(bound * (1 + step)) + 1
        makespan, label, cut = label_pass(tables, space, pool, goal, 0, effort)
        labels = max(labels, int(pool.used[0]))
        if label == -2:
            break
        if label >= 0:
            best, bound = _decisions(part, pool, label, int(makespan)), int(makespan)
        else:
            bound = max(bound, min(best.makespan, int(cut)))
        step *= 2
        last = int(bound * (1 + 3 * step)) >= best.makespan
        if not last and pool.used[0] > narrow[0] and 2 * WIDER * narrow[2] < effort:
            beams = [WIDER * beam]
    return Deepened(best, bound, labels)

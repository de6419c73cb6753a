"""The second exact method, for rules where a spread operator runs alone: paths over ideals whose
steps are phases.

While a spread operator runs nothing else does, so a schedule is a path over the ideals S of what
has ended:

    S -> S + j      one spread operator j, in P_j
    S -> S'         a phase: the operators of D = S' - S, each on one core, in p(D)

p(D) is the least makespan of D alone on the cores, whatever came before: all that D waits for
outside of D has ended. Hence the least makespan is that of the shortest path from nothing to
everything.

**Bound.** p(D) is at least b(S, S') = max(e_j over D, load of D on each kind of core / cores), e_j
the earliest end after S without core limits. With b instead of p the shortest path is a bound, over
all pairs of ideals (:func:`sweep_phases <phaze.schedule.phase_kernels.sweep_phases>`):

    q(all) = 0,     q(S) = min( P_j + q(S + j),  b(S, S') + q(S') ),     never less than g(S) of
                    ``ideals.py``

**Paths below a goal.** Forward over the ideals, low(S) and high(S) bound the least time after which
S can have ended. Steps with low(S) + b(S, S') + q(S') >= goal are cut off; of the others p(D) is
looked for, below ``goal - low(S) - q(S')`` only, and kept by D (:func:`phase_pass
<phaze.schedule.phase_kernels.phase_pass>`). Then min(low(all), the least that was cut off) is a
proven bound, and high(all) belongs to a schedule. The goal rises from just above the bound, a
little more each time. Where low(all) is below the goal and below high(all), a phase was given up
for want of nodes: the pass is made again with more of them.

**Length of a phase below a limit** (:func:`pack <phaze.schedule.packing_kernels.pack>`). Depth
first: operators are appended in order of start, as in ``labels.py``, without idling, twins in one
order (twins here are so among the operators of D alone: what is outside of D does not matter).
Before that, packing: the operators of a kind that run within X fill ``cores`` bins of X, so for a
dual feasible f (the sum of f over what fits into one bin is at most 1) the sum of f over all of
them is at most ``cores``. Two families refute most phases at once, with x = L / X:

    f_p(x) = 1 if x > 1 - p,  x if p <= x <= 1 - p,  0 if x < p            for p <= 1/2 (Martello
                              and Toth)
    u_k(x) = x if (k+1) x is whole, else floor((k+1) x) / k    for k = 1 .. 12 (Fekete and Schepers)
"""

from dataclasses import dataclass

import numpy as np

from phaze.schedule.ideals import Ideals
from phaze.schedule.list_schedule import Decisions
from phaze.schedule.packing_kernels import FAR, pack
from phaze.schedule.part import Component, Ints, Tables
from phaze.schedule.phase_kernels import Paths, Phases, loads_of, phase_pass, sweep_phases

# The first goal lies so little above the bound, and each next one further by this factor: most
# optima lie near.
FIRST_STEP = 1e-5
GROWTH = 1.5
# Nodes for one phase at first, then more by this factor: most phases need few.
FIRST_NODES = 500
MORE_NODES = 8
MOST_NODES = 300_000
# Phases that are remembered, 9 MB; beyond them phases are solved again.
MOST_PHASES = 2**18


@dataclass(frozen=True, slots=True)
class Phased:
    """What the passes found: the best decisions, the proven bound in units, and q of every
    ideal."""

    best: Decisions
    bound: int
    rest: Ints


def _decisions(tables: Tables, ideals: Ideals, paths: Paths, makespan: int) -> Decisions:
    """The schedule of the path that high(all) belongs to."""
    ideal, blocks = len(ideals) - 1, []
    order = np.zeros(len(tables.below), np.int64)
    while ideal > 0:
        before = int(paths.parent[ideal])
        inside, took = (
            ideals.masks[ideal] & ~ideals.masks[before],
            int(paths.high[ideal] - paths.high[before]),
        )
        spread = np.flatnonzero(ideals.nexts[before] == ideal)
        if len(spread) and tables.time[spread[0], 1] == took:
            blocks.append([(int(spread[0]), 1)])
        else:
            pack(tables, inside, took + 1, FAR, order)
            blocks.append([(int(j), 0) for j in order[: int(inside).bit_count()]])
        ideal = before
    return Decisions(tuple(step for block in reversed(blocks) for step in block), makespan)


def _room(ideals: int) -> tuple[Phases, Paths]:
    words = np.zeros(MOST_PHASES, np.uint64)
    numbers = [np.zeros(MOST_PHASES, np.int64) for _ in range(3)]
    used = np.zeros(MOST_PHASES, np.bool_)
    phases = Phases(words, used, numbers[0], numbers[1], numbers[2], np.zeros(2, np.int64))
    return phases, Paths(*(np.zeros(ideals, np.int64) for _ in range(3)))


def by_phases(
    part: Component, tables: Tables, ideals: Ideals, best: Decisions, bound: int, effort: int
) -> Phased:
    """Raise ``bound`` and improve on ``best`` until they meet or ``effort`` nodes are used up."""
    assert part.alone
    loads = loads_of(tables, ideals.masks)
    rest = sweep_phases(tables, ideals.masks, ideals.nexts, loads, ideals.g)
    bound = max(bound, int(rest[0]))
    phases, paths = _room(len(ideals))
    step, nodes = FIRST_STEP, FIRST_NODES
    while bound < best.makespan:
        goal = min(int(bound * (1 + step)) + 1, best.makespan)
        cut = int(
            phase_pass(
                tables, ideals.masks, ideals.nexts, loads, rest, phases, paths, goal, nodes, effort
            )
        )
        if cut < 0:
            break
        low, high = int(paths.low[-1]), int(paths.high[-1])
        if high < best.makespan:
            best = _decisions(tables, ideals, paths, high)
        bound = max(bound, min(low, cut, best.makespan))
        if low < min(goal, high):
            if nodes >= MOST_NODES:
                break
            nodes *= MORE_NODES
        else:
            step *= GROWTH
    return Phased(best, bound, rest)

"""Problems of thousands of operators: one list schedule and the cheap bounds, from edges instead of
a closure.

Everything else here works on the closure of the precedence relation, whose size is the square of
the number of operators, or grows faster. A list schedule and the bounds by critical path and load
need direct predecessors only: a free operator is replaced by what it waits for, and each operator
starts when those have ended. Where the rules share HBM, series components must not overlap, and
they are not known here: the operators run one after another, each in its shortest way, which holds
under any rules.
"""

from phaze.schedule.bounds import cheap_bounds
from phaze.schedule.list_schedule import QUICK, Decisions, list_schedule
from phaze.schedule.order import Order, topological
from phaze.schedule.part import Component, in_turn, part_of
from phaze.schedule.problem import Effort, Schedule, ScheduleProblem
from phaze.schedule.replay import complete, replay

# More operators than this get a list schedule and a bound only: what is exact would be silent for
# minutes.
MOST_OPERATORS = 2000
METHOD = "large"


def direct(problem: ScheduleProblem) -> Order:
    """The operators with cost, each with those that it waits for directly or through free ones."""
    before: list[set[int]] = [set() for _ in problem.operators]
    order = topological(len(problem.operators), problem.edges)
    after: list[list[int]] = [[] for _ in problem.operators]
    for first, then in problem.edges:
        after[first].append(then)
    for i in order:
        direct_ones = before[i] if problem.operators[i].free else {i}
        for then in after[i]:
            before[then] |= direct_ones
    costly = [i for i in order if not problem.operators[i].free]
    place = {i: index for index, i in enumerate(costly)}
    return Order(tuple(costly), tuple(sum(1 << place[k] for k in before[i]) for i in costly))


def _one_by_one(part: Component) -> Decisions:
    """Every operator in topological order, in its shortest way."""
    modes = [int(alone == 0 or 0 < spread < alone) for alone, spread in part.times]
    return Decisions(
        tuple(enumerate(modes)), sum(part.times[i][mode] for i, mode in enumerate(modes))
    )


def solve_large(problem: ScheduleProblem) -> Schedule:
    """A schedule and a bound, for any number of operators."""
    original, problem = problem, in_turn(problem)
    part = part_of(problem, direct(problem))
    bound = cheap_bounds(part, ("critical_path", "load")).best
    best = (
        _one_by_one(part)
        if problem.rule.hbm_shared
        else list_schedule(part, part.tables(), bound, QUICK)
    )
    if problem.rule.hbm_shared:
        now, slots = 0.0, []
        for i, mode in best.steps:
            index, slot = replay(problem, part, [(i, mode)], now)[0]
            now = slot.end_s
            slots.append((index, slot))
    else:
        slots = replay(problem, part, best.steps, 0.0)
    makespan_s = max((slot.end_s for _, slot in slots), default=0.0)
    bound_s = min(max(part.hbm_s, part.seconds_below(min(bound, best.makespan))), makespan_s)
    return Schedule(
        original.rules, makespan_s, bound_s, complete(problem, slots), Effort(METHOD, 1, len(part))
    )

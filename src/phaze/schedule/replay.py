"""From decisions to slots: the operators of a component in order of start, replayed with their times in seconds.

Each operator starts at the earliest moment, not before the one that was started before it, at which what is below it
has ended and what it holds is free. Starts are maxima and order statistics of earlier ends, so with times no longer
than the rounded ones no end is later than in rounded times."""

from collections.abc import Sequence

from phaze.schedule.order import bits, closure, topological
from phaze.schedule.part import ALL, Part
from phaze.schedule.problem import Operator, Problem, Slot


def replay(problem: Problem, part: Part, steps: Sequence[tuple[int, int]], begin_s: float) -> list[tuple[int, Slot]]:
    """The slots of a component that begins at ``begin_s``, each with its operator's position in the problem."""
    cores = [[begin_s] * min(count, len(part)) for count in part.cores]
    ends = [begin_s] * len(part)
    now, found = begin_s, []
    for i, mode in steps:
        operator = problem.operators[part.order.operators[i]]
        start = max([now, *(ends[k] for k in bits(part.order.below[i]))])
        for free, code in zip(cores, part.holds[i][mode], strict=True):
            if code and free:
                start = max(start, max(free) if code == ALL else min(free))
        now = start
        ends[i] = start + (operator.all_cores_s if mode else operator.one_core_s)
        taken: list[int | None] = []
        for free, code in zip(cores, part.holds[i][mode], strict=True):
            core = next((c for c, at in enumerate(free) if at <= start), None) if code == 1 else None
            taken.append(core)
            if core is not None:
                free[core] = ends[i]
            elif code == ALL:
                free[:] = [ends[i]] * len(free)
        slot = Slot(operator.id, mode == 1, start, ends[i], taken[0], taken[1])
        found.append((part.order.operators[i], slot))
    return found


def _free_slot(operator: Operator, at_s: float) -> Slot:
    spread = operator.one_core_s > 0
    tensor = 0 if operator.core in ("tensor", "both") and not spread else None
    vector = 0 if operator.core in ("vector", "both") and not spread else None
    return Slot(operator.id, spread, at_s, at_s, tensor, vector)


def complete(problem: Problem, costly: Sequence[tuple[int, Slot]]) -> tuple[Slot, ...]:
    """All slots in the order of the problem: a free operator runs when all before it have ended."""
    slots = dict(costly)
    masks = closure(problem)
    for i in topological(len(masks), problem.edges):
        if i not in slots:
            slots[i] = _free_slot(problem.operators[i], max((slots[k].end_s for k in bits(masks[i])), default=0.0))
    return tuple(slots[i] for i in range(len(masks)))

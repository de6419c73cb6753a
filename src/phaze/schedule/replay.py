"""From decisions to slots: the operators of a component in order of start, replayed with their
times in seconds.

Each operator starts at the earliest moment, not before the one that was started before it, at which
what is below it has ended and what it holds is free. Starts are maxima and order statistics of
earlier ends, so with times no longer than the rounded ones no end is later than in rounded
times."""

from collections.abc import Sequence
from dataclasses import dataclass

from phaze.schedule.order import bits, topological
from phaze.schedule.part import ALL, Component
from phaze.schedule.problem import ScheduledOperator, ScheduleProblem, Slot


@dataclass(frozen=True, slots=True)
class Played:
    """One step: its operator in the component, way to run, start, end, and the core of each
    resource it has alone."""

    operator: int
    mode: int
    start: float
    end: float
    cores: tuple[int | None, ...]


def play(
    part: Component,
    steps: Sequence[tuple[int, int]],
    times: Sequence[tuple[float, float]],
    begin: float,
) -> list[Played]:
    """The steps with ``times`` of each way to run, from ``begin`` on; whole times give whole starts
    and ends."""
    cores = [[begin] * min(count, len(part)) for count in part.cores]
    ends = [begin] * len(part)
    now, played = begin, []
    for i, mode in steps:
        start = max([now, *(ends[k] for k in bits(part.order.below[i]))])
        for free, code in zip(cores, part.holds[i][mode], strict=True):
            if code and free:
                start = max(start, max(free) if code == ALL else min(free))
        now = start
        ends[i] = start + times[i][mode]
        used: list[int | None] = []
        for free, code in zip(cores, part.holds[i][mode], strict=True):
            core = (
                next((c for c, end in enumerate(free) if end <= start), None) if code == 1 else None
            )
            used.append(core)
            if core is not None:
                free[core] = ends[i]
            elif code == ALL:
                free[:] = [ends[i]] * len(free)
        played.append(Played(i, mode, start, ends[i], tuple(used)))
    return played


def makespan_of(part: Component, steps: Sequence[tuple[int, int]]) -> int:
    """When the steps end, in units."""
    return int(max(step.end for step in play(part, steps, part.times, 0)))


def replay(
    problem: ScheduleProblem, part: Component, steps: Sequence[tuple[int, int]], begin_s: float
) -> list[tuple[int, Slot]]:
    """The slots of a component that begins at ``begin_s``, each with its operator's position in the
    problem."""
    slots = []
    for step in play(part, steps, part.times_s, begin_s):
        index = part.order.operators[step.operator]
        tensor, vector, _ = step.cores
        slots.append(
            (
                index,
                Slot(
                    problem.operators[index].id,
                    step.mode == 1,
                    step.start,
                    step.end,
                    tensor,
                    vector,
                ),
            )
        )
    return slots


def _free_slot(operator: ScheduledOperator, at_s: float) -> Slot:
    spread = operator.one_core_s > 0
    tensor = 0 if operator.core in ("tensor", "both") and not spread else None
    vector = 0 if operator.core in ("vector", "both") and not spread else None
    return Slot(operator.id, spread, at_s, at_s, tensor, vector)


def complete(problem: ScheduleProblem, costly: Sequence[tuple[int, Slot]]) -> tuple[Slot, ...]:
    """All slots in the order of the problem: a free operator runs when all before it have ended."""
    slots = dict(costly)
    count = len(problem.operators)
    before: list[list[int]] = [[] for _ in range(count)]
    for first, then in problem.edges:
        before[then].append(first)
    for i in topological(count, problem.edges):
        if i not in slots:
            slots[i] = _free_slot(
                problem.operators[i], max((slots[k].end_s for k in before[i]), default=0.0)
            )
    return tuple(slots[i] for i in range(count))

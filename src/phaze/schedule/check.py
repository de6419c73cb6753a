"""Is this a schedule of that problem? Written from the rules alone; it shares no code with any solver.

A schedule is right when

1.  every operator has exactly one slot, in the order of the problem;
2.  a slot lasts as long as its way to run says: ``L_i`` on one core, ``P_i`` spread, 0 for a free operator;
3.  i -> j in the graph: i ends before j starts;
4.  a slot on one core names a core that exists, of each kind it uses and of no other; a spread one names none;
5.  two slots that overlap in time are allowed to by the rules, and never share a core;
6.  the makespan is the last end, and the lower bound is not above it.

Times are compared with a tolerance of 1e-9 of the makespan. Two slots overlap when both last longer than the tolerance
and their common time does too.
"""

import math
from collections.abc import Iterator

from phaze.schedule.problem import KINDS, Operator, Problem, Schedule, Slot

TOLERANCE = 1e-9


def faults(problem: Problem, schedule: Schedule) -> list[str]:
    """What is wrong with ``schedule``, one sentence each; empty when it holds."""
    if [slot.id for slot in schedule.slots] != [operator.id for operator in problem.operators]:
        return ["the slots are not the operators, in their order"]
    found = [*_numbers(problem, schedule)]
    if found:
        return found
    slack = TOLERANCE * schedule.makespan_s
    found += _lengths(problem, schedule, slack)
    found += _precedence(problem, schedule, slack)
    found += [fault for pair in zip(problem.operators, schedule.slots, strict=True) for fault in _cores(problem, *pair)]
    found += _overlaps(problem, schedule, slack)
    return found


def _numbers(problem: Problem, schedule: Schedule) -> Iterator[str]:
    times = [schedule.makespan_s, schedule.lower_bound_s]
    times += [time for slot in schedule.slots for time in (slot.start_s, slot.end_s)]
    if not all(math.isfinite(time) and time >= 0 for time in times):
        yield "a time is negative or not a number"
        return
    last = max((slot.end_s for slot in schedule.slots), default=0.0)
    if abs(last - schedule.makespan_s) > TOLERANCE * last:
        yield f"the makespan is {schedule.makespan_s!r}, the last end {last!r}"
    if schedule.lower_bound_s > schedule.makespan_s * (1 + TOLERANCE):
        yield "the lower bound is above the makespan"
    if schedule.rules != problem.rules:
        yield f"the schedule is one under the rules {schedule.rules}, the problem asks for {problem.rules}"


def _lengths(problem: Problem, schedule: Schedule, slack: float) -> Iterator[str]:
    for operator, slot in zip(problem.operators, schedule.slots, strict=True):
        length = operator.all_cores_s if slot.spread else operator.one_core_s
        if operator.one_core_s == 0 or operator.all_cores_s == 0:
            length = 0.0
        if abs(slot.end_s - slot.start_s - length) > slack:
            yield f"'{slot.id}' lasts {slot.end_s - slot.start_s!r} s, not {length!r} s"


def _precedence(problem: Problem, schedule: Schedule, slack: float) -> Iterator[str]:
    for first, then in problem.edges:
        if schedule.slots[then].start_s < schedule.slots[first].end_s - slack:
            yield f"'{schedule.slots[then].id}' starts before '{schedule.slots[first].id}' ends"


def _cores(problem: Problem, operator: Operator, slot: Slot) -> Iterator[str]:
    for kind, core in (("tensor", slot.tensor_core), ("vector", slot.vector_core)):
        wanted = kind in KINDS[operator.core] and not slot.spread
        if wanted and (core is None or not 0 <= core < problem.cores(kind)):
            yield f"'{slot.id}' runs on {kind} core {core}, which does not exist"
        if not wanted and core is not None:
            yield f"'{slot.id}' names {kind} core {core} and does not run on one"
    must_spread = problem.rules == "serial" or operator.core == "none"
    if must_spread and not operator.free and not slot.spread:
        yield f"'{slot.id}' must be spread"


def _overlaps(problem: Problem, schedule: Schedule, slack: float) -> Iterator[str]:
    lasting = [
        pair for pair in zip(problem.operators, schedule.slots, strict=True) if pair[1].end_s - pair[1].start_s > slack
    ]
    lasting.sort(key=lambda pair: pair[1].start_s)
    for at, (operator, slot) in enumerate(lasting):
        for other, later in lasting[at + 1 :]:
            if later.start_s >= slot.end_s - slack:
                break
            fault = _clash(problem, operator, slot, other, later)
            if fault and min(slot.end_s, later.end_s) - later.start_s > slack:
                yield f"'{slot.id}' and '{later.id}' {fault}"


def _clash(problem: Problem, one: Operator, a: Slot, two: Operator, b: Slot) -> str:
    """Why the two may not run at the same time; empty when they may."""
    if problem.rules == "serial":
        return "run at the same time"
    alone = a.spread or b.spread or "none" in (one.core, two.core)
    if problem.rules == "icml24" and alone:
        return "run at the same time, and one of them runs alone"
    if one.core == two.core == "none":
        return "use the network at the same time"
    shared = set(KINDS[one.core]) & set(KINDS[two.core])
    if shared and (a.spread or b.spread):
        return "run at the same time, and one of them has the cores to itself"
    same = [kind for kind in sorted(shared) if getattr(a, f"{kind}_core") == getattr(b, f"{kind}_core")]
    return f"run on the same {same[0]} core" if same else ""

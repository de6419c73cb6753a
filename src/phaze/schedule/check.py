"""Is this a schedule of that problem? Written from the rules alone; it shares no code with any solver.

A schedule is right when

1.  every operator has exactly one slot, in the order of the problem;
2.  a slot lasts as long as its way to run says: ``L_i`` on one core, ``P_i`` spread, 0 for a free operator;
3.  i -> j in the graph: i ends before j starts;
4.  a slot on one core names a core that exists, of each kind it uses and of no other; a spread one names none;
5.  two slots that overlap in time are allowed to by the rules, and never share a core;
6.  where the rules share HBM, operators of a series component (connected by pairs of which neither must precede the
    other) start no sooner than the one before it is over, and a component lasts at least the sum of its HBM times;
7.  the makespan is the last end (6: or the last component's, if that is later), the lower bound not above it.

Times are compared with a tolerance of 1e-9 of the makespan. Two slots overlap when both last longer than the tolerance
and their common time does too.
"""

import math
from collections.abc import Iterator

from phaze.schedule.problem import KINDS, Operator, Problem, Schedule, Slot

# Solver, price and checker add the same times in another order; sums differ by less.
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
    found += _memory(problem, schedule, slack)
    return found


def _numbers(problem: Problem, schedule: Schedule) -> Iterator[str]:
    times = [schedule.makespan_s, schedule.lower_bound_s]
    times += [time for slot in schedule.slots for time in (slot.start_s, slot.end_s)]
    if not all(math.isfinite(time) and time >= 0 for time in times):
        yield "a time is negative or not a number"
        return
    last = max(_over(problem, schedule), default=0.0)
    if abs(last - schedule.makespan_s) > TOLERANCE * last:
        yield f"the makespan is {schedule.makespan_s!r}, the last end {last!r}"
    if schedule.lower_bound_s > schedule.makespan_s * (1 + TOLERANCE):
        yield "the lower bound is above the makespan"
    if schedule.rules != problem.rules:
        yield f"the schedule is one under the rules {schedule.rules}, the problem asks for {problem.rules}"


def _components(problem: Problem, schedule: Schedule) -> list[list[int]]:
    """Operators that cost something, joined where neither must precede the other, in the order of their starts."""
    count = len(problem.operators)
    after: list[list[int]] = [[] for _ in range(count)]
    for first, then in problem.edges:
        after[first].append(then)
    related = [1 << i for i in range(count)]
    waiting = [0] * count
    for nexts in after:
        for j in nexts:
            waiting[j] += 1
    order = [i for i in range(count) if not waiting[i]]
    for i in order:
        for j in after[i]:
            related[j] |= related[i]
            waiting[j] -= 1
            order += [j] * (not waiting[j])
    above = [1 << i for i in range(count)]
    for i in reversed(order):
        for j in after[i]:
            above[i] |= above[j]
    related = [one | other for one, other in zip(related, above, strict=True)]
    left = sum(1 << i for i, operator in enumerate(problem.operators) if not operator.free)
    components = []
    while left:
        inside = joined = left & -left
        while joined:
            i = joined.bit_length() - 1
            more = left & ~related[i] & ~inside
            inside |= more
            joined = joined & ~(1 << i) | more
        components.append([i for i in range(count) if inside >> i & 1])
        left &= ~inside
    return sorted(components, key=lambda own: min(schedule.slots[i].start_s for i in own))


def _shares_memory(problem: Problem) -> bool:
    return problem.rule.hbm_shared and any(operator.hbm_s > 0 for operator in problem.operators)


def _spans(problem: Problem, schedule: Schedule) -> Iterator[tuple[float, float, list[int]]]:
    """Where each component may begin, when it is over, and its operators."""
    begin = 0.0
    for own in _components(problem, schedule):
        memory = math.fsum(problem.operators[i].hbm_s for i in own)
        over = max(begin + memory, *(schedule.slots[i].end_s for i in own))
        yield begin, over, own
        begin = over


def _over(problem: Problem, schedule: Schedule) -> Iterator[float]:
    yield from (slot.end_s for slot in schedule.slots)
    if _shares_memory(problem):
        yield from (over for _, over, _ in _spans(problem, schedule))


def _memory(problem: Problem, schedule: Schedule, slack: float) -> Iterator[str]:
    if not _shares_memory(problem):
        return
    for begin, _, own in _spans(problem, schedule):
        for i in own:
            if schedule.slots[i].start_s < begin - slack:
                yield f"'{schedule.slots[i].id}' starts before the HBM has moved the bytes of the operators before it"


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
    must_spread = not problem.rule.one_core or operator.core == "none" or operator.network
    if must_spread and not operator.free and not slot.spread:
        yield f"'{slot.id}' must be spread"


def _overlaps(problem: Problem, schedule: Schedule, slack: float) -> Iterator[str]:
    lasting = [
        pair for pair in zip(problem.operators, schedule.slots, strict=True) if pair[1].end_s - pair[1].start_s > slack
    ]
    lasting.sort(key=lambda pair: pair[1].start_s)
    named = {frozenset(problem.operators[i].id for i in pair) for pair in problem.beside}
    for index, (operator, slot) in enumerate(lasting):
        for other, later in lasting[index + 1 :]:
            if later.start_s >= slot.end_s - slack:
                break
            fault = _clash(problem, operator, slot, other, later, named)
            if fault and min(slot.end_s, later.end_s) - later.start_s > slack:
                yield f"'{slot.id}' and '{later.id}' {fault}"


def _clash(problem: Problem, one: Operator, a: Slot, two: Operator, b: Slot, named: set[frozenset[str]]) -> str:
    """Why the two may not run at the same time; empty when they may."""
    rule = problem.rule
    if rule.one_queue:
        return "run at the same time"
    collective = "none" in (one.core, two.core)
    if (a.spread or b.spread or collective) and rule.alone:
        return "run at the same time, and one of them runs alone"
    if one.networked and two.networked:
        return "use the network at the same time"
    if collective:
        unnamed = rule.named_only and frozenset((one.id, two.id)) not in named
        return "run at the same time, and neither names the other" if unnamed else ""
    shared = set(KINDS[one.core]) & set(KINDS[two.core]) if rule.kinds_apart else {"tensor", "vector"}
    if shared and (a.spread or b.spread):
        return "run at the same time, and one of them has the cores to itself"
    same = [kind for kind in KINDS["both"] if kind in KINDS[one.core] and kind in KINDS[two.core]]
    same = [kind for kind in same if getattr(a, f"{kind}_core") == getattr(b, f"{kind}_core")]
    return f"run on the same {same[0]} core" if same else ""

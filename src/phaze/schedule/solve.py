"""From a problem to a proved schedule: contract, cut into series, and solve each component by what
suffices.

Of each component, in this order, until upper and lower bound meet (``solve_part``):

1. critical path and load, and a quick list schedule;
2. the antichain dual;
3. all order ideals, the backward sweep g, and labels with deepening goals (``labels.py``);
4. where a first effort was not enough and spread operators run alone: phases (``phases.py``), then
   labels again with all their effort;
5. where there are more ideals than ``most_ideals``, more than 63 operators, or all effort is used
   up: a longer local search, and CP-SAT within its deterministic time.

More than 2,000 operators get a list schedule and the cheap bounds only (``large.py``).

Whatever happens there is an answer: the best schedule found and the greatest bound proved. The
bound of the whole is the sum over components (``order.py``), and it uses no schedule. Where the
rules share HBM a component is no shorter than the time of its bytes (``rules.py``): that is one
more bound, and the next component begins no sooner."""

import math
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Literal

from phaze.check.slots import schedule_faults
from phaze.schedule.bounds import BOUNDS, Bound, Bounds, cheap_bounds, with_antichain
from phaze.schedule.files import operators_document
from phaze.schedule.ideals import ideals_of
from phaze.schedule.labels import deepen
from phaze.schedule.large import MOST_OPERATORS, solve_large
from phaze.schedule.list_schedule import QUICK, THOROUGH, Decisions, list_schedule
from phaze.schedule.order import contract, series, topological
from phaze.schedule.part import Component, in_turn, part_of
from phaze.schedule.phases import by_phases
from phaze.schedule.problem import Effort, Schedule, ScheduleProblem, Slot
from phaze.schedule.replay import complete, replay

Scheduler = Literal["exact", "list", "cpsat", "ilp"]
# Components with equal keys have equal times to 1e-12, so their makespans are equal to this.
SAME = 1e-11
# With more ideals labels are dear, so a list schedule is looked for longer first; no answer depends
# on it.
MANY_IDEALS = 20_000
# Comparisons that labels get before phases are tried, and again after them.
FIRST_LABELS = 2_000_000
METHODS = ("none", "serial", "bounds", "labels", "phases", "list", "cpsat", "ilp")


@dataclass(frozen=True, slots=True)
class SchedulingLimits:
    """How much may be spent on one component, in numbers that do not depend on the machine.

    ``cpsat`` is in CP-SAT's own unit of work, some seconds of one core; interleaved sub-solvers may
    use several times as much.
    """

    most_ideals: int = 300_000
    most_labels: int = 2_000_000
    label_effort: int = 300_000_000
    most_paired: int = 60_000
    phase_effort: int = 20_000_000
    list_work: int = THOROUGH
    cpsat: float = 0.2
    bounds: tuple[Bound, ...] = BOUNDS


@dataclass(frozen=True, slots=True)
class PartAnswer:
    """A component's answer in units, and what it took."""

    best: Decisions
    bound: float
    method: str
    ideals: int = 0
    labels: int = 0


@dataclass(frozen=True, slots=True)
class KnownPart:
    """An answer in canonical numbering, and the sum of all times in the units it stands in."""

    steps: tuple[tuple[int, int], ...]
    answer: PartAnswer
    total: float


PartMemo = MutableMapping[str, KnownPart]


def solve(
    problem: ScheduleProblem,
    scheduler: Scheduler = "exact",
    limits: SchedulingLimits | None = None,
    parts: PartMemo | None = None,
) -> Schedule:
    """The best schedule found for ``problem``, checked, with its lower bound.

    ``parts`` keeps answers of components by their canonical key, so that equal components are
    solved once.
    """
    limits = limits or SchedulingLimits()
    if problem.rule.one_queue:
        schedule = _serial(problem)
    elif len(problem.operators) > MOST_OPERATORS:
        schedule = solve_large(problem)
    else:
        schedule = _solve(problem, scheduler, limits, parts)
    wrong = schedule_faults(operators_document(problem), schedule.document())
    if wrong:
        raise AssertionError(f"the schedule does not hold: {wrong[0]}")
    return schedule


def _serial(problem: ScheduleProblem) -> Schedule:
    """Every operator spread, in topological order, ties by position: nothing to choose."""
    now, slots = 0.0, {}
    for i in topological(len(problem.operators), problem.edges):
        operator = problem.operators[i]
        length = 0.0 if operator.free else operator.all_cores_s
        slots[i] = Slot(operator.id, True, now, now + length, None, None)
        now += length
    return Schedule(
        problem.rules, now, now, tuple(slots[i] for i in sorted(slots)), Effort("serial")
    )


def _solve(
    problem: ScheduleProblem,
    scheduler: Scheduler,
    limits: SchedulingLimits,
    shared_parts: PartMemo | None,
) -> Schedule:
    original, problem = problem, in_turn(problem)
    parts = [part_of(problem, order) for order in series(contract(problem))]
    now, bound, slots, answers = 0.0, 0.0, [], []
    for part in parts:
        answer = _remembered(part, scheduler, limits, shared_parts)
        placed = replay(problem, part, answer.best.steps, now)
        now = max([now + part.hbm_s, *(slot.end_s for _, slot in placed)])
        bound += max(part.hbm_s, part.seconds_below(min(answer.bound, answer.best.makespan)))
        slots += placed
        answers.append(answer)
    effort = Effort(
        max((answer.method for answer in answers), key=METHODS.index, default="none"),
        len(parts),
        max((len(part) for part in parts), default=0),
        max((answer.ideals for answer in answers), default=0),
        max((answer.labels for answer in answers), default=0),
    )
    return Schedule(original.rules, now, min(bound, now), complete(problem, slots), effort)


def _remembered(
    part: Component, scheduler: Scheduler, limits: SchedulingLimits, parts: PartMemo | None
) -> PartAnswer:
    if parts is None or len(part) == 1:
        return solve_part(part, scheduler, limits)
    from phaze.schedule.key import canonical

    key, order = canonical(part)
    place = {i: index for index, i in enumerate(order)}
    total = part.total_s / part.unit_s
    if key not in parts:
        answer = solve_part(part, scheduler, limits)
        steps = tuple((place[i], mode) for i, mode in answer.best.steps)
        parts[key] = KnownPart(steps, answer, total)
        return answer
    remembered = parts[key]
    steps = tuple((order[index], mode) for index, mode in remembered.steps)
    scale, answer = total / remembered.total, remembered.answer
    same = total == remembered.total
    best = Decisions(
        steps, answer.best.makespan if same else math.ceil(answer.best.makespan * scale)
    )
    bound = answer.bound if same else answer.bound * scale * (1 - SAME)
    return PartAnswer(best, bound, answer.method, answer.ideals, answer.labels)


def _alone(part: Component) -> PartAnswer:
    mode = 1 if part.times[0][0] == 0 or 0 < part.times[0][1] < part.times[0][0] else 0
    least = part.least(0)
    return PartAnswer(Decisions(((0, mode),), least), least, "bounds")


def solve_part(
    part: Component, scheduler: Scheduler = "exact", limits: SchedulingLimits | None = None
) -> PartAnswer:
    """The answer for one series component."""
    limits = limits or SchedulingLimits()
    if len(part) == 1:
        return _alone(part)
    if scheduler == "ilp":
        return _ilp(part, limits)
    tables = part.tables()
    bounds = cheap_bounds(part, limits.bounds)
    work = limits.list_work if scheduler == "list" else min(limits.list_work, QUICK)
    best = list_schedule(part, tables, bounds.best, work)
    if bounds.best >= best.makespan and scheduler != "cpsat":
        return PartAnswer(best, bounds.best, "bounds")
    if "antichain" in limits.bounds:
        bounds = with_antichain(part, bounds)
    if scheduler == "cpsat":
        return _cpsat(part, best, bounds.best, limits, 0, 0)
    if scheduler == "list" or bounds.best >= best.makespan:
        return PartAnswer(best, bounds.best, "bounds" if bounds.best >= best.makespan else "list")
    return _exact(part, best, bounds, limits)


def _exact(
    part: Component, best: Decisions, bounds: Bounds, limits: SchedulingLimits
) -> PartAnswer:
    tables, bound, ideal_count, labels = part.tables(), bounds.best, 0, 0
    ideals = ideals_of(part, tables, limits.most_ideals)
    if ideals is None or len(ideals) > MANY_IDEALS:
        # Labels will be dear, or there are none: look longer for a schedule that meets the bound.
        work = limits.list_work if ideals is None else limits.list_work // 10
        best = min(
            best, list_schedule(part, tables, bound, work), key=lambda decisions: decisions.makespan
        )
    if ideals is not None and bound < best.makespan:
        ideal_count = len(ideals)
        paired = part.alone and ideal_count <= limits.most_paired
        effort = min(limits.label_effort, FIRST_LABELS) if paired else limits.label_effort
        deep = deepen(part, tables, ideals, bounds.credits, best, bound, limits.most_labels, effort)
        best, bound, labels = deep.best, deep.bound, deep.labels
        if paired and not deep.proved:
            phased = by_phases(part, tables, ideals, best, bound, limits.phase_effort)
            best, bound = phased.best, phased.bound
            if bound < best.makespan and effort < limits.label_effort:
                deep = deepen(
                    part,
                    tables,
                    ideals,
                    bounds.credits,
                    best,
                    bound,
                    limits.most_labels,
                    limits.label_effort,
                )
                best, bound, labels = deep.best, deep.bound, max(labels, deep.labels)
        if bound >= best.makespan:
            return PartAnswer(
                best, bound, "labels" if deep.proved else "phases", ideal_count, labels
            )
    if bound >= best.makespan:
        return PartAnswer(best, bound, "bounds", ideal_count, labels)
    return _cpsat(part, best, bound, limits, ideal_count, labels)


def _cpsat(
    part: Component, best: Decisions, bound: int, limits: SchedulingLimits, ideals: int, labels: int
) -> PartAnswer:
    if limits.cpsat <= 0:
        return PartAnswer(best, bound, "labels" if labels else "list", ideals, labels)
    from phaze.schedule.cpsat import solve_cpsat

    cpsat = solve_cpsat(part, best, int(bound), limits.cpsat)
    if cpsat.best is not None and cpsat.best.makespan < best.makespan:
        best = cpsat.best
    return PartAnswer(best, max(bound, cpsat.bound), "cpsat", ideals, labels)


def _ilp(part: Component, limits: SchedulingLimits) -> PartAnswer:
    from phaze.schedule.ilp import solve_ilp

    outcome = solve_ilp(part)
    if outcome.best is None:
        best = list_schedule(part, part.tables(), 0, limits.list_work)
        return PartAnswer(best, cheap_bounds(part, limits.bounds).best, "list")
    return PartAnswer(outcome.best, outcome.bound, "ilp")

"""Layer schedules: exact, against the published times, the published program by HiGHS, and plain
CP-SAT, all on the whole layer without our bounds, components or start."""

from collections.abc import Callable
from dataclasses import replace

from phaze.schedule.ilp import solve_ilp
from phaze.schedule.order import contract
from phaze.schedule.part import part_of
from phaze.schedule.problem import Schedule, ScheduleProblem
from phaze.schedule.solve import solve
from tools.bench import clock
from tools.bench.inputs import CHIP, SCHEDULES, ScheduleInput, schedule_problem
from tools.bench.line import Line, Section, Took, percent
from tools.bench.plain_cpsat import Outcome, solve_plain
from tools.bench.published import SCHEDULE, SOURCE

ILP_GAP = 0.01
"""The gap at which the published system's ILP stops."""
# Times are rounded up to 2^-30 of their sum by CP-SAT, and to 1e-9 by HiGHS.
ROUNDED = 1e-6


def notes(limit_s: float) -> tuple[str, ...]:
    """What the reader must know."""
    return (
        f"Published: {SOURCE}; its program with 12 operators by Gurobi, with 36 (Llama) "
        "by HiGHS to a gap of "
        "1 %: other layers of the same size, our 36 being a backward pass with 34 of "
        "them in one component.",
        f"Inputs: a block of the named model, microbatch 1, on {CHIP} (8 tensor and 2 "
        "vector cores), rules icml24, "
        "fully fused but for the unfused 36 operators; fw forward, bw backward.",
        f"Both solvers see the whole layer and are stopped after {limit_s:g} s elapsed. "
        "'same': a proved optimum equal "
        "to ours within 1e-6; 'unproved': our optimum found, stopped before the proof; "
        "'+x %': a schedule that much "
        "longer than our optimum (the program's gap is 1 %); 'none': stopped without a "
        "schedule. Marked ! would be a "
        "schedule shorter, or a bound above, our optimum, or ours not proved optimal.",
    )


def _ilp(problem: ScheduleProblem, limit_s: float) -> Outcome:
    part = part_of(problem, contract(problem))
    found = solve_ilp(part, limit_s, ILP_GAP)
    if found.best is None:
        return Outcome(float("inf"), 0.0, False)
    makespan_s, bound_s = found.best.makespan * part.unit_s, found.bound * part.unit_s
    return Outcome(makespan_s, bound_s, bound_s >= makespan_s * (1 - 1.001 * ILP_GAP))


def verdict(ours: Schedule, theirs: Outcome, gap: float) -> tuple[str, bool]:
    """How a solver's outcome compares with our proved optimum: neither may contradict the other."""
    longer = theirs.makespan_s / ours.makespan_s - 1
    sound = (
        ours.optimal and longer >= -ROUNDED and theirs.bound_s <= ours.makespan_s * (1 + ROUNDED)
    )
    if theirs.ended:
        agree = sound and longer <= gap + ROUNDED
        return ("same" if abs(longer) <= ROUNDED else percent(longer)), agree
    if longer == float("inf"):
        return "none", sound
    return ("unproved" if abs(longer) <= ROUNDED else percent(longer)), sound


def _peer(
    ours: Schedule, ours_took: Took, called: str, name: str, by: Callable[[], Outcome], gap: float
) -> Line:
    found, theirs = clock.once(by)
    answers, agree = verdict(ours, found, gap)
    told = replace(theirs, stopped=not found.ended)
    return Line(
        called,
        name,
        "measured",
        ours_took,
        told,
        answers,
        agree,
        (ours.makespan_s, found.makespan_s),
        "s",
    )


def _lines(asked: ScheduleInput, limit_s: float) -> list[Line]:
    problem = schedule_problem(asked)
    found, ours = clock.warm(lambda: solve(problem))
    size = len(problem.operators)
    called = f"{size} ops, {asked.model} {'fw' if asked.direction == 'forward' else 'bw'}"
    lines = []
    if size in SCHEDULE:
        name, published = SCHEDULE[size]
        lines.append(Line(called, name, "published", ours, published))
    programs: tuple[tuple[str, Callable[[], Outcome], float], ...] = (
        ("its ILP, HiGHS", lambda: _ilp(problem, limit_s), ILP_GAP),
        ("plain CP-SAT", lambda: solve_plain(problem, limit_s), 0.0),
    )
    return lines + [_peer(found, ours, called, name, by, gap) for name, by, gap in programs]


def section(limit_s: float, inputs: tuple[ScheduleInput, ...] = SCHEDULES) -> Section:
    """All lines; a solver may take ``limit_s`` elapsed seconds on one input."""
    return Section(
        "schedule",
        tuple(line for asked in inputs for line in _lines(asked, limit_s)),
        notes(limit_s),
    )

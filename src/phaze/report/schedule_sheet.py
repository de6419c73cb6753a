"""Schedules: what was proved, and what runs when on each core."""

from collections.abc import Sequence

from phaze.report.drawings import Block, BlockKind, Timeline
from phaze.report.sections import Figures, Section, Table
from phaze.report.trace import lane_order, lanes
from phaze.schedule.large import MOST_OPERATORS
from phaze.schedule.problem import Schedule, ScheduledOperator, ScheduleProblem, Slot
from phaze.schedule.rules import RULE
from phaze.units import show

SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
MOST_NAMED = len(SYMBOLS)
"""Operators that a table names; beyond them letters repeat."""
Pair = tuple[ScheduledOperator, Slot]


def _verdict(schedule: Schedule) -> str:
    if RULE[schedule.rules].one_queue:
        return "one after another, each spread: nothing to choose"
    if schedule.optimal:
        return f"proved: no schedule is shorter ({schedule.effort.method})"
    bound = f"at most {schedule.gap:.2%} above the least: bound {show(schedule.lower_bound_s, 's')}"
    if schedule.status == "list":
        return f"a list schedule, for there are more than {MOST_OPERATORS:,} operators; {bound}"
    return bound


def _lanes(pairs: Sequence[Pair], symbols: dict[str, str]) -> list[tuple[str, list[Block]]]:
    rows: dict[str, list[Block]] = {}
    for operator, slot in pairs:
        kind: BlockKind = "network" if operator.core == "none" else operator.core
        block = Block(slot.start_s, slot.end_s, slot.id, symbols[slot.id], kind)
        for lane in lanes(operator, slot):
            rows.setdefault(lane, []).append(block)
    return [(lane, rows[lane]) for lane in sorted(rows, key=lane_order)]


def _row(symbol: str, operator: ScheduledOperator, slot: Slot) -> tuple[str, ...]:
    place = "spread" if slot.spread else " + ".join(lanes(operator, slot)) or "free"
    if operator.collective:
        place = "network"
    return (
        symbol,
        slot.id,
        operator.core,
        place,
        show(slot.start_s, "s"),
        show(slot.end_s - slot.start_s, "s"),
    )


def _schedule(name: str, problem: ScheduleProblem, schedule: Schedule) -> list[Section]:
    cores = f"{problem.tensor_cores} tensor and {problem.vector_cores} vector cores"
    head = Figures(
        [
            ("makespan", f"{show(schedule.makespan_s, 's')}, {_verdict(schedule)}"),
            ("operators", f"{len(problem.operators)} on {cores}, rules {schedule.rules}"),
        ],
        name,
    )
    pairs = [
        pair
        for pair in zip(problem.operators, schedule.slots, strict=True)
        if pair[1].end_s > pair[1].start_s
    ]
    if not pairs:
        return [head]
    pairs.sort(key=lambda pair: (pair[1].start_s, pair[1].end_s))
    symbols = {slot.id: SYMBOLS[index % len(SYMBOLS)] for index, (_, slot) in enumerate(pairs)}
    rows = [_row(symbols[slot.id], operator, slot) for operator, slot in pairs[:MOST_NAMED]]
    more = len(pairs) - MOST_NAMED
    notes = [f"and {more} more; letters repeat"] if more > 0 else []
    columns = ("", "operator", "core", "runs on", "start", "time")
    timeline = Timeline(_lanes(pairs, symbols), schedule.makespan_s)
    return [head, timeline, Table(columns, rows, notes=notes, texts=4)]


def schedules_sections(answers: Sequence[tuple[str, ScheduleProblem, Schedule]]) -> list[Section]:
    """Schedules, each under its name."""
    sections: list[Section] = []
    for name, problem, schedule in answers:
        sections += _schedule(name, problem, schedule)
    return sections

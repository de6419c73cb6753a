"""A schedule in the terminal: what was proved, a Gantt chart core by core, and a legend; 80 columns."""

from rich.console import Console
from rich.markup import escape

from phaze.report.terminal import table
from phaze.report.trace import lane_order, lanes
from phaze.schedule.large import MOST_OPERATORS
from phaze.schedule.problem import Operator, Problem, Schedule, Slot
from phaze.schedule.rules import RULE
from phaze.units import show

SYMBOLS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
LABEL = 11
"""Columns of a lane's name."""
MOST_ROWS = 32
"""Lanes that fit a terminal."""
MOST_LEGEND = len(SYMBOLS)
IDLE = "·"


def _verdict(schedule: Schedule) -> str:
    if RULE[schedule.rules].one_queue:
        return "one after another, each spread: nothing to choose"
    if schedule.optimal:
        return f"proved: no schedule is shorter ({schedule.effort.method})"
    if schedule.status == "list":
        said = f"a list schedule, for there are more than {MOST_OPERATORS:,} operators"
        return f"{said}; at most {schedule.gap:.2%} above the least: bound {show(schedule.lower_bound_s, 's')}"
    return f"at most {schedule.gap:.2%} above the least: bound {show(schedule.lower_bound_s, 's')}"


def _cells(slot: Slot, width: int, makespan_s: float) -> range:
    first = round(slot.start_s / makespan_s * width)
    last = round(slot.end_s / makespan_s * width)
    first = min(first, width - 1)
    return range(first, max(last, first + 1))


def _paint(row: list[str], symbol: str, cells: range) -> None:
    """Fill the cells; a slot too short for a cell of its own only takes an idle one."""
    for cell in cells:
        if len(cells) > 1 or row[cell] == IDLE:
            row[cell] = symbol


def _chart(problem: Problem, schedule: Schedule, symbols: dict[str, str], width: int) -> list[tuple[str, str]]:
    pairs = [p for p in zip(problem.operators, schedule.slots, strict=True) if p[1].end_s > p[1].start_s]
    rows: dict[str, list[str]] = {}
    by_length = sorted(pairs, key=lambda pair: pair[1].start_s - pair[1].end_s)
    for operator, slot in by_length:
        for lane in lanes(operator, slot):
            row = rows.setdefault(lane, [IDLE] * width)
            _paint(row, symbols[slot.id], _cells(slot, width, schedule.makespan_s))
    ordered = sorted(rows, key=lane_order)
    return [(lane, "".join(rows[lane])) for lane in ordered]


def _row(symbol: str, operator: Operator, slot: Slot) -> tuple[str, ...]:
    where = "spread" if slot.spread else " + ".join(lanes(operator, slot)) or "free"
    if operator.collective:
        where = "network"
    return symbol, slot.id, operator.core, where, show(slot.start_s, "s"), show(slot.end_s - slot.start_s, "s")


def show_schedule(console: Console, name: str, problem: Problem, schedule: Schedule) -> None:
    """Print one schedule."""
    console.print(f"[bold]{escape(name)}[/bold]", markup=True, overflow="fold")
    console.print(
        f"{len(problem.operators)} operators, {problem.tensor_cores} tensor and {problem.vector_cores} vector cores, "
        f"rules {schedule.rules}"
    )
    console.print(f"makespan {show(schedule.makespan_s, 's')}, {_verdict(schedule)}\n")
    order = sorted(
        zip(problem.operators, schedule.slots, strict=True), key=lambda pair: (pair[1].start_s, pair[1].end_s)
    )
    lasting = [pair for pair in order if pair[1].end_s > pair[1].start_s]
    if not lasting:
        return
    symbols = {slot.id: SYMBOLS[at % len(SYMBOLS)] for at, (_, slot) in enumerate(lasting)}
    width = min(console.width, 80) - LABEL
    chart = _chart(problem, schedule, symbols, width)
    for lane, cells in chart[:MOST_ROWS]:
        console.print(f"{lane:<{LABEL}}{cells}", markup=False, no_wrap=True)
    if len(chart) > MOST_ROWS:
        console.print(f"and {len(chart) - MOST_ROWS} more cores in use")
    end = show(schedule.makespan_s, "s")
    console.print(f"{'':<{LABEL}}0{end:>{width - 1}}\n", markup=False, no_wrap=True)
    rows = [_row(symbols[slot.id], operator, slot) for operator, slot in lasting]
    console.print(table(("", "operator", "core", "runs on", "start", "time"), rows[:MOST_LEGEND], left=4))
    if len(rows) > MOST_LEGEND:
        console.print(f"and {len(rows) - MOST_LEGEND} more; letters repeat")

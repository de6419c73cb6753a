"""Sections on a terminal, 80 columns wide and plain enough to paste into a mail."""

from collections.abc import Iterable, Sequence
from textwrap import fill

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from phaze.report.drawings import (
    Axis,
    Bars,
    Block,
    Column,
    DesignPlot,
    FloorPlan,
    Gauge,
    PlotPoint,
    Scatter,
    Series,
    Timeline,
)
from phaze.report.sections import (
    Cards,
    Cell,
    Figures,
    Group,
    Lead,
    Meter,
    Notes,
    RunCost,
    Section,
    Sections,
    Table,
    Variants,
)
from phaze.units import digits, show

BAR = "█"
EIGHTHS = " ▏▎▍▌▋▊▉"
IDLE = "·"
WIDEST = 80
"""Columns of a drawing, whatever the terminal has."""
METER = 16
"""Columns of a bar inside a table."""
LONGEST_BAR = 36
"""Columns of a bar beside its name and value."""
MOST_LANES = 32
"""Lanes that fit a terminal."""
PLOT_ROWS = 12
"""Lines of a plot: half a terminal of 24."""


def draw(console: Console, sections: Sections) -> None:
    """Show sections one below the other, an empty line between them; notes without a title follow
    others at once."""
    before: Section | None = None
    for section in sections:
        run_on = isinstance(section, Notes) and isinstance(before, Notes) and not section.title
        if before is not None and not run_on:
            console.print()
        _head(console, section)
        _body(console, section)
        for note in () if isinstance(section, Notes) else section.notes:
            paragraph(console, note)
        before = section


def _head(console: Console, section: Section) -> None:
    caption = (
        f" ({escape(section.caption)})"
        if section.title and section.caption
        else escape(section.caption)
    )
    if section.title or caption:
        title = f"[bold]{escape(section.title)}[/bold]" if section.title else ""
        console.print(f"{title}{caption}", overflow="fold")


def _body(console: Console, section: Section) -> None:
    match section:
        case Notes():
            _notes(console, section)
        case Bars():
            _bars(console, section)
        case Timeline():
            _timeline(console, section)
        case Scatter():
            _scatter(console, section)
        case DesignPlot():
            _scatter(console, _designs(section))
        case Cards() | Group() | Variants():
            draw(console, _inner(section))
        case Lead() | Gauge():
            paragraph(console, section.text)
        case Figures() | RunCost() | FloorPlan() | Table():
            console.print(_grid(section))


def _grid(section: Figures | RunCost | FloorPlan | Table) -> RichTable:
    match section:
        case Figures():
            return figures(section.rows)
        case RunCost():
            return figures(section.figures)
        case FloorPlan():
            return table(("part",), [(name,) for _, name in section.legend])
        case Table():
            return table(section.columns, section.rows, section.texts)


def _inner(section: Cards | Group | Variants) -> Sections:
    """What stands inside: of variants those of the first, if there is one."""
    if isinstance(section, Group):
        return section.sections
    if isinstance(section, Variants):
        return () if section.optional else section.variants[0].sections
    inner: list[Section] = []
    for card in section.cards:
        inner += [Notes([], card.title, card.verdict), *card.sections]
    return inner


def _designs(section: DesignPlot) -> Scatter:
    """The designs over their first two figures."""
    up, across = section.columns[:2]
    points = [
        PlotPoint(x, y, "") for x, y in zip(across.values.tolist(), up.values.tolist(), strict=True)
    ]
    return Scatter(_axis(across), _axis(up), [Series(up.name, points)])


def _axis(column: Column) -> Axis:
    start, end = float(column.values.min()), float(column.values.max())
    return Axis(column.label, start, end, [(start, digits(start)), (end, digits(end))])


def _bars(console: Console, section: Bars) -> None:
    rows = section.rows
    if not rows:
        return
    names = max(len(row.name) for row in rows)
    values = max(len(row.value) for row in rows)
    remarks = max(len(row.remark) for row in rows)
    width = max(1, min(LONGEST_BAR, WIDEST - names - values - remarks - 6))
    for row in rows:
        start = (
            min(round(row.pieces[0].start / section.end * width), width - 1) if row.pieces else 0
        )
        drawn = (" " * start + bar(row.length / section.end, width))[:width]
        console.out(
            f"  {row.name:<{names}} {drawn} {row.value:>{values}}  {row.remark:>{remarks}}".rstrip()
        )


def _timeline(console: Console, section: Timeline) -> None:
    names = max((len(name) for name, _ in section.lanes), default=0) + 2
    width = min(console.width, WIDEST) - names
    for name, blocks in section.lanes[:MOST_LANES]:
        console.out(f"{name:<{names}}{_lane(blocks, section.end_s, width)}")
    if len(section.lanes) > MOST_LANES:
        console.out(f"and {len(section.lanes) - MOST_LANES} more lanes in use")
    console.out(f"{'':<{names}}0{show(section.end_s, 's'):>{width - 1}}")


def _lane(blocks: Sequence[Block], end_s: float, width: int) -> str:
    """A lane as characters, longest blocks first; a block too short for a cell of its own only
    takes an idle one."""
    cells = [IDLE] * width
    for block in sorted(blocks, key=lambda block: block.start_s - block.end_s):
        first = min(round(block.start_s / end_s * width), width - 1)
        covered = range(first, max(round(block.end_s / end_s * width), first + 1))
        for cell in covered:
            if len(covered) > 1 or cells[cell] == IDLE:
                cells[cell] = block.symbol
    return "".join(cells)


def _scatter(console: Console, section: Scatter) -> None:
    """Points of several series as their first letters; where two fall into one cell the later
    stays."""
    across, up = section.x.scale(), section.y.scale()
    labels = [text for _, text in section.y.ticks]
    left = max((len(label) for label in labels), default=0) + 1
    width = min(console.width, WIDEST) - left - 1
    grid = [[" "] * width for _ in range(PLOT_ROWS)]
    for series in section.series:
        for point in series.points:
            row = round((1 - up(point.y)) * (PLOT_ROWS - 1))
            grid[row][round(across(point.x) * (width - 1))] = series.symbol
    names = {round((1 - up(value)) * (PLOT_ROWS - 1)): text for value, text in section.y.ticks}
    for number, cells in enumerate(grid):
        console.out(f"{names.get(number, ''):>{left}}│{''.join(cells)}".rstrip())
    console.out(" " * left + "└" + "─" * width)
    console.out(" " * (left + 1) + _ticks(section, width))
    if len(section.series) > 1:
        console.out("  ".join(f"{series.symbol} {series.name}" for series in section.series))


def _ticks(section: Scatter, width: int) -> str:
    """The texts of an axis below it, as many as there is room for."""
    line, across = "", section.x.scale()
    for value, text in section.x.ticks:
        start = min(round(across(value) * (width - 1)), width - len(text))
        if start > len(line) or not line:
            line = line.ljust(start) + text
    return line


def _notes(console: Console, section: Notes) -> None:
    for line in [", ".join(section.lines)] if section.look == "tags" else section.lines:
        if section.verbatim:
            console.out(line, highlight=False)
        else:
            paragraph(console, line, hanging="  " if len(section.lines) > 1 else "")


def bar(share: float, width: int) -> str:
    """A bar of ``share`` of ``width`` characters, to an eighth of one."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return (BAR * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")).ljust(width)


def _cell(cell: Cell) -> str:
    match cell:
        case str():
            return escape(cell)
        case Meter():
            return escape(f"{bar(cell.share, METER)} {cell.text}".rstrip())
        case _:
            return escape(cell.text)


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], texts: int = 1) -> RichTable:
    """A table whose first ``texts`` columns hold texts and whose others hold numbers, which end at
    the right."""
    drawn, cells = (
        RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"),
        list(rows),
    )
    for index, name in enumerate(columns):
        left = index < texts or any(isinstance(row[index], Meter) for row in cells)
        drawn.add_column(escape(name), justify="left" if left else "right", overflow="fold")
    for row in cells:
        drawn.add_row(*(_cell(cell) for cell in row))
    return drawn


def figures(rows: Iterable[tuple[str, Cell]]) -> RichTable:
    """Names and their values, without a heading."""
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    for name, value in rows:
        drawn.add_row(escape(name), _cell(value))
    return drawn


def paragraph(console: Console, text: str, hanging: str = "") -> None:
    """Running text, wrapped; its lines but the first begin with ``hanging``."""
    console.print(fill(text, console.width, subsequent_indent=hanging), markup=False)

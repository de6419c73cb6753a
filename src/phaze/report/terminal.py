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
    Choice,
    Figures,
    Group,
    Lead,
    Link,
    Meter,
    Notes,
    Pick,
    Pin,
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
HALF = 34
"""Columns of a name and its value where two of each stand in a line."""
MOST_LANES = 32
"""Lanes that fit a terminal."""
MOST_ROWS = 24
"""Designs that fit a terminal."""
MOST_BARS = 16
"""Tall bars that fit a terminal; of more those in the middle are left out."""
PLOT_ROWS = 12
"""Lines of a plot: half a terminal of 24."""


def draw(console: Console, sections: Sections, tight: bool = False) -> None:
    """Show sections one below the other, an empty line between them; notes without a title follow
    others at once, and what is ``tight`` follows what stands before it."""
    before: Section | None = None
    for section in sections:
        if isinstance(section, Variants) and section.optional:
            continue
        run_on = (
            isinstance(section, Notes)
            and isinstance(before, Notes)
            and not section.title
            and section.verbatim == before.verbatim
        )
        if before is not None and not run_on and not tight:
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
        case Cards():
            _cards(console, section)
        case Group() | Variants():
            draw(console, _inner(section))
        case Lead() | Gauge():
            paragraph(console, section.text)
        case Table():
            _table(console, section)
        case Figures() | RunCost() | FloorPlan():
            console.print(_grid(section))


def _table(console: Console, section: Table) -> None:
    """The columns that fit, and the rows: of designs that can be pinned, which are many, some,
    evenly, both ends among them."""
    count, shown = len(section.rows), section.rows
    if count > MOST_ROWS and isinstance(shown[0][0], Pin):
        places = {round(index * (count - 1) / (MOST_ROWS - 1)) for index in range(MOST_ROWS)}
        shown = [section.rows[place] for place in sorted(places)]
    kept = [
        number
        for number in range(section.on_terminal or section.narrow or len(section.columns))
        if not (shown and isinstance(shown[0][number], Pin | Pick))
    ]
    columns = [section.columns[number] for number in kept]
    rows = [[row[number] for number in kept] for row in shown]
    texts = sum(number < section.texts for number in kept)
    end_texts = sum(number >= len(section.columns) - section.end_texts for number in kept)
    console.print(table(columns, rows, texts, end_texts))
    if len(shown) < count:
        paragraph(console, f"({len(shown)} of {count:,} rows are shown)")


def _grid(section: Figures | RunCost | FloorPlan) -> RichTable:
    match section:
        case Figures():
            return pairs(section.rows) if _pair(section) else figures(section.rows)
        case RunCost():
            return figures(section.figures)
        case FloorPlan():
            return table(("part",), [(name,) for _, name in section.legend])


def _inner(section: Group | Variants) -> Sections:
    """What stands inside; of variants what the first shows, or all of them together."""
    if isinstance(section, Group):
        return section.sections
    shown = section.variants if section.together else section.variants[:1]
    return [part for variant in shown for part in variant.sections]


def _cards(console: Console, section: Cards) -> None:
    """One card below the other, each with nothing between its sections."""
    for number, card in enumerate(section.cards):
        if number:
            console.print()
        draw(console, [Notes([], card.title, card.verdict), *card.sections], tight=True)


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
    hidden = len(rows) - MOST_BARS if section.look == "tall" else 0
    if hidden > 0:
        rows = [*rows[: MOST_BARS // 2], *rows[-MOST_BARS // 2 :]]
    names = max(len(row.name) for row in rows)
    values = max(len(row.value) for row in rows)
    remarks = max(len(row.remark) for row in rows)
    width = max(1, min(LONGEST_BAR, WIDEST - names - values - remarks - 6))
    for row in rows:
        first = min((piece.start for piece in row.pieces), default=0.0)
        start = min(round(first / section.end * width), width - 1)
        drawn = (" " * start + bar(row.length / section.end, width))[:width]
        console.out(
            f"  {row.name:<{names}} {drawn} {row.value:>{values}}  {row.remark:>{remarks}}".rstrip()
        )
    if hidden > 0:
        paragraph(console, f"({hidden} in the middle are not shown)")


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
        case Link():
            return escape(f"{cell.text}, {cell.tag}" if cell.tag else cell.text)
        case Choice():
            return escape(f"{cell.text}: {' '.join(cell.tags)}" if cell.tags else cell.text)
        case _:
            return escape(cell.text)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    texts: int = 1,
    end_texts: int = 0,
) -> RichTable:
    """A table whose first ``texts`` columns and last ``end_texts`` hold texts and whose others hold
    numbers, which end at the right."""
    drawn, cells = (
        RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold"),
        list(rows),
    )
    for index, name in enumerate(columns):
        is_text = index < texts or index >= len(columns) - end_texts
        left = is_text or any(isinstance(row[index], Meter) for row in cells)
        drawn.add_column(escape(name), justify="left" if left else "right", overflow="fold")
    for row in cells:
        drawn.add_row(*(_cell(cell) for cell in row))
    return drawn


def figures(rows: Iterable[tuple[str, Cell]]) -> RichTable:
    """Names and their values, without a heading."""
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    for name, value in _printable(rows):
        drawn.add_row(escape(name), _cell(value))
    return drawn


def _printable(rows: Iterable[tuple[str, Cell]]) -> list[tuple[str, Cell]]:
    """Without what acts on a page alone: pins, and links to another place of it."""
    return [
        (name, cell)
        for name, cell in rows
        if not isinstance(cell, Pin)
        and not (isinstance(cell, Link) and cell.address.startswith("#"))
    ]


def _pair(section: Figures) -> bool:
    """Whether two names with their values have room in a line."""
    return section.paired and all(
        len(name) + len(_cell(value)) <= HALF for name, value in section.rows
    )


def pairs(rows: Sequence[tuple[str, Cell]]) -> RichTable:
    """Names and their values, two of each a line."""
    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(2):
        drawn.add_column(style="dim")
        drawn.add_column(overflow="fold")
    rows = _printable(rows)
    for left in range(0, len(rows), 2):
        cells = [
            cell for name, value in rows[left : left + 2] for cell in (escape(name), _cell(value))
        ]
        drawn.add_row(*cells)
    return drawn


def paragraph(console: Console, text: str, hanging: str = "") -> None:
    """Running text, wrapped; its lines but the first begin with ``hanging``."""
    console.print(fill(text, console.width, subsequent_indent=hanging), markup=False)

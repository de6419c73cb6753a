"""Tables and bars for the terminal, 80 columns wide and plain enough to paste into a mail."""

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

from rich.console import Console
from rich.markup import escape
from rich.table import Table

BAR = "█"
EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(share: float, width: int) -> str:
    """A bar of ``share`` of ``width`` characters, to an eighth of one."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return (BAR * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")).ljust(width)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> Table:
    """A table whose first ``left`` columns are text and whose others are numbers, to the right; cells stay text."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for index, name in enumerate(columns):
        drawn.add_column(escape(name), justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*(escape(cell) for cell in row))
    return drawn


def signed(share: float) -> str:
    """A difference in whole percent with its sign; zero has none."""
    percent = round(100 * share)
    return f"{percent:+d} %" if percent else "0 %"


def facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Names and what there is to say of each, without a heading."""
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    drawn.add_column(style="dim")
    drawn.add_column(overflow="fold")
    for name, fact in pairs:
        drawn.add_row(escape(name), escape(fact))
    return drawn


def paragraph(console: Console, text: str, indent: str = "") -> None:
    """Running text, wrapped with a hanging indent."""
    hanging = indent + "  " if indent else ""
    console.print(fill(text, console.width, initial_indent=indent, subsequent_indent=hanging), markup=False)


def shares(console: Console, title: str, parts: Mapping[str, float], unit: str, width: int = 36) -> None:
    """A bar for each part of a whole, with its value and share, largest scale common to all."""
    total, largest = sum(parts.values()), max(parts.values(), default=0.0)
    console.print(f"\n[bold]{escape(title)}[/bold]")
    for name, value in parts.items():
        share = value / total if total else 0.0
        drawn = bar(value / largest if largest else 0.0, width)
        console.print(f"  {escape(name.replace('_', ' ')):<16}{drawn} {value:>7.1f} {unit} {share:>4.0%}", markup=False)

"""Measured times beside ours in the terminal."""

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from rich.console import Console

from phaze.cost.accuracy import Row
from phaze.report.terminal import table
from phaze.units import show


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def show_accuracy(console: Console, rows: Sequence[Row]) -> None:
    """Print every row, and the median and greatest error of each group."""
    for name, members in groupby(rows, key=lambda row: row.group):
        group = list(members)
        cells = [
            (
                row.label,
                show(row.measured_s, "s"),
                show(row.calibrated_s, "s"),
                _percent(row.error),
                show(row.datasheet_s, "s"),
                _percent(row.datasheet_error),
            )
            for row in group
        ]
        console.print(f"[bold]{name}[/bold]")
        console.print(table(("", "measured", "calibrated", "error", "data sheet", "error"), cells))
        errors, plain = (
            [abs(e) for e in es] for es in zip(*((r.error, r.datasheet_error) for r in group), strict=True)
        )
        console.print(
            f"median error {median(errors):.1%}, greatest {max(errors):.1%}; "
            f"from the data sheet {median(plain):.1%}, {max(plain):.1%}\n",
            markup=False,
        )

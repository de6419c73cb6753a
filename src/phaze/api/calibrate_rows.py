"""``phaze calibrate --rows``: the constants that files of measured operators give, beside the bundled ones."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from phaze.api.values import Shown
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.cost.fit_rows import RowFit, Spread
    from phaze.report.progress import Progress


def calibrate_rows(paths: list[str], only: str, progress: "Progress") -> Shown:
    """Fit every group of rows whose chip, kernel or cluster has ``only`` in its name."""
    from phaze.cost.fit_rows import fit_rows
    from phaze.cost.row_file import read_rows

    files = read_rows(paths)
    fits = []
    for fit in fit_rows(files, only):
        fits.append(fit)
        progress.step(f"fitted {fit.subject}")
    if not fits:
        raise InputError("--only", f"no row is of '{only}'", "give a part of a chip's, kernel's or cluster's name")
    document = {"rows": list(paths), "fits": [asdict(fit) for fit in fits]}
    return Shown(document, lambda console: _show(console, fits))


def _show(console: "Console", fits: "list[RowFit]") -> None:
    from phaze.report.terminal import table

    cells = [
        (fit.subject, f"{fit.rows:,}", _spread(fit.before), _spread(fit.fitted), _spread(fit.held_back)) for fit in fits
    ]
    console.print(table(("rows of", "rows", "bundled", "fitted", "held back"), cells))
    console.print("absolute errors: median, 90th percentile\n")
    for fit in fits:
        if fit.constants:
            console.print(f"[bold]{fit.subject}[/bold]")
            told = [(name, _number(value), _beside(fit.bundled.get(name))) for name, value in fit.constants.items()]
            console.print(table(("", "fitted", "bundled"), told))


def _spread(found: "Spread | None") -> str:
    return "" if found is None else f"{found.median:.1%}, {found.ninetieth:.0%}"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _beside(value: float | None) -> str:
    return "-" if value is None else _number(value)

"""The constants that files of measured operators give, beside the bundled ones."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from phaze.errors import InputError
from phaze.report.progress import Progress
from phaze.report.terminal import table
from tools.fits.fit_rows import RowFit, Spread, fit_rows
from tools.fits.row_file import read_rows


def fitted_operators(paths: Sequence[str], only: str, progress: Progress) -> list[RowFit]:
    """Fit every group of rows whose chip, kernel or cluster has ``only`` in its name."""
    fits = []
    for fit in fit_rows(read_rows(paths), only):
        fits.append(fit)
        progress.step(f"fitted {fit.subject}")
    if not fits:
        raise InputError(
            "--only",
            f"no row is of '{only}'",
            "give a part of a chip's, kernel's or cluster's name",
        )
    return fits


def operators_document(paths: Sequence[str], fits: Sequence[RowFit]) -> dict[str, Any]:
    """The fits as a document."""
    return {"rows": list(paths), "fits": [asdict(fit) for fit in fits]}


def show_operators(console: Console, fits: Sequence[RowFit]) -> None:
    """Errors of every group of rows, then what was fitted."""
    cells = [
        (
            fit.subject,
            f"{fit.rows:,}",
            _spread(fit.before),
            _spread(fit.fitted),
            _spread(fit.held_back),
        )
        for fit in fits
    ]
    console.print(table(("rows of", "rows", "bundled", "fitted", "held back"), cells))
    console.print("absolute errors: median, 90th percentile\n")
    for fit in fits:
        if fit.constants:
            console.print(f"[bold]{fit.subject}[/bold]")
            rows = [
                (name, _number(value), _number(fit.bundled.get(name)))
                for name, value in fit.constants.items()
            ]
            console.print(table(("", "fitted", "bundled"), rows))


def _spread(spread: Spread | None) -> str:
    return "" if spread is None else f"{spread.median:.1%}, {spread.ninetieth:.0%}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"

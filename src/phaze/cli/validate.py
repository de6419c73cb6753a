"""``phaze validate``: our models against what is published of real hardware."""

from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from phaze.hardware.calibration import Basis
    from phaze.hardware.dies import Comparison

Silicon = Annotated[bool, typer.Option("--silicon", help="Area and power estimates against published dies and chips.")]
Operators = Annotated[
    bool, typer.Option("--operators", help="Operators, collectives and layers against measured ones.")
]

Rows = Annotated[Path | None, typer.Argument(help="A CSV file of measured runs; without it, those that come along.")]
Datasheet = Annotated[bool, typer.Option("--datasheet", help="Chips and links from their data sheets, uncalibrated.")]
Only = Annotated[list[str] | None, typer.Option("--set", help="Only this set of runs; may be given again.")]
Every = Annotated[bool, typer.Option("--rows", help="Show every run.")]


@answering
def validate(
    rows: Rows = None,
    silicon: Silicon = False,
    operators: Operators = False,
    datasheet: Datasheet = False,
    only: Only = None,
    every: Every = False,
) -> Answer:
    """Show how far our estimates are from published figures: whole training runs, operators, or silicon.

    Examples: phaze validate · phaze validate --set sc21 --rows · phaze validate my_runs.csv · phaze validate --silicon
    """
    if silicon + operators + (rows is not None) > 1 or (only and (rows is not None or silicon or operators)):
        raise InputError(
            "", "more than one thing is chosen to validate", "give a file, --set, --operators or --silicon"
        )
    if silicon:
        return _silicon()
    return _operators() if operators else _runs(rows, only or [], "datasheet" if datasheet else "calibrated", every)


def _runs(path: Path | None, only: list[str], basis: "Basis", every: bool) -> Answer:
    from phaze.documents import read_text
    from phaze.evaluate.shelf import Shelf
    from phaze.validate.compare import compare, document_of
    from phaze.validate.rows import read_rows
    from phaze.validate.sets import SETS, rows_of, set_named

    shelf = Shelf()
    if path is not None:
        text, name = read_text(str(path))
        compared = [compare(path.name, name, read_rows(text, name), basis, shelf)]
    else:
        chosen = [set_named(name) for name in only] or list(SETS)
        compared = [compare(one.name, one.title, rows_of(one), basis, shelf) for one in chosen]

    def show(console: "Console") -> None:
        from phaze.report.validation_sheet import show_rows, show_scores

        if every or path is not None:
            show_rows(console, compared)
        show_scores(console, compared)

    return Answer((document_of(compared, basis),), show)


def _operators() -> Answer:
    from phaze.cost.accuracy import accuracy_rows

    rows = accuracy_rows()
    named = [{**asdict(row), "error": row.error, "datasheet_error": row.datasheet_error} for row in rows]

    def show(console: "Console") -> None:
        from phaze.report.accuracy_sheet import show_accuracy

        show_accuracy(console, rows)

    return Answer(({"rows": named},), show)


def _silicon() -> Answer:
    from phaze.hardware.dies import compare_areas, compare_powers

    areas, powers = compare_areas(), compare_powers()
    document = {
        "area_mm2": [{**asdict(row), "error": row.error} for row in areas],
        "design_power_w": [{**asdict(row), "error": row.error} for row in powers],
    }

    def show(console: "Console") -> None:
        _show(console, "Area, mm2", areas)
        console.print()
        _show(console, "Design power, W", powers)

    return Answer((document,), show)


def _show(console: "Console", title: str, rows: "Sequence[Comparison]") -> None:
    from phaze.report.terminal import signed, table

    cells = [
        (
            row.subject,
            row.component.replace("_", " "),
            row.basis,
            f"{row.predicted:.1f}",
            f"{'< ' if row.upper_bound else ''}{row.published:.1f}",
            ("within" if row.error <= 0 else "above") if row.upper_bound else signed(row.error),
        )
        for row in rows
    ]
    console.print(f"[bold]{title}[/bold]")
    console.print(table(("", "component", "basis", "ours", "published", "error"), cells, left=3))
    judged = [abs(row.error) for row in rows if row.basis == "predicted" and not row.upper_bound]
    totals = [abs(row.error) for row in rows if row.component == "total" and row.basis == "predicted"]
    told = totals if totals else judged
    console.print(
        f"median error of the predicted {'totals' if totals else 'figures'}: {median(told):.0%}", markup=False
    )

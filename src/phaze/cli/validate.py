"""``phaze validate``: our models against what is published of real hardware."""

from dataclasses import asdict
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from phaze.hardware.dies import Comparison

Silicon = Annotated[bool, typer.Option("--silicon", help="Area and power estimates against published dies and chips.")]
Operators = Annotated[
    bool, typer.Option("--operators", help="Operators, collectives and layers against measured ones.")
]

WHOLE = ("total", "design power")


@answering
def validate(silicon: Silicon = False, operators: Operators = False) -> Answer:
    """Show how far our estimates are from published figures.

    Examples: phaze validate --silicon · phaze validate --operators
    """
    if silicon == operators:
        seen = "both are" if silicon else "nothing is"
        raise InputError("", f"{seen} chosen to validate", "add --silicon or --operators")
    return _silicon() if silicon else _operators()


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

"""``phaze technologies``: process technologies: area, energy and wafer cost of every component."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.technologies import Process

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a technology file (- for standard input).")]


@answering
def technologies(name: Name = None) -> Answer:
    """List process technologies, or show one: areas, energies, wafer, and the source of every number.

    Examples: phaze technologies · phaze technologies n5 · phaze technologies my-process.toml --json
    """
    from phaze.hardware.technologies import processes, processes_named

    found = processes() if name is None else processes_named(name)
    if name is None:
        return Answer(({"technologies": [_document(one) for one in found]},), lambda console: _list(console, found))
    whole = [{**_document(one), "notes": one.notes, "sources": dict(one.sources)} for one in found]
    # A name that both versions have: that of chips of cores first, the other one beside it.
    joined = whole[0] if len(whole) == 1 else {**whole[0], "of_clusters": whole[1]}

    def show(console: "Console") -> None:
        for at, one in enumerate(found):
            if at:
                console.print()
            _show(console, one)

    return Answer((joined,), show)


def _document(one: "Process") -> dict[str, Any]:
    return {"schema": one.schema, **one.document()}


def _list(console: "Console", found: "Sequence[Process]") -> None:
    from phaze.report.terminal import table

    columns = ("technology", "", "chips of", "MAC um2", "MAC pJ", "HBM pJ/B", "W/mm2", "wafer USD")
    rows = [
        (
            one.name,
            one.title,
            one.chips_of,
            f"{one.mac_mm2 * 1e6:,.0f}",
            f"{one.mac_j * 1e12:.2f}",
            f"{one.hbm_j_per_byte * 1e12:.1f}",
            f"{one.static_w_per_mm2:.3f}",
            f"{one.fab.wafer_usd:,.0f}",
        )
        for one in found
    ]
    console.print(table(columns, rows, left=3))


def _show(console: "Console", one: "Process") -> None:
    from phaze.report.terminal import facts, paragraph

    console.print(f"{one.name}  {one.title}\n", style="bold", markup=False)
    console.print(facts(one.rows()))
    if one.notes:
        console.print()
        paragraph(console, one.notes)
    console.print("\nSources", style="bold")
    console.print(facts(sorted(one.sources.items())))

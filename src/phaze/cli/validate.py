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
    from phaze.report.progress import Progress
    from phaze.validate.rows import MeasuredRun

    Sets = list[tuple[str, str, tuple[MeasuredRun, ...]]]

Silicon = Annotated[bool, typer.Option("--silicon", help="Area, power and sustained rates against published chips.")]
Operators = Annotated[
    bool, typer.Option("--operators", help="Operators, collectives and layers against measured ones.")
]
Rediscovery = Annotated[
    bool, typer.Option("--rediscovery", help="The best chip within a real one's area and power, beside it.")
]

Bands = Annotated[
    bool, typer.Option("--bands", help="The band of each kind of answer, and how many held-back runs lie inside.")
]
Write = Annotated[
    Path | None,
    typer.Option("--write", metavar="FILE", help="With --bands: write them there, as data/bands.json has them."),
]

Rows = Annotated[Path | None, typer.Argument(help="A CSV file of measured runs; without it, the bundled ones.")]
Datasheet = Annotated[bool, typer.Option("--datasheet", help="Chips and links from their data sheets, uncalibrated.")]
Only = Annotated[list[str] | None, typer.Option("--set", help="Only this set of runs; may be given again.")]
Best = Annotated[bool, typer.Option("--best", help="The best plan for each job beside the one that was run.")]
Every = Annotated[bool, typer.Option("--rows", help="Show every run.")]


@answering
def validate(
    rows: Rows = None,
    silicon: Silicon = False,
    operators: Operators = False,
    datasheet: Datasheet = False,
    only: Only = None,
    every: Every = False,
    best: Best = False,
    rediscovery: Rediscovery = False,
    bands: Bands = False,
    write: Write = None,
    *,
    progress: "Progress",
) -> Answer:
    """Show how far our estimates are from published figures: whole training runs, operators, or silicon.

    Examples: phaze validate · phaze validate --set sc21 --rows · phaze validate my_runs.csv · phaze validate --best ·
    phaze validate --bands
    """
    alone = silicon + operators + rediscovery + bands + (rows is not None)
    if alone > 1 or (only and alone):
        remedy = "give a file, --set, --operators, --silicon, --rediscovery or --bands"
        raise InputError("", "more than one thing is chosen to validate", remedy)
    if write is not None and not bands:
        raise InputError("--write", "there are no bands to write", "give --bands too")
    if bands:
        return _bands(write, progress)
    if rediscovery:
        return _rediscovery()
    if silicon:
        return _silicon()
    if operators:
        return _operators()
    basis: Basis = "datasheet" if datasheet else "calibrated"
    sets = _sets(rows, only or [])
    return _best(sets, basis, progress) if best else _runs(sets, basis, every or rows is not None, progress)


def _sets(path: Path | None, only: list[str]) -> "Sets":
    """Name, title and rows of what is asked about."""
    from phaze.files import read_text
    from phaze.validate.rows import read_rows
    from phaze.validate.sets import SETS, rows_of, set_named

    if path is not None:
        text, name = read_text(str(path))
        return [(path.name, name, read_rows(text, name))]
    chosen = [set_named(name) for name in only] or list(SETS)
    return [(one.name, one.title, rows_of(one)) for one in chosen]


def _runs(sets: "Sets", basis: "Basis", every: bool, progress: "Progress") -> Answer:
    from phaze.evaluate.memo import Memo
    from phaze.validate.compare import compare, document_of

    memo = Memo()
    compared = []
    for done, (name, title, rows) in enumerate(sets):
        progress.count(done, len(sets), f"pricing the {len(rows)} runs of {name}, sets done")
        compared.append(compare(name, title, rows, basis, memo))

    def show(console: "Console") -> None:
        from phaze.report.validation_sheet import show_rows, show_scores

        if every:
            show_rows(console, compared)
        show_scores(console, compared)

    return Answer((document_of(compared, basis),), show)


def _best(sets: "Sets", basis: "Basis", progress: "Progress") -> Answer:
    from phaze.evaluate.memo import Memo
    from phaze.validate.best import beside, best_document, priced_jobs

    memo = Memo()
    priced = {name: priced_jobs(rows) for name, _, rows in sets}
    jobs = [(name, row) for name, (rows, _) in priced.items() for row in rows]
    found = []
    for done, (name, row) in enumerate(jobs):
        progress.count(done, len(jobs), "planning jobs")
        found.append((name, beside(row, basis, memo)))
    titles = {name: title for name, title, _ in sets}
    by_set = {name: [one for own, one in found if own == name] for name in titles}
    document = {
        "basis": basis,
        "sets": [{"name": n, "jobs": best_document(ones), "left_out": priced[n][1]} for n, ones in by_set.items()],
    }

    def show(console: "Console") -> None:
        from phaze.report.validation_sheet import show_best

        for name, ones in by_set.items():
            show_best(console, titles[name], ones)
            if priced[name][1]:
                console.print(f"{priced[name][1]} jobs left out: their precision is not priced yet")

    return Answer((document,), show)


def _bands(target: Path | None, progress: "Progress") -> Answer:
    from phaze.evaluate.bands import BandsFile
    from phaze.evaluate.memo import Memo
    from phaze.files import write_whole
    from phaze.validate.bands import bands_document, bands_text
    from phaze.validate.held_back import HeldBack, bundled_rows, fitted_shares, held_back

    rows, shares, memo = bundled_rows(), fitted_shares(), Memo()
    priced: list[HeldBack] = []
    for done, row in enumerate(rows):
        progress.count(done, len(rows), "pricing runs, each without its source")
        priced += held_back(row, shares, memo)
    document = bands_document(rows, priced)
    if target is not None:
        write_whole(target, bands_text(document))

    def show(console: "Console") -> None:
        from phaze.report.bands_sheet import show_bands

        show_bands(console, BandsFile.model_validate(document))
        if target is not None:
            console.print(f"written: {target}", markup=False)

    return Answer((document,), show)


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
    from phaze.validate.silicon import check_silicon, silicon_document

    areas, powers, clusters = compare_areas(), compare_powers(), check_silicon()
    document = {
        "area_mm2": [{**asdict(row), "error": row.error} for row in areas],
        "design_power_w": [{**asdict(row), "error": row.error} for row in powers],
        "clusters": silicon_document(clusters),
    }

    def show(console: "Console") -> None:
        from phaze.report.silicon_sheet import show_silicon

        show_silicon(console, clusters)
        console.print("\n[bold]Chips of version 1[/bold]\n")
        _show(console, "Area, mm2", areas)
        console.print()
        _show(console, "TDP, W", powers)

    return Answer((document,), show)


def _rediscovery() -> Answer:
    from rich.console import Console
    from rich.progress import track

    from phaze.study.rediscovery import asked, rediscovered, rediscovery_document

    bar = track(asked(), "Searching", console=Console(stderr=True), transient=True)
    document = rediscovery_document([rediscovered(chip, model) for chip, model in bar])

    def show(console: "Console") -> None:
        from phaze.report.silicon_sheet import show_rediscovery

        show_rediscovery(console, document["rows"])

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

"""Our estimates beside what is published of real hardware, one kind of figure at a time."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from phaze.api.values import Answer, sheet

if TYPE_CHECKING:
    from phaze.hardware.calibration import Basis
    from phaze.report.progress import Progress
    from phaze.validate.rows import MeasuredRun

    Sets = list[tuple[str, str, tuple[MeasuredRun, ...]]]


def sets_of(path: Path | None, only: list[str], allow_code: bool = False) -> "Sets":
    """Name, title and rows of what is asked about; code that rows name as models runs only if
    ``allow_code``."""
    from phaze.files import read_text
    from phaze.validate.rows import read_rows
    from phaze.validate.sets import SETS, rows_of, set_named

    if path is not None:
        text, name = read_text(str(path))
        return [(path.name, name, read_rows(text, name, allow_code))]
    chosen = [set_named(name) for name in only] or list(SETS)
    return [(run_set.name, run_set.title, rows_of(run_set)) for run_set in chosen]


def runs_validated(sets: "Sets", basis: "Basis", every: bool, progress: "Progress") -> Answer:
    """Every run beside what was measured."""
    from phaze.evaluate.memo import Memo
    from phaze.validate.compare import compare, document_of

    memo = Memo()
    compared = []
    for done, (name, title, rows) in enumerate(sets):
        progress.count(done, len(sets), f"pricing the {len(rows)} runs of {name}, sets done")
        compared.append(compare(name, title, rows, basis, memo))

    shown = sheet("phaze.report.validation_sheet", "runs_sections", compared, every)
    return Answer(document_of(compared, basis), shown)


def best_validated(sets: "Sets", basis: "Basis", progress: "Progress") -> Answer:
    """The best plan of every job beside the one that was run."""
    from phaze.evaluate.memo import Memo
    from phaze.validate.best import best_beside, best_document, priced_jobs

    memo = Memo()
    priced = {name: priced_jobs(rows) for name, _, rows in sets}
    jobs = [(name, row) for name, (rows, _) in priced.items() for row in rows]
    compared = []
    for done, (name, row) in enumerate(jobs):
        progress.count(done, len(jobs), "planning jobs")
        compared.append((name, best_beside(row, basis, memo)))
    titles = {name: title for name, title, _ in sets}
    by_set = {name: [job for set_name, job in compared if set_name == name] for name in titles}
    document = {
        "basis": basis,
        "sets": [
            {"name": n, "jobs": best_document(ones), "left_out": priced[n][1]}
            for n, ones in by_set.items()
        ],
    }

    rows = [(titles[name], ones, priced[name][1]) for name, ones in by_set.items()]
    return Answer(document, sheet("phaze.report.validation_sheet", "best_sections", rows))


def operators_validated() -> Answer:
    """Operators, collectives and layers beside measured ones."""
    from phaze.cost.accuracy import accuracy_rows

    rows = accuracy_rows()
    named = [
        {**asdict(row), "error": row.error, "datasheet_error": row.datasheet_error} for row in rows
    ]

    return Answer({"rows": named}, sheet("phaze.report.accuracy_sheet", "accuracy_sections", rows))


def silicon_validated() -> Answer:
    """Area, power and sustained rates beside published chips."""
    from phaze.hardware.dies import compare_areas, compare_powers
    from phaze.validate.silicon import check_silicon, silicon_document

    areas, powers, clusters = compare_areas(), compare_powers(), check_silicon()
    document = {
        "area_mm2": [{**asdict(row), "error": row.error} for row in areas],
        "design_power_w": [{**asdict(row), "error": row.error} for row in powers],
        "clusters": silicon_document(clusters),
    }

    shown = sheet("phaze.report.silicon_sheet", "silicon_sections", clusters, areas, powers)
    return Answer(document, shown)


def rediscovery_validated() -> Answer:
    """The best chip within a real one's area and power, beside it."""
    from rich.console import Console
    from rich.progress import track

    from phaze.study.rediscovery import rediscovered, rediscovery_document, rows_to_search

    bar = track(rows_to_search(), "Searching", console=Console(stderr=True), transient=True)
    document = rediscovery_document([rediscovered(chip, model) for chip, model in bar])

    return Answer(
        document, sheet("phaze.report.silicon_sheet", "rediscovery_sections", document["rows"])
    )

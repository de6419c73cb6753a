"""``phaze report``: the page of a run, made again from its files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.page.search_page import Run

RunFolder = Annotated[str, typer.Argument(help="The folder of a run, or a plan (phaze plan ... --json).")]
Out = Annotated[str | None, typer.Option("--out", help="Where to write the page; report.html in the run's folder.")]
PAGE = "report.html"


def read_result(folder: Path) -> dict[str, Any]:
    """The answer of a finished run, or an InputError."""
    from phaze.documents import parse, read_text
    from phaze.errors import InputError
    from phaze.search.result import SCHEMA

    text, where = read_text(str(folder / "result.json"))
    raw = parse(text, "json", where)
    needed = ("name", "chip", "models", "objective", "certificate", "study_digest", "code_digest", "version")
    if raw.get("schema") != SCHEMA or any(key not in raw for key in needed):
        raise InputError(where, f"this is no {SCHEMA}", "give the folder of a run that has ended")
    return raw


def run_of(folder: Path) -> "Run":
    """A finished run with everything that a page or an export needs."""
    from phaze.documents import read_text
    from phaze.errors import InputError
    from phaze.report.page.search_page import Run
    from phaze.search.folder import JOURNAL, STUDY
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.study.load import job_of, read_study, study_of

    if not (folder / "result.json").exists():
        raise InputError(str(folder), "there is no finished run here", "give the folder of one, or search first")
    result = read_result(folder)
    raw, where = read_study(str(folder / STUDY))
    job = job_of(study_of(raw, where))
    if job.digest != result["study_digest"]:
        raise InputError(where, "the result beside it is of another study or another phaze", "search again")
    journal = folder / JOURNAL
    study, _ = read_text(str(folder / STUDY))
    return Run(job, result, read_closed(journal), read_evaluated(journal), study, str(folder))


def write_search_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a run; the path of the page."""
    from phaze.report.page.search_page import search_page
    from phaze.search.folder import write_whole

    path = folder / PAGE if out is None else out
    write_whole(path, search_page(run_of(folder)))
    return path


def read_plan(path: str) -> tuple[dict[str, Any], str]:
    """A plan's document (``phaze.plan/1``) and the name to call it by."""
    from phaze.documents import parse, read_text
    from phaze.errors import InputError

    text, where = read_text(path)
    raw = parse(text, "json", where)
    if raw.get("schema") != "phaze.plan/1" or "batch_s" not in raw:
        raise InputError(where, "this is no plan (phaze.plan/1)", "give what phaze plan ... --json prints")
    return raw, where


def write_plan_page(path: str, out: Path | None) -> Path:
    """Write the page of a plan's document; the path of the page."""
    from phaze.report.page.plan_page import plan_page
    from phaze.search.folder import write_whole

    document, where = read_plan(path)
    page = out or (Path("plan.html") if path == "-" else Path(path).with_suffix(".html"))
    write_whole(page, plan_page(document, where))
    return page


@answering
def report(run: RunFolder, out: Out = None) -> Answer:
    """Make the page of a run again: one HTML file that opens from disk and needs no network.

    Examples: phaze report runs/bert-large · phaze report plan.json --out plan.html
    """
    wanted = None if out is None else Path(out)
    is_plan = run == "-" or Path(run).is_file()
    path = write_plan_page(run, wanted) if is_plan else write_search_page(Path(run), wanted)

    def show(console: "Console") -> None:
        console.print(f"The page: {path}", markup=False)

    return Answer(({"page": str(path), "bytes": path.stat().st_size},), show)

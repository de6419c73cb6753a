"""``phaze report``: the page of a run, made again from its files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

RunFolder = Annotated[str, typer.Argument(help="The folder of a run, or a plan (phaze plan ... --json).")]
Out = Annotated[str | None, typer.Option("--out", help="Where to write the page; report.html in the run's folder.")]
PAGE = "report.html"


def write_search_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a run; the path of the page."""
    from phaze.export.opened import run_of
    from phaze.files import write_whole
    from phaze.report.page.search_page import search_page

    path = folder / PAGE if out is None else out
    write_whole(path, search_page(run_of(folder)))
    return path


def write_plan_page(path: str, out: Path | None) -> Path:
    """Write the page of a plan's document; the path of the page."""
    from phaze.export.opened import read_plan
    from phaze.files import write_whole
    from phaze.report.page.plan_page import plan_page

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

"""``phaze report``: the page of a run, a front, a sweep or a plan, made again from its files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering
from phaze.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress

RunFolder = Annotated[
    str, typer.Argument(help="The folder of a run, front or sweep; or a plan (phaze plan ... --json).")
]
Out = Annotated[str | None, typer.Option("--out", help="Where to write the page; in the folder if not given.")]
PAGE = "report.html"


def write_search_page(folder: Path, out: Path | None = None) -> Path:
    """Write the page of a run; the path of the page."""
    from phaze.export.opened import run_of
    from phaze.files import write_whole
    from phaze.report.page.search_page import search_page

    path = folder / PAGE if out is None else out
    write_whole(path, search_page(run_of(folder)))
    return path


def write_front_page(folder: Path, out: Path | None) -> Path:
    """Write the page of a front; the path of the page."""
    from phaze.files import write_whole
    from phaze.front.folder import PAGE as OWN
    from phaze.front.schema import front_in
    from phaze.report.front_page import front_page

    path = folder / OWN if out is None else out
    write_whole(path, front_page(front_in(folder)[0]))
    return path


def write_design_page(folder: Path, at: int, out: Path | None) -> Path:
    """Write the page of one design of a front; the path of the page."""
    from phaze.files import write_whole
    from phaze.front.design import design_in
    from phaze.report.page.design_page import design_page

    path = folder / f"design-{at}.html" if out is None else out
    write_whole(path, design_page(design_in(folder, at)))
    return path


def write_sweep_page(folder: Path, out: Path | None) -> Path:
    """Write the page of a sweep; the path of the page."""
    from phaze.files import write_whole
    from phaze.report.sweep_page import sweep_page
    from phaze.sweep.schema import sweep_in

    path = folder / "sweep.html" if out is None else out
    write_whole(path, sweep_page(sweep_in(folder)))
    return path


def write_plan_page(path: str, out: Path | None) -> tuple[Path, dict[str, Any]]:
    """Write the page of a plan's document; the path of the page, and the document."""
    from phaze.export.launch_files import launch_texts
    from phaze.export.opened import read_plan
    from phaze.files import write_whole
    from phaze.report.page.plan_page import plan_page

    document, where = read_plan(path)
    page = out or (Path("plan.html") if path == "-" else Path(path).with_suffix(".html"))
    write_whole(page, plan_page(document, where, launch_texts(document, where)))
    return page, dict(document)


Design = Annotated[
    int | None, typer.Option("--design", min=0, help="One design of a front, by its number there: its own page.")
]


@answering
def report(run: RunFolder, out: Out = None, design: Design = None, *, progress: "Progress") -> Answer:
    """Make the page of a run, front, sweep or plan: one HTML file that opens from disk and needs no network.

    Examples: phaze report runs/llama3-8b · phaze report runs/llama3-8b-front · phaze report plan.json --out plan.html
    """
    wanted, folder = None if out is None else Path(out), Path(run)
    progress.step(f"making the page of {run}")
    makers = {"result.json": write_search_page, "front.json": write_front_page, "sweep.json": write_sweep_page}
    kept = [name for name in makers if (folder / name).exists()]
    if len(kept) > 1:
        seen = f"it holds {' and '.join(kept)}"
        raise InputError(run, seen, "move away what does not belong to it")
    if design is not None and kept != ["front.json"]:
        raise InputError("--design", f"{run} is no front", "give the folder of one (phaze front)")
    plan = None
    if design is not None:
        path = write_design_page(folder, design, wanted)
    elif run == "-" or folder.is_file():
        path, plan = write_plan_page(run, wanted)
    else:
        path = makers[kept[0] if kept else "result.json"](folder, wanted)

    def show(console: "Console") -> None:
        from phaze.report.run_id import show_answer_id, show_run_id

        console.print(f"The page: {path}", markup=False)
        if plan is None:
            show_run_id(console, folder)
        else:
            show_answer_id(console, plan)

    return Answer(({"page": str(path), "bytes": path.stat().st_size},), show)

"""``phaze report``: the page of a run, a front, a sweep or a plan, made again from its files."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking

RunFolder = Annotated[
    str, typer.Argument(help="The folder of a run, front or sweep; or a plan (phaze plan ... --json).")
]
Out = Annotated[str | None, typer.Option("--out", help="The page to write; default: in the folder.")]
Design = Annotated[int | None, typer.Option("--design", help="One design of a front, by its number.")]


@asking(runs.report)
def report(run: RunFolder, out: Out, design: Design) -> None:
    """Write the page of a run, front, sweep or plan: one self-contained HTML file.

    Examples: phaze report runs/llama3-8b · phaze report runs/llama3-8b-front · phaze report plan.json --out plan.html
    """

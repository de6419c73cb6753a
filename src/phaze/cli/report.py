"""``phaze report``: the page of a run, a front, a sweep or a plan, made again from its files."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking

RunFolder = Annotated[
    str, typer.Argument(help="The folder of a run, front or sweep; or a plan (phaze plan ... --json).")
]
Out = Annotated[str | None, typer.Option("--out", help="Where to write the page; in the folder if not given.")]
Design = Annotated[
    int | None, typer.Option("--design", help="One design of a front, by its number there: its own page.")
]


@asking(runs.report)
def report(run: RunFolder, out: Out, design: Design) -> None:
    """Make the page of a run, front, sweep or plan: one HTML file that opens from disk and needs no network.

    Examples: phaze report runs/llama3-8b · phaze report runs/llama3-8b-front · phaze report plan.json --out plan.html
    """

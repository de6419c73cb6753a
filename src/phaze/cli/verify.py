"""``phaze verify``: the certificate of a run, checked by code that shares none with the search (:mod:`phaze.check`)."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking

Run = Annotated[str, typer.Argument(help="The folder of a run, front, sweep, or plan's certificate.")]
All = Annotated[bool, typer.Option("--all", help="Every chip of the space, which is so anyway; not beside --quick.")]
Quick = Annotated[bool, typer.Option("--quick", help="The answer, and what rooflines close: no proof.")]
Study = Annotated[str | None, typer.Option("--study", help="The question that the run must answer: a study file.")]
Larger = Annotated[
    str | None, typer.Option("--space", help="Hold the answer against this space, a name or a file, however large.")
]
Gap = Annotated[float | None, typer.Option("--gap", help="With --space: by how much nothing in it may be better.")]


@asking(runs.verify)
def verify(run: Run, study: Study, quick: Quick, all_: All, space: Larger, gap: Gap) -> None:
    """Check the certificate of a run: the claim in words, then whether it holds, every chip of the space.

    The checker shares no code with the search. Exit code 0: it holds; 1: it does not; 3: there are no rules to check a
    run of its kind by yet (docs/search.md lists them), and it is not said to hold. Examples:
    phaze verify runs/bert-large · phaze verify runs/mine --study mine.toml · phaze verify runs/proof
    """

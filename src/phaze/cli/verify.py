"""``phaze verify``: the certificate of a run, checked by code that shares none with the search (:mod:`phaze.check`)."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking
from phaze.cli.search import AllowCode

Run = Annotated[str, typer.Argument(help="The folder of a run, front, sweep, or plan's certificate.")]
All = Annotated[bool, typer.Option("--all", help="Every chip of the space (the default); not with --quick.")]
Quick = Annotated[bool, typer.Option("--quick", help="Check the answer and what rooflines exclude; not a full proof.")]
Study = Annotated[str | None, typer.Option("--study", help="A study file that the run must answer.")]
Larger = Annotated[
    str | None, typer.Option("--space", help="Check the answer against this space, a name or a file, of any size.")
]
Gap = Annotated[float | None, typer.Option("--gap", help="With --space: the relative gap to prove.")]


@asking(runs.verify)
def verify(run: Run, study: Study, quick: Quick, all_: All, space: Larger, gap: Gap, allow_code: AllowCode) -> None:
    """Check the certificate of a run: the claim in words, then whether it holds, every chip of the space.

    The checker shares no code with the search. Exit code 0: it holds; 1: it does not; 3: this kind of run
    is not checkable yet (docs/search.md lists them). Examples:
    phaze verify runs/bert-large · phaze verify runs/mine --study mine.toml · phaze verify runs/proof
    """

"""``phaze place``: the fastest split of measured layers over devices, for any number of files."""

from typing import Annotated

import typer

from phaze.api import single
from phaze.cli.answer import asking

Perfetto = Annotated[str | None, typer.Option(help="Write the timeline to this file, for ui.perfetto.dev.")]
Files = Annotated[list[str], typer.Argument(help="Profiles (phaze.profile/1); - reads one from standard input.")]


@asking(single.place)
def place(profile: Files, perfetto: Perfetto) -> None:
    """Place layers on devices: stages, DP, TP and recompute, proved to be the fastest.

    One line for each file with --json, in order. Examples: phaze place profile.json · phaze place *.json --json ·
    phaze place profile.json --perfetto trace.json
    """

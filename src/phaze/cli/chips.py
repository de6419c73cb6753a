"""``phaze chips``: the bundled chips, one chip in full, or the size of a space of chips."""

from typing import Annotated

import typer

from phaze.api import library
from phaze.cli.answer import asking

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a chip file (- for standard input).")]
Space = Annotated[str | None, typer.Option(help="A space of chips: a preset such as 'paper', or a file.")]
CountOnly = Annotated[
    bool, typer.Option("--count", help="With --space: the number of chips and of distinct components.")
]
Terms = Annotated[str, typer.Option(help="Prices, lifetime and carbon intensities: a preset or a file.")]


@asking(library.chips)
def chips(name: Name, space: Space, count: CountOnly, terms: Terms) -> None:
    """List chips, or show one: parts, area, power, cost.

    Examples: phaze chips · phaze chips tpu-v4 · phaze chips my-chip.toml --json · phaze chips --space paper --count
    """

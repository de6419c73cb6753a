"""``phaze technologies``: process technologies: area, energy and wafer cost of every component."""

from typing import Annotated

import typer

from phaze.api import library
from phaze.cli.answer import asking

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a technology file (- for standard input).")]


@asking(library.technologies)
def technologies(name: Name) -> None:
    """List process technologies, or show one: areas, energies, wafer, and the source of every number.

    Examples: phaze technologies · phaze technologies n5 · phaze technologies my-process.toml --json
    """

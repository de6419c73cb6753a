"""``phaze stacks``: training frameworks as constants: what they fuse, hide and spend."""

from typing import Annotated

import typer

from phaze.api import library
from phaze.cli.answer import asking

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a stack file (- for standard input).")]


@asking(library.stacks)
def stacks(name: Name) -> None:
    """List software stacks, or show one.

    Examples: phaze stacks · phaze stacks megatron-core --json
    """

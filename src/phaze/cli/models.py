"""``phaze models``: the models that phaze knows by name."""

from typing import Annotated

import typer

from phaze.api import library
from phaze.cli.answer import asking

Name = Annotated[str | None, typer.Argument(help="One of the named models.")]


@asking(library.models)
def models(name: Name) -> None:
    """List the built-in models, or show one.

    Examples: phaze models · phaze models llama2-7b --json
    """

"""``phaze bench``, a former command: measurements of speed are run from a checkout, by maintainers."""

from typing import Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.errors import InputError

Words = Annotated[list[str] | None, typer.Argument(help="What the former command took.")]


@answering
def bench(words: Words = None) -> Answer:
    """Say what measures speed now."""
    raise InputError("phaze bench", "it is no command of the package any more", "run make bench in a checkout of phaze")

"""The way in: made so that an interrupt is heard from the first moment, while the commands are
still being imported."""

import os
import sys
from typing import TYPE_CHECKING, Any

from phaze.cli.interrupt import CODE, Interrupt
from phaze.cli.output import open_streams

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'phaze.cli.main' has no attribute '{name}'")
    from phaze.cli.commands import application

    return application()


def _code(arguments: list[str], interrupt: Interrupt) -> int:
    from phaze.cli.answer import exit_code_of
    from phaze.cli.commands import application_for

    return exit_code_of(application_for(arguments), arguments, interrupt.heard.is_set)


def main() -> None:
    """Entry point of the ``phaze`` script."""
    open_streams()
    # No plugin of another package watches our documents, and looking for one reads the metadata of
    # all packages.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    interrupt = Interrupt(sys.argv[1:])
    try:
        interrupt.listen()
        code = _code(sys.argv[1:], interrupt)
        interrupt.finish()
    except BaseException:  # an import that was interrupted may fail in any way
        if not interrupt.heard.is_set():
            raise
        interrupt.end()
    if code == CODE:
        interrupt.leave()
    sys.exit(code)

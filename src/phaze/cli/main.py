"""The way in: made so that an interrupt is heard from the first moment, while the commands are still being imported."""

import atexit
import gc
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from phaze.cli.interrupt import CODE, Interrupt
from phaze.cli.output import open_streams, printed

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]

# New values before unreachable cycles are looked for: a command makes many that live to its end, and at Python's own
# 700 a sixth of the time of a plan goes into looking through them again and again. So many take about 50 MB.
COLLECTIONS = (500_000, 20, 50)


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'phaze.cli.main' has no attribute '{name}'")
    from phaze.cli.commands import application

    return application()


def _code(arguments: list[str], interrupt: Interrupt) -> int:
    if arguments in ([], ["--help"]):
        from phaze.cli.tour import show_tour

        return printed(show_tour)
    if arguments == ["--version"]:
        from phaze import __version__

        return printed(lambda: sys.stdout.write(f"phaze {__version__}\n"))
    from phaze.cli.answer import exit_code_of
    from phaze.cli.commands import application_for

    return exit_code_of(application_for(arguments), arguments, interrupt.heard.is_set)


def _leave(ended: list[int]) -> None:
    """End the process with the code of a command that has ended; to take apart a million values one by one, which the
    system drops at once, takes a tenth of a second. What is printed must be out."""
    with suppress(OSError, ValueError, IndexError):
        code = ended[0]
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Entry point of the ``phaze`` script."""
    gc.set_threshold(*COLLECTIONS)
    open_streams()
    ended: list[int] = []
    # Registered first and so called last: when threads have ended and what libraries do at the end is done. Where
    # something was registered before, which would come after it, the interpreter winds up as it always does.
    if getattr(atexit, "_ncallbacks", lambda: 1)() == 0:
        atexit.register(_leave, ended)
    # No plugin of another package watches our documents, and looking for one reads the metadata of all packages.
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
    ended.append(code)
    sys.exit(code)

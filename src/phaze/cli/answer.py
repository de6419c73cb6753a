"""What all commands share: how an answer is printed, exit codes, and errors as one sentence.

Printed are the documents of an answer, one line each, or what a person sees. Exit codes: 0 an
answer, 2 bad input, 3 nothing feasible, 130 interrupted, 1 our fault.
"""

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from phaze.api.function import file_fault
from phaze.api.values import Answer
from phaze.cli.interrupt import CODE as STOPPED
from phaze.cli.interrupt import stopped
from phaze.cli.moved import refuse_moved
from phaze.cli.output import UnwritableError, silence, unwritten, writable
from phaze.cli.stale import is_stale, remove_caches
from phaze.errors import InfeasibleError, PhazeError, one_line
from phaze.report.sections import Sections

if TYPE_CHECKING:
    from rich.console import Console


def terminal() -> "Console":
    """A console on standard output: colours only on a terminal, 80 columns when there is none."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 80)


def _print(sections: Sections) -> None:
    """Show on a terminal; elsewhere without the blanks that tables leave at the end of a line."""
    from phaze.report.terminal import draw

    console = terminal()
    if sys.stdout.isatty():
        draw(console, sections)
        return
    with console.capture() as captured:
        draw(console, sections)
    sys.stdout.write(
        writable("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))
    )


def print_answer(answer: Answer, as_json: bool, pretty: bool) -> None:
    """Print an answer and end with its exit code."""
    if as_json:
        from phaze.documents import dumps

        for document in (answer.document, *answer.more):
            sys.stdout.write(dumps(document, pretty) + "\n")
    else:
        _print(answer.sections())
    sys.stdout.flush()
    raise typer.Exit(answer.exit_code)


def _failure(sentence: str, document: Mapping[str, Any], code: int, as_json: bool) -> int:
    sys.stderr.write(f"phaze: {sentence}\n")
    if as_json:
        from phaze.documents import dumps

        with suppress(OSError):  # a reader that has gone, or a full disk: the sentence is out
            sys.stdout.write(dumps(document) + "\n")
            sys.stdout.flush()
    return code


def exit_code_of(
    app: typer.Typer, arguments: list[str], interrupted: Callable[[], bool] = lambda: False
) -> int:
    """Run ``app`` on ``arguments``; every failure becomes one sentence on standard error and an
    exit code.

    ``interrupted`` tells whether there was an interrupt: then a failure is its consequence,
    whatever it is called.
    """
    as_json = "--json" in arguments
    try:
        refuse_moved(arguments)
        code = app(args=arguments or ["--help"], prog_name="phaze", standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as stop:
        code = stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        code = STOPPED
    except BaseException as fault:
        if not interrupted():
            return _code_of(fault, as_json)
        code = STOPPED
    if code == STOPPED:  # Typer makes this of an interrupt, too
        sentence = stopped(arguments)
        sys.stderr.write("\n" if sys.stderr.isatty() else "")
        code = _failure(sentence, {"error": sentence}, STOPPED, as_json)
        sys.stdout.flush()
    return code if isinstance(code, int) else 0


def _code_of(fault: BaseException, as_json: bool) -> int:
    """What went wrong, as a sentence and an exit code."""
    if isinstance(fault, typer.TyperException):
        sentence = f"{one_line(fault.format_message())} See 'phaze --help'."
        return _failure(sentence, {"error": sentence}, 2, as_json)
    if isinstance(fault, PhazeError):
        more = fault.document if isinstance(fault, InfeasibleError) else {}
        return _failure(
            one_line(str(fault)), {"error": one_line(str(fault)), **more}, fault.exit_code, as_json
        )
    if isinstance(
        fault, BrokenPipeError | SystemExit
    ):  # the reader has gone; Typer turns some of these into an exit
        silence()
        return 0
    if not isinstance(fault, Exception) or os.environ.get("PHAZE_TRACEBACK"):
        raise fault
    if isinstance(fault, UnwritableError):
        return unwritten(fault)
    if isinstance(fault, OSError) and (unreadable := file_fault(fault)) is not None:
        return _failure(str(unreadable), {"error": str(unreadable)}, unreadable.exit_code, as_json)
    if is_stale(fault):
        remove_caches(Path(__file__).parents[1])
        sentence = "compiled kernels of an older version were removed; run the command again"
        return _failure(sentence, {"error": sentence}, 1, as_json)
    sentence = f"this is a fault of phaze: {type(fault).__name__}: {one_line(str(fault))}"
    return _failure(f"{sentence} (PHAZE_TRACEBACK=1 shows where)", {"error": sentence}, 1, as_json)

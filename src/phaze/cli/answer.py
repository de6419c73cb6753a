"""What all commands share: ``--json``, ``--pretty``, exit codes, and errors as one sentence.

A command that has a function in :mod:`phaze.api` is its options and its help: :func:`asking` calls the function with
what was given and prints its value. Another one returns an :class:`Answer` (:func:`answering`). Printed are the
documents, one line each, or what a person sees. Exit codes: 0 an answer, 2 bad input, 3 nothing feasible,
130 interrupted, 1 our fault.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin

import typer

from phaze.api.given import file_fault, option_of
from phaze.api.values import NothingFitsError
from phaze.cli.interrupt import CODE as STOPPED
from phaze.cli.interrupt import stopped
from phaze.cli.moved import refuse_moved
from phaze.cli.output import UnwritableError, silence, unwritten, writable
from phaze.cli.stale import is_stale, remove_caches
from phaze.errors import InfeasibleError, InputError, PhazeError, one_line
from phaze.report.progress import on_standard_error

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.api.values import Shown

P = ParamSpec("P")
T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Pretty = Annotated[bool, typer.Option("--pretty", help="With --json: indent the document.")]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command found: documents for machines, ``show`` for people, and the exit code of both."""

    documents: tuple[Mapping[str, Any], ...]
    show: "Callable[[Console], None]"
    exit_code: int = 0


def terminal() -> "Console":
    """A console on standard output: colours only on a terminal, 80 columns when there is none."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 80)


def _print(show: "Callable[[Console], None]") -> None:
    """Show on a terminal; elsewhere without the blanks that tables leave at the end of a line."""
    if sys.stdout.isatty():
        show(terminal())
        return
    console = terminal()
    with console.capture() as captured:
        show(console)
    sys.stdout.write(writable("".join(line.rstrip() + "\n" for line in captured.get().splitlines())))


def _tell(answer: Answer, as_json: bool, pretty: bool) -> None:
    """Print an answer and end with its exit code."""
    if as_json:
        from phaze.documents import dumps

        for document in answer.documents:
            sys.stdout.write(dumps(document, pretty) + "\n")
    else:
        _print(answer.show)
    sys.stdout.flush()
    raise typer.Exit(answer.exit_code)


def _with_shared(run: Callable[..., None], given: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """The command with its own options and those that all have."""
    shared = (
        inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson),
        inspect.Parameter("pretty", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Pretty),
    )
    signature = inspect.Signature([*given, *shared], return_annotation=None)
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return run


def answering(command: Callable[P, Answer]) -> Callable[..., None]:
    """Give ``command`` the shared options and print what it returns; one that takes ``progress`` tells its steps."""
    own = inspect.signature(command)
    takes = "progress" in own.parameters

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        as_json, pretty = bool(kwargs.pop("as_json")), bool(kwargs.pop("pretty"))
        with on_standard_error() as progress:
            progress.step(f"phaze {command.__name__}")
            if takes:
                kwargs["progress"] = progress
            answer = command(*args, **kwargs)
        _tell(answer, as_json, pretty)

    return _with_shared(run, [parameter for name, parameter in own.parameters.items() if name != "progress"])


def _as_text(annotation: Any) -> Any:
    """An option whose text the function reads: numbers, and one of some names; the help says which."""
    kind, *about = get_args(annotation)
    kinds = [one for one in get_args(kind) or (kind,) if one is not NoneType]
    if get_origin(kind) is Literal:
        kinds = [kind]
    named = {int: "<int>", float: "<float>"}.get(kinds[0])
    if get_origin(kinds[0]) is Literal:
        named = f"<{'|'.join(get_args(kinds[0]))}>"
    if named is None:
        return annotation
    info = copy(about[0])
    info.metavar = info.metavar or named
    return Annotated[str | None if NoneType in get_args(kind) else str, info]


def _option(given: inspect.Parameter, function: inspect.Signature) -> inspect.Parameter:
    """An option with the default of the function's parameter of its name, unless it states its own."""
    default = given.default
    if default is inspect.Parameter.empty:
        default = function.parameters[given.name].default
    default = None if default == () else default
    return given.replace(default=default, annotation=_as_text(given.annotation), kind=inspect.Parameter.KEYWORD_ONLY)


def _declared(parameter: inspect.Parameter) -> str:
    """What an option is called on the command line; Typer keeps the first name that is stated as a default."""
    info = get_args(parameter.annotation)[1]
    names = [str(one) for one in (info.default, *(info.param_decls or ())) if str(one).startswith("--")]
    return names[0] if names else option_of(parameter.name)


def _require_values(given: Mapping[str, inspect.Parameter], options: Mapping[str, Any]) -> None:
    """Refuse an option that stands where the value of another was forgotten: ``--html --json``."""
    for name, value in options.items():
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str) and text.startswith("--") and text != "--":
                raise InputError(_declared(given[name]), f"'{text}' is an option, not a value", "give its value")


def asking(function: "Callable[..., Shown]", **always: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function of the API: a signature of options and a help, no code.

    Options have the function's defaults. What is not given is left to the function, what is given goes to it as it is
    (``always``: what a command wants beside), and what it returns, or that nothing is feasible, is printed.
    """
    taken = inspect.signature(function)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        given = inspect.signature(command).parameters

        @functools.wraps(command)
        def run(as_json: bool, pretty: bool, **options: Any) -> None:
            _require_values(given, options)
            try:
                value = function(**always, **{name: value for name, value in options.items() if value is not None})
                answer = Answer((value.document, *value.more), value.draw, value.exit_code)
            except NothingFitsError as fault:
                answer = Answer((fault.document,), fault.draw, fault.exit_code)
            _tell(answer, as_json, pretty)

        run.asks = function  # type: ignore[attr-defined]
        return _with_shared(run, [_option(one, taken) for one in given.values()])

    return decorate


def _failure(sentence: str, document: Mapping[str, Any], code: int, as_json: bool) -> int:
    sys.stderr.write(f"phaze: {sentence}\n")
    if as_json:
        from phaze.documents import dumps

        with suppress(OSError):  # a reader that has gone, or a full disk: the sentence is out
            sys.stdout.write(dumps(document) + "\n")
            sys.stdout.flush()
    return code


def exit_code_of(app: typer.Typer, arguments: list[str], interrupted: Callable[[], bool] = lambda: False) -> int:
    """Run ``app`` on ``arguments``; every failure becomes one sentence on standard error and an exit code.

    ``interrupted`` tells whether there was an interrupt: then a failure is its consequence, whatever it is called.
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
        return _failure(one_line(str(fault)), {"error": one_line(str(fault)), **more}, fault.exit_code, as_json)
    if isinstance(fault, BrokenPipeError | SystemExit):  # the reader has gone; Typer turns some of these into an exit
        silence()
        return 0
    if not isinstance(fault, Exception) or os.environ.get("PHAZE_TRACEBACK"):
        raise fault
    if isinstance(fault, UnwritableError):
        return unwritten(fault)
    if isinstance(fault, OSError) and (said := file_fault(fault)) is not None:
        return _failure(str(said), {"error": str(said)}, said.exit_code, as_json)
    if is_stale(fault):
        remove_caches(Path(__file__).parents[1])
        sentence = "compiled kernels of an older version were removed; run the command again"
        return _failure(sentence, {"error": sentence}, 1, as_json)
    sentence = f"this is a fault of phaze: {type(fault).__name__}: {one_line(str(fault))}"
    return _failure(f"{sentence} (PHAZE_TRACEBACK=1 shows where)", {"error": sentence}, 1, as_json)

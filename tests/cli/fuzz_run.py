"""A command run in this process under limits of time and memory, and what is wrong with how it
ended."""

import contextlib
import io
import json
import resource
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import typer

from phaze import api
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.errors import PhazeError

# Made once: making it takes ten times as long as refusing a file.
COMMAND: Any = typer.main.get_command(app)

# Of verify exit code 1 is an answer too: what was checked does not hold.
ALLOWED = {0, 2, 3}
# A good file of any case takes below two seconds here; a command that is still at it after this
# many hangs.
MOST_S = 30
# Nor is there one that takes more memory than this; a file must not be able to take all that the
# machine has.
MOST_BYTES = 9 << 30
# What a terminal would obey; line ends and tabs are no orders.
ORDERS = frozenset(map(chr, (*range(9), 11, 12, *range(14, 32), 127, *range(128, 160)))) - {"\x85"}


class HangError(BaseException):
    """A command that did not end."""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise HangError


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    before = signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(
        signal.ITIMER_PROF, MOST_S
    )  # the processor's time: others may be busy on the machine
    memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, memory[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, memory)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def _standard_input(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


def _wrong_words(arguments: Sequence[str], code: int, said: str, wrong: str) -> str:
    """What is wrong with an exit code and what stands on standard output and standard error."""
    answered = code == 1 and arguments[0] == "verify" and not wrong
    if code not in ALLOWED and not answered:
        return f"exit code {code}: {wrong[:300]}"
    told = [line for line in wrong.splitlines() if line.startswith("phaze: ")]
    several = arguments[0] in ("place", "schedule")  # a sentence for each file
    quiet = (
        code == 0
        or answered
        or (code == 3 and said)
        or (code == 2 and "--check" in arguments and said)
    )
    if (
        "Traceback" in wrong
        or "Warning" in wrong
        or not (quiet or len(told) == 1 or (several and told))
    ):
        return f"standard error: {wrong[:300]}"
    if "--json" not in arguments:
        return ""
    try:
        said.encode()
        if said and "--help" not in arguments:
            json.loads(
                "[" + said.replace("\n}\n{", "\n},{") + "]"
                if "--pretty" in arguments
                else said.splitlines()[-1]
            )
    except ValueError as fault:
        return f"what it printed is not JSON: {fault}"
    return ""


def _called(name: str, path: str) -> int:
    """A function of the API on a file, and everything that can be done with what it returns."""
    more: dict[str, Any] = {"chip": path, "gemm": (64, 64, 64)} if name == "estimate" else {}
    try:
        found = getattr(api, name)(*(() if more else (path,)), **more)
        assert repr(found) and found._repr_html_()
        if hasattr(found, "frame"):
            assert found.frame()
        if hasattr(found, "page"):
            assert found.page("page.html").is_file()
    except PhazeError as fault:
        sys.stderr.write(f"phaze: {fault}\n")
        return fault.exit_code
    return 0


def code_of(arguments: Sequence[str]) -> int:
    """The exit code of a command, or of a function of the API: ``api load plan.json``."""
    return (
        _called(*arguments[1:3])
        if arguments[0] == "api"
        else exit_code_of(COMMAND, list(arguments))
    )


def fault_in(arguments: Sequence[str], given: str = "") -> str:
    """What is wrong with how a command ended, ``given`` on standard input; empty where nothing
    is."""
    said, wrong = io.StringIO(), io.StringIO()
    try:
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(said):
            warnings.simplefilter("always")
            with contextlib.redirect_stderr(wrong), _standard_input(given), _limited():
                code = code_of(arguments)
    except HangError:
        return f"it hangs: more than {MOST_S} s"
    except BaseException as fault:
        return f"it raised {type(fault).__name__}: {fault}"
    for one in warned:
        if "/phaze/graph/torch/" not in one.filename:  # PyTorch may warn of a user's own code
            return f"it warned: {one.message} ({one.filename}:{one.lineno})"
    if orders := ORDERS & {*said.getvalue(), *wrong.getvalue()}:
        return f"it printed characters that a terminal obeys: {sorted(orders)}"
    return _wrong_words(arguments, code, said.getvalue(), wrong.getvalue())

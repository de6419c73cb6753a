"""Standard output that is closed, or on a disk that is full: a sentence and an exit code, no
traceback."""

import os
import sys
from collections.abc import Callable
from io import StringIO, TextIOWrapper
from typing import Any, TextIO

UNWRITTEN = 2
"""What was asked cannot be printed where it was asked to be."""


class UnwritableError(OSError):
    """Standard output does not take what is written to it."""


class Output:
    """A stream that says of a failure to write that it is its own; a reader that has gone is
    none."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or an UnwritableError."""
        return int(self._tried(lambda: self._stream.write(text)))

    def flush(self) -> None:
        """Write what is held back, or an UnwritableError."""
        self._tried(self._stream.flush)

    def _tried(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except BrokenPipeError:
            raise
        except OSError as fault:
            silence()
            raise UnwritableError(fault.errno, os.strerror(fault.errno or 0)) from None


def open_streams() -> None:
    """Make standard output one that says why it fails; one that was closed swallows what is
    written, as does standard error. A character that it has no bytes for, such as half of one in a
    file's name, is escaped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, StringIO())
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stdout = Output(sys.stdout)


def writable(text: str) -> str:
    """A text with what standard output has no bytes for escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def silence() -> None:
    """Let standard output swallow what is left in it, so that nothing fails again when the process
    ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def unwritten(fault: UnwritableError) -> int:
    """Say that an answer could not be printed; the exit code."""
    why = str(fault.strerror).lower()
    sys.stderr.write(f"phaze: standard output: {why}; give it a place that takes the answer.\n")
    return UNWRITTEN

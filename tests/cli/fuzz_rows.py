"""What a fuzz case is made from, and a command whose answer is needed to make one."""

import contextlib
import io
from dataclasses import dataclass

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app


@dataclass(frozen=True, slots=True)
class Row:
    """A command and the file that is made bad; ``fresh``: a folder that is removed before each
    input; ``copied``: the folder that is copied there instead. ``weight``: how often."""

    command: str
    path: str
    weight: int
    fresh: str = ""
    copied: str = ""


def answer_of(*arguments: str, code: int = 0) -> str:
    """What a command prints that must end with this exit code."""
    wrong = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(wrong):
        found = exit_code_of(app, list(arguments))
    assert found == code, (arguments, wrong.getvalue())
    return said.getvalue()

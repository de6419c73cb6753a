"""What a fuzz case is made from, and a command whose answer is needed to make one."""

import contextlib
import io
from dataclasses import dataclass

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app


@dataclass(frozen=True, slots=True)
class Row:
    """A command and the file that is made bad; ``fresh``: a folder that is removed before each input; ``copied``: the
    folder that is copied there instead. ``weight``: how often."""

    command: str
    path: str
    weight: int
    fresh: str = ""
    copied: str = ""


def answer_of(*arguments: str) -> str:
    """What a command prints that must have an answer."""
    wrong = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(wrong):
        code = exit_code_of(app, list(arguments))
    assert code == 0, (arguments, wrong.getvalue())
    return said.getvalue()

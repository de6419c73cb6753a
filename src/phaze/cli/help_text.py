"""Help texts of commands as they are shown: prose wrapped to the page, each example on a line of
its own.

A text ends with ``Examples: phaze a ... · phaze b ...``; the dots only part the examples in the
source.
"""

import re
import textwrap
from typing import Final

# Columns that the frame of an 80-column page leaves.
WIDTH: Final = 78


def _example(line: str) -> str:
    """One example, continued like a shell command where it is too long, so that it can be pasted;
    an option stays with its value."""
    whole = re.sub(r"(--\S+) (?!-)", "\\1\0", line)
    parts = textwrap.wrap(
        whole,
        WIDTH - 4,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return " \\\n".join(parts).replace("\0", " ")


def help_of(text: str) -> str:
    """The help of a command as it is shown."""
    prose, _, examples = re.sub(r"Examples?:\s", "\0", text, count=1).partition("\0")
    shown = [
        textwrap.fill(" ".join(part.split()), WIDTH) for part in prose.split("\n\n") if part.strip()
    ]
    if examples:
        lines = [" ".join(line.split()) for line in examples.split("·")]
        shown.append("\n".join(["Examples:", *(_example(line) for line in lines)]))
    return "\n\n".join(shown)

"""The flags of a shell file, read as text: nothing in it is run.

Words are split as a shell splits them. ``NAME=value`` is remembered, ``$NAME``, ``${NAME}`` and
``${NAME:-value}`` are filled in from what came before; a value that only running the file would
tell is left as it stands, and refused where a plan needs it.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from phaze.errors import InputError

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
# Words behind which no value of a flag stands any more.
ENDS = ("(", ")", "&&", "||", ";", "|", "&")
VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^{}$]*))?\})")


def words_of(text: str, where: str) -> list[str]:
    """The words of a shell file in their order, its variables filled in as far as the file states
    them."""
    try:
        raw = shlex.split(text, comments=True)
    except ValueError as fault:
        raise InputError(
            where, f"it cannot be read as a shell file: {fault}", "close every quote"
        ) from None
    values: dict[str, str] = {}
    words = []
    for word in raw:
        filled = VARIABLE.sub(lambda match: _value(match, values), word)
        assigned = ASSIGNMENT.fullmatch(filled)
        if assigned is not None and not assigned[2].startswith("("):
            values[assigned[1]] = assigned[2]
        elif "$" in word and " " in filled:
            words += filled.split()  # an unquoted variable that holds several words
        else:
            words.append(filled)
    return words


def _value(match: re.Match[str], values: dict[str, str]) -> str:
    name = match[1] or match[2]
    return values.get(name, match[0] if match[3] is None else match[3])


def flags_of(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Every flag of the words with its values, in order; hyphens for underscores, ``--flag=value``
    taken apart."""
    name: str | None = None
    values: list[str] = []
    for word in words:
        if word.startswith("--") and len(word) > 2:
            if name is not None:
                yield name, values
            name, _, value = word.partition("=")
            name, values = name.replace("_", "-"), [value] if value else []
        elif name is not None and word in ENDS:
            yield name, values
            name = None
        elif name is not None and word != "\\":
            values.append(word)
    if name is not None:
        yield name, values

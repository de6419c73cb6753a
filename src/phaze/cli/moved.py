"""What maintainers run left the package for ``tools``; its former commands and options say where it
is now."""

from collections.abc import Sequence
from typing import Final

from phaze.errors import InputError

FITS: Final = "run python -m tools.fits in a checkout of phaze"
# Command, option of it (none: the command itself), and what serves now.
MOVED: Final = (
    ("bench", "", "run make bench in a checkout of phaze"),
    ("validate", "--bands", FITS),
    ("validate", "--held-back", FITS),
    ("calibrate", "--rows", FITS),
    ("kernels", "--rebuild", "run make kernels in a checkout of phaze"),
)


def refuse_moved(arguments: Sequence[str]) -> None:
    """Refuse what is no part of the package any more, in a sentence that says what serves now."""
    for command, option, serves in MOVED:
        options = [argument.partition("=")[0] for argument in arguments[1:]]
        if arguments[:1] == [command] and (not option or option in options):
            raise InputError(
                f"phaze {command} {option}".strip(), "it is no part of the package any more", serves
            )

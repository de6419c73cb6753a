"""What a graph says of itself that a reader must know before any figure: which of its code was not
split over ranks."""

from collections.abc import Sequence

# How such an approximation begins.
REFUSED = "its code was refused for tensor parallelism"


def refusals(approximations: Sequence[str]) -> list[str]:
    """Those of the approximations of a graph that answers say first."""
    return [note for note in approximations if note.startswith(REFUSED)]

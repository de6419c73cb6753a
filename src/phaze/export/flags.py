"""A choice of a launch file: a name, a value, and why it is so."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """One flag or key; ``value`` None is a switch."""

    name: str
    value: str | None
    why: str


def aligned(lines: Sequence[tuple[str, str]]) -> str:
    """Lines with their comments in one column."""
    wide = min(44, max(len(line) for line, _ in lines)) + 2
    return "\n".join(f"{line:<{wide}}# {why}" if len(line) < wide else f"# {why}\n{line}" for line, why in lines)

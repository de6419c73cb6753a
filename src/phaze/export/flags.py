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
    """Lines with their comments in one column; the comment of a long line stands above it."""
    wide = min(44, max(len(line) for line, _ in lines)) + 2
    return "\n".join(_commented(line, why, wide) for line, why in lines)


def _commented(line: str, why: str, wide: int) -> str:
    if len(line) < wide:
        return f"{line:<{wide}}# {why}"
    return f"{' ' * (len(line) - len(line.lstrip()))}# {why}\n{line}"

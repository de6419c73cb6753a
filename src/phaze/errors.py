"""The few kinds of failure, each one sentence that says where, what was seen, and what to
change."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, ClassVar


def one_line(text: str) -> str:
    """``text`` on one line, without characters that a terminal would obey."""
    return " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in text).split())


class PhazeError(Exception):
    """A failure that a person can act on; ``exit_code`` is what the command line returns for it."""

    exit_code: ClassVar[int] = 1


class InputError(PhazeError):
    """Something given to phaze is wrong: ``where`` it stands, the ``problem`` seen there, the
    ``remedy``."""

    exit_code: ClassVar[int] = 2

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        self.where, self.problem, self.remedy = where, problem, remedy
        place = f"{where}: " if where else ""
        super().__init__(
            one_line(f"{place}{problem}{'; ' + remedy if remedy else ''}").rstrip(".") + "."
        )

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str]]:
        """So that a worker process can hand it on."""
        return type(self), (self.where, self.problem, self.remedy)


class InfeasibleError(PhazeError):
    """The question is well put and nothing satisfies it; ``document`` holds the shortage and its
    levers."""

    exit_code: ClassVar[int] = 3

    def __init__(self, sentence: str, document: Mapping[str, Any]) -> None:
        self.document = dict(document)
        super().__init__(sentence)

    def __reduce__(self) -> tuple[type["InfeasibleError"], tuple[str, dict[str, Any]]]:
        """So that a worker process can hand it on."""
        return type(self), (str(self), self.document)


def nearest(seen: str, choices: Iterable[str]) -> str:
    """The clause that points from a wrong name to the right ones: the closest first, then what
    there is."""
    ordered = sorted(choices)
    close = [name for name in ordered if seen and name.startswith(seen)] or get_close_matches(
        seen, ordered, n=1
    )
    listed = ", ".join(ordered) if ordered else "none"
    return f"did you mean '{close[0]}'? allowed: {listed}" if close else f"allowed: {listed}"


def unknown_name(where: str, kind: str, seen: str, choices: Iterable[str]) -> InputError:
    """The error for a name that is not among ``choices``, e.g. of a preset."""
    return InputError(where, f"unknown {kind} '{seen}'", nearest(seen, choices))

"""The values of a launch file by the names of its flags, each checked as it is read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.errors import InputError, unknown_name

MOST = 2**40
"""Above every count of a job: devices, sequences, layers."""


@dataclass(frozen=True, slots=True)
class Words:
    """The words behind a flag of a shell file, where a value has no type; none behind a switch."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Values:
    """What a file states, by flag; ``defaults`` is what the release means where it states nothing.

    ``devices``: those of the command line, for a degree that the file leaves to their number.
    """

    stated: Mapping[str, Any]
    defaults: Mapping[str, Any]
    where: str
    version: str
    devices: int | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.stated

    def fault(self, name: str, problem: str, remedy: str) -> InputError:
        """An error about a flag."""
        return InputError(f"{self.where}: {name}", problem, remedy)

    def file_fault(self, problem: str, remedy: str) -> InputError:
        """An error about the file as a whole."""
        return InputError(self.where, problem, remedy)

    def value(self, name: str) -> Any:
        """The value of a flag, or the release's default; None where neither is there."""
        value = self.stated.get(name, self.defaults.get(name))
        if not isinstance(value, Words):
            return value
        if not value.words:
            raise self.fault(name, "it has no value", "write one behind it")
        if "$" in value.words[0] or "`" in value.words[0]:
            raise self.fault(
                name, f"'{value.words[0]}' is set outside this file", "write the value out"
            )
        return value.words[0]

    def words(self, name: str) -> Sequence[str]:
        """All words behind a flag of a shell file."""
        value = self.stated.get(name)
        return value.words if isinstance(value, Words) else ()

    def whole(self, name: str) -> int | None:
        """A whole number; None where there is neither flag nor default."""
        return self._counted(name, 0)

    def count(self, name: str) -> int | None:
        """A whole number above 0; None where there is neither flag nor default."""
        return self._counted(name, 1)

    def _counted(self, name: str, least: int) -> int | None:
        value = self.value(name)
        if isinstance(self.stated.get(name), Words) and re.fullmatch(r"[0-9]{1,18}", value):
            value = int(value)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < MOST:
            raise self.fault(
                name, f"{value!r} is out of range", "give a whole number" + " above 0" * least
            )
        return value

    def required(self, name: str) -> int:
        """A whole number above 0 that must be there."""
        value = self.count(name)
        if value is None:
            raise self.fault(name, "it is not there", "state it")
        return value

    def number(self, name: str, usual: int = 1) -> int:
        """A whole number above 0, ``usual`` where there is none."""
        value = self.count(name)
        return usual if value is None else value

    def open_count(self, name: str) -> int:
        """A whole number above 0; -1, which leaves it to the framework, is 0."""
        return 0 if self.value(name) == -1 else self.number(name)

    def word(self, name: str) -> str:
        """A name."""
        value = self.value(name)
        if not isinstance(value, str):
            raise self.fault(name, f"{value!r} is not a name", f"see {self.version}")
        return value

    def choice(self, name: str, kind: str, choices: Sequence[str]) -> str:
        """A name that must be one of some."""
        word = self.word(name)
        if word not in choices:
            raise unknown_name(f"{self.where}: {name}", kind, word, choices)
        return word

    def switch(self, name: str) -> bool:
        """Whether it is on."""
        value = self.value(name)
        if not isinstance(value, bool):
            raise self.fault(name, f"{value!r} is neither true nor false", "give one of them")
        return value

    def listed(self, name: str) -> list[Any] | None:
        """A list, or None where there is none."""
        value = self.value(name)
        if value is not None and not isinstance(value, list):
            raise self.fault(name, f"{value!r} is not a list", f"see {self.version}")
        return value

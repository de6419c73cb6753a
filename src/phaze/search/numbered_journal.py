"""Where evaluated chips are kept between runs, and the same where documents call chips by other numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from phaze.search.evaluated import Evaluated
from phaze.search.spaces import EnumeratedSpace


class Journal(Protocol):
    """Where evaluated chips are kept between runs."""

    def known(self) -> dict[int, Evaluated]: ...

    def add(self, found: Iterable[Evaluated]) -> None: ...

    def note(self, key: str, text: str) -> None: ...

    def noted(self, key: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class NumberedJournal:
    """A journal by the numbers that documents call chips, for a search that has some chips of a space by place."""

    journal: Journal
    opened: EnumeratedSpace

    def known(self) -> dict[int, Evaluated]:
        """Every chip evaluated so far that is one of them."""
        places = ((self.opened.index_of(number), one) for number, one in self.journal.known().items())
        return {index: replace(one, chip=index) for index, one in places if index is not None}

    def add(self, found: Iterable[Evaluated]) -> None:
        """Keep a round."""
        self.journal.add(replace(one, chip=self.opened.number(one.chip)) for one in found)

    def note(self, key: str, text: str) -> None:
        """Keep a text."""
        self.journal.note(key, text)

    def noted(self, key: str) -> str | None:
        """A text that was kept."""
        return self.journal.noted(key)

"""What several jobs have in common, made once: graphs, layer costs and prices, kept by what they
depend on."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Memo:
    """Values by key. A key must say everything that its value depends on."""

    values: dict[Hashable, Any] = field(default_factory=dict)

    def take(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of ``key``, made if this is the first time."""
        if key not in self.values:
            self.values[key] = make()
        value: T = self.values[key]
        return value

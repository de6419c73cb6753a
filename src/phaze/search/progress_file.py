"""How far a search is, kept in its run's folder while it runs: the journal itself is locked by its
writer.

``progress.json`` (``phaze.progress/1``) has a row for each time that was kept: seconds since the
start, best score and lower bound (null while there is none), chips evaluated, pruned by a bound,
without a plan that fits, and open. It is written whole, at most twice a second, and taken away when
the search ends; of a killed one it stays.
"""

from collections.abc import Callable
from math import isfinite
from pathlib import Path
from time import monotonic

from phaze.documents import dumps
from phaze.errors import InputError
from phaze.files import write_whole
from phaze.search.state import Standing

PROGRESS = "progress.json"
SCHEMA = "phaze.progress/1"
COLUMNS = ("seconds", "best", "lower", "evaluated", "bound", "memory", "open")
# Often enough for a line that moves, seldom enough to cost nothing.
EVERY_S = 0.5
# Beyond so many rows every second one is dropped: a search of a day keeps its whole course.
MOST_ROWS = 600


def _finite(value: float) -> float | None:
    return value if isfinite(value) and value > 0 else None


class ProgressFile:
    """Keeps the course of a search; what cannot be written is not kept, and the search goes on."""

    def __init__(self, folder: Path) -> None:
        self.path, self.began = folder / PROGRESS, monotonic()
        self.rows: list[tuple[float | int | None, ...]] = []
        self.last = -EVERY_S

    def watch(self, standing: Standing) -> None:
        """Keep where the search stands, if the last time was long enough ago."""
        now = monotonic() - self.began
        if now - self.last < EVERY_S:
            return
        self.last = now
        counts = (standing.evaluated, standing.bound, standing.memory, standing.open)
        self.rows.append((round(now, 2), _finite(standing.best), _finite(standing.lower), *counts))
        if len(self.rows) > MOST_ROWS:
            self.rows = self.rows[::2]
        try:
            write_whole(
                self.path,
                dumps({"schema": SCHEMA, "columns": list(COLUMNS), "rows": self.rows}) + "\n",
            )
        except InputError:
            self.last = float("inf")

    def end(self) -> None:
        """The search has ended."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            self.last = float("inf")


def both(*watches: Callable[[Standing], None]) -> Callable[[Standing], None]:
    """What tells all of them."""

    def watch(standing: Standing) -> None:
        for observer in watches:
            observer(standing)

    return watch

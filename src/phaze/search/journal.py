"""The journal of a run: a SQLite file with every evaluated chip, so that a killed search loses at most one round.

Tables: ``about`` (key, value: format, digests of study and code, and of the files that the search wrote), ``evaluated``
(chip, its document) and, when the search has ended, ``closed`` (chip, reason, bound, the step that gave it): the
certificate chip by chip. One writer at a time holds the file; a round is one transaction.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from phaze.errors import InputError
from phaze.files import refuse_other_kinds
from phaze.search.evaluated import Evaluated, evaluated_from
from phaze.search.journal_file import SUFFIXES, rows_of, said

FORMAT = "phaze.journal/1"
TABLES = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS evaluated (chip INTEGER PRIMARY KEY, document TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS closed (chip INTEGER PRIMARY KEY, reason TEXT NOT NULL, bound REAL, step TEXT)",
)


class PrunedChip(NamedTuple):
    """How one chip was closed: by evaluating it, by a bound (and which), by memory, or by a failure; a row of the
    journal."""

    chip: int
    reason: str
    bound: float | None
    step: str


class SqliteJournal:
    """A journal that is open; ``close`` it, or use it in a ``with`` statement."""

    def __init__(self, path: Path, study: str, code: str) -> None:
        self.path = path
        for suffix in SUFFIXES:
            refuse_other_kinds(path.with_name(path.name + suffix), "give another --out")
        with said(path):
            self.base = sqlite3.connect(path, timeout=0.2, isolation_level=None)
        try:
            self._known = self._opened(study, code)
        except BaseException:
            self.base.close()  # or it would stay locked for as long as somebody holds the fault
            raise

    def _opened(self, study: str, code: str) -> dict[int, Evaluated]:
        """The chips that are in it, after its tables were made or found to be of the same study and code."""
        with said(self.path):
            self.base.execute("PRAGMA locking_mode=EXCLUSIVE")
            self.base.execute("PRAGMA journal_mode=WAL")
            self.base.execute("BEGIN IMMEDIATE")
            for table in TABLES:
                self.base.execute(table)
            about = dict(self.base.execute("SELECT key, value FROM about").fetchall())
            wanted = {"format": FORMAT, "study": study, "code": code}
            if not about:
                self.base.executemany("INSERT INTO about VALUES (?, ?)", wanted.items())
            self.base.execute("COMMIT")
        self._refuse_others(about or wanted, wanted)
        with said(self.path):
            rows = self.base.execute("SELECT chip, document FROM evaluated").fetchall()
            return {int(chip): evaluated_from(int(chip), json.loads(text)) for chip, text in rows}

    def _refuse_others(self, about: dict[str, str], wanted: dict[str, str]) -> None:
        names = {"format": "another format", "study": "another study", "code": "another version of phaze"}
        for key, name in names.items():
            if about.get(key) != wanted[key]:
                raise InputError(str(self.path.parent), f"this folder holds a run of {name}", "give another --out")

    def known(self) -> dict[int, Evaluated]:
        """Every chip evaluated so far."""
        return self._known

    def add(self, found: Iterable[Evaluated]) -> None:
        """Keep a round, all of it or nothing."""
        kept = list(found)
        rows = [(one.chip, json.dumps(one.document(), separators=(",", ":"))) for one in kept]
        with said(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            self.base.executemany("INSERT OR REPLACE INTO evaluated VALUES (?, ?)", rows)
            self.base.execute("COMMIT")
        self._known.update({one.chip: one for one in kept})

    def finish(self, closed: Iterable[PrunedChip]) -> None:
        """Keep how every chip was closed."""
        with said(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            self.base.execute("DELETE FROM closed")
            self.base.executemany("INSERT INTO closed VALUES (?, ?, ?, ?)", closed)
            self.base.execute("COMMIT")

    def keep_digests(self, digests: Mapping[str, str]) -> None:
        """Keep the digests of what was written when the search had ended."""
        with said(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            self.base.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", digests.items())
            self.base.execute("COMMIT")

    def note(self, key: str, text: str) -> None:
        """Keep a text, such as what an earlier step of a search left."""
        with said(self.path):
            self.base.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (f"note {key}", text))

    def noted(self, key: str) -> str | None:
        """A text that was kept; None where there is none."""
        with said(self.path):
            row = self.base.execute("SELECT value FROM about WHERE key = ?", (f"note {key}",)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self.base.close()

    def __enter__(self) -> "SqliteJournal":
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


def read_closed(path: Path) -> list[PrunedChip]:
    """The certificate of a finished run, chip by chip."""
    rows = rows_of(path, "SELECT chip, reason, bound, step FROM closed ORDER BY chip")
    with said(path):
        return [
            PrunedChip(int(chip), str(reason), None if bound is None else float(bound), str(step))
            for chip, reason, bound, step in rows
        ]


def read_evaluated(path: Path) -> list[Evaluated]:
    """Every chip that a run has opened."""
    rows = rows_of(path, "SELECT chip, document FROM evaluated ORDER BY chip")
    with said(path):
        return [evaluated_from(int(chip), json.loads(text)) for chip, text in rows]

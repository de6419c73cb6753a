"""The journal of a run: a SQLite file with every evaluated chip, so that a killed search loses at
most one round.

Tables: ``about`` (key, value: format, digests of study and code, and of the files that the search
wrote), ``evaluated`` (chip, its document) and, when the search has ended, ``closed`` (chip, reason,
bound, the step that gave it): the certificate chip by chip. One writer at a time holds the file; a
round is one transaction.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from phaze.errors import InputError
from phaze.files import refuse_other_kinds
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import Evaluated, evaluated_from

FORMAT = "phaze.journal/1"
TABLES = (
    "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS evaluated (chip INTEGER PRIMARY KEY, document TEXT NOT NULL)",
    (
        "CREATE TABLE IF NOT EXISTS closed (chip INTEGER PRIMARY KEY, reason TEXT NOT NULL, "
        "bound REAL, step TEXT)"
    ),
)


# The files that SQLite itself writes beside a journal; it would follow a link that stands in their
# place.
SUFFIXES = ("", "-wal", "-shm", "-journal")
# What SQLite says, what it means here, and what to do.
FAULTS = (
    ("locked", "another search is writing here", "wait, or give another --out"),
    ("full", "the disk is full", "free disk space; the same command resumes"),
    (
        "disk I/O",
        "the disk cannot be written (disk I/O error)",
        "free disk space, or check the folder; the same command resumes",
    ),
    ("readonly", "the folder cannot be written", "give another --out"),
    ("unable to open", "the folder cannot be written", "give another --out"),
)


@contextmanager
def faults_of(path: Path) -> Iterator[None]:
    """Faults of the file as one sentence."""
    try:
        yield
    except sqlite3.OperationalError as fault:
        text = str(fault)
        for sign, seen, change in FAULTS:
            if sign in text:
                raise InputError(str(path), seen, change) from None
        raise InputError(
            str(path), f"the journal cannot be used ({text})", "check the folder's rights"
        ) from None
    except (
        sqlite3.Error,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as fault:
        raise InputError(
            str(path), f"the journal is damaged ({fault})", "move the folder away and start again"
        ) from None


class PrunedChip(NamedTuple):
    """How one chip was closed: by evaluating it, by a bound (and which), by memory, or by a
    failure; a row of the journal."""

    chip: int
    reason: str
    bound: float | None
    step: str


class Journal(Protocol):
    """Where evaluated chips are kept between runs."""

    def evaluated(self) -> dict[int, Evaluated]: ...

    def add(self, results: Iterable[Evaluated]) -> None: ...

    def note(self, key: str, text: str) -> None: ...

    def noted(self, key: str) -> str | None: ...


class SqliteJournal:
    """A journal that is open; ``close`` it, or use it in a ``with`` statement."""

    def __init__(self, path: Path, study: str, code: str) -> None:
        self.path = path
        for suffix in SUFFIXES:
            refuse_other_kinds(path.with_name(path.name + suffix), "give another --out")
        with faults_of(path):
            self.base = sqlite3.connect(path, timeout=0.2, isolation_level=None)
        try:
            self._known = self._load(study, code)
        except BaseException:
            self.base.close()  # or it would stay locked for as long as somebody holds the fault
            raise

    def _load(self, study: str, code: str) -> dict[int, Evaluated]:
        """The chips that are in it, after its tables were made or found to be of the same study and
        code."""
        with faults_of(self.path):
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
        with faults_of(self.path):
            rows = self.base.execute("SELECT chip, document FROM evaluated").fetchall()
            return {int(chip): evaluated_from(int(chip), json.loads(text)) for chip, text in rows}

    def _refuse_others(self, about: dict[str, str], wanted: dict[str, str]) -> None:
        names = {
            "format": "another format",
            "study": "another study",
            "code": "another version of phaze",
        }
        for key, name in names.items():
            if about.get(key) != wanted[key]:
                raise InputError(
                    str(self.path.parent),
                    f"this folder holds a run of {name}",
                    "give another --out",
                )

    def evaluated(self) -> dict[int, Evaluated]:
        """Every chip evaluated so far."""
        return self._known

    def add(self, chips_evaluated: Iterable[Evaluated]) -> None:
        """Keep a round, all of it or nothing."""
        results = list(chips_evaluated)
        rows = [
            (result.chip, json.dumps(result.document(), separators=(",", ":")))
            for result in results
        ]
        with faults_of(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            self.base.executemany("INSERT OR REPLACE INTO evaluated VALUES (?, ?)", rows)
            self.base.execute("COMMIT")
        self._known.update({result.chip: result for result in results})

    def finish(self, closed: Iterable[PrunedChip]) -> None:
        """Keep how every chip was closed."""
        with faults_of(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            self.base.execute("DELETE FROM closed")
            self.base.executemany("INSERT INTO closed VALUES (?, ?, ?, ?)", closed)
            self.base.execute("COMMIT")

    def keep_digests(self, digests: Mapping[str, str]) -> None:
        """Keep the digests of what was written when the search had ended."""
        with faults_of(self.path):
            self.base.execute("BEGIN IMMEDIATE")
            self.base.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", digests.items())
            self.base.execute("COMMIT")

    def note(self, key: str, text: str) -> None:
        """Keep a text, such as what an earlier step of a search left."""
        with faults_of(self.path):
            self.base.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (f"note {key}", text))

    def noted(self, key: str) -> str | None:
        """A text that was kept; None where there is none."""
        with faults_of(self.path):
            row = self.base.execute(
                "SELECT value FROM about WHERE key = ?", (f"note {key}",)
            ).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self.base.close()

    def __enter__(self) -> "SqliteJournal":
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class NumberedJournal:
    """A journal by the numbers that documents call chips, for a search that has some chips of a
    space by place."""

    journal: Journal
    chips: SpaceChips

    def evaluated(self) -> dict[int, Evaluated]:
        """Every chip evaluated so far that is one of them."""
        places = (
            (self.chips.index_of(number), result)
            for number, result in self.journal.evaluated().items()
        )
        return {index: replace(result, chip=index) for index, result in places if index is not None}

    def add(self, results: Iterable[Evaluated]) -> None:
        """Keep a round."""
        self.journal.add(replace(result, chip=self.chips.number(result.chip)) for result in results)

    def note(self, key: str, text: str) -> None:
        """Keep a text."""
        self.journal.note(key, text)

    def noted(self, key: str) -> str | None:
        """A text that was kept."""
        return self.journal.noted(key)


def rows_of(path: Path, query: str) -> list[Any]:
    """The rows of a query of a journal that nobody writes; the folder may be read-only."""
    if not path.exists():
        raise InputError(str(path), "there is no such file", "give the folder of a run")
    for suffix in SUFFIXES:
        refuse_other_kinds(path.with_name(path.name + suffix), "give the folder of a run")
    unwritten = path.with_name(path.name + "-wal").exists()
    place = f"file:{quote(os.fsencode(path.absolute()))}?mode=ro" + (
        "" if unwritten else "&immutable=1"
    )
    with faults_of(path):
        base = sqlite3.connect(place, timeout=0.2, uri=True)
        try:
            return base.execute(query).fetchall()
        finally:
            base.close()


def read_about(path: Path) -> dict[str, str]:
    """What a journal is of, and the digests of what its search wrote."""
    return {str(key): str(value) for key, value in rows_of(path, "SELECT key, value FROM about")}


def read_closed(path: Path) -> list[PrunedChip]:
    """The certificate of a finished run, chip by chip."""
    rows = rows_of(path, "SELECT chip, reason, bound, step FROM closed ORDER BY chip")
    with faults_of(path):
        return [
            PrunedChip(int(chip), str(reason), None if bound is None else float(bound), str(step))
            for chip, reason, bound, step in rows
        ]


def read_evaluated(path: Path) -> list[Evaluated]:
    """Every chip that a run has evaluated."""
    rows = rows_of(path, "SELECT chip, document FROM evaluated ORDER BY chip")
    with faults_of(path):
        return [evaluated_from(int(chip), json.loads(text)) for chip, text in rows]

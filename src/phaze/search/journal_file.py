"""The SQLite file of a journal: its faults as one sentence, its rows without writing, and what it is of."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from phaze.errors import InputError
from phaze.files import refuse_other_kinds

# The files that SQLite itself writes beside a journal; it would follow a link that stands in their place.
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
def said(path: Path) -> Iterator[None]:
    """Faults of the file as one sentence."""
    try:
        yield
    except sqlite3.OperationalError as fault:
        text = str(fault)
        for sign, seen, change in FAULTS:
            if sign in text:
                raise InputError(str(path), seen, change) from None
        raise InputError(str(path), f"the journal cannot be used ({text})", "check the folder's rights") from None
    except (sqlite3.Error, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as fault:
        raise InputError(
            str(path), f"the journal is damaged ({fault})", "move the folder away and start again"
        ) from None


def rows_of(path: Path, query: str) -> list[Any]:
    """The rows of a query of a journal that nobody writes; the folder may be read-only."""
    if not path.exists():
        raise InputError(str(path), "there is no such file", "give the folder of a run")
    for suffix in SUFFIXES:
        refuse_other_kinds(path.with_name(path.name + suffix), "give the folder of a run")
    unwritten = path.with_name(path.name + "-wal").exists()
    place = f"file:{quote(str(path.absolute()))}?mode=ro" + ("" if unwritten else "&immutable=1")
    with said(path):
        base = sqlite3.connect(place, timeout=0.2, uri=True)
        try:
            return base.execute(query).fetchall()
        finally:
            base.close()


def read_about(path: Path) -> dict[str, str]:
    """What a journal is of, and the digests of what its search wrote."""
    return {str(key): str(value) for key, value in rows_of(path, "SELECT key, value FROM about")}

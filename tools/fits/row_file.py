"""Files of measured operators (:mod:`phaze.validate.row_file`) that bundled constants were fitted
on; they lie in ``data``."""

from collections.abc import Sequence
from pathlib import Path

from phaze import documents
from phaze.errors import unknown_name
from phaze.files import is_path
from phaze.validate.row_file import RowFile

BUNDLED = ("products", "attention", "collectives")
"""Files of rows that are bundled, by name."""


def bundled_rows(name: str) -> RowFile:
    """One of the bundled files."""
    return documents.load(RowFile, str(Path(__file__).parent / "data" / f"{name}.json"))


def read_rows(paths: Sequence[str]) -> tuple[RowFile, ...]:
    """The files at ``paths``; a bundled one by its name."""
    for path in paths:
        if path not in BUNDLED and not is_path(path) and not Path(path).exists():
            raise unknown_name("WHAT", "rows", path, (*BUNDLED, "stacks", "held-back", "bands"))
    return tuple(
        bundled_rows(path) if path in BUNDLED else documents.load(RowFile, path) for path in paths
    )

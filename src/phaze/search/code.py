"""The digest of phaze itself: what an answer depends on beside its study."""

import hashlib
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable


def _files(folder: Traversable, path: str = "") -> list[tuple[str, Traversable]]:
    entries = []
    for entry in folder.iterdir():
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            entries += [] if entry.name == "__pycache__" else _files(entry, name)
        elif entry.name.endswith((".py", ".toml", ".json")):
            entries.append((name, entry))
    return entries


@cache
def code_digest() -> str:
    """SHA-256 over every source and data file of phaze: what an answer depends on beside its
    study."""
    total = hashlib.sha256()
    for name, entry in sorted(_files(files("phaze")), key=lambda entry_of: entry_of[0]):
        total.update(name.encode() + b"\0" + hashlib.sha256(entry.read_bytes()).digest())
    return total.hexdigest()

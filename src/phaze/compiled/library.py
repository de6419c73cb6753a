"""The shipped object code: which functions it has, and for which sources, Python and machine it
holds.

``shipped/`` has an extension module for x86-64 Linux for every room (the folder of a file of
kernels), and ``library.json``, which names, for every file of kernels, the SHA-256 of the sources
its functions were compiled from (the file, and what it imports of phaze), and the types that each
function was compiled for. A function runs from the library only if

- this Python loads modules of the library's suffix (version, machine, C library), and loading
  succeeds;
- the library's file has the SHA-256 that ``library.json`` states;
- every source still has its SHA-256; times of files are not looked at.

Otherwise numba compiles it at its first call or at ``make setup``. The library needs neither numba
nor a compiler. It is code, as trusted as the package that it lies in; nothing is read from a cache
folder or from a run.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

PACKAGE: Final = Path(__file__).parent.parent
FOLDER: Final = Path(__file__).parent / "shipped"
DESCRIPTION: Final = FOLDER / "library.json"
# An extension module's name begins with this; its file has the suffix of the Python it was built
# for.
PREFIX: Final = "phaze_kernels_"


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One function of the library."""

    code: Callable[..., Any]
    types: tuple[list[Any], ...]


@cache
def digest(path: Path) -> str:
    """The SHA-256 of a file, empty if there is none."""
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@cache
def description() -> dict[str, Any]:
    """``library.json``; empty where nothing is shipped, or where it is not whole: then numba
    compiles."""
    if not DESCRIPTION.is_file():
        return {}
    try:
        table = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return table if _is_whole(table) else {}


def _is_whole(table: Any) -> bool:
    """Whether a description has both of its tables, each room with its file and digest."""
    parts = (
        [table.get(part) for part in ("rooms", "modules")] if isinstance(table, dict) else [None]
    )
    if not all(
        isinstance(part, dict) and all(isinstance(row, dict) for row in part.values())
        for part in parts
    ):
        return False
    return all(
        isinstance(row.get(key), str)
        for row in table["rooms"].values()
        for key in ("file", "sha256")
    )


def room_of(module: str) -> str:
    """The room of a file of kernels, as its library is named: ``search_bounds`` of those in
    ``search/bounds``."""
    return "_".join(module.split(".")[1:-1])


@cache
def library(room: str) -> ModuleType | None:
    """The extension module of a room, or None if it is not for this Python, not whole, or does not
    load."""
    stated = description().get("rooms", {}).get(room)
    if stated is None or stated["file"] != f"{PREFIX}{room}{EXTENSION_SUFFIXES[0]}":
        return None
    path = FOLDER / stated["file"]
    if digest(path) != stated["sha256"]:
        return None
    loader = ExtensionFileLoader(f"{PREFIX}{room}", str(path))
    spec = spec_from_file_location(loader.name, path, loader=loader)
    if spec is None:
        return None
    try:
        module = module_from_spec(spec)
        loader.exec_module(module)
    except ImportError:  # an older C library, for example
        return None
    return module


def is_current(module: str) -> bool:
    """Whether the library was compiled from today's sources of a file of kernels."""
    sources = description().get("modules", {}).get(module, {}).get("sources")
    return sources is not None and all(
        digest(PACKAGE / path) == stated for path, stated in sources.items()
    )


def library_serves(module: str) -> bool:
    """Whether the functions of a file of kernels run from the library here."""
    return is_current(module) and library(room_of(module)) is not None


def entry_of(module: str, name: str) -> KernelEntry | None:
    """A function of the library, if it has it and may run it here."""
    declared = description().get("modules", {}).get(module, {}).get("functions", {}).get(name)
    loaded = library(room_of(module)) if declared is not None and is_current(module) else None
    return (
        None
        if loaded is None
        else KernelEntry(getattr(loaded, symbol_of(module, name)), tuple(declared))
    )


def symbol_of(module: str, name: str) -> str:
    """The name of a function in the extension module of its room."""
    return f"{module.rpartition('.')[2]}_{name}"

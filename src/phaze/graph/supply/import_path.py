"""Where the process that traces would find a module, told without importing anything: parts of a
model's name in the cache, as another environment or ``PYTHONPATH`` may have another package of the
same name."""

import os
import sys
import sysconfig
from importlib.machinery import PathFinder
from pathlib import Path


def search_path() -> list[str]:
    """The folders that a process started here looks for modules in, in order: this one, those of
    ``PYTHONPATH``, and those of the installation."""
    named = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    installed = [
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    ]
    return list(
        dict.fromkeys(os.path.realpath(folder) for folder in [str(Path.cwd()), *named, *installed])
    )


def module_file(name: str) -> str | None:
    """The file of a module by its dotted name; None where no folder has it. Packages above it are
    not run."""
    folders = [*search_path(), *sys.path]  # the latter knows what is installed as editable
    path, spec = "", None
    for step in name.split("."):
        path = f"{path}.{step}" if path else step
        spec = PathFinder.find_spec(path, folders)
        if spec is None:
            return None
        folders = list(spec.submodule_search_locations or [])
    return None if spec is None or spec.origin is None else os.path.realpath(spec.origin)


def resolved(place: str) -> list[str]:
    """What ``place`` stands for here: the file, and the folders that its code imports from."""
    named = place.rpartition(":")[0] or place
    if named.endswith(".json"):
        return [str(Path(named).resolve())]
    file = str(Path(named).resolve()) if named.endswith(".py") else module_file(named) or ""
    return [file, sys.prefix, *search_path()]

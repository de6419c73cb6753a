"""Run by a test in a process of its own: after ``phaze kernels`` no command may bring a kernel a
signature it lacks.

A numba kernel is compiled once for each signature (and read from its cache file where that is
there), so a new signature is a cache file more. Prints, as JSON, the commands that failed and the
kernels that each command compiled.
"""

import contextlib
import importlib
import io
import json
import pkgutil
import sys
from typing import Any

import phaze
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app


def kernels() -> dict[str, Any]:
    """Every compiled function of the package by name."""
    found = {}
    for module in pkgutil.walk_packages(phaze.__path__, "phaze.", onerror=lambda _: None):
        if module.name.endswith("kernels") and not module.name.startswith("phaze.cli"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if hasattr(value, "signatures"):
                    found[f"{value.py_func.__module__}.{name}"] = value
    return found


def counts(every: dict[str, Any]) -> dict[str, int]:
    """How many signatures each has."""
    return {name: len(kernel.signatures) for name, kernel in every.items()}


def main() -> None:
    every, found = kernels(), dict[str, Any]()
    for line in ["kernels", *sys.argv[1:]]:
        before, said = counts(every), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = exit_code_of(app, line.split())
        after = counts(every)
        new = [name for name in every if after[name] > before[name]]
        found[line] = {
            "code": code,
            "compiled": new,
            "said": "" if code == 0 else said.getvalue()[-300:],
        }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

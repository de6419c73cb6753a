"""phaze: the AI accelerator and the way training runs on many of them, searched together, with a
proof.

    import phaze
    run = phaze.search("llama3-8b")         the best chip and placement, as phaze search finds it
    run                                     prints as the command does; a table in a notebook
    run.frame()                             every chip, as columns for pandas or polars

The functions are in :mod:`phaze.api`; nothing heavy is imported before one is called.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaze.api import (
        Model,
        Space,
        calibrate,
        chip,
        chips,
        clusters,
        compare,
        estimate,
        evaluate,
        explain,
        export,
        front,
        graph,
        load,
        models,
        place,
        plan,
        price,
        report,
        schedule,
        search,
        stacks,
        sweep,
        technologies,
        validate,
        verify,
    )

__version__ = "0.1.0"

__all__ = [
    "Model",
    "Space",
    "__version__",
    "calibrate",
    "chip",
    "chips",
    "clusters",
    "compare",
    "estimate",
    "evaluate",
    "explain",
    "export",
    "front",
    "graph",
    "load",
    "models",
    "place",
    "plan",
    "price",
    "report",
    "schedule",
    "search",
    "stacks",
    "sweep",
    "technologies",
    "validate",
    "verify",
]

# Packages whose name is also a function's. Importing one would bind it here, over the function; so
# all are imported now (each is a docstring) and left to the import system: ``from phaze.search.run
# import search`` still finds them.
for _package in (
    "evaluate",
    "explain",
    "export",
    "front",
    "graph",
    "report",
    "schedule",
    "search",
    "sweep",
    "validate",
):
    import_module(f"phaze.{_package}")
    del globals()[_package]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("phaze.api"), name)
    raise AttributeError(f"module 'phaze' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)

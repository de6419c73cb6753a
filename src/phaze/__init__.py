"""phaze: the AI accelerator and the way training runs on many of them, searched together, with a proof.

    import phaze
    run = phaze.search("llama3-8b")         the best chip and placement, as phaze search finds it
    run                                     prints as the command does; a table in a notebook
    run.frame()                             every chip, as columns for pandas or polars

The functions are in :mod:`phaze.api`; nothing is imported before one is asked for.
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
        load,
        place,
        plan,
        price,
        stacks,
        technologies,
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

# Rooms of the source that are also verbs: their modules can be called.
ROOMS = ("evaluate", "explain", "export", "front", "graph", "report", "schedule", "search", "sweep", "validate")


def __getattr__(name: str) -> Any:
    if name in ROOMS:
        return import_module(f"phaze.{name}")
    if name in __all__:
        return getattr(import_module("phaze.api"), name)
    raise AttributeError(f"module 'phaze' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)

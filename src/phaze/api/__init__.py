"""The Python API: the commands as functions. Each takes what its command takes and returns a value that prints as the
command prints, shows as tables in a notebook, and has the command's JSON document as ``document``.

Bad input raises :class:`phaze.errors.InputError`, nothing feasible :class:`phaze.errors.InfeasibleError`, each with the
sentence that the command would print.
"""

from phaze.api.ask import chip, load, place, price
from phaze.api.module import Model
from phaze.api.operators import estimate, graph, schedule
from phaze.api.plans import plan
from phaze.api.point import evaluate
from phaze.api.runs import explain, export, report, verify
from phaze.api.space import Space
from phaze.api.studies import compare, front, search, sweep
from phaze.api.tables import calibrate, chips, clusters, models, stacks, technologies, validate
from phaze.api.values import (
    Compared,
    Estimated,
    Fronted,
    Graphed,
    Placed,
    Planned,
    Scheduled,
    Searched,
    Sheeted,
    Shown,
    Swept,
)

__all__ = [
    "Compared",
    "Estimated",
    "Fronted",
    "Graphed",
    "Model",
    "Placed",
    "Planned",
    "Scheduled",
    "Searched",
    "Sheeted",
    "Shown",
    "Space",
    "Swept",
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

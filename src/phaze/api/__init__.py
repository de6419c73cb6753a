"""The Python API: every command is a function of the same name, and the command line is a thin
layer over it. Each takes what its command takes and returns a value that prints as the command
prints, shows as tables in a notebook, and has the command's JSON document as ``document``.

Bad input raises :class:`phaze.errors.InputError`, nothing feasible
:class:`phaze.errors.InfeasibleError`, each with the sentence that the command would print. Nothing
is imported before it is asked for.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from phaze.api.estimates import estimate as estimate
    from phaze.api.graphs import graph as graph
    from phaze.api.library import chip as chip
    from phaze.api.library import chips as chips
    from phaze.api.library import clusters as clusters
    from phaze.api.library import models as models
    from phaze.api.library import stacks as stacks
    from phaze.api.library import technologies as technologies
    from phaze.api.module import Model as Model
    from phaze.api.plans import plan as plan
    from phaze.api.point import evaluate as evaluate
    from phaze.api.pricing import load as load
    from phaze.api.pricing import price as price
    from phaze.api.run_values import Compared as Compared
    from phaze.api.run_values import Fronted as Fronted
    from phaze.api.run_values import Searched as Searched
    from phaze.api.run_values import Swept as Swept
    from phaze.api.runs import explain as explain
    from phaze.api.runs import export as export
    from phaze.api.runs import report as report
    from phaze.api.runs import verify as verify
    from phaze.api.single import place as place
    from phaze.api.single import schedule as schedule
    from phaze.api.space import Space as Space
    from phaze.api.studies import front as front
    from phaze.api.studies import search as search
    from phaze.api.sweeps import compare as compare
    from phaze.api.sweeps import sweep as sweep
    from phaze.api.tables import calibrate as calibrate
    from phaze.api.tables import validate as validate
    from phaze.api.values import Answer as Answer
    from phaze.api.values import Estimated as Estimated
    from phaze.api.values import Graphed as Graphed
    from phaze.api.values import Placed as Placed
    from phaze.api.values import Planned as Planned
    from phaze.api.values import Scheduled as Scheduled
    from phaze.api.values import Sheeted as Sheeted

# Which module has what.
HOMES: Final = MappingProxyType(
    {
        "pricing": "load price",
        "library": "chip chips clusters models stacks technologies",
        "module": "Model",
        "estimates": "estimate",
        "graphs": "graph",
        "single": "place schedule",
        "plans": "plan",
        "point": "evaluate",
        "runs": "explain export report verify",
        "space": "Space",
        "sweeps": "compare sweep",
        "studies": "front search",
        "tables": "calibrate validate",
        "run_values": "Compared Fronted Searched Swept",
        "values": "Estimated Graphed Placed Planned Scheduled Sheeted Answer",
    }
)


def __getattr__(name: str) -> Any:
    for module, names in HOMES.items():
        if name in names.split():
            return getattr(import_module(f"phaze.api.{module}"), name)
    raise AttributeError(f"module 'phaze.api' has no attribute '{name}'")

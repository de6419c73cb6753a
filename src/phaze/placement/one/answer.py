"""The answer to a placement problem: the fastest plan or the shortage, and its checked document."""

from collections.abc import Mapping
from typing import Any

from phaze.errors import PhazeError
from phaze.placement.answer import document_of
from phaze.placement.cluster_prices import Prices, RingPrices
from phaze.placement.one import check
from phaze.placement.one.problem import Plan, Problem
from phaze.placement.one.shortage import shortage_of
from phaze.placement.one.solve import fastest_plan
from phaze.placement.shortage import Shortage


def place(problem: Problem, prices: Prices | None = None) -> Plan | Shortage:
    """The fastest plan, or why there is none; plain rings serve where no prices are given."""
    return fastest_plan(problem, prices) or shortage_of(problem, prices)


def require_true(problem: Problem, document: Mapping[str, Any], prices: Prices | None = None) -> None:
    """Let the checker look at a plan."""
    wrong = check.objections(problem, document, prices or RingPrices(problem.cluster))
    if wrong:
        raise PhazeError(f"the plan does not pass its check: {wrong[0]}")


def checked_document(problem: Problem, found: Plan | Shortage, prices: Prices | None = None) -> Mapping[str, Any]:
    """The document of what was found; a plan that the checker objects to is never handed out."""
    document = document_of(found)
    if isinstance(found, Plan):
        require_true(problem, document, prices)
    return document

"""Values of phaze as the documents that the checker reads, and what it says of them."""

import json
from collections.abc import Mapping
from typing import Any

from phaze.check.printed import plan_faults
from phaze.check.slots import schedule_faults
from phaze.cost.network_prices import NetworkPrices
from phaze.placement.answer import question_document
from phaze.placement.problem import PlacementProblem
from phaze.schedule.files import operators_document
from phaze.schedule.problem import Schedule, ScheduleProblem


def plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document as it is read from a file."""
    found: dict[str, Any] = json.loads(json.dumps(document))
    return found


def objections(
    problem: PlacementProblem, document: Mapping[str, Any], prices: NetworkPrices
) -> list[str]:
    """What is wrong with the document of a plan."""
    return plan_faults(plain(question_document(problem, prices)), plain(document))


def faults(problem: ScheduleProblem, schedule: Schedule) -> list[str]:
    """What is wrong with a schedule."""
    return schedule_faults(plain(operators_document(problem)), plain(schedule.document()))

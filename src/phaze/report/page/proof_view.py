"""How the chips of a space were decided, as rows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

MEANING: Mapping[str, str] = MappingProxyType(
    {
        "area": "combinations outside of the area that the space allows",
        "power": "combinations above the TDP that the space allows",
        "cost": "combinations above the price that the space allows",
        "memory": "no plan fits into its memory",
        "bound": "a lower bound on its step time rules it out",
        "evaluated": "exact schedules and placements",
        "failed": "its evaluation failed; its bound counts",
        "open": "not considered: the search was stopped",
    }
)


def proof_rows(proof: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Reason, what it means, and how many chips."""
    closed = proof["closed"]
    return [(reason, MEANING.get(reason, ""), f"{count:,}") for reason, count in closed.items() if count]

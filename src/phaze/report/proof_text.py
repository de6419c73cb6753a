"""How the chips of a space were decided."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.report.sections import Number, Table

REASONS: Mapping[str, str] = MappingProxyType(
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


def proof_table(proof: Mapping[str, Any], chips: str = "chips") -> Table:
    """How many chips were decided for which reason; ``chips`` is what is counted."""
    rows = [
        (reason, REASONS.get(reason, ""), Number(f"{count:,}", count))
        for reason, count in proof["closed"].items()
        if count
    ]
    return Table(
        ("decided by", "why", chips), rows, "Certificate: how every chip was decided", texts=2
    )

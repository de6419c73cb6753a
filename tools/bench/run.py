"""All comparisons as one document, ``phaze.bench/1``; a part at a time, told as it begins."""

from collections.abc import Callable, Sequence
from typing import Any

from tools.bench.line import PARTS, Section
from tools.bench.machine import machine
from tools.bench.published import SOURCE

LIMIT_S = 5.0
"""Seconds a peer gets for one problem: ours needs milliseconds, and the whole bench stays within
minutes."""
# Worker processes are forked before the solvers of the schedule part have started threads.
ORDER = ("placement", "cost", "search", "schedule")


def _section(part: str, limit_s: float) -> Section:
    if part == "placement":
        from tools.bench import placement

        return placement.section()
    if part == "cost":
        from tools.bench import cost

        return cost.section()
    if part == "search":
        from tools.bench import search

        return search.section()
    from tools.bench import schedule

    return schedule.section(limit_s)


def document_of(sections: Sequence[Section], where: dict[str, Any]) -> dict[str, Any]:
    """The sections as ``phaze.bench/1``."""
    lines = [line for section in sections for line in section.lines]
    return {
        "schema": "phaze.bench/1",
        "machine": where,
        "published": SOURCE,
        "sections": [section.document() for section in sections],
        "agree": all(line.agree is not False for line in lines),
    }


def run(
    parts: Sequence[str] = PARTS, limit_s: float = LIMIT_S, tell: Callable[[str], object] = len
) -> dict[str, Any]:
    """Measure ``parts``; a solver may take ``limit_s`` elapsed seconds on one schedule."""
    where, found = machine(), {}
    for part in (part for part in ORDER if part in parts):
        tell(part)
        found[part] = _section(part, limit_s)
    return document_of([found[part] for part in PARTS if part in found], where)

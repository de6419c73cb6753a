"""The verdict of the checker on a run, a front, a sweep or a plan."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.report.sections import Figures, Notes, Section


def _claim(document: Mapping[str, Any]) -> Figures:
    """What is claimed: a line begins with what it is about, two blanks after it."""
    rows = []
    for line in (*document["claim"], f"run  {document['run_id']}"):
        subject, _, text = line.partition("  ")
        rows.append((subject, text.strip()))
    return Figures(rows, "What is claimed")


def verdict_sections(document: Mapping[str, Any], lines: Sequence[str]) -> list[Section]:
    """The verdict in words, and what it is of."""
    return [Notes(lines[1:], lines[0]), _claim(document)]


def sweep_verdict_sections(
    document: Mapping[str, Any], points: Sequence[tuple[str, str]]
) -> list[Section]:
    """The verdict on a sweep, and on each of its points."""
    run = document["run"]
    if document["objections"]:
        verdict = f"{run} does not hold: {document['objections'][0]}"
    elif document["not_covered"]:
        verdict = f"{run}: not checkable yet: {document['not_covered'][0]}"
    else:
        verb = "holds" if document["holds"] else "was checked (quick: no proof)"
        verdict = f"{run} {verb}: {len(points)} points"
    return [Figures([*points, ("run", document["run_id"])], verdict)]

"""A front: its designs, and what is proved of them."""

from collections.abc import Mapping
from typing import Any

from phaze.report.answer_text import front_facts, front_warning
from phaze.report.sections import Figures, Notes, Section, Table
from phaze.search.plan_words import split_words
from phaze.units import show

MOST_ROWS = 24
"""Designs that fit a terminal."""


def chosen(count: int, most: int = MOST_ROWS) -> list[int]:
    """Positions of at most so many rows of ``count``, evenly, both ends among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(index * (count - 1) / (most - 1)) for index in range(most)})


def _split(point: Mapping[str, Any]) -> str:
    if len(point["models"]) > 1:
        return f"{len(point['models'])} models"
    return split_words(point["models"][0])


def _designs(document: Mapping[str, Any]) -> Table:
    points, metrics = document["points"], document["of"]
    rows = chosen(len(points))
    cells = []
    for index in rows:
        point = points[index]
        values = [f"{point['metrics'][name]:,.5g}" for name in metrics]
        cells.append(
            [*values, point["chip"]["name"], show(point["chip"]["hbm_bytes"], "B"), _split(point)]
        )
    units = ", ".join(f"{name} in {unit}" for name, unit in document["units"].items())
    cut = len(rows) < len(points)
    notes = [f"{len(rows)} of {len(points):,} designs are shown; front.csv has all."] if cut else []
    title = f"{document['name']}: the front of {', '.join(metrics)}"
    return Table([*metrics, "chip", "HBM", "plan"], cells, title, units, notes, texts=0)


def front_sections(document: Mapping[str, Any], folder: str, work: str = "") -> list[Section]:
    """A ``phaze.front/1``; ``work`` says what it took."""
    proof, links = document["certificate"], (document["cluster"] or {}).get("links")
    excluded = ", ".join(
        f"{reason} {count:,}" for reason, count in proof["closed"].items() if count
    )
    better = f"is better by more than {proof['gap']:.2g}"
    if proof["gap"] == 0:
        better = "is at least as good in all and better in one"
    notes = [f"note: {links}"] if links else []
    notes += [front_warning(document)] if front_warning(document) else []
    notes.append(f"Nothing in the space {better}. Chips excluded by: {excluded}. {work}".strip())
    return [
        _designs(document),
        Figures(front_facts(document)),
        Notes(notes),
        Notes([f"The front: {folder}", f"Its page: {folder}/front.html"], verbatim=True),
    ]

"""A front for the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from phaze.report.answer_words import front_facts, front_warning
from phaze.report.terminal import facts, paragraph, table
from phaze.search.plan_words import split_words
from phaze.units import show

MOST_ROWS = 24
"""Designs that fit a terminal."""


def chosen(count: int, most: int = MOST_ROWS) -> list[int]:
    """Positions of at most so many rows of ``count``, evenly, both ends among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(at * (count - 1) / (most - 1)) for at in range(most)})


def _split(point: Mapping[str, Any]) -> str:
    if len(point["models"]) > 1:
        return f"{len(point['models'])} models"
    return split_words(point["models"][0])


def show_front(console: Console, said: Mapping[str, Any], folder: str, work: str = "") -> None:
    """Print a ``phaze.front/1``; ``work`` says what it took."""
    points, proof = said["points"], said["certificate"]
    rows = chosen(len(points))
    heads = [*said["of"], "chip", "HBM", "plan"]
    cells = []
    for at in rows:
        metrics = [f"{points[at]['metrics'][name]:,.5g}" for name in said["of"]]
        cells.append(
            [*metrics, points[at]["chip"]["name"], show(points[at]["chip"]["hbm_bytes"], "B"), _split(points[at])]
        )
    units = ", ".join(f"{name} in {unit}" for name, unit in said["units"].items())
    console.print(f"[bold]{said['name']}[/bold]: the front of {', '.join(said['of'])}; {units}", highlight=False)
    console.print(table(heads, cells, left=0))
    shown = "" if len(rows) == len(points) else f"{len(rows)} of {len(points):,} designs are shown; front.csv has all. "
    closed = ", ".join(f"{reason} {count:,}" for reason, count in proof["closed"].items() if count)
    better = (
        "is at least as good in all and better in one"
        if proof["gap"] == 0
        else f"is better by more than {proof['gap']:.2g}"
    )
    console.print(facts(front_facts(said)))
    if (said["cluster"] or {}).get("links"):
        paragraph(console, f"note: {said['cluster']['links']}")
    if front_warning(said):
        paragraph(console, front_warning(said))
    paragraph(console, f"{shown}Nothing in the space {better}. Chips excluded by: {closed}. {work}".strip())
    console.print(f"The front: {folder}; its page: {folder}/front.html", markup=False, soft_wrap=True)

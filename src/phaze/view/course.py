"""A search under way, as sections: where it stands, and how it came there."""

from typing import Any

from phaze.report.drawings import Axis, PlotPoint, Scatter, Series
from phaze.report.sections import Card, Cards, Group, Lead, Notes, Section, Table
from phaze.search.progress_file import COLUMNS, PROGRESS
from phaze.units import digits, show
from phaze.view.library import RunEntry, read_document

SHOWN = 10
"""Rows of the course that are listed: those of the last seconds."""
# Marks of an axis beside its start.
STEPS = 4
HEADS = ("seconds", "best score", "lower bound", "gap", "evaluated", "pruned by a bound", "open")
Row = dict[str, Any]


def course_rows(run: RunEntry) -> list[Row]:
    """What a search that has not ended kept of its course."""
    path = run.path / PROGRESS
    stated = read_document(path).get("rows") if path.is_file() else None
    rows = stated if isinstance(stated, list) else []
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows if _is_row(row)]


def _is_row(row: Any) -> bool:
    """Whether a row is numbers, or none where there is nothing yet."""
    numbers = isinstance(row, list) and len(row) == len(COLUMNS)
    return numbers and all(
        number is None or (isinstance(number, int | float) and abs(number) < 1e30) for number in row
    )


def _gap(row: Row) -> float | None:
    """The share by which nothing is better than the best so far."""
    best, lower = row["best"], row["lower"]
    return max(0.0, 1 - lower / best) if best and lower is not None else None


def _score(value: float | None) -> str:
    return "-" if value is None else digits(value)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.3g} %"


def _counts(row: Row) -> tuple[str, str, str]:
    evaluated, bound, left = (f"{int(row[key] or 0):,}" for key in ("evaluated", "bound", "open"))
    return evaluated, bound, left


def _standing(row: Row | None) -> Cards:
    """The last row, a card for each figure."""
    figures = ["-"] * (len(HEADS) - 1)
    if row is not None:
        figures = [_score(row["best"]), _score(row["lower"]), _percent(_gap(row)), *_counts(row)]
    return Cards(
        [
            Card(name.capitalize(), [Lead(figure, "")])
            for name, figure in zip(HEADS[1:], figures, strict=True)
        ]
    )


def _time_axis(end_s: float) -> Axis:
    marks = [end_s * step / STEPS for step in range(STEPS + 1)]
    return Axis("time since the start", 0.0, end_s, [(mark, f"{digits(mark)} s") for mark in marks])


def _value_axis(name: str, low: float, high: float, text: Any) -> Axis:
    marks = [low + (high - low) * step / STEPS for step in range(STEPS + 1)]
    return Axis(name, low, high, [(mark, text(mark)) for mark in marks])


def _line(name: str, rows: list[Row], values: list[float | None], text: Any) -> Series:
    points = [
        PlotPoint(row["seconds"], value, f"{name} after {show(row['seconds'], 's')}: {text(value)}")
        for row, value in zip(rows, values, strict=True)
        if value is not None
    ]
    return Series(name, points)


def _over_time(rows: list[Row], name: str, lines: list[Series], title: str, text: Any) -> Scatter:
    heights = [point.y for line in lines for point in line.points]
    alone = len(lines) == 1
    low = 0.0 if alone else 0.98 * min(heights)
    high = 1.02 * max(heights) or 1.0
    end_s = max(1.0, rows[-1]["seconds"])
    return Scatter(
        _time_axis(end_s), _value_axis(name, low, high, text), lines, title=title, thin=alone
    )


def _plots(rows: list[Row]) -> list[Section]:
    """Best score and lower bound over time, and the gap between them."""
    best = _line("best score", rows, [row["best"] for row in rows], digits)
    lower = _line("lower bound", rows, [row["lower"] for row in rows], digits)
    gap = _line("gap", rows, [_gap(row) for row in rows], _percent)
    plots: list[Section] = []
    if best.points or lower.points:
        plots.append(
            _over_time(rows, "score", [best, lower], "Best score and lower bound over time", digits)
        )
    if gap.points:
        plots.append(_over_time(rows, "gap", [gap], "Gap over time", _percent))
    return plots


def _listed(rows: list[Row]) -> Group:
    cells = [
        (
            _score(row["seconds"]),
            _score(row["best"]),
            _score(row["lower"]),
            _percent(_gap(row)),
            *_counts(row),
        )
        for row in rows[-SHOWN:][::-1]
    ]
    return Group([Table(HEADS, cells, texts=0)], folded="As a table")


def course_sections(run: RunEntry) -> list[Section]:
    """A search that has not ended."""
    rows = course_rows(run)
    note = "It was stopped; the same command resumes it."
    if run.status == "running":
        note = (
            "Refreshed every second; the page of the run opens when it ends."
            if rows
            else "Every chip of the space is bounded first: figures follow."
        )
    head = Notes([note], f"{run.name}: {run.status}", look="small")
    standing = _standing(rows[-1] if rows else None)
    return [head, standing, *(_plots(rows) if rows else []), *([_listed(rows)] if rows else [])]

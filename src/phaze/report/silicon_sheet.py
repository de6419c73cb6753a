"""Chips compared with published figures: area, power, sustained rate and clock."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from phaze.hardware.chip import Chip
from phaze.hardware.clocked import refusal
from phaze.hardware.dies import Comparison
from phaze.report.numbers import signed
from phaze.report.sections import Notes, Section, Table
from phaze.validate.silicon import SiliconCheck, SiliconRow, full_power_w, large_product_share

FIGURES = (
    ("area", "Area, mm2", 1.0),
    ("power", "Power, W", 1.0),
    ("rate", "Sustained rate, TFLOP/s", 1e-12),
)


def silicon_sections(
    check: SiliconCheck, areas: Sequence[Comparison], powers: Sequence[Comparison]
) -> list[Section]:
    """Every figure, the clock that every chip of clusters holds, and chips of cores."""
    errors = [abs(row.error) for row in check.rows if _is_judged(row)]
    headline = (
        f"Predicted totals of area, power and rate are off by {median(errors):.1%} in the median"
    )
    sections: list[Section] = [Notes([], f"{headline}, over {len(errors)} published figures")]
    for figure, title, scale in FIGURES:
        rows = [row for row in check.rows if row.figure == figure]
        cells = [_cells(row, scale) for row in rows]
        columns = ("", "part", "basis", "ours", "published", "error")
        sections.append(Table(columns, cells, title, notes=_medians(rows), texts=3))
    clock_columns = ("", "full W", "limit W", "held GHz", "of", "utilisation", "")
    clocks = Table(
        clock_columns, [_clock(chip) for chip in check.chips], "Clock under the power limit"
    )
    cores = [_comparison("Area, mm2", areas), _comparison("TDP, W", powers)]
    return [*sections, clocks, *cores]


def _error(error: float, upper_bound: bool) -> str:
    if upper_bound:
        return "within" if error <= 0 else "above"
    return signed(error)


def _cells(row: SiliconRow, scale: float) -> tuple[str, ...]:
    return (
        row.chip,
        row.part.replace("_", " "),
        row.basis if row.seen else "unseen",
        f"{row.predicted * scale:.0f}",
        f"{'< ' if row.upper_bound else ''}{row.published * scale:.0f}",
        _error(row.error, row.upper_bound),
    )


def _is_judged(row: SiliconRow) -> bool:
    """Whether an error tells how good the model is: of a predicted total, beside a figure that is
    no bound."""
    return row.basis == "predicted" and row.part == "total" and not row.upper_bound


def _medians(rows: Sequence[SiliconRow]) -> list[str]:
    judged = [row for row in rows if _is_judged(row)]
    seen = [abs(row.error) for row in judged if row.seen]
    unseen = [abs(row.error) for row in judged if not row.seen]
    parts = [f"median error of what is predicted: {median(seen):.1%}"] if seen else []
    parts += (
        [f"of chips added after the constants were frozen: {median(unseen):.1%}"] if unseen else []
    )
    return ["; ".join(parts)] if parts else []


def _clock(chip: Chip) -> tuple[str, ...]:
    full, limit = full_power_w(chip), chip.sustained_w
    return (
        chip.name,
        "" if full is None else f"{full:.0f}",
        "" if limit is None else f"{limit:.0f}",
        f"{chip.clock_hz / 1e9:.2f}",
        f"{chip.rated_clock_hz / 1e9:.2f}",
        f"{large_product_share(chip):.3f}",
        "" if refusal(chip) is None else "refused",
    )


def _comparison(title: str, rows: Sequence[Comparison]) -> Table:
    cells = [
        (
            row.subject,
            row.component.replace("_", " "),
            row.basis,
            f"{row.predicted:.1f}",
            f"{'< ' if row.upper_bound else ''}{row.published:.1f}",
            _error(row.error, row.upper_bound),
        )
        for row in rows
    ]
    judged = [abs(row.error) for row in rows if row.basis == "predicted" and not row.upper_bound]
    totals = [
        abs(row.error) for row in rows if row.component == "total" and row.basis == "predicted"
    ]
    note = (
        f"median error of the predicted {'totals' if totals else 'figures'}: "
        f"{median(totals or judged):.0%}"
    )
    columns = ("", "component", "basis", "ours", "published", "error")
    return Table(columns, cells, f"Chips of version 1: {title}", notes=[note], texts=3)


def rediscovery_sections(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    """The best chip within the area and power of each real one."""
    cells = [
        (
            row["chip"],
            row["model"],
            "-".join(row["winner"].split("-")[:2]),
            f"{row['ratio']:.2f}",
            f"{row['tflops_per_mm2']:.2f}",
            f"{row['densest_shipped']:.2f}",
            str(row["clusters"]),
            "yes" if row["accepted_at_tdp"] else "no",
        )
        for row in rows
    ]
    columns = (
        "budget of",
        "model",
        "best chip",
        "ratio",
        "TFLOP/s a mm2",
        "shipped",
        "clusters",
        "own TDP",
    )
    note = (
        "best chip: clusters x arrays x rows x columns, lanes of a cluster; ratio: its "
        "throughput over the real chip's "
        "under the same model; shipped: the densest of its process; own TDP: the model "
        "accepts the real chip at it. "
        f"Certified to {max(row['gap'] for row in rows):.1%}."
    )
    ratios = [row["ratio"] for row in rows]
    headline = (
        f"The best chips reach {min(ratios):.2f} to {max(ratios):.2f} x the throughput of "
        "real ones of their size"
    )
    return [Table(columns, cells, headline, notes=[note], texts=3)]

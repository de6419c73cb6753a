"""Chips of clusters beside published figures, in the terminal."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.console import Console

from phaze.hardware.chip import Chip
from phaze.hardware.clocked import refusal
from phaze.hardware.dies import Comparison
from phaze.report.terminal import signed, table
from phaze.validate.silicon import SiliconCheck, SiliconRow, full_power_w, large_product_share

FIGURES = (("area", "Area, mm2", 1.0), ("power", "Power, W", 1.0), ("rate", "Sustained rate, TFLOP/s", 1e-12))


def show_silicon(console: Console, check: SiliconCheck) -> None:
    """Every figure beside ours, then the clock that every chip holds."""
    for figure, title, scale in FIGURES:
        rows = [row for row in check.rows if row.figure == figure]
        console.print(f"[bold]{title}[/bold]")
        console.print(table(("", "part", "basis", "ours", "published", "error"), [_cells(r, scale) for r in rows], 3))
        _median(console, rows)
    console.print("[bold]Clock under the power limit[/bold]")
    heads = ("", "full W", "limit W", "held GHz", "of", "utilisation", "")
    console.print(table(heads, [_clock(chip) for chip in check.chips]))


def _cells(row: SiliconRow, scale: float) -> tuple[str, ...]:
    bound = "within" if row.error <= 0 else "above"
    return (
        row.chip,
        row.part.replace("_", " "),
        row.basis if row.seen else "unseen",
        f"{row.predicted * scale:.0f}",
        f"{'< ' if row.upper_bound else ''}{row.published * scale:.0f}",
        bound if row.upper_bound else signed(row.error),
    )


def _median(console: Console, rows: Sequence[SiliconRow]) -> None:
    judged = [r for r in rows if r.basis == "predicted" and r.part == "total" and not r.upper_bound]
    if judged:
        seen = [abs(r.error) for r in judged if r.seen]
        unseen = [abs(r.error) for r in judged if not r.seen]
        text = f"median error of what is predicted: {median(seen):.1%}" if seen else ""
        text += f"; of chips added after the constants were frozen: {median(unseen):.1%}" if unseen else ""
        console.print(text.lstrip("; "), markup=False)
    console.print()


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


def show_rediscovery(console: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """The best chip within the area and power of each real one, beside it."""
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
    heads = ("budget of", "model", "best chip", "ratio", "TFLOP/s a mm2", "shipped", "clusters", "own TDP")
    console.print(table(heads, cells, left=3))
    said = (
        "best chip: clusters x arrays x rows x columns, lanes of a cluster; ratio: its throughput over the real chip's "
        "under the same model; shipped: the densest of its process; own TDP: the model accepts the real chip at it. "
        f"Certified to {max(row['gap'] for row in rows):.1%}."
    )
    console.print(said, markup=False)


def show_comparisons(console: Console, title: str, rows: Sequence[Comparison]) -> None:
    """Chips of version 1 beside published figures."""
    cells = [
        (
            row.subject,
            row.component.replace("_", " "),
            row.basis,
            f"{row.predicted:.1f}",
            f"{'< ' if row.upper_bound else ''}{row.published:.1f}",
            ("within" if row.error <= 0 else "above") if row.upper_bound else signed(row.error),
        )
        for row in rows
    ]
    console.print(f"[bold]{title}[/bold]")
    console.print(table(("", "component", "basis", "ours", "published", "error"), cells, left=3))
    judged = [abs(row.error) for row in rows if row.basis == "predicted" and not row.upper_bound]
    totals = [abs(row.error) for row in rows if row.component == "total" and row.basis == "predicted"]
    told = totals if totals else judged
    console.print(
        f"median error of the predicted {'totals' if totals else 'figures'}: {median(told):.0%}", markup=False
    )

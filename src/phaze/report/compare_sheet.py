"""Chips side by side for the terminal: what each model reaches, and what the times of each chip rest on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rich.console import Console

from phaze.report.terminal import paragraph, table
from phaze.search.plan_words import split_words
from phaze.units import show

BASES: Mapping[str, str] = MappingProxyType(
    {
        "calibrated": "measured operators",
        "fitted": "a share fitted to runs or one product",
        "datasheet": "data sheet, 0.80 of its peaks",
        "held": "clock held at its power limit, 0.80 of HBM",
        "ideal": "peak rates",
    }
)


def basis_words(row: Mapping[str, Any]) -> str:
    """What the times of a row rest on."""
    words = BASES[row["basis"]]
    if row["basis"] in ("calibrated", "fitted") and row["constants_of"] != row["chip"]:
        return f"{words}, of {row['constants_of']}"
    return words


def band_words(row: Mapping[str, Any]) -> str:
    """By how much the times of a row may be off."""
    return f"± {row['band']:.0%}" if row["band"] else "a bound"


def _note(document: Mapping[str, Any]) -> str:
    bases = {(row["basis"], row["constants_of"]) for row in document["rows"]}
    if document["basis"] == "own" and len(bases) > 1:
        return (
            "Each chip has its own constants, so the basis is unequal: measured for some chips, a data sheet for "
            "others. Without --basis own all have the same."
        )
    if all(row["basis"] == "ideal" for row in document["rows"]):
        return "Every chip reaches its peaks here: ratios compare designs, and no real chip reaches these figures."
    return "Every chip has the same constants, so their error is mostly common to both sides of a ratio."


def show_comparison(console: Console, document: Mapping[str, Any]) -> None:
    """Print a comparison (``phaze.comparison/1``)."""
    rows = document["rows"]
    cells = [
        (
            row["model"],
            row["chip"],
            row["placement"],
            "nothing fits" if row["throughput_per_s"] is None else f"{row['throughput_per_s']:,.4g}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f} x",
            "" if row["pipeline"] is None else split_words(row),
        )
        for row in rows
    ]
    console.print(table(("model", "chip", "placement", "sequences/s", "ratio", "plan"), cells, left=3))
    if document["cluster"]:
        console.print(f"on {document['cluster']}", markup=False)
    console.print()
    chips = {row["chip"]: row for row in rows}
    known = [
        (name, show(row["link_bytes_per_s"], "B/s"), basis_words(row), band_words(row)) for name, row in chips.items()
    ]
    console.print(table(("chip", "link", "times rest on", "band"), known, left=3))
    for note in (_note(document), *document["notes"]):
        paragraph(console, note)

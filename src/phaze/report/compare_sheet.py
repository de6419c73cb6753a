"""Chips compared: what each model reaches, and what the times of each chip rest on."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.report.drawings import Bar, Bars
from phaze.report.sections import Notes, Section, Table
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
            "Each chip has its own constants, so the basis is unequal: measured for some "
            "chips, a data sheet for "
            "others. Without --basis own all have the same."
        )
    if all(row["basis"] == "ideal" for row in document["rows"]):
        return (
            "Every chip reaches its peaks here: ratios compare designs, and no real chip "
            "reaches these figures."
        )
    return (
        "Every chip has the same constants, so their error is mostly common to both sides of "
        "a ratio."
    )


def _compared(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows that the answer is: the best placement of every model on every chip, where it was
    searched for."""
    rows = [row for row in document["rows"] if row["ratio"] is not None]
    return [row for row in rows if row["placement"] == "searched"] or rows


def _headline(document: Mapping[str, Any]) -> str:
    """The best ratio to the baseline, in a sentence."""
    others = [row for row in _compared(document) if row["chip"] != document["baseline"]]
    if not others:
        return f"Chips compared with {document['baseline']}"
    best = max(others, key=lambda row: row["ratio"])
    return (
        f"{best['chip']} reaches {best['ratio']:.2f} x the throughput of "
        f"{document['baseline']} on {best['model']}"
    )


def _ratios(document: Mapping[str, Any]) -> Bars:
    """The throughput of every model on every chip over that on the baseline."""
    several = len({row["model"] for row in document["rows"]}) > 1
    bars = [
        Bar(
            f"{row['model']}, {row['chip']}" if several else row["chip"],
            row["ratio"],
            f"{row['ratio']:.2f} x",
        )
        for row in _compared(document)
    ]
    return Bars(
        bars, _headline(document), f"on {document['cluster']}" if document["cluster"] else ""
    )


def _rates(document: Mapping[str, Any]) -> Table:
    models = {row["model"] for row in document["rows"]}
    cells = [
        (
            *((row["model"],) if len(models) > 1 else ()),
            row["chip"],
            row["placement"],
            "" if row["pipeline"] is None else split_words(row),
            "nothing fits"
            if row["throughput_per_s"] is None
            else f"{row['throughput_per_s']:,.4g}",
            "" if row["ratio"] is None else f"{row['ratio']:.2f} x",
        )
        for row in document["rows"]
    ]
    columns = ("chip", "placement", "plan", "sequences/s", "ratio")
    if len(models) > 1:
        return Table(("model", *columns), cells, "Every placement", texts=4)
    return Table(columns, cells, "Every placement", models.pop(), texts=3)


def comparison_sections(document: Mapping[str, Any]) -> list[Section]:
    """A comparison (``phaze.comparison/1``)."""
    chips = {row["chip"]: row for row in document["rows"]}
    bases = [
        (name, show(row["link_bytes_per_s"], "B/s"), basis_words(row), band_words(row))
        for name, row in chips.items()
    ]
    return [
        _ratios(document),
        _rates(document),
        Table(("chip", "link", "times rest on", "band"), bases, "What the times rest on", texts=3),
        Notes([_note(document), *document["notes"]]),
    ]

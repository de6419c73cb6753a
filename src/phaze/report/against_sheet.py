"""A plan that runs today compared with the best one."""

from collections.abc import Mapping
from typing import Any

from phaze.report.sections import Notes, Section, Table
from phaze.units import show

NAMED = 8
"""So many flags that price nothing are named; the rest is counted."""


def _fullest(document: Mapping[str, Any]) -> str:
    text = show(max(stage["memory_bytes"] for stage in document["stages"]), "B")
    return text if document["feasible"] else f"{text}, does not fit"


def _sides(given: Mapping[str, Any], best: Mapping[str, Any], source: str) -> Table:
    rows = [
        ("step", show(given["batch_s"], "s"), show(best["batch_s"], "s")),
        (
            "tokens/s a device",
            f"{given['tokens_per_s_per_device']:,.4g}",
            f"{best['tokens_per_s_per_device']:,.4g}",
        ),
        ("MFU", f"{given['mfu']:.1%}", f"{best['mfu']:.1%}"),
        ("fullest stage", _fullest(given), _fullest(best)),
    ]
    return Table(("", "yours", "best"), rows, "Your plan against the best", source)


def _differences(against: Mapping[str, Any]) -> Section:
    if not against["differences"]:
        return Notes(["It is the best plan."])
    faster = against["gain"] > 0
    word = "faster" if faster else "slower: yours may fill memory that a plan keeps free, and is"
    title = f"The best plan is {abs(against['gain']):.1%} {word}"
    columns = ("difference", "yours", "best", "step time", "alone")
    return Table(
        columns, _steps(against), title, "each difference after those above it, and alone", texts=3
    )


def _steps(against: Mapping[str, Any]) -> list[tuple[str, ...]]:
    whole_s = against["plan"]["batch_s"]
    rows: list[tuple[str, ...]] = []
    fitted = against["plan"]["feasible"]
    for step in against["differences"]:
        alone = "-" if step["alone_s"] is None else f"{step['alone_s'] / whole_s - 1:+.1%}"
        alone += "" if step["alone_fits"] in (None, True) else ", does not fit"
        worth = f"{-step['worth_s'] / whole_s:+.1%}".replace("-0.0%", "0.0%").replace(
            "+0.0%", "0.0%"
        )
        worth += (
            ", fits again"
            if step["fits"] and not fitted
            else ""
            if step["fits"]
            else ", does not fit yet"
        )
        fitted = step["fits"]
        rows.append((step["what"], step["given"], step["best"], worth, alone))
    return rows


def _flag(name: str, value: str) -> str:
    return (
        f"{name} {value}"
        if name.startswith("-") and value
        else name
        if not value
        else f"{name} = {value}"
    )


def _flags(flags: Mapping[str, Any]) -> list[Section]:
    if flags["refused"] is not None:
        side = "The best plan" if flags["refused"] == "best" else "Your plan"
        return [Notes([f"{side} has no {flags['framework']} flags: {flags['reason']}"])]
    lines = []
    for row in flags["changes"]:
        for sign, value in (("-", row["given"]), ("+", row["best"])):
            if value is not None:
                lines.append(f"{sign} {_flag(row['name'], value)}")
    return [Notes(lines, "Flags to change", flags["framework"], verbatim=True)] if lines else []


def against_sections(document: Mapping[str, Any]) -> list[Section]:
    """A plan's key ``against``: both sides, the differences with their worth, the flags to
    change."""
    against = document["against"]
    notes = [f"note: {note}" for note in against["assumed"]]
    if against["not_read"]:
        names, more = against["not_read"][:NAMED], len(against["not_read"]) - NAMED
        rest = f" and {more} more" if more > 0 else ""
        notes.append(f"not read, as they price nothing here: {', '.join(names)}{rest}")
    return [
        _sides(against["plan"], document, against["source"]),
        _differences(against),
        *_flags(against["flags"]),
        *([Notes(notes)] if notes else []),
    ]

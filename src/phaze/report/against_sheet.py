"""A plan that runs today beside the best one, in the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from phaze.report.terminal import paragraph, table
from phaze.units import show

# So many flags that price nothing are named; the rest is counted.
NAMED = 8


def _sides(given: Mapping[str, Any], best: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    def fullest(document: Mapping[str, Any]) -> str:
        text = show(max(stage["memory_bytes"] for stage in document["stages"]), "B")
        return text if document["feasible"] else f"{text}, does not fit"

    return [
        ("step", show(given["batch_s"], "s"), show(best["batch_s"], "s")),
        ("tokens/s a device", f"{given['tokens_per_s_per_device']:,.4g}", f"{best['tokens_per_s_per_device']:,.4g}"),
        ("MFU", f"{given['mfu']:.1%}", f"{best['mfu']:.1%}"),
        ("fullest stage", fullest(given), fullest(best)),
    ]


def _flag(name: str, value: str) -> str:
    return f"{name} {value}" if name.startswith("-") and value else name if not value else f"{name} = {value}"


def show_against(console: Console, document: Mapping[str, Any]) -> None:
    """Print a plan's key ``against``: both sides, the differences with their worth, the flags to change."""
    against = document["against"]
    given = against["plan"]
    console.print(f"\n[bold]Your plan against the best[/bold] ({against['source']})")
    console.print(table(("", "yours", "best"), _sides(given, document)))
    if not against["differences"]:
        paragraph(console, "It is the best plan.")
    else:
        word = "faster" if against["gain"] > 0 else "slower: yours may fill memory that a plan keeps free, and is"
        paragraph(
            console,
            f"The best plan is {abs(against['gain']):.1%} {word}. What each difference is worth, one after another:",
        )
        console.print(table(("difference", "yours", "best", "step time", "alone"), _differences(against), left=3))
    _show_flags(console, against["flags"])
    for note in against["assumed"]:
        paragraph(console, f"note: {note}", indent="  ")
    if against["not_read"]:
        names, more = against["not_read"][:NAMED], len(against["not_read"]) - NAMED
        rest = f" and {more} more" if more > 0 else ""
        paragraph(console, f"not read, as they price nothing here: {', '.join(names)}{rest}", indent="  ")


def _differences(against: Mapping[str, Any]) -> list[tuple[str, ...]]:
    whole_s = against["plan"]["batch_s"]
    rows: list[tuple[str, ...]] = []
    fitted = against["plan"]["feasible"]
    for step in against["differences"]:
        alone = "-" if step["alone_s"] is None else f"{step['alone_s'] / whole_s - 1:+.1%}"
        alone += "" if step["alone_fits"] in (None, True) else ", does not fit"
        worth = f"{-step['worth_s'] / whole_s:+.1%}".replace("-0.0%", "0.0%").replace("+0.0%", "0.0%")
        worth += ", fits again" if step["fits"] and not fitted else "" if step["fits"] else ", does not fit yet"
        fitted = step["fits"]
        rows.append((step["what"], step["given"], step["best"], worth, alone))
    return rows


def _show_flags(console: Console, flags: Mapping[str, Any]) -> None:
    if flags["refused"] is not None:
        side = "The best plan" if flags["refused"] == "best" else "Your plan"
        paragraph(console, f"{side} has no {flags['framework']} flags: {flags['reason']}")
        return
    if not flags["changes"]:
        return
    console.print(f"\n[bold]Flags to change[/bold] ({flags['framework']})")
    for row in flags["changes"]:
        for sign, value in (("-", row["given"]), ("+", row["best"])):
            if value is not None:
                console.print(f"{sign} {_flag(row['name'], value)}", markup=False, soft_wrap=True)

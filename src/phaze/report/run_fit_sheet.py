"""What a measured run determined, in the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from phaze.report.terminal import facts, paragraph, signed, table
from phaze.units import show

DRAWN = "A plan's timeline is an estimate unless you drew it from a run: what is fitted to it is no measurement."


def _seconds(value: float | None) -> str:
    return "" if value is None else show(value, "s")


def show_run_fit(console: Console, document: Mapping[str, Any]) -> None:
    """Print a fit: what was measured, what it determined, what not and why."""
    measured, step = document["measured"], document["step_s"]
    console.print(
        facts(
            [
                ("step", f"{show(step['measured'], 's')} {'drawn' if measured['kind'] == 'plan' else 'measured'}"),
                ("before", f"{show(step['before'], 's')}, {signed(step['before'] / step['measured'] - 1)}"),
                ("fitted", f"{show(step['fitted'], 's')}, {signed(step['fitted'] / step['measured'] - 1)}"),
            ]
        )
    )
    if measured["kind"] == "plan":
        console.print()
        paragraph(console, DRAWN)
    if "seconds" in measured:
        console.print("\n[bold]Seconds a step by class of kernel[/bold]")
        rows = [
            (name, _seconds(each["measured"]), _seconds(each["predicted"]))
            for name, each in measured["seconds"].items()
        ]
        console.print(table(("", "measured", "phaze"), rows, left=1))
        if measured["unknown_share"]:
            names = ", ".join(f"{each['name']} ({each['share']:.1%})" for each in measured["unknown"])
            paragraph(console, f"{measured['unknown_share']:.1%} of kernel time has unknown names: {names}.")
    if document["fitted"]:
        console.print("\n[bold]Fitted[/bold]")
        cells = [
            (
                each["file"],
                each["key"],
                "" if each["before"] is None else f"{each['before']:.4g}",
                f"{each['value']:.4g}",
                each["how"],
            )
            for each in document["fitted"]
        ]
        console.print(table(("file", "key", "before", "now", "from"), cells, left=2))
    if document["undetermined"]:
        console.print("\n[bold]Not determined[/bold]")
        for each in document["undetermined"]:
            paragraph(console, f"{each['key']}: {each['reason']}.")
    for kind, path in document["files"].items():
        console.print(f"{kind}: {path}", markup=False, highlight=False)

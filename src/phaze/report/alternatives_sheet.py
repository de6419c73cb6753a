"""The best different plans in the terminal, and those apart that no framework can launch."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from phaze.evaluate.plan_set import choices_text
from phaze.evaluate.restrictions import proof_words
from phaze.report.run_sheet import part_words
from phaze.report.terminal import paragraph, table
from phaze.search.plan_words import degree_words
from phaze.units import show


def _shared(row: Mapping[str, Any]) -> str:
    names = {"context": "CP", "expert": "EP", "expert_tensor": "ETP", "shard": "shard"}
    return "".join(f"{name} {row[key]} " for key, name in names.items() if row.get(key, 1) > 1)


def _launchable(row: Mapping[str, Any]) -> bool:
    """Whether some framework can launch a plan; where nothing is said of it, it may."""
    launch = row.get("launch")
    return not launch or any(one["refused"] is None for one in launch.values())


def _alternative(row: Mapping[str, Any], document: Mapping[str, Any], named: bool) -> tuple[str, ...]:
    """A plan's row: its degrees, recompute, what it loses most by, step time and what it leaves of memory."""
    left = (row.get("plan") or document).get("memory_left")
    return (
        f"TP {row['tensor']} {_shared(row)}PP {row['pipeline']} DP {row['data']} mb {row['microbatch']}"
        + (f" {row['family']}" if row.get("family") else "")
        + (f" VPP {row['chunks']}" if row["chunks"] > 1 else "")
        + (f" Z{row['zero']}" if row["zero"] else "")
        + (" SP" if row["sequence_parallel"] else "")
        + (f" {row['attention']}" if named else ""),
        ", ".join(row["recompute"]),
        part_words(row["loses_by"]) if row["loses_by"] else "-",
        show(row["batch_s"], "s"),
        f"{row['slower']:+.1%}",
        "-" if left is None else f"{max(0.0, left['left_share']):.0%}",
    )


def _show_rows(console: Console, document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    named = len({row["attention"] for row in document["alternatives"]}) > 1
    columns = ("plan", "recompute", "loses most by", "step", "slower", "left")
    console.print(table(columns, [_alternative(row, document, named) for row in rows], left=3))


def show_alternatives(console: Console, document: Mapping[str, Any]) -> None:
    """The best different plans, what each loses most by, and those apart that no framework can launch."""
    rows = document["alternatives"]
    console.print("\n[bold]The best different plans[/bold] (left: of a device's memory)")
    _show_rows(console, document, [row for row in rows if _launchable(row)])
    refused = [row for row in rows if not _launchable(row)]
    if refused:
        first = next(iter(refused[0]["launch"].values()))["refused"]
        paragraph(console, f"No framework launches these as they are (the first: {first}):")
        _show_rows(console, document, refused)
    for name, key in (("rule of thumb", "rule_of_thumb"), ("experts' split", "experts")):
        usual = document.get(key)
        if usual is not None:
            split = degree_words(usual)
            console.print(f"{name} ({split}): {show(usual['batch_s'], 's')}, {usual['slower']:+.1%}", markup=False)
    paragraph(console, proof_words(document))
    paragraph(console, choices_text(document))

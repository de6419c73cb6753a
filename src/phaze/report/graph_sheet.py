"""A graph for people: one line for each distinct layer, and what the model adds up to."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from phaze.report.terminal import facts, paragraph, table
from phaze.units import show

COLUMNS = ("layer", "calls", "operators", "GFLOP", "parameters", "saved", "collectives")
SHORT: tuple[tuple[str, str], ...] = (("all_reduce", "AR"), ("all_gather", "AG"), ("reduce_scatter", "RS"))


def show_graph(console: Console, document: Mapping[str, Any]) -> None:
    """The table of a ``phaze.graph/1`` document."""
    total = document["summary"]
    ways = [f"tensor width {document['tensor']}", f"microbatch {document['microbatch']}"]
    ways += [f"sequence {document['sequence']}", f"{document['attention']} attention"]
    if document["sequence_parallel"]:
        ways.append("sequence parallel")
    console.print(f"[bold]{escape(document['name'])}[/bold]  {', '.join(ways)}\n")
    console.print(table(COLUMNS, [_row(layer) for layer in total["layers"]]))
    console.print("\n[bold]The whole model, on one rank, for one microbatch[/bold]")
    console.print(facts(_facts(total)))
    console.print("\noperators, GFLOP and collectives: forward / backward; AR all-reduce, AG all-gather,")
    console.print("RS reduce-scatter. saved: what one call keeps from forward to backward.")
    for text in document["approximations"]:
        paragraph(console, f"approximation: {text}", "  ")


def _row(layer: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        layer["name"],
        str(layer["count"]),
        f"{layer['forward_operators']} / {layer['backward_operators']}",
        f"{layer['forward_flops'] / 1e9:,.1f} / {layer['backward_flops'] / 1e9:,.1f}",
        f"{layer['parameters']:,}",
        show(layer["saved_bytes"], "B"),
        " / ".join(_counts(layer["collectives"], name) for name in ("forward", "backward")),
    )


def _counts(rows: Sequence[Mapping[str, Any]], name: str) -> str:
    found: list[str] = []
    for kind, short in SHORT:
        count = sum(row["count"] for row in rows if row["kind"] == kind and row["pass"] == name)
        if count:
            found.append(f"{count} {short}")
    return " ".join(found) or "-"


def _facts(total: Mapping[str, Any]) -> list[tuple[str, str]]:
    sent = sum(row["bytes"] * row["count"] for row in total["collectives"])
    return [
        ("parameters", f"{total['parameters']:,}"),
        ("forward", f"{total['forward_flops'] / 1e12:,.3f} TFLOP of matrix products"),
        ("backward", f"{total['backward_flops'] / 1e12:,.3f} TFLOP"),
        ("saved", f"{show(total['saved_bytes'], 'B')}, nothing recomputed"),
        (
            "collectives",
            f"{sum(row['count'] for row in total['collectives'])} over {show(sent, 'B')}" if sent else "none",
        ),
    ]

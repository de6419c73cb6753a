"""A graph for people: one line for each distinct layer, and what the model adds up to."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.report.sections import Figures, Notes, Section, Table
from phaze.units import show

COLUMNS = ("layer", "calls", "ops", "FLOP", "param.", "saved", "sent")
PREFIXES: tuple[tuple[str, float], ...] = (
    ("P", 1e15),
    ("T", 1e12),
    ("G", 1e9),
    ("M", 1e6),
    ("k", 1e3),
)
NOTE = (
    "ops, FLOP (of matrix products) and sent (collectives): forward/backward, of one "
    "call; param.: parameters on this "
    "rank; saved: what one call keeps from forward to backward."
)


def graph_sections(document: Mapping[str, Any]) -> list[Section]:
    """A ``phaze.graph/1`` document."""
    total = document["summary"]
    rank = [f"TP {document['tensor']}", f"microbatch {document['microbatch']}"]
    rank += [f"sequence {document['sequence']}", f"{document['attention']} attention"]
    if document["sequence_parallel"]:
        rank.append("sequence parallel")
    notes = [NOTE, *(f"approximation: {text}" for text in document["approximations"])]
    return [
        Table(
            COLUMNS, [_row(layer) for layer in total["layers"]], document["name"], ", ".join(rank)
        ),
        Figures(_totals(total), "The whole model, on one rank, for one microbatch"),
        Notes(notes),
    ]


def short(value: float) -> str:
    """Three digits and a prefix: ``6.98G``."""
    prefix, factor = next(((name, size) for name, size in PREFIXES if value >= size), ("", 1.0))
    digits = 0 if value / factor >= 100 else 1 if value / factor >= 10 else 2
    return f"{value / factor:.{digits if prefix else 0}f}{prefix}"


def _sent(rows: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(row["count"] for row in rows if row["pass"] == name)


def _row(layer: Mapping[str, Any]) -> tuple[str, ...]:
    sent = [_sent(layer["collectives"], name) for name in ("forward", "backward")]
    return (
        layer["name"],
        str(layer["count"]),
        f"{layer['forward_operators']}/{layer['backward_operators']}",
        f"{short(layer['forward_flops'])}/{short(layer['backward_flops'])}",
        short(layer["parameters"]),
        show(layer["saved_bytes"], "B"),
        f"{sent[0]}/{sent[1]}" if any(sent) else "-",
    )


def _totals(total: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = [
        ("parameters", f"{total['parameters']:,}"),
        ("forward", f"{total['forward_flops'] / 1e12:,.3f} TFLOP of matrix products"),
        ("backward", f"{total['backward_flops'] / 1e12:,.3f} TFLOP"),
        ("saved", f"{show(total['saved_bytes'], 'B')}, nothing recomputed"),
    ]
    for row in total["collectives"]:
        kind = row["kind"].replace("_", "-")
        pairs.append((row["pass"], f"{row['count']} x {kind} of {show(row['bytes'], 'B')}"))
    return pairs


def unknown_sections(rows: Sequence[Mapping[str, Any]]) -> list[Section]:
    """The operators that phaze does not know."""
    if not rows:
        return [Notes(["every operator of this model is known"])]
    cells = [tuple(row.values()) for row in rows]
    remedy = "To add one: a row in NAMES of phaze/graph/opset.py, see docs/graph.md."
    return [Table(("unknown operator", "module", "line"), cells, texts=3), Notes([remedy])]

"""The best different plans, those apart that no framework can launch, and the same job on other
terms."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.evaluate.plan_set import choices_text
from phaze.evaluate.restrictions import proof_words
from phaze.report.plan_text import unit_of
from phaze.report.sections import Cell, Meter, Notes, Number, Section, Table
from phaze.report.step_time import part_words
from phaze.search.plan_words import degree_words
from phaze.units import show


def _shared(row: Mapping[str, Any]) -> str:
    names = {"context": "CP", "expert": "EP", "expert_tensor": "ETP", "shard": "shard"}
    return "".join(f"{name} {row[key]} " for key, name in names.items() if row.get(key, 1) > 1)


def _launchable(row: Mapping[str, Any]) -> bool:
    """Whether some framework can launch a plan; where nothing is said of it, it may."""
    launch = row.get("launch")
    return not launch or any(target["refused"] is None for target in launch.values())


def _alternative(
    row: Mapping[str, Any], document: Mapping[str, Any], named: bool
) -> tuple[str, ...]:
    """A plan's row: its degrees, recompute, what it loses most by, step time and what it leaves of
    memory."""
    left = (row.get("plan") or document).get("memory_left")
    return (
        (
            f"TP {row['tensor']} {_shared(row)}PP {row['pipeline']} DP {row['data']} mb "
            f"{row['microbatch']}"
        )
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


def _plans(
    document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], title: str, caption: str
) -> Table:
    named = len({row["attention"] for row in document["alternatives"]}) > 1
    columns = ("plan", "recompute", "loses most by", "step", "slower", "left")
    cells = [_alternative(row, document, named) for row in rows]
    return Table(columns, cells, title, caption, texts=3)


def alternatives_sections(document: Mapping[str, Any]) -> list[Section]:
    """The best different plans and what each loses most by; usual plans; what is proved."""
    rows = document["alternatives"]
    launchable = [row for row in rows if _launchable(row)]
    refused = [row for row in rows if not _launchable(row)]
    sections: list[Section] = [
        _plans(document, launchable, "The best different plans", "left: of a device's memory"),
    ]
    if refused:
        first = next(iter(refused[0]["launch"].values()))["refused"]
        sections.append(
            _plans(
                document, refused, "No framework launches these as they are", f"the first: {first}"
            )
        )
    lines = []
    for name, key in (("rule of thumb", "rule_of_thumb"), ("experts' split", "experts")):
        usual = document.get(key)
        if usual is not None:
            lines.append(
                f"{name} ({degree_words(usual)}): {show(usual['batch_s'], 's')}, "
                f"{usual['slower']:+.1%}"
            )
    return [*sections, Notes([*lines, proof_words(document), choices_text(document)])]


def what_if_sections(document: Mapping[str, Any]) -> list[Section]:
    """Other devices, batches, sequences and chips, where they were planned."""
    sections: list[Section] = []
    for group in document.get("what_if") or ():
        rates = [row["tokens_per_s_per_device"] for row in group["rows"] if row["reason"] is None]
        rows: list[Sequence[Cell]] = []
        for row in group["rows"]:
            label = f"{row['label']} (now)" if row["same"] else row["label"]
            if row["reason"] is not None:
                rows.append((label, f"does not work: {row['reason']}", "", "", ""))
            else:
                rate = row["tokens_per_s_per_device"]
                figures = (
                    Number(f"{rate:,.4g}", rate),
                    f"{row['mfu']:.1%}",
                    Meter(rate / max(rates)),
                )
                rows.append((label, row["plan"], *figures))
        columns = (group["axis"], "plan", f"{unit_of(document)}/s a device", "MFU", "")
        sections.append(Table(columns, rows, f"What if: {group['title']}", texts=2))
    return sections

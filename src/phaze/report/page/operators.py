"""The operators of the layer that a model calls most, on their cores."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.report.drawings import Block, BlockKind, Timeline
from phaze.report.sections import Group, Section, Table
from phaze.report.view_model import Gantt, Story
from phaze.units import show

LONGEST = 10
"""Operators that the table names."""
KINDS: Mapping[str, BlockKind] = MappingProxyType(
    {
        "tensor": "tensor",
        "vector": "vector",
        "both": "both",
        "none": "network",
        "network": "network",
    }
)


def _timeline(gantt: Gantt) -> Timeline:
    lanes = []
    for lane, bars in gantt.rows:
        blocks = [Block(bar.start_s, bar.end_s, bar.name, "", KINDS[bar.core]) for bar in bars]
        lanes.append((lane, blocks))
    return Timeline(
        lanes, gantt.end_s, f"{gantt.title.capitalize()}, {show(gantt.end_s, 's')}", gantt.verdict
    )


def operators_group(story: Story) -> Group:
    """Both passes of the layer, and its longest operators."""
    bars = {
        (gantt.title, bar): lane
        for gantt in story.gantts
        for lane, members in gantt.rows
        for bar in members
    }
    longest = sorted(bars.items(), key=lambda item: item[0][1].start_s - item[0][1].end_s)[:LONGEST]
    rows = [
        (bar.name, title, lane, show(bar.end_s - bar.start_s, "s"))
        for (title, bar), lane in longest
    ]
    spread = any(lane == "spread" for gantt in story.gantts for lane, _ in gantt.rows)
    notes = [
        f"The layer that runs most, {story.layer}."
        + (" Spread: on all cores of its kind." if spread else "")
    ]
    table = Table(
        ("operator", "pass", "runs on", "time"), rows, "Longest operators", notes=notes, texts=3
    )
    sections: list[Section] = [*(_timeline(gantt) for gantt in story.gantts), table]
    return Group(
        sections, "Operators", folded="Show both passes of the layer that runs most, on their cores"
    )

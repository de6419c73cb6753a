"""The operators of the layer that a model calls most, on their cores."""

from phaze.report.sections import Group, Section, Table
from phaze.report.view_model import Story
from phaze.units import show

LONGEST = 10
"""Operators that the table names."""


def operators_group(story: Story) -> Group:
    """Both passes of the layer, and its longest operators."""
    lanes = {
        (title, block): lane
        for title, timeline in story.layer_passes.items()
        for lane, blocks in timeline.lanes
        for block in blocks
    }
    longest = sorted(lanes.items(), key=lambda item: item[0][1].start_s - item[0][1].end_s)
    rows = [
        (block.name, title, lane, show(block.end_s - block.start_s, "s"))
        for (title, block), lane in longest[:LONGEST]
    ]
    spread = "spread" in lanes.values()
    notes = [
        f"The layer that runs most, {story.layer}."
        + (" Spread: on all cores of its kind." if spread else "")
    ]
    table = Table(
        ("operator", "pass", "runs on", "time"), rows, "Longest operators", notes=notes, texts=3
    )
    sections: list[Section] = [*story.layer_passes.values(), table]
    return Group(
        sections, "Operators", folded="Show both passes of the layer that runs most, on their cores"
    )

"""The operators of a layer on their cores, as a template draws them: a Gantt chart for each pass."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from phaze.report.view_model import Gantt, Story
from phaze.units import show

WIDE = 1000.0
"""Units across a drawing."""
LONGEST = 10
"""Operators that the table names."""
COLOURS: Mapping[str, str] = MappingProxyType(
    {"tensor": "tensor", "vector": "vector", "both": "buffer", "none": "network", "network": "network"}
)
NAMES: Mapping[str, str] = MappingProxyType(
    {"tensor": "tensor", "vector": "vector", "both": "both (fused)", "none": "network", "network": "network"}
)


@dataclass(frozen=True, slots=True)
class Block:
    """An operator on a lane: places in a drawing WIDE across and 10 a lane."""

    x: str
    y: str
    width: str
    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One pass."""

    title: str
    label: str
    lanes: tuple[str, ...]
    height: int
    pixels: str
    blocks: tuple[Block, ...]
    end: str


@dataclass(frozen=True, slots=True)
class OperatorsView:
    """Both passes of the layer that a model calls most, and its longest operators."""

    about: str
    legend: tuple[tuple[str, str], ...]
    charts: tuple[Chart, ...]
    longest: tuple[tuple[str, str, str, str], ...]


def _chart(gantt: Gantt) -> Chart:
    row_px = 18.0 if len(gantt.rows) <= 24 else max(3.0, 432.0 / len(gantt.rows))
    blocks = []
    for at, (lane, bars) in enumerate(gantt.rows):
        for bar in bars:
            left, width = bar.start_s / gantt.end_s * WIDE, (bar.end_s - bar.start_s) / gantt.end_s * WIDE
            words = f"{bar.name} on {lane}: {show(bar.start_s, 's')} to {show(bar.end_s, 's')}"
            place = (f"{left:.2f}", f"{at * 10 + 0.5:g}", f"{max(0.4, width - 0.5):.2f}")
            blocks.append(Block(*place, COLOURS[bar.core], words))
    return Chart(
        title=f"{gantt.title.capitalize()}, {show(gantt.end_s, 's')}: {gantt.verdict}",
        label=f"operators of the {gantt.title} pass on {len(gantt.rows)} rows",
        lanes=tuple(lane if row_px >= 12 else "" for lane, _ in gantt.rows),
        height=len(gantt.rows) * 10,
        pixels=f"{len(gantt.rows) * row_px:g}",
        blocks=tuple(blocks),
        end=show(gantt.end_s, "s"),
    )


def operators_view(story: Story) -> OperatorsView:
    """The layer that a model calls most, on its cores."""
    bars = {(g.title, b): lane for g in story.gantts for lane, own in g.rows for b in own}
    longest = sorted(bars.items(), key=lambda item: item[0][1].start_s - item[0][1].end_s)[:LONGEST]
    used = {bar.core for _, bar in bars}
    spread = any(lane == "spread" for gantt in story.gantts for lane, _ in gantt.rows)
    return OperatorsView(
        about=f"The layer that runs most, {story.layer}." + (" Spread: on all cores of its kind." if spread else ""),
        legend=tuple(dict.fromkeys((COLOURS[core], NAMES[core]) for core in NAMES if core in used)),
        charts=tuple(_chart(gantt) for gantt in story.gantts),
        longest=tuple((bar.name, title, lane, show(bar.end_s - bar.start_s, "s")) for (title, bar), lane in longest),
    )

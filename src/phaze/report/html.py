"""Sections as a page: one HTML file that opens from disk and asks nothing of any network.

The title of the first section is the page's headline. Drawings are SVG made here, so that they are there without any
script, scale with the window and print; what they show can be read as text too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.report.page.render import rendered
from phaze.report.sections import Axis, Bars, BlockKind, Region, Scatter, Section, Sections, Timeline
from phaze.units import show

PER_PAGE = 14
"""Rows of a table on a laptop screen."""
LONG = 10
"""Tables of more rows can be sorted, searched and saved."""
FEW_SECTIONS = 3
"""Up to so many sections with a title a page needs no list of them."""
# A drawing of a scatter: its size, and the room around it.
WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 34, 34, 46
SERIES = 6
"""Kinds of lines that the style sheet has."""
LANES_WIDTH = 1000.0
"""Units across a drawing of lanes."""
LANE_PX, LEAST_LANE_PX, LANES_PX = 18.0, 3.0, 432.0
"""Height of a lane, the least that can be seen, and the room for all of them."""
READABLE_PX = 12.0
"""Lanes below it have no names."""
KINDS: Mapping[BlockKind, tuple[str, str]] = MappingProxyType(
    {
        "tensor": ("tensor", "tensor"),
        "vector": ("vector", "vector"),
        "both": ("buffer", "both (fused)"),
        "network": ("network", "network"),
    }
)
"""The colour of a kind of block, and its name in a legend."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section with what a template needs of it: its kind, an anchor, and places of what is drawn."""

    kind: str
    key: str
    section: Section
    drawing: Any = None
    per_page: int = PER_PAGE
    long: int = LONG


def _scatter_drawing(section: Scatter) -> dict[str, Any]:
    across, up = section.x.scale(), section.y.scale()

    def x(value: float) -> str:
        return f"{LEFT + across(value) * (WIDTH - LEFT - RIGHT):.1f}"

    def y(value: float) -> str:
        return f"{HEIGHT - BOTTOM - up(value) * (HEIGHT - TOP - BOTTOM):.1f}"

    def span(region: Region) -> dict[str, str]:
        start, end = float(x(region.start)), float(x(region.end))
        middle, width = f"{(start + end) / 2:.1f}", f"{max(end - start, 1):.1f}"
        return {"x": f"{start:.1f}", "width": width, "middle": middle, "name": region.name, "text": region.text}

    return {
        "size": (WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM),
        "regions": [span(region) for region in section.regions],
        "ranges": [span(region) for region in section.ranges],
        "across": _ticks(section.x, x),
        "up": _ticks(section.y, y),
        "series": [
            {
                "name": series.name,
                "kind": number % SERIES,
                "points": [(x(point.x), y(point.y), point.text) for point in series.points],
            }
            for number, series in enumerate(section.series)
        ],
    }


def _ticks(axis: Axis, place: Any) -> list[tuple[str, str]]:
    return [(place(value), text) for value, text in axis.ticks]


def _timeline_drawing(section: Timeline) -> dict[str, Any]:
    lanes = section.lanes
    lane_px = LANE_PX if len(lanes) * LANE_PX <= LANES_PX else max(LEAST_LANE_PX, LANES_PX / len(lanes))
    blocks, kinds = [], dict[BlockKind, None]()
    for number, (lane, members) in enumerate(lanes):
        for block in members:
            start = block.start_s / section.end_s * LANES_WIDTH
            width = max(0.4, (block.end_s - block.start_s) / section.end_s * LANES_WIDTH - 0.5)
            text = f"{block.name} on {lane}: {show(block.start_s, 's')} to {show(block.end_s, 's')}"
            colour = KINDS[block.kind][0]
            kinds[block.kind] = None
            blocks.append((f"{start:.2f}", f"{number * 10 + 0.5:g}", f"{width:.2f}", colour, text))
    return {
        "names": [name if lane_px >= READABLE_PX else "" for name, _ in lanes],
        "height": len(lanes) * 10,
        "pixels": f"{len(lanes) * lane_px:g}",
        "blocks": blocks,
        "legend": [(KINDS[kind][0], KINDS[kind][1]) for kind in KINDS if kind in kinds],
        "end": show(section.end_s, "s"),
    }


def _bars_drawing(section: Bars) -> list[float]:
    """The length of every bar as a share of the scale."""
    scale = section.scale or max((row.length for row in section.rows), default=0.0) or 1.0
    return [min(1.0, max(0.0, row.length / scale)) for row in section.rows]


def _keys(sections: Sections) -> list[str]:
    """An anchor for each section: the first is the answer, others have words of their titles."""
    keys: list[str] = []
    for number, section in enumerate(sections):
        words = "-".join(re.findall(r"[a-z0-9]+", section.title.lower())[:6])
        key = "answer" if number == 0 else words or f"part-{number}"
        keys.append(f"{key}-{number}" if key in keys else key)
    return keys


def _part(section: Section, key: str) -> Part:
    kind = type(section).__name__.lower()
    match section:
        case Scatter():
            return Part(kind, key, section, _scatter_drawing(section))
        case Timeline():
            return Part(kind, key, section, _timeline_drawing(section))
        case Bars():
            return Part(kind, key, section, _bars_drawing(section))
        case _:
            return Part(kind, key, section)


def parts_of(sections: Sections, prefix: str = "") -> list[Part]:
    """Sections as the templates of pages lay them out; ``prefix`` tells their anchors from others of the page."""
    return [_part(section, prefix + key) for section, key in zip(sections, _keys(sections), strict=True)]


def sections_page(sections: Sections, command: str = "", *, subject: str = "", served: bool = False) -> str:
    """A page of sections; ``command`` and ``subject`` say what answers what, ``served`` whether phaze view shows it."""
    parts = parts_of(sections)
    titled = [part for part in parts[1:] if part.section.title]
    name = f"phaze {command}".strip()
    headline = (sections[0].title if sections else "") or subject or name
    context = {
        "name": name,
        "title": f"{name}: {headline}",
        "headline": headline,
        "subject": subject,
        "parts": parts,
        "listed": titled if len(titled) > FEW_SECTIONS else [],
        "served": served,
    }
    return rendered("sections.html", context, ("sorted_table.js",), served=served)

"""Sections as a page: one HTML file that opens from disk and asks nothing of any network.

The title of the first section is the page's headline. Bars, drawings and texts are SVG and HTML
made here, so that they are there without any script, scale with the window and print. Scripts
choose variants, sort tables, and draw what is too much for SVG: plots of many designs and timelines
that can be zoomed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from phaze.report.drawings import (
    Axis,
    Bar,
    Bars,
    BlockKind,
    Colour,
    DesignPlot,
    Gauge,
    Piece,
    Region,
    Scatter,
    Timeline,
)
from phaze.report.page.render import rendered
from phaze.report.page.script_numbers import plot_numbers, timeline_numbers
from phaze.report.sections import (
    Cards,
    Group,
    Pick,
    Pin,
    RunCost,
    Section,
    Sections,
    Table,
    Variants,
)
from phaze.units import show

PER_PAGE = 14
"""Rows of a table on a laptop screen."""
LONG = 10
"""Tables of more rows can be sorted, searched and saved."""
MANY_BARS = 12
"""More tall bars than these are folded away."""
FEW_SECTIONS = 3
"""Up to so many sections with a title a page needs no list of them."""
# A drawing of a scatter: its size, and the room around it.
WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 34, 34, 46
MANY_POINTS = 60
"""Lines of more points have no dot for each."""
SERIES = 6
"""Kinds of lines that the style sheet has."""
LANES_WIDTH = 1000.0
"""Units across a drawing of lanes."""
LANE_PX, LEAST_LANE_PX, LANES_PX = 18.0, 3.0, 432.0
"""Height of a lane, the least that can be seen, and the room for all of them."""
READABLE_PX = 12.0
"""Lanes below it have no names."""
KINDS: Mapping[BlockKind, tuple[Colour, str]] = MappingProxyType(
    {
        "tensor": ("tensor", "tensor"),
        "vector": ("vector", "vector"),
        "both": ("buffer", "both (fused)"),
        "network": ("network", "network"),
        "forward": ("forward", "forward"),
        "backward": ("backward", "backward"),
        "recomputed": ("backward", "backward with recomputation"),
        "inputs": ("backward", "input gradients"),
        "weight": ("weight", "weight gradients"),
        "sync": ("sync", "exposed DP communication, optimizer"),
    }
)
"""The colour of a kind of block, and its name in a legend."""
SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "live": "live.js",
        "compares": "compare_rows.js",
        "designplot": "design_plot.js",
        "zoomed": "timeline.js",
        "long": "sorted_table.js",
        "runcost": "run_cost.js",
        "variants": "variants.js",
    }
)
"""What needs a script, in the order in which they run."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section with what a template needs of it: its kind, an anchor, places of what is drawn, and
    parts inside: those of a group, or those of each card or variant."""

    kind: str
    key: str
    section: Section
    drawing: Any = None
    parts: Sequence[Any] = ()
    headline: bool = False


def _scatter_drawing(section: Scatter) -> dict[str, Any]:
    across, up = section.x.scale(), section.y.scale()
    height = HEIGHT // 2 if section.thin else HEIGHT

    def x(value: float) -> str:
        return f"{LEFT + across(value) * (WIDTH - LEFT - RIGHT):.1f}"

    def y(value: float) -> str:
        return f"{height - BOTTOM - up(value) * (height - TOP - BOTTOM):.1f}"

    def span(region: Region) -> dict[str, str]:
        start, end = float(x(region.start)), float(x(region.end))
        middle, width = f"{(start + end) / 2:.1f}", f"{max(end - start, 1):.1f}"
        return {
            "x": f"{start:.1f}",
            "width": width,
            "middle": middle,
            "name": region.name,
            "text": region.text,
        }

    return {
        "size": (WIDTH, height, LEFT, RIGHT, TOP, BOTTOM),
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


def _legend(section: Timeline) -> list[tuple[Colour, str]]:
    kinds = {block.kind for _, blocks in section.lanes for block in blocks}
    return [KINDS[kind] for kind in KINDS if kind in kinds]


def _timeline_drawing(section: Timeline) -> dict[str, Any]:
    lanes = section.lanes
    lane_px = (
        LANE_PX if len(lanes) * LANE_PX <= LANES_PX else max(LEAST_LANE_PX, LANES_PX / len(lanes))
    )
    blocks = []
    for number, (lane, members) in enumerate(lanes):
        for block in members:
            start = block.start_s / section.end_s * LANES_WIDTH
            width = max(0.4, (block.end_s - block.start_s) / section.end_s * LANES_WIDTH - 0.5)
            text = f"{block.name} on {lane}: {show(block.start_s, 's')} to {show(block.end_s, 's')}"
            colour = KINDS[block.kind][0]
            blocks.append((f"{start:.2f}", f"{number * 10 + 0.5:g}", f"{width:.2f}", colour, text))
    return {
        "names": [name if lane_px >= READABLE_PX else "" for name, _ in lanes],
        "height": len(lanes) * 10,
        "pixels": f"{len(lanes) * lane_px:g}",
        "blocks": blocks,
        "legend": _legend(section),
        "end": show(section.end_s, "s"),
    }


def _is_paged(section: Table) -> bool:
    """Whether a table can be sorted, searched and paged: a long one, and one that follows a plot or
    is a list of what may be compared."""
    if len(section.rows) > LONG:
        return True
    return bool(section.rows) and isinstance(section.rows[0][0], Pin | Pick)


def _pieces(pieces: Sequence[Piece], end: float) -> list[tuple[float, float, Colour, str]]:
    """Pieces of a bar as shares of its scale."""
    return [(piece.start / end, piece.length / end, piece.colour, piece.text) for piece in pieces]


def _bar_drawing(row: Bar, section: Bars) -> dict[str, Any]:
    marked = any(other.marked for other in section.rows)
    colour: Colour = "other" if marked and not row.marked else "tensor"
    whole = [Piece(0.0, min(section.end, max(0.0, row.length)), colour)]
    band = None if row.band is None else tuple(edge / section.end for edge in row.band)
    return {"pieces": _pieces(row.pieces or whole, section.end), "band": band}


@dataclass(slots=True)
class _Layout:
    """Sections being laid out: anchors so far, what the page needs scripts for, and what these draw
    from."""

    keys: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)
    numbers: dict[str, Any] = field(default_factory=dict)

    def parts(self, sections: Sections, suffix: str = "") -> list[Part]:
        """Sections one below the other; ``suffix`` tells anchors of a variant from those of the
        first."""
        return [
            self._part(section, self._key(section, number, suffix))
            for number, section in enumerate(sections)
        ]

    def _key(self, section: Section, number: int, suffix: str) -> str:
        """An anchor: the first is the answer, others have words of their titles."""
        words = "-".join(re.findall(r"[a-z0-9]+", section.title.lower())[:6])
        key = ("answer" if not self.keys else words or "part") + suffix
        while key in self.keys:
            key = f"{key}-{number}"
        self.keys.add(key)
        return key

    def _part(self, section: Section, key: str) -> Part:
        part = Part(type(section).__name__.lower(), key, section)
        match section:
            case Scatter():
                return replace(part, drawing=_scatter_drawing(section))
            case Timeline() if section.zoom_s:
                self.needs.add("zoomed")
                colours = {kind: look[0] for kind, look in KINDS.items()}
                self.numbers.setdefault("timelines", {})[key] = timeline_numbers(section, colours)
                return replace(part, kind="zoomed", drawing=_legend(section))
            case Timeline():
                return replace(part, drawing=_timeline_drawing(section))
            case Bars():
                return replace(part, drawing=[_bar_drawing(row, section) for row in section.rows])
            case Gauge():
                return replace(part, drawing=_pieces(section.pieces, section.scale))
            case Table() if _is_paged(section):
                self.needs |= {"long", "compares"} if section.compares else {"long"}
                return replace(part, drawing=True)
            case DesignPlot():
                self.needs.add("designplot")
                self.numbers["scatter"] = plot_numbers(section)
            case RunCost():
                self.needs.add("runcost")
            case Group():
                return replace(part, parts=self.parts(section.sections))
            case Cards():
                return replace(part, parts=[self.parts(card.sections) for card in section.cards])
            case Variants():
                return replace(part, parts=self._variants(section))
            case _:
                pass
        return part

    def _variants(self, section: Variants) -> list[list[Part]]:
        self.needs.add("variants")
        first = section.variants[0]
        return [
            self.parts(variant.sections, "" if variant is first else f"-{variant.key}")
            for variant in section.variants
        ]


def _headlined(parts: list[Part]) -> list[Part]:
    """Parts of which the first has the headline; where it varies, the first of each variant."""
    first = parts[0]
    if isinstance(first.section, Variants) and not first.section.title:
        return [replace(first, parts=[_headlined(members) for members in first.parts]), *parts[1:]]
    return [replace(first, headline=True), *parts[1:]]


def _headline(section: Section) -> str:
    if isinstance(section, Variants) and not section.title:
        return _headline(section.variants[0].sections[0])
    return section.title


def _titled(parts: Sequence[Part]) -> list[Part]:
    """The parts that a list of sections names: those with a title, and those of the first
    variant."""
    listed: list[Part] = []
    for part in parts:
        if (
            isinstance(part.section, Variants)
            and not part.section.title
            and not part.section.optional
        ):
            listed += _titled(part.parts[0])
        elif part.section.title and not part.headline:
            listed.append(part)
    return listed


def _bar_before(parts: Sequence[Part], titled: int) -> int:
    """The part before which a page has its bar: the first that the bar names; none on a short
    page."""
    listed = [number for number, part in enumerate(parts) if _titled([part])]
    return listed[0] if titled > FEW_SECTIONS else -1


def sections_page(
    sections: Sections,
    command: str = "",
    *,
    subject: Sequence[str] = (),
    foot: str = "",
    served: bool = False,
    home: bool = False,
    refresh_s: float = 0.0,
) -> str:
    """A page of sections; ``command`` and ``subject`` say what answers what, ``foot`` what it holds
    under, ``served`` whether phaze view shows it, ``home`` whether it is its list of runs,
    ``refresh_s`` after how many seconds it asks for itself again."""
    layout = _Layout()
    parts = _headlined(layout.parts(sections))
    titled = _titled(parts)
    name = f"phaze {command}".strip()
    headline = _headline(sections[0]) or next(iter(subject), name)
    context = {
        "name": name,
        "title": f"{name}: {headline}",
        "headline": headline,
        "subject": subject,
        "parts": parts,
        "listed": titled,
        "bar_before": _bar_before(parts, len(titled)),
        "choosers": [
            part
            for part in parts
            if isinstance(part.section, Variants) and part.section.control == "bar"
        ],
        "foot": foot,
        "served": served,
        "home": home,
        "refresh_s": refresh_s,
        "many_points": MANY_POINTS,
        "per_page": PER_PAGE,
        "many_bars": MANY_BARS,
    }
    layout.needs |= {"live"} if refresh_s else set()
    scripts = [script for need, script in SCRIPTS.items() if need in layout.needs]
    return rendered("sections.html", context, scripts, layout.numbers or None, served=served)

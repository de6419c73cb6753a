"""The operators of a layer on their cores: a Gantt chart for each pass."""

from collections.abc import Mapping
from html import escape
from types import MappingProxyType

from phaze.report.page.frame import legend, said, table
from phaze.report.view_model import Gantt, Story
from phaze.units import show

WIDE = 1000.0
LONGEST = 10
COLOURS: Mapping[str, str] = MappingProxyType(
    {"tensor": "tensor", "vector": "vector", "both": "buffer", "none": "network", "network": "network"}
)


def _chart(gantt: Gantt) -> str:
    row_px = 18.0 if len(gantt.rows) <= 24 else max(3.0, 432.0 / len(gantt.rows))
    shapes = []
    for at, (lane, bars) in enumerate(gantt.rows):
        for bar in bars:
            left, width = bar.start_s / gantt.end_s * WIDE, (bar.end_s - bar.start_s) / gantt.end_s * WIDE
            words = f"{bar.name} on {lane}: {show(bar.start_s, 's')} to {show(bar.end_s, 's')}"
            shapes.append(
                f'<rect x="{left:.2f}" y="{at * 10 + 0.5:g}" width="{max(0.4, width - 0.5):.2f}" height="9" '
                f'class="f-{COLOURS[bar.core]}" data-say="{escape(words)}"/>'
            )
    names = "".join(f"<span>{escape(lane) if row_px >= 12 else ''}</span>" for lane, _ in gantt.rows)
    svg = (
        f'<svg viewBox="0 0 {WIDE:g} {len(gantt.rows) * 10}" preserveAspectRatio="none" '
        f'height="{len(gantt.rows) * row_px:g}" role="img" aria-label="operators of the {escape(gantt.title)} '
        f'pass on {len(gantt.rows)} rows">{"".join(shapes)}</svg>'
    )
    scale = f'<div class="scale"><span>0</span><span>{show(gantt.end_s, "s")}</span></div>'
    drawn = f'<div class="lanes"><div class="names">{names}</div><div class="drawn">{svg}</div>{scale}</div>'
    return f"<h3>{escape(gantt.title.capitalize())}, {show(gantt.end_s, 's')}: {escape(gantt.verdict)}</h3>{drawn}"


def operators(story: Story) -> str:
    """Both passes of the layer that a model calls most, and its longest operators."""
    bars = {(g.title, b): lane for g in story.gantts for lane, own in g.rows for b in own}
    longest = sorted(bars.items(), key=lambda item: item[0][1].start_s - item[0][1].end_s)[:LONGEST]
    rows = [
        (escape(bar.name), escape(title), escape(lane), show(bar.end_s - bar.start_s, "s"))
        for (title, bar), lane in longest
    ]
    used = {bar.core for _, bar in bars}
    names = {"tensor": "tensor", "vector": "vector", "both": "both (fused)", "none": "network", "network": "network"}
    colours = list(dict.fromkeys((COLOURS[core], names[core]) for core in names if core in used))
    charts = "".join(_chart(gantt) for gantt in story.gantts)
    spread = any(lane == "spread" for gantt in story.gantts for lane, _ in gantt.rows)
    meaning = " <i>spread</i>: on all cores of its kind." if spread else ""
    about = f"<p>The layer that runs most, {escape(story.layer)}.{meaning}</p>"
    listed = table(("longest operators", "pass", "on", "time"), rows, left=3)
    return f"{about}{legend(colours)}{charts}{said('Point at a block, or tap it.')}{listed}"

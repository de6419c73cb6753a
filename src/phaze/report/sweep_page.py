"""The page of a sweep: throughput along the range as one curve a model, over bands that name the best chip.

One HTML file that needs nothing else. Both axes are logarithmic, values that begin at 0 or below it excepted;
throughput is relative to its best along the range, so that models share one scale. A band runs halfway (on its axis) to
its neighbours.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from phaze.report.page.frame import policy

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 34, 46
CURVES = ("#2f6fde", "#b3261e", "#0b7a4b", "#c77700", "#7b3fb0", "#0a8fa0", "#8a5a2b", "#5b6472")
STYLE = """
:root{color-scheme:light dark;--ink:#1b1f27;--soft:#5b6472;--line:#d9dde4;--paper:#fff;--band:#eef1f6;--other:#f8f9fb}
@media (prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#a3acba;--line:#333b47;--paper:#14171c;--band:#20262f;
--other:#191d24}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;max-width:62rem;
padding:1.5rem}
h1{font-size:1.6rem;margin:0 0 .2rem}.soft{color:var(--soft)}svg{width:100%;height:auto}
svg text{fill:var(--ink);font:13px system-ui,sans-serif}.even{fill:var(--band)}.odd{fill:var(--other)}
.piece{fill:var(--soft)}.line{stroke:var(--line)}.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);
white-space:nowrap}
"""


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten between the ends, or the ends themselves when there are none."""
    if low <= 0:
        return sorted({low, high})
    found = [10.0**e for e in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)]
    step = max(1, len(found) // 8)
    return found[::step] if len(found) > 1 else [low, high]


class _Scale:
    """A logarithmic axis from ``low`` to ``high`` onto pixels; a linear one where ``low`` has no logarithm."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    def __call__(self, value: float) -> float:
        if self.low <= 0:
            return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.end - self.start)
        span = math.log(self.high / self.low) or 1.0
        return self.start + math.log(value / self.low) / span * (self.end - self.start)

    def edges(self, values: Sequence[float]) -> list[float]:
        """Where bands of the values meet, with both ends."""
        middles = [(a + b) / 2 if self.low <= 0 else math.sqrt(a) * math.sqrt(b) for a, b in pairwise(values)]
        return [values[0], *middles, values[-1]]


def _bands(values: Sequence[float], regions: Sequence[Mapping[str, Any]], across: _Scale) -> str:
    """A shaded band for each region, with its letter."""
    edges, drawn = across.edges(values), []
    for at, region in enumerate(regions):
        left, right = across(edges[region["first"]]), across(edges[region["last"] + 1])
        tone = "even" if at % 2 == 0 else "odd"
        drawn.append(
            f'<rect x="{left:.1f}" y="{TOP}" width="{max(right - left, 1):.1f}" height="{HEIGHT - TOP - BOTTOM}" '
            f'class="{tone}"><title>{escape(region["what"])}</title></rect>'
            f'<text x="{(left + right) / 2:.1f}" y="{TOP - 10}" text-anchor="middle">{escape(region["name"])}</text>'
        )
    return "".join(drawn)


def _strip(values: Sequence[float], regions: Sequence[Mapping[str, Any]], across: _Scale) -> str:
    """A line along the bottom, cut where the best plans change, each piece with its small letter."""
    edges, drawn, y = across.edges(values), [], HEIGHT - BOTTOM - 6
    for region in regions:
        name = escape(region["name"].lower())
        left, right = across(edges[region["first"]]) + 1, across(edges[region["last"] + 1]) - 1
        drawn.append(
            f'<rect x="{left:.1f}" y="{y}" width="{max(right - left, 1):.1f}" height="4" class="piece">'
            f"<title>{escape(region['what'])}</title></rect>"
            f'<text x="{(left + right) / 2:.1f}" y="{y - 4}" text-anchor="middle">{name}</text>'
        )
    return "".join(drawn)


def _curves(points: Sequence[Mapping[str, Any]], across: _Scale, up: _Scale, names: Sequence[str]) -> str:
    drawn = []
    for at, name in enumerate(names):
        colour = CURVES[at % len(CURVES)]
        seen = [(p["value"], p["models"][at]["throughput_per_s"], p["shown"]) for p in points if p["chip"] is not None]
        most = max(rate for _, rate, _ in seen)
        spots = [(across(value), up(rate / most), rate, shown) for value, rate, shown in seen]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in spots)
        drawn.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        drawn += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(name)} at {escape(shown)}: '
            f"{rate:,.4g} sequences/s</title></circle>"
            for x, y, rate, shown in spots
        ]
    return "".join(drawn)


def _plot(document: Mapping[str, Any]) -> str:
    points = document["points"]
    values = [point["value"] for point in points]
    there = [point for point in points if point["chip"] is not None]
    names = [model["name"] for model in there[0]["models"]]
    rates = [[point["models"][at]["throughput_per_s"] for point in there] for at in range(len(names))]
    least = min(min(own) / max(own) for own in rates)
    across = _Scale(values[0], values[-1], LEFT, WIDTH - RIGHT)
    up = _Scale(min(least, 0.999), 1.0, HEIGHT - BOTTOM, TOP)
    parts = [_bands(values, document["chips"], across)]
    for tick in _ticks(values[0], values[-1]):
        parts.append(f'<text x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{tick:.4g}</text>')
    for tick in sorted({1.0, up.low, *_ticks(up.low, 1.0)}):
        parts.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.3g}</text>')
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" class="line"/>')
    parts.append(_strip(values, document.get("plans", ()), across))
    parts.append(_curves(points, across, up, names))
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(document["over"])}</text>')
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="throughput along the range">{"".join(parts)}</svg>'
    )


def _value(point: Mapping[str, Any]) -> str:
    """The value of a point, and the cluster where it was enlarged for it."""
    cluster = str(point.get("cluster") or "")
    return f"{point['shown']} ({cluster})" if "enlarged" in cluster else str(point["shown"])


def _rows(document: Mapping[str, Any]) -> str:
    letters = {at: r["name"] for r in document["chips"] for at in range(r["first"], r["last"] + 1)}
    rows = []
    for at, point in enumerate(document["points"]):
        if point["chip"] is None:
            why = f"<td colspan=5>{escape(point['problem'])}</td>"
            rows.append(f"<tr><td>{escape(point['shown'])}</td><td></td>{why}</tr>")
            continue
        for model in point["models"]:
            cells = [_value(point), letters[at], point["chip"], model["name"], f"{model['throughput_per_s']:,.5g}"]
            cells += [model["plan"], f"{point['gap']:.1e}"]
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    heads = ("value", "", "best chip", "model", "sequences/s", "pipeline x data x tensor", "proved to")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def sweep_page(document: Mapping[str, Any]) -> str:
    """The page of a ``phaze.sweep/1`` document."""
    title = f"{document['name']}: best chip along {document['over']}"
    named = ", ".join(dict.fromkeys(f"{r['name']} is {r['what']}" for r in document["chips"]))
    plans = ", ".join(dict.fromkeys(f"{r['name'].lower()} is {r['what']}" for r in document.get("plans", ())))
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8>{policy(STYLE)}"
        f"<meta name=viewport content='width=device-width'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style><h1>{escape(title)}</h1>"
        f"<p class=soft>Throughput relative to each model's best along the range; every point is certified. "
        f"Bands, the best chip: {escape(named)}. Pieces of the line below, the best plans (pipeline x data x tensor): "
        f"{escape(plans)}.</p>{_plot(document)}{_rows(document)}</html>\n"
    )

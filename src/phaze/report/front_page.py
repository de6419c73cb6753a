"""The page of a front: its designs as a staircase of two metrics, the third as colour, and every design in a table.

One HTML file that needs nothing else. Axes are logarithmic. With two metrics the line is the border of what can be had:
a design of the space lies on it or on its worse side.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from phaze.report.answer_words import front_facts, front_warning
from phaze.report.page.frame import facts, framed, section, table
from phaze.search.plan_words import split_words
from phaze.units import show

WIDTH, HEIGHT = 960, 460
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 20, 52


class _Axis:
    """A logarithmic axis onto pixels, a twentieth wider than its values on both sides."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = math.log(min(values)), math.log(max(values))
        room = max((high - low) / 20, 0.01)
        self.low, self.high, self.start, self.end = low - room, high + room, start, end

    def __call__(self, value: float) -> float:
        share = (math.log(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """1, 2 and 5 times powers of ten inside, or fewer where there are many."""
        low, high = math.exp(self.low), math.exp(self.high)
        for steps in ((1.0, 2.0, 5.0), (1.0,)):
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
            found = [step * 10.0**power for power in powers for step in steps]
            found = [value for value in found if low <= value <= high]
            if len(found) <= 10:
                return found if len(found) > 1 else [low * 1.02, high / 1.02]
        return found[:: len(found) // 8]


def _number(value: float) -> str:
    return f"{value:,.4g}" if not 1e3 <= value < 1e9 else f"{value:,.0f}"


def _shade(share: float) -> str:
    """From blue to red."""
    low, high = (47, 111, 222), (179, 38, 30)
    mixed = [round(a + share * (b - a)) for a, b in zip(low, high, strict=True)]
    return f"rgb({mixed[0]},{mixed[1]},{mixed[2]})"


def _staircase(spots: Sequence[tuple[float, float]], right_is_better: bool, up_is_better: bool) -> str:
    """The border of what can be had: along one metric the best of the other so far."""
    order = sorted(spots, key=lambda spot: spot[0], reverse=right_is_better)
    parts: list[str] = []
    best = None
    for x, y in order:
        if best is not None and (y >= best[1] if up_is_better else y <= best[1]):
            continue
        if best is not None:
            parts.append(f"{x:.1f},{best[1]:.1f}")
        parts.append(f"{x:.1f},{y:.1f}")
        best = (x, y)
    return f'<polyline points="{" ".join(parts)}" fill="none" stroke="currentColor" stroke-opacity=".45"/>'


def _labels(across: _Axis, up: _Axis, names: Sequence[str], units: Mapping[str, str]) -> str:
    drawn = []
    for tick in across.ticks():
        x = across(tick)
        drawn.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{_number(tick)}</text>')
    for tick in up.ticks():
        y = up(tick)
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
        drawn.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            'stroke-opacity=".12"/>'
        )
    said = [escape(f"{name}, {units[name]}") for name in names]
    drawn.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{said[0]}</text>')
    drawn.append(f'<text x="{LEFT}" y="{TOP - 6}">{said[1]}</text>')
    return "".join(drawn)


def _plot(document: Mapping[str, Any]) -> str:
    """Throughput upwards where it is a metric; the next metric across."""
    of, points = list(document["of"]), document["points"]
    height = "throughput" if "throughput" in of else of[0]
    width, *rest = [name for name in of if name != height]
    values = {name: [point["metrics"][name] for point in points] for name in of}
    across, up = _Axis(values[width], LEFT, WIDTH - RIGHT), _Axis(values[height], HEIGHT - BOTTOM, TOP)
    spots = [(across(a), up(b)) for a, b in zip(values[width], values[height], strict=True)]
    parts = [_labels(across, up, (width, height), document["units"])]
    if not rest:
        parts.append(_staircase(spots, right_is_better=False, up_is_better=height == "throughput"))
    third = _Axis(values[rest[0]], 0.0, 1.0) if rest else None
    for at, ((x, y), point) in enumerate(zip(spots, points, strict=True)):
        colour = "#2f6fde" if third is None else _shade(third(values[rest[0]][at]))
        said = ", ".join(f"{name} {_number(point['metrics'][name])} {document['units'][name]}" for name in of)
        title = escape(f"{point['chip']['name']}: {said}")
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"><title>{title}</title></circle>')
    label = escape(f"the front of {', '.join(of)}")
    note = ""
    if rest:
        low, high = min(values[rest[0]]), max(values[rest[0]])
        unit = document["units"][rest[0]]
        said = f"Colour: {rest[0]} from {_number(low)} (blue) to {_number(high)} {unit} (red)."
        note = f'<p class="soft">{escape(said)}</p>'
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" fill="currentColor" font-size="13"'
    return f'<svg class="plot" {box} role="img" aria-label="{label}">{"".join(parts)}</svg>{note}'


def _gap(document: Mapping[str, Any], point: Mapping[str, Any]) -> float:
    """The gap of a design: its own, or that of the front where two metrics come with a run."""
    return float((point["certificate"] or document["certificate"])["gap"])


def _rows(document: Mapping[str, Any]) -> str:
    rows = []
    for point in document["points"]:
        chip = point["chip"]
        plans = "; ".join(
            f"{model['name']}: {split_words(model)}, microbatch {model['microbatch']}, recompute {model['recompute']}"
            for model in point["models"]
        )
        numbers = [_number(point["metrics"][name]) for name in document["of"]]
        cells = [chip["name"], plans, show(chip["hbm_bytes"], "B"), *numbers, f"{_gap(document, point):.1e}"]
        rows.append([escape(cell) for cell in cells])
    heads = ["chip", "pipeline x data x tensor", "HBM", *document["of"], "proved to"]
    return table(heads, rows, left=3)


def front_page(document: Mapping[str, Any]) -> str:
    """The page of a ``phaze.front/1`` document."""
    of, proof = ", ".join(document["of"]), document["certificate"]
    title = f"{document['name']}: the front of {of}"
    limits = ", ".join(f"{name} {value:g}" for name, value in document["within"].items())
    closed = [(reason, f"{count:,}") for reason, count in proof["closed"].items() if count]
    head = f"<h1>{escape(title)}</h1>" + facts(
        [
            ("designs", f"{len(document['points']):,}"),
            ("chips and memories", f"{proof['units']:,}"),
            ("gap", f"{proof['gap']:.2g}"),
            *([("within", limits)] if limits else []),
        ]
    )
    stated = " ".join(f"{name.capitalize()}: {words}." for name, words in front_facts(document))
    note = (document["cluster"] or {}).get("links")
    head += f'<p class="soft">{escape(stated)}{escape(f" Note: {note}.") if note else ""}</p>'
    if front_warning(document):
        head += f'<p class="warning">{escape(front_warning(document))}</p>'
    what = (
        "Every design that no other one of the space beats: nothing is at least as good in all of these metrics and "
        "better in one" + (", to the gap." if proof["gap"] > 0 else ".")
    )
    sections = [
        ("plot", "Front", section("plot", "Front", _plot(document), escape(what))),
        ("designs", "Designs", section("designs", "Designs", _rows(document))),
        ("proof", "Proof", section("proof", "How every chip was excluded", table(("excluded by", "chips"), closed))),
    ]
    return framed(title, head, sections, escape(f"phaze {document['version']}"))

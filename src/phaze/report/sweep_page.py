"""The page of a sweep: throughput along the range as one curve a model, over bands that name the best chip.

Both axes are logarithmic, values that begin at 0 or below it excepted; throughput is relative to its best along the
range, so that models share one scale. A band runs halfway (on its axis) to its neighbours. The table below has every
point; a point whose own page was made links to it.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from phaze.report.numbers import gap_text
from phaze.report.page.render import rendered
from phaze.units import Unit, digits, show

WIDTH, HEIGHT = 960, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 34, 34, 46
CURVES = 6
"""Kinds of lines that the style sheet has."""
PER_PAGE = 14
"""Rows of a table on a laptop screen."""


# What a key of a study is called on an axis, and the unit of its values.
AXES: Mapping[str, tuple[str, Unit | None]] = MappingProxyType(
    {
        "cluster.link_bytes_per_s": ("link bandwidth", "B/s"),
        "hbm": ("HBM", "B"),
        "budget.area": ("area limit", "mm2"),
        "budget.power": ("power limit", "W"),
        "budget.usd": ("price limit", "USD"),
        "training.devices": ("devices", None),
        "training.batch": ("global batch", None),
        "training.sequence": ("sequence length", None),
    }
)
LEVELS: Mapping[str, Unit | None] = MappingProxyType({"bandwidth": "B/s", "latency": "s", "size": None})


def axis_of(over: str) -> tuple[str, Unit | None]:
    """What is swept in words, and the unit of its values; a key that has no words is its own name."""
    parts = over.split(".")
    if parts[:2] == ["cluster", "levels"] and len(parts) == 4 and parts[3] in LEVELS:
        return f"{parts[2]} {parts[3]}", LEVELS[parts[3]]
    return AXES.get(over, (over, None))


def _worded(value: float, unit: Unit | None) -> str:
    return f"{value:,.6g}" if unit is None else show(value, unit).replace("mm2", "mm²")


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


def _bands(values: Sequence[float], regions: Sequence[Mapping[str, Any]], across: _Scale) -> list[dict[str, Any]]:
    """Left, width, middle and names of each region."""
    edges, found = across.edges(values), []
    for region in regions:
        left, right = across(edges[region["first"]]), across(edges[region["last"] + 1])
        one = {"x": f"{left:.1f}", "width": f"{max(right - left, 1):.1f}", "middle": f"{(left + right) / 2:.1f}"}
        found.append({**one, "name": str(region["name"]), "what": str(region["what"])})
    return found


def _curves(
    points: Sequence[Mapping[str, Any]], across: _Scale, up: _Scale, names: Sequence[str], unit: Unit | None
) -> list[dict[str, Any]]:
    found = []
    for at, name in enumerate(names):
        seen = [
            (p["value"], p["models"][at]["throughput_per_s"], _shown(p, unit)) for p in points if p["chip"] is not None
        ]
        most = max(rate for _, rate, _ in seen)
        spots = [
            {
                "x": f"{across(value):.1f}",
                "y": f"{up(rate / most):.1f}",
                "words": f"{name} at {shown}: {digits(rate)} sequences/s",
            }
            for value, rate, shown in seen
        ]
        found.append({"name": name, "kind": at % CURVES, "spots": spots})
    return found


def _plot(document: Mapping[str, Any]) -> dict[str, Any]:
    points, (_, unit) = document["points"], axis_of(str(document["over"]))
    values = [point["value"] for point in points]
    there = [point for point in points if point["chip"] is not None]
    names = [str(model["name"]) for model in there[0]["models"]]
    rates = [[point["models"][at]["throughput_per_s"] for point in there] for at in range(len(names))]
    least = min(min(own) / max(own) for own in rates)
    across = _Scale(values[0], values[-1], LEFT, WIDTH - RIGHT)
    up = _Scale(min(least, 0.999), 1.0, HEIGHT - BOTTOM, TOP)
    return {
        "bands": _bands(values, document["chips"], across),
        "pieces": _bands(values, document.get("plans", ()), across),
        "across": [(f"{across(tick):.1f}", _worded(tick, unit)) for tick in _ticks(values[0], values[-1])],
        "up": [(f"{up(tick):.1f}", f"{tick:.3g}") for tick in sorted({1.0, up.low, *_ticks(up.low, 1.0)})],
        "curves": _curves(points, across, up, names, unit),
    }


def _shown(point: Mapping[str, Any], unit: Unit | None) -> str:
    """A value as it was given where that has a unit, else with its own."""
    given = str(point["shown"])
    return _worded(float(point["value"]), unit) if given.replace(".", "").replace("e+", "").isdigit() else given


def _value(point: Mapping[str, Any], unit: Unit | None) -> str:
    """The value of a point, and the cluster where it was enlarged for it."""
    cluster, words = str(point.get("cluster") or ""), _shown(point, unit)
    return f"{words} ({cluster})" if "enlarged" in cluster else words


def _rows(document: Mapping[str, Any], pages: Mapping[int, str]) -> list[dict[str, Any]]:
    letters = {at: r["name"] for r in document["chips"] for at in range(r["first"], r["last"] + 1)}
    rows: list[dict[str, Any]] = []
    unit = axis_of(str(document["over"]))[1]
    for at, point in enumerate(document["points"]):
        base = {"value": _value(point, unit), "number": float(point["value"]), "page": pages.get(at, ""), "problem": ""}
        if point["chip"] is None:
            rows.append({**base, "problem": str(point["problem"])})
            continue
        for model in point["models"]:
            rate = model["throughput_per_s"]
            own = {"letter": str(letters[at]), "chip": str(point["chip"]), "model": str(model["name"]), "rate": rate}
            more = {"shown": digits(rate), "plan": str(model["plan"]), "gap": gap_text(float(point["gap"]))}
            rows.append({**base, **own, **more})
    return rows


def _title(document: Mapping[str, Any]) -> str:
    """How often the best chip changes, and how far throughput goes."""
    there = [point for point in document["points"] if point["chip"] is not None]
    name, unit = axis_of(str(document["over"]))
    changes = len({region["what"] for region in document["chips"]})
    first, last = there[0], there[-1]
    ends = f"From {_shown(first, unit)} to {_shown(last, unit)} of {name}" if unit else None
    ends = ends or f"From {_shown(first, unit)} to {_shown(last, unit)} {name}"
    many = "one chip stays best" if changes == 1 else f"{changes} chips are best in turn"
    rates = [one["models"][0]["throughput_per_s"] for one in (first, last)]
    model = first["models"][0]["name"]
    return f"{ends} {many}; {model} trains {digits(rates[1] / rates[0])} × as fast."


def sweep_page(document: Mapping[str, Any], pages: Mapping[int, str] | None = None) -> str:
    """The page of a ``phaze.sweep/1`` document; ``pages`` are those of its points that were made, by number."""
    view = {
        "name": str(document["name"]),
        "over": str(document["over"]),
        "axis": axis_of(str(document["over"]))[0],
        "title": _title(document),
        "chips": list(dict.fromkeys(f"{r['name']} is {r['what']}" for r in document["chips"])),
        "plans": list(dict.fromkeys(f"{r['name'].lower()} is {r['what']}" for r in document.get("plans", ()))),
        "plot": _plot(document),
        "size": (WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM),
        "rows": _rows(document, pages or {}),
        "per_page": PER_PAGE,
    }
    context = {"view": view, "title": f"phaze: {view['name']}: best chip along {view['over']}"}
    return rendered("sweep.html", context, ("sorted_table.js",))

"""A sweep: throughput along the range over regions that name the best chip, and every point.

Both axes are logarithmic, values that begin at 0 or below it excepted; throughput is relative to
its best along the range, so that models share one scale. A region runs halfway (on its axis) to its
neighbours.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from phaze.report.drawings import Axis, PlotPoint, Region, Scatter, Series
from phaze.report.numbers import gap_text
from phaze.report.sections import Cell, Link, Notes, Number, Section, Table
from phaze.search.plan_words import degree_words
from phaze.units import Unit, digits, show

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
LEVELS: Mapping[str, Unit | None] = MappingProxyType(
    {"bandwidth": "B/s", "latency": "s", "size": None}
)
SYMBOLS = "•ox+*#"
"""What stands for the points of a model where there is room for a letter alone."""
NO_PAGES: Mapping[int, str] = MappingProxyType({})
RELATIVE = "throughput relative to each model's best along the range; every point is certified"


def axis_of(over: str) -> tuple[str, Unit | None]:
    """What is swept in words, and the unit of its values; a key that has no words is its own
    name."""
    parts = over.split(".")
    if parts[:2] == ["cluster", "levels"] and len(parts) == 4 and parts[3] in LEVELS:
        return f"{parts[2]} {parts[3]}", LEVELS[parts[3]]
    return AXES.get(over, (over, None))


def _value_text(value: float, unit: Unit | None) -> str:
    return f"{value:,.6g}" if unit is None else show(value, unit).replace("mm2", "mm²")


def _point_text(point: Mapping[str, Any], unit: Unit | None) -> str:
    """A value as it was given where that has a unit, else with its own."""
    given = str(point["shown"])
    if given.replace(".", "").replace("e+", "").isdigit():
        return _value_text(float(point["value"]), unit)
    return given


def _feasible(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [point for point in document["points"] if point["chip"] is not None]


def _tick_values(low: float, high: float) -> list[float]:
    """Powers of ten between the ends, or the ends themselves when there are none."""
    if low <= 0:
        return sorted({low, high})
    powers = [
        10.0**power for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    ]
    step = max(1, len(powers) // 8)
    return powers[::step] if len(powers) > 1 else [low, high]


def _range_axis(document: Mapping[str, Any]) -> Axis:
    values = [point["value"] for point in document["points"]]
    name, unit = axis_of(str(document["over"]))
    ticks = [(value, _value_text(value, unit)) for value in _tick_values(values[0], values[-1])]
    return Axis(name, values[0], values[-1], ticks, logarithmic=values[0] > 0)


def _rate_axis(series: Sequence[Series]) -> Axis:
    least = min(point.y for model in series for point in model.points)
    low = min(least, 0.999)
    ticks = [(value, f"{value:.3g}") for value in sorted({1.0, low, *_tick_values(low, 1.0)})]
    return Axis("relative throughput", low, 1.0, ticks, logarithmic=True)


def _regions(
    regions: Sequence[Mapping[str, Any]], values: Sequence[float], axis: Axis, lower: bool = False
) -> Iterator[Region]:
    """Ranges of points of one name, each to halfway to its neighbours."""
    middles = [
        math.sqrt(a) * math.sqrt(b) if axis.logarithmic else (a + b) / 2
        for a, b in pairwise(values)
    ]
    edges = [values[0], *middles, values[-1]]
    for region in regions:
        name = str(region["name"]).lower() if lower else str(region["name"])
        yield Region(
            edges[region["first"]], edges[region["last"] + 1], name, f"{name} is {region['what']}"
        )


def _series(document: Mapping[str, Any]) -> list[Series]:
    """Throughput of every model relative to its best."""
    points, unit = _feasible(document), axis_of(str(document["over"]))[1]
    series = []
    for index, model in enumerate(points[0]["models"]):
        name = str(model["name"])
        rates = [float(point["models"][index]["throughput_per_s"]) for point in points]
        most = max(rates)
        marks = [
            PlotPoint(
                point["value"],
                rate / most,
                f"{name} at {_point_text(point, unit)}: {digits(rate)} sequences/s",
            )
            for point, rate in zip(points, rates, strict=True)
        ]
        series.append(Series(name, marks, SYMBOLS[index % len(SYMBOLS)]))
    return series


def _headline(document: Mapping[str, Any]) -> str:
    """How often the best chip changes, and how far throughput goes."""
    points = _feasible(document)
    name, unit = axis_of(str(document["over"]))
    chips = len({region["what"] for region in document["chips"]})
    first, last = points[0], points[-1]
    ends = (
        f"From {_point_text(first, unit)} to "
        f"{_point_text(last, unit)}{' of' if unit else ''} {name}"
    )
    best = "one chip stays best" if chips == 1 else f"{chips} chips are best in turn"
    ratio = last["models"][0]["throughput_per_s"] / first["models"][0]["throughput_per_s"]
    return f"{ends} {best}; {first['models'][0]['name']} trains {digits(ratio)} × as fast."


def _curve(document: Mapping[str, Any]) -> Scatter:
    values, axis = [point["value"] for point in document["points"]], _range_axis(document)
    series, plans = _series(document), document.get("plans", ())
    regions = list(_regions(document["chips"], values, axis))
    ranges = list(_regions(plans, values, axis, lower=True))
    texts = dict.fromkeys(region.text for region in (*regions, *ranges))
    return Scatter(
        axis,
        _rate_axis(series),
        series,
        regions,
        ranges,
        _headline(document),
        RELATIVE,
        list(texts),
    )


def _points(document: Mapping[str, Any], pages: Mapping[int, str]) -> Table:
    letters = {
        index: str(region["name"])
        for region in document["chips"]
        for index in range(region["first"], region["last"] + 1)
    }
    name, unit = axis_of(str(document["over"]))
    several = len(_feasible(document)[0]["models"]) > 1
    rows: list[Sequence[Cell]] = []
    for index, point in enumerate(document["points"]):
        text = _point_text(point, unit)
        value: Cell = (
            Link(text, pages[index]) if index in pages else Number(text, float(point["value"]))
        )
        if point["chip"] is None:
            rows.append((value, "", str(point["problem"]), *([""] * (4 if several else 3))))
            continue
        for model in point["models"]:
            rate, gap = float(model["throughput_per_s"]), gap_text(float(point["gap"]))
            names = [letters[index], str(point["chip"]), *([str(model["name"])] if several else [])]
            plan = f"{degree_words(model)}, mb {model['microbatch']}"
            rows.append((value, *names, plan, Number(digits(rate), rate), gap))
    columns = (
        name,
        "",
        "best chip",
        *(["model"] if several else []),
        "plan",
        "sequences/s",
        "proved to",
    )
    return Table(columns, rows, "Points", texts=5 if several else 4)


def _enlarged_clusters(document: Mapping[str, Any]) -> list[Section]:
    """Points whose devices exceed a bundled cluster, which is then larger than it was published."""
    unit = axis_of(str(document["over"]))[1]
    lines = []
    for point in document["points"]:
        cluster = str(point.get("cluster") or "")
        if "enlarged" in cluster:
            lines.append(f"{_point_text(point, unit)}: {cluster}")
    return [Notes(lines)] if lines else []


def sweep_sections(
    document: Mapping[str, Any], folder: str = "", pages: Mapping[int, str] = NO_PAGES
) -> list[Section]:
    """A ``phaze.sweep/1`` document; ``pages`` are those of its points that were made, by number,
    and ``folder`` is where the sweep and its page lie."""
    places = [f"The sweep: {folder}", f"Its page: {Path(folder) / 'sweep.html'}"]
    where = [Notes(places, verbatim=True)] if folder else []
    return [_curve(document), _points(document, pages), *_enlarged_clusters(document), *where]


def sweep_page(document: Mapping[str, Any], pages: Mapping[int, str] = NO_PAGES) -> str:
    """The page of a sweep."""
    from phaze.report.html import sections_page

    subject = f"{document['name']}: {document['over']}"
    return sections_page(sweep_sections(document, "", pages), "sweep", subject=[subject])

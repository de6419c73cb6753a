"""The page of a front: how many designs are worth a look, and where the knee is.

Plot and table are one: what a limit or an axis leaves in the plot is what the table pages through, and a pinned design
is pinned in both. The knee of two metrics is the design farthest from the chord between the ends of their front, both
axes scaled to 0..1. A design has its own address, ``#design=12``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from phaze.report.answer_text import front_facts, front_warning
from phaze.report.html import parts_of
from phaze.report.numbers import gap_text
from phaze.report.page.render import rendered
from phaze.report.proof_text import proof_table
from phaze.search.plan_words import split_words
from phaze.units import digits

# Figures of a chip beside the metrics: key, name, unit, what one unit is in the file's.
FIGURES = (
    ("area_mm2", "area", "mm²", 1.0),
    ("design_power_w", "TDP", "W", 1.0),
    ("making_usd", "manufacturing cost", "USD", 1.0),
    ("peak_flops", "peak", "TFLOP/s", 1e12),
    ("hbm_bytes", "HBM", "GiB", 2.0**30),
)
# Metrics that are a chip's own figures, so that no column stands twice.
SAME = {"area": "area_mm2", "power": "design_power_w", "price": "making_usd"}.items()
WORDS = {"power": "TDP", "price": "manufacturing cost", "embodied": "embodied carbon"}.items()
PER_PAGE = 12
NO_LINKS: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of every design."""

    name: str
    unit: str
    more: bool
    values: tuple[float, ...]

    def document(self) -> dict[str, Any]:
        """What the script draws from."""
        values = [float(f"{value:.6g}") for value in self.values]
        return {"name": self.name, "unit": self.unit, "more": self.more, "bound": False, "values": values}


@dataclass(frozen=True, slots=True)
class Named:
    """A design with a reason to look at it first."""

    title: str
    why: str
    place: int
    facts: tuple[tuple[str, str], ...]


def metric_words(name: str) -> str:
    """A metric in the field's words."""
    return dict(WORDS).get(name, name)


def _columns(document: Mapping[str, Any]) -> list[Column]:
    points, of = document["points"], list(document["of"])
    first = sorted(of, key=lambda name: name != "throughput")
    found = [
        Column(
            metric_words(name),
            str(document["units"][name]).replace("mm2", "mm²"),
            name == "throughput",
            tuple(float(point["metrics"][name]) for point in points),
        )
        for name in first
    ]
    known = {key for name, key in SAME if name in of}
    for key, name, unit, scale in FIGURES:
        values = [point["chip"].get(key) for point in points]
        if key not in known and all(isinstance(one, int | float) for one in values):
            found.append(Column(name, unit, False, tuple(float(one) / scale for one in values)))
    if "throughput" in of and len(of) > 1:
        other = found[1]
        per = tuple(a / b for a, b in zip(found[0].values, other.values, strict=True))
        found.append(Column(f"throughput a {other.unit}", f"{found[0].unit} a {other.unit}", True, per))
    return found


def knee_of(up: Column, across: Column) -> int:
    """The design of the two-metric front farthest from the chord between its ends, axes scaled to 0..1."""
    y = np.array(up.values) * (1 if up.more else -1)
    x = np.array(across.values) * (-1 if across.more else 1)
    order = np.lexsort((-y, x))
    best = np.maximum.accumulate(y[order])
    line = order[np.r_[True, best[1:] > best[:-1]]]
    if len(line) < 3:
        return int(line[-1])
    sx, sy = (x[line] - x[line].min()) / (np.ptp(x[line]) or 1), (y[line] - y[line].min()) / (np.ptp(y[line]) or 1)
    return int(line[np.argmax(sy - sx)])


def _facts(columns: Sequence[Column], at: int) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, f"{digits(one.values[at])} {one.unit}") for one in columns[:4])


def _named(columns: Sequence[Column]) -> list[Named]:
    """Ends of every metric, the knee, and the most for its price."""
    up, across = columns[0], columns[1]
    best = int(np.argmax(up.values) if up.more else np.argmin(up.values))
    knee = knee_of(up, across)
    found = {best: ("Fastest" if up.more else f"Least {up.name}", f"The best {up.name} of all.")}
    found.setdefault(knee, ("Knee", f"Beyond it more {across.name} buys less {up.name} than on the way to it."))
    least = int(np.argmin(across.values))
    found.setdefault(least, (f"Least {across.name}", f"The least {across.name} of all."))
    if columns[-1].name.startswith("throughput a "):
        most = int(np.argmax(columns[-1].values))
        found.setdefault(most, (f"Most {columns[-1].name}", f"The best {columns[-1].name}."))
    return [Named(title, why, at, _facts(columns, at)) for at, (title, why) in found.items()]


def _gap(document: Mapping[str, Any], point: Mapping[str, Any]) -> float:
    """The gap of a design: its own, or that of the front where two metrics come with a run."""
    return float((point["certificate"] or document["certificate"])["gap"])


def _plans(point: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{model['name']}: {split_words(model)}, microbatch {model['microbatch']}, recompute {model['recompute']}"
        for model in point["models"]
    )


def _title(document: Mapping[str, Any], columns: Sequence[Column]) -> str:
    """How many designs are worth a look, and where the knee is."""
    proof, count = document["certificate"], len(document["points"])
    up, across = columns[0], columns[1]
    knee = knee_of(up, across)
    share = up.values[knee] / max(up.values) if up.more else min(up.values) / up.values[knee]
    where = f"{digits(across.values[knee])} {across.unit}"
    many = f"{count:,} of {proof['units']:,} designs are worth a look" if count > 1 else "One design beats all others"
    return many if count < 3 else f"{many}; the knee is {where} with {100 * share:.0f} % of the best {up.name}."


def front_page(document: Mapping[str, Any], links: Mapping[int, str] = NO_LINKS, where: str = "FOLDER") -> str:
    """The page of a ``phaze.front/1`` document; ``links`` are addresses of pages of single designs, where they are
    served, and ``where`` is the front's folder."""
    columns, points, proof = _columns(document), document["points"], document["certificate"]
    named, shown = _named(columns), len(document["of"])
    tags = {one.place: one.title for one in named}
    rows = [
        {
            "at": at,
            "name": str(point["chip"]["name"]),
            "tag": tags.get(at, ""),
            "figures": [(digits(one.values[at]), one.values[at], of < shown) for of, one in enumerate(columns)],
            "plans": _plans(point),
            "link": links.get(at, ""),
            "gap": gap_text(_gap(document, point)),
        }
        for at, point in enumerate(points)
    ]
    limits = ", ".join(f"{metric_words(name)} {value:g}" for name, value in document["within"].items())
    note = (document["cluster"] or {}).get("links")
    better = "is at least as good in all of these metrics and better in one"
    proved = "proved" if proof["gap"] <= 0 else f"proved to {gap_text(proof['gap'])}"
    lead = f"No other design of the space {better}: {proved}."
    if proof["closed"].get("open"):
        left = f"{proof['closed']['open']:,} were not decided, for the search was stopped"
        lead = f"No other design that was decided {better}; {left}."
    view = {
        "name": str(document["name"]),
        "where": where,
        "of": ", ".join(metric_words(name) for name in document["of"]),
        "title": _title(document, columns),
        "lead": lead,
        "facts": [*front_facts(document), *([("limits", limits)] if limits else [])],
        "note": str(note or ""),
        "warning": front_warning(document),
        "named": named,
        "columns": [one.name for one in columns],
        "heads": [f"{one.name}, {one.unit}" for one in columns],
        "limits": [
            (one.name, at, f"{one.name} {'at least' if one.more else 'at most'}, {one.unit}")
            for at, one in enumerate(columns[: len(document["of"])])
        ],
        "rows": rows,
        "per_page": PER_PAGE,
        "shown": shown,
        "closed": parts_of([proof_table(proof, "chips with memories")])[0],
        "gap": gap_text(proof["gap"]),
        "version": str(document["version"]),
    }
    scatter = {
        "columns": [one.document() for one in columns],
        "fields": [],
        "exact": None,
        "names": [row["name"] for row in rows],
        "numbers": None,
        "stands": None,
        "closed": None,
        "links": [f"#design={row['at']}" for row in rows],
        "best": named[0].place,
        "pins": [one.place for one in named[:2]],
        "x": 1,
        "y": 0,
    }
    context = {"view": view, "title": f"phaze: {view['name']}: the front of {view['of']}"}
    return rendered("front.html", context, ("scatter.js", "sorted_table.js", "front.js"), {"scatter": scatter})

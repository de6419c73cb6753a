"""A front: how many designs are worth a look, and where the knee is.

Plot and table are one: what a limit or an axis leaves in the plot is what the table pages through,
and a pinned design is pinned in both. The knee of two metrics is the design farthest from the chord
between the ends of their front, both axes scaled to 0..1. A design has its own address,
``#design=12``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from phaze.report.answer_text import front_facts, front_warning
from phaze.report.drawings import Column, DesignPlot
from phaze.report.html import sections_page
from phaze.report.numbers import gap_text
from phaze.report.proof_text import proof_table
from phaze.report.sections import (
    Card,
    Cards,
    Cell,
    Figures,
    Group,
    Link,
    Notes,
    Number,
    Pin,
    Section,
    Table,
    Variant,
    Variants,
)
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
NO_LINKS: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NamedDesign:
    """A design with a reason to look at it first."""

    title: str
    why: str
    place: int


def metric_words(name: str) -> str:
    """A metric in the field's words."""
    return dict(WORDS).get(name, name)


def _columns(document: Mapping[str, Any]) -> list[Column]:
    """Metrics of the front, throughput first, then figures of its chips, then throughput for the
    second metric."""
    points, metrics = document["points"], list(document["of"])
    columns = []
    for name in sorted(metrics, key=lambda name: name != "throughput"):
        unit = str(document["units"][name]).replace("mm2", "mm²")
        values = np.array([float(point["metrics"][name]) for point in points])
        columns.append(Column(metric_words(name), unit, values, more=name == "throughput"))
    stated = {key for name, key in SAME if name in metrics}
    for key, name, unit, scale in FIGURES:
        figures = [point["chip"].get(key) for point in points]
        if key not in stated and all(isinstance(figure, int | float) for figure in figures):
            columns.append(Column(name, unit, np.array(figures, float) / scale))
    if "throughput" in metrics and len(metrics) > 1:
        first, second = columns[:2]
        values = first.values / second.values
        columns.append(
            Column(
                f"throughput a {second.unit}", f"{first.unit} a {second.unit}", values, more=True
            )
        )
    return columns


def knee_of(up: Column, across: Column) -> int:
    """The design of the two-metric front farthest from the chord between its ends, axes scaled to
    0..1."""
    y = up.values * (1 if up.more else -1)
    x = across.values * (-1 if across.more else 1)
    order = np.lexsort((-y, x))
    best = np.maximum.accumulate(y[order])
    line = order[np.r_[True, best[1:] > best[:-1]]]
    if len(line) < 3:
        return int(line[-1])
    scaled_x = (x[line] - x[line].min()) / (np.ptp(x[line]) or 1)
    scaled_y = (y[line] - y[line].min()) / (np.ptp(y[line]) or 1)
    return int(line[np.argmax(scaled_y - scaled_x)])


def _named_designs(columns: Sequence[Column]) -> list[NamedDesign]:
    """Ends of every metric, the knee, and the most for its price."""
    up, across, last = columns[0], columns[1], columns[-1]
    best = int(np.argmax(up.values) if up.more else np.argmin(up.values))
    named = {best: ("Fastest" if up.more else f"Least {up.name}", f"The best {up.name} of all.")}
    why = f"Beyond it more {across.name} buys less {up.name} than on the way to it."
    named.setdefault(knee_of(up, across), ("Knee", why))
    least = int(np.argmin(across.values))
    named.setdefault(least, (f"Least {across.name}", f"The least {across.name} of all."))
    if last.name.startswith("throughput a "):
        named.setdefault(
            int(np.argmax(last.values)), (f"Most {last.name}", f"The best {last.name}.")
        )
    return [NamedDesign(title, why, place) for place, (title, why) in named.items()]


def _address(place: int) -> str:
    """Where the page shows a design whole."""
    return f"#design={place}"


def _cards(
    document: Mapping[str, Any], named: Sequence[NamedDesign], columns: Sequence[Column]
) -> Cards:
    """What is to be looked at first, each with its plan."""
    cards = []
    for design in named:
        rows: list[tuple[str, Cell]] = [
            (column.name, f"{digits(column.values[design.place])} {column.unit}")
            for column in columns[:4]
        ]
        rows += [
            ("plot", Pin("pin", design.place)),
            ("page", Link("Open the design", _address(design.place))),
        ]
        plan = _plans(document["points"][design.place])
        cards.append(
            Card(design.title, [Figures(rows, notes=[f"{design.why} {plan}."], paired=True)])
        )
    return Cards(cards)


def _gap(document: Mapping[str, Any], point: Mapping[str, Any]) -> float:
    """The gap of a design: its own, or that of the front where two metrics come with a run."""
    return float((point["certificate"] or document["certificate"])["gap"])


def _plans(point: Mapping[str, Any]) -> str:
    return "; ".join(
        (
            f"{model['name']}: {split_words(model)}, microbatch {model['microbatch']}, "
            f"recompute {model['recompute']}"
        )
        for model in point["models"]
    )


def _title(document: Mapping[str, Any], columns: Sequence[Column]) -> str:
    """How many designs are worth a look, and where the knee is."""
    proof, count = document["certificate"], len(document["points"])
    up, across = columns[0], columns[1]
    knee = knee_of(up, across)
    share = up.values[knee] / up.values.max() if up.more else up.values.min() / up.values[knee]
    where = f"{digits(across.values[knee])} {across.unit}"
    many = (
        f"{count:,} of {proof['units']:,} designs are worth a look"
        if count > 1
        else "One design beats all others"
    )
    return (
        many
        if count < 3
        else f"{many}; the knee is {where} with {100 * share:.0f} % of the best {up.name}."
    )


def _proved(proof: Mapping[str, Any]) -> str:
    """What is proved, in a sentence."""
    better = "is at least as good in all of these metrics and better in one"
    if proof["closed"].get("open"):
        left = f"{proof['closed']['open']:,} were not decided, for the search was stopped"
        return f"No other design that was decided {better}; {left}."
    proved = "proved" if proof["gap"] <= 0 else f"proved to {gap_text(proof['gap'])}"
    return f"No other design of the space {better}: {proved}."


def _design(
    document: Mapping[str, Any], columns: Sequence[Column], place: int, page: str | None, title: str
) -> Variant:
    """One design whole, and where its own page is; ``page`` is its address, if it is served."""
    point = document["points"][place]
    rows: list[tuple[str, Cell]] = [
        (column.label, digits(column.values[place])) for column in columns
    ]
    rows.append(("proved to", gap_text(_gap(document, point))))
    if page is not None:
        rows.append(("page", Link("Its own page", page)))
    return Variant(str(place), title, [Figures(rows, title, notes=[_plans(point)], paired=True)])


def _table(
    document: Mapping[str, Any], columns: Sequence[Column], tags: Mapping[int, str]
) -> Table:
    """Every design: pinned here and in the plot alike."""
    rows: list[Sequence[Cell]] = []
    for place, point in enumerate(document["points"]):
        name = Link(str(point["chip"]["name"]), _address(place), tags.get(place, ""))
        figures = [
            Number(digits(column.values[place]), float(column.values[place])) for column in columns
        ]
        rows.append(
            (Pin("", place), name, *figures, gap_text(_gap(document, point)), _plans(point))
        )
    heads = ("Pin", "Design", *(column.label for column in columns), "proved to", "Plan")
    shown = 2 + len(document["of"])
    return Table(heads, rows, "Designs", texts=2, sorted_by=2, narrow=shown)


def _plot(
    document: Mapping[str, Any], columns: Sequence[Column], named: Sequence[NamedDesign]
) -> DesignPlot:
    names = [str(point["chip"]["name"]) for point in document["points"]]
    return DesignPlot(
        columns,
        names,
        named[0].place,
        "front.csv",
        pinned=[design.place for design in named[:2]],
        addresses=[_address(place) for place in range(len(names))],
        limits=len(document["of"]),
        title="Front",
    )


def front_sections(
    document: Mapping[str, Any], where: str, work: str = "", links: Mapping[int, str] = NO_LINKS
) -> list[Section]:
    """A ``phaze.front/1`` document: its named designs, all of them, and what is proved; ``where``
    is its folder, ``work`` says what it took, ``links`` are addresses of pages of single designs,
    where they are served."""
    columns, proof, warning = _columns(document), document["certificate"], front_warning(document)
    named = _named_designs(columns)
    tags = {design.place: design.title for design in named}
    designs = []
    for place, point in enumerate(document["points"]):
        name = str(point["chip"]["name"])
        title = f"{name}: {tags[place]}" if place in tags else name
        designs.append(_design(document, columns, place, links.get(place), title))
    own_page = (
        "A design's own page, with the chip to scale, time, memory and timeline: phaze "
        f"report {where} --design N"
    )
    return [
        Notes([_proved(proof)], _title(document, columns)),
        *([Notes([warning], look="warning")] if warning else []),
        _cards(document, named, columns),
        _plot(document, columns, named),
        Variants("design", designs, optional=True),
        replace(_table(document, columns, tags), notes=[] if links else [own_page]),
        _proof(document, where, work),
    ]


def subject_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What was asked, in a line."""
    facts = [text for name, text in front_facts(document) if name in ("process", "network")]
    return (str(document["name"]), ", ".join(map(metric_words, document["of"])), *facts)


def front_page(
    document: Mapping[str, Any], links: Mapping[int, str] = NO_LINKS, where: str = "FOLDER"
) -> str:
    """The page of a front."""
    sections = front_sections(document, where, links=links)
    return sections_page(sections, "front", subject=subject_of(document))


def printed_sections(document: Mapping[str, Any], folder: str, work: str = "") -> list[Section]:
    """A front in its folder, on a terminal; ``work`` says what it took."""
    places = [f"The front: {folder}", f"Its page: {folder}/front.html"]
    return [
        Notes(subject_of(document), look="tags"),
        *front_sections(document, folder, work),
        Notes(places, verbatim=True),
    ]


def _proof(document: Mapping[str, Any], where: str, work: str) -> Group:
    """What is proved and how every chip was decided, and what the front holds under."""
    proof = document["certificate"]
    limits = ", ".join(
        f"{metric_words(name)} {value:g}" for name, value in document["within"].items()
    )
    links = (document["cluster"] or {}).get("links")
    facts = [
        *front_facts(document),
        *([("limits", limits)] if limits else []),
        *([("note", links)] if links else []),
    ]
    checked = f"phaze verify {where} checks it by code that the search does not use."
    lines = ["The proof is of phaze's cost model, not of silicon.", checked]
    table = replace(
        proof_table(proof, "chips with memories"), title="", notes=[work] if work else []
    )
    sections: list[Section] = [
        Notes(lines),
        Group([table], folded="How every chip was decided"),
        Figures(facts),
    ]
    return Group(sections, "What is proved")

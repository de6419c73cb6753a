"""Sections: whatever an answer shows is shown by both renderers, as text."""

import io

import numpy as np
import pytest
from rich.console import Console

from phaze.report.drawings import (
    Axis,
    Bar,
    Bars,
    Block,
    Column,
    DesignPlot,
    FloorPlan,
    Gauge,
    Outline,
    Piece,
    PlotPoint,
    Region,
    Scatter,
    Series,
    Shape,
    Timeline,
)
from phaze.report.html import sections_page
from phaze.report.sections import (
    Card,
    Cards,
    Choice,
    Figures,
    Group,
    Lead,
    Link,
    Meter,
    Notes,
    Number,
    Pin,
    RunCost,
    Section,
    Swatch,
    Table,
    Variant,
    Variants,
)
from phaze.report.terminal import draw
from tests.report.runs import HOSTILE

LONG = "a sentence of several words " * 8
X = Axis("devices", 8.0, 512.0, [(8.0, "8"), (64.0, "64"), (512.0, "512")], logarithmic=True)
Y = Axis("throughput", 0.0, 1.0, [(0.0, "0"), (1.0, "1")])
UP, ACROSS = (
    Column("rate", "1/s", np.array([1.0, 2.0])),
    Column("area", "mm2", np.array([3.0, 4.0])),
)
SECTIONS: list[Section] = [
    Figures(
        [("name", "value"), ("memory", Meter(0.5, "half full")), (HOSTILE, HOSTILE)],
        "Answer",
        HOSTILE,
        [LONG],
    ),
    Table(
        ("chip", "", "rate"),
        [(HOSTILE, Meter(1.2, "over"), Number("1,000", 1000.0))],
        "Rates",
        LONG,
        [HOSTILE],
        2,
    ),
    Table(("chip",), [(Link("point", "points/0.html"),)] * 9, "Rates"),
    Bars([Bar("forward", 2.0, "2 s", "67%"), Bar(HOSTILE, 1.0, "1 s", "33%")], HOSTILE),
    Timeline(
        [
            (
                "core",
                [Block(0.0, 0.5, "first", "a", "tensor"), Block(0.5, 1.0, HOSTILE, "b", "both")],
            )
        ],
        1.0,
        "Lanes",
    ),
    Scatter(
        X,
        Y,
        [Series("model", [PlotPoint(8.0, 0.0, "low"), PlotPoint(64.0, 1.0, HOSTILE)])],
        [Region(8, 512, "A", "all")],
    ),
    Notes([LONG, LONG], "Notes"),
    Notes([HOSTILE], "Code", verbatim=True),
    Notes([HOSTILE, "ZeRO 1"], "Tags", look="tags"),
    Lead(HOSTILE, "of 80 GiB", "Lead"),
    Gauge([Piece(0.0, 1.0, "tensor", HOSTILE)], 2.0, HOSTILE, ("0", "2"), title="Gauge"),
    RunCost(1e12, 1e6, 8, None, 400.0, 1.1, "Cost"),
    Cards(
        [Card("Does it fit?", [Lead("3", "GiB"), Notes([HOSTILE])], "Fits", "good")], title="Cards"
    ),
    Group([Notes([HOSTILE]), Figures([("a", Swatch(HOSTILE, "hbm"))])], "Group", folded=HOSTILE),
    Variants(
        "plan",
        [Variant("a", HOSTILE, [Notes(["first"])]), Variant("b", "b", [Notes([])])],
        title="Variants",
    ),
    DesignPlot([UP, ACROSS], [HOSTILE, "second"], 0, "designs.csv", title="Designs"),
    Table(("design",), [(Pin(HOSTILE, 0),), (Choice(HOSTILE, "plan", "a", [HOSTILE]),)], "Pins"),
    FloorPlan(
        [Shape(0, 0, 9, 9, "hbm", HOSTILE)],
        90.0,
        [Outline(HOSTILE, 99.0, False)],
        "a chip",
        [("hbm", "HBM")],
    ),
]


def printed(sections: list[Section]) -> str:
    out = io.StringIO()
    draw(Console(file=out, width=80, color_system=None, highlight=False), sections)
    return out.getvalue()


@pytest.mark.parametrize(
    "section", SECTIONS, ids=lambda section: f"{type(section).__name__} {section.title[:8]}"
)
def test_a_section_fits_a_terminal_and_a_page(section: Section) -> None:
    text, page = printed([section]), sections_page([section])
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in (section.title, section.caption):
        assert not words or words.split()[0] in text
    assert "<script>alert" not in page and "<h1>" in page


def test_the_title_of_the_first_section_is_the_headline_of_a_page() -> None:
    page = sections_page(SECTIONS, "compare")
    assert "<h1>Answer</h1>" in page and "<h2>Answer</h2>" not in page and "<h2>Notes</h2>" in page


def test_sections_of_one_title_have_anchors_of_their_own() -> None:
    page = sections_page(SECTIONS)
    assert page.count('id="rates"') == 1 and page.count('id="rates-2"') == 1


def test_places_on_a_logarithmic_axis_are_those_of_ratios() -> None:
    assert X.scale()(64.0) == pytest.approx(0.5)
    assert Y.scale()(0.25) == 0.25
    assert Axis("one value", 3.0, 3.0, []).scale()(3.0) == 0.5


def test_the_longest_block_of_a_lane_is_seen_and_a_short_one_takes_an_idle_place() -> None:
    blocks = [Block(0.0, 1.0, "long", "a", "tensor"), Block(0.4, 0.401, "short", "b", "tensor")]
    assert "b" not in printed([Timeline([("c", blocks)], 1.0)])
    assert "b" in printed([Timeline([("c", blocks[1:])], 1.0)])


def test_notes_follow_notes_at_once_and_others_after_an_empty_line() -> None:
    text = printed([Notes(["first"]), Notes(["second"]), Figures([("name", "value")])])
    assert text.splitlines()[:4] == ["first", "second", "", "name  value"]


def test_a_terminal_shows_the_first_variant_and_none_of_optional_ones() -> None:
    variants = [
        Variant("a", "first", [Notes(["shown"])]),
        Variant("b", "second", [Notes(["hidden"])]),
    ]
    assert printed([Variants("plan", variants)]) == "shown\n"
    assert printed([Variants("plan", variants, optional=True)]) == ""


def test_the_headline_of_a_page_varies_with_its_first_variants() -> None:
    variants = [Variant(key, key, [Notes([], f"title {key}")]) for key in "ab"]
    page = sections_page([Variants("plan", variants, "bar"), Notes([], "One"), Notes([], "Two")])
    assert "<h1>title a</h1>" in page and "<h1>title b</h1>" in page
    assert 'data-key="a">' in page and 'data-key="b" hidden>' in page


def test_a_training_run_costs_what_its_device_hours_do() -> None:
    cost = RunCost(8.64e10, 1e6, 10, 2.0, 500.0, 1.2)
    assert (cost.days, cost.device_hours, cost.usd) == (1.0, 240.0, 480.0)
    assert cost.mwh == pytest.approx(0.144)
    assert dict(RunCost(8.64e10, 1e6, 10, None, None, 1.2).figures)["USD"] == "unknown"

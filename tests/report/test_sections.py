"""Sections: whatever an answer shows is shown by both renderers, as text."""

import io

import pytest
from rich.console import Console

from phaze.report.html import sections_page
from phaze.report.sections import (
    Axis,
    Bar,
    Bars,
    Block,
    Figures,
    Link,
    Meter,
    Notes,
    Number,
    Point,
    Region,
    Scatter,
    Section,
    Series,
    Table,
    Timeline,
)
from phaze.report.terminal import draw
from tests.report.runs import HOSTILE

LONG = "a sentence of several words " * 8
X = Axis("devices", 8.0, 512.0, [(8.0, "8"), (64.0, "64"), (512.0, "512")], logarithmic=True)
Y = Axis("throughput", 0.0, 1.0, [(0.0, "0"), (1.0, "1")])
SECTIONS: list[Section] = [
    Figures([("name", "value"), ("memory", Meter(0.5, "half full")), (HOSTILE, HOSTILE)], "Answer", HOSTILE, [LONG]),
    Table(("chip", "", "rate"), [(HOSTILE, Meter(1.2, "over"), Number("1,000", 1000.0))], "Rates", LONG, [HOSTILE], 2),
    Table(("chip",), [(Link("point", "points/0.html"),)] * 9, "Rates"),
    Bars([Bar("forward", 2.0, "2 s", "67%"), Bar(HOSTILE, 1.0, "1 s", "33%")], HOSTILE),
    Timeline(
        [("core", [Block(0.0, 0.5, "first", "a", "tensor"), Block(0.5, 1.0, HOSTILE, "b", "both")])], 1.0, "Lanes"
    ),
    Scatter(X, Y, [Series("model", [Point(8.0, 0.0, "low"), Point(64.0, 1.0, HOSTILE)])], [Region(8, 512, "A", "all")]),
    Notes([LONG, LONG], "Notes"),
    Notes([HOSTILE], "Code", verbatim=True),
]


def printed(sections: list[Section]) -> str:
    out = io.StringIO()
    draw(Console(file=out, width=80, color_system=None, highlight=False), sections)
    return out.getvalue()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: f"{type(section).__name__} {section.title[:8]}")
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

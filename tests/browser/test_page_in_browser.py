"""The page as a person sees it, in Debian's chromium."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.report.page.search_page import search_page
from tests.browser.conftest import Opened
from tests.report.runs import HOSTILE, PLAN, made_run, named, small_run

OpenPage = Callable[..., Opened]
SHARED = ("chip", "time", "pipeline", "memory", "operators", "study")
RUN: dict[str, Any] = {
    "schema": "phaze.run/1",
    "gpt": {"hidden": 2048, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 1024},
    "chip": "a100-40gb", "cluster": "selene", "devices": 8, "batch": 64,
    "plan": {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2},
}  # fmt: skip
# Given plans of other kinds, with what differs and the exit code.
GIVEN = {
    "interleaved": ({"chunks": 2}, 0),
    "sharded": ({"zero": 3}, 0),
    "short": ({"microbatch": 32, "pipeline": 1, "data": 2}, 3),
}
SIZES = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> dict[str, Path]:
    """A search's page, a plan's page, and one whose names are hostile; not made where no browser would see them."""
    folder = tmp_path_factory.mktemp("pages")
    run = made_run(folder / "made", (named(5, HOSTILE), named(6, HOSTILE + "2")), HOSTILE)
    (folder / "hostile.html").write_text(search_page(run), encoding="utf-8")
    assert exit_code_of(app, [*PLAN.split(), "--html", str(folder / "plan.html")]) == 0
    for name, (changes, code) in GIVEN.items():
        (folder / f"{name}.json").write_text(json.dumps({**RUN, "plan": {**RUN["plan"], **changes}}))
        made = ["plan", "--fixed", str(folder / f"{name}.json"), "--html", str(folder / f"{name}.html")]
        assert exit_code_of(app, made) == code
    return {
        **{name: folder / f"{name}.html" for name in GIVEN},
        "search": small_run(folder) / "report.html",
        "plan": folder / "plan.html",
        "hostile": folder / "hostile.html",
    }


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("kind", ["search", "plan", "hostile", *GIVEN])
def test_it_opens_without_a_fault_or_a_request(
    kind: str, width: int, scheme: str, pages: dict[str, Path], open_page: OpenPage
) -> None:
    found = open_page(pages[kind], width, scheme)
    assert found.faults == []
    assert found.requests == [pages[kind].as_uri()]
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width, "it scrolls sideways"
    paper = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("kind", ["search", "plan"])
def test_every_part_is_visible(kind: str, width: int, pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages[kind], width).page
    for part in (*SHARED, *(("space", "certificate") if kind == "search" else ("plans",))):
        place = page.locator(f"section#{part}")
        assert place.is_visible(), part
        box = place.bounding_box()
        assert box["height"] > 80, part
    for drawing in page.locator("svg").all():
        box = drawing.bounding_box()
        assert box["width"] > 100
        assert box["height"] > 8
    sizes = page.evaluate(
        "[...document.querySelectorAll('td,p,dd,dt,span.l,span.v,figcaption')].filter(e => e.textContent.trim())"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12, "too small to read on a phone"


def test_chunks_of_a_stage_differ_in_shade(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["interleaved"]).page
    groups = page.locator("section#pipeline svg g")
    assert groups.count() == 4
    assert {group.evaluate("e => getComputedStyle(e).opacity") for group in groups.all()} == {"1", "0.4"}
    said = [shape.get_attribute("data-say") for shape in groups.last.locator("rect").all()]
    assert said
    assert all("chunk 1" in one for one in said)


def test_what_is_short_stands_first(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["short"], 390).page
    assert page.locator("section").first.get_attribute("id") == "shortage"
    assert "each alone" in page.locator("section#shortage").inner_text()


def test_the_cloud_is_drawn_and_follows_its_buttons(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["search"]).page
    drawn = "document.getElementById('cloud').toDataURL().length"
    first = page.evaluate(drawn)
    assert first > 3000, "the canvas is empty"
    pictures = set()
    for name in ("area", "design power", "price of making"):
        page.get_by_role("button", name=name, exact=True).click()
        assert page.locator("button[aria-pressed=true]").inner_text() == name
        pictures.add(page.evaluate("document.getElementById('cloud').toDataURL()"))
    assert len(pictures) == 3


def test_a_click_shows_a_chip(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["search"]).page
    panel = page.locator("#picked")
    assert "the answer" in panel.inner_text()
    for row in page.locator("tr[data-chip]").all():
        row.click()
        assert panel.get_attribute("data-chip") == row.get_attribute("data-chip")
    shown = page.locator("tr[data-chip]").last.inner_text()
    assert ("at most" in shown) == ("at most" in panel.inner_text())
    page.locator("#cloud").scroll_into_view_if_needed()
    box = page.locator("#cloud").bounding_box()
    seen = set()
    for share in (0.2, 0.4, 0.6, 0.8):
        for height in (0.2, 0.5, 0.8):
            page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] * height)
            seen.add(panel.get_attribute("data-chip"))
    assert len(seen) > 1
    page.locator("#cloud").focus()
    page.keyboard.press("ArrowLeft")
    assert panel.inner_text()


def test_a_tap_says_what_a_block_is(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["search"], 390).page
    for part in ("chip", "time", "pipeline", "memory", "operators"):
        shape = page.locator(f"section#{part} [data-say]").first
        shape.dispatch_event("click")
        assert page.locator(f"section#{part} .say").inner_text() == shape.get_attribute("data-say")


def test_the_study_can_be_copied(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["search"]).page
    page.get_by_role("button", name="copy").click()
    page.get_by_role("button", name="copied").wait_for(timeout=2000)
    assert 'name = "small"' in page.locator("#study-text").inner_text()


def test_hostile_names_stay_text(pages: dict[str, Path], open_page: OpenPage) -> None:
    found = open_page(pages["hostile"])
    assert HOSTILE in found.page.locator("body").inner_text()
    assert found.page.locator("script:not([type])").count() == 1
    for row in found.page.locator("tr[data-chip]").all():
        row.click()
    assert found.faults == []


def test_it_prints_in_black_on_white(pages: dict[str, Path], open_page: OpenPage) -> None:
    found = open_page(pages["search"], 1440, "dark")
    found.page.emulate_media(media="print")
    assert found.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not found.page.locator("nav").is_visible()
    assert len(found.page.pdf()) > 20_000

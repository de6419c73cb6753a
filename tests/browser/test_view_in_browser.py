"""phaze view in a real browser, while a search writes."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.search.progress_file import PROGRESS
from phaze.view.library import key_of
from phaze.view.server import ViewServer
from tests.browser.axe import axe_source
from tests.browser.conftest import Opened
from tests.report.runs import small_run

OpenPage = Callable[..., Opened]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[ViewServer]:
    folder = tmp_path_factory.mktemp("runs")
    small_run(folder)
    front = [
        "front",
        str(folder / "study.toml"),
        "--of",
        "throughput,area",
        "--out",
        str(folder / "front"),
        "--workers",
        "1",
    ]
    assert exit_code_of(app, front) == 0
    shutil.copytree(folder / "run", folder / "again")
    (folder / "going").mkdir()
    server = ViewServer(folder)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def course(server: ViewServer, rows: list[list[float | None]]) -> None:
    """What a search under way has kept."""
    path = server.root / "going" / PROGRESS
    path.write_text(json.dumps({"schema": "phaze.progress/1", "rows": rows}), encoding="utf-8")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_list_is_accessible_and_asks_nobody_else(
    width: int, scheme: str, served: ViewServer, open_page: OpenPage
) -> None:
    course(served, [[0.5, None, 0.9, 0, 10, 0, 90]])
    found = open_page(served.address, width, scheme)
    assert found.faults == []
    here = f"http://127.0.0.1:{served.server_port}/"
    assert all(one.startswith(here) for one in found.requests)
    assert "token" not in found.page.url
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    states = found.page.locator("td[data-name=Status]").all_inner_texts()
    assert set(states) == {"finished", "running"}
    source = axe_source()
    if source is None:
        pytest.skip("NOT RUN: axe-core could not be fetched from the npm registry (make browser)")
    wrong = found.page.evaluate(source + ";axe.run(document).then((found) => found.violations)")
    assert [one["id"] for one in wrong if one["impact"] in ("serious", "critical")] == []


def test_runs_are_sought_opened_and_compared(served: ViewServer, open_page: OpenPage) -> None:
    found = open_page(served.address)
    page = found.page
    page.get_by_label("Search").fill("again")
    assert page.locator("tbody tr").count() == 1
    page.get_by_label("Search").fill("")
    for box in page.locator("[data-pick]").all():
        box.check()
    page.get_by_role("button", name="Compare two").click()
    page.wait_for_url("**/compare?*")
    assert "+0.0 %" in page.locator("table").inner_text()
    page.get_by_role("link", name="run", exact=True).click()
    page.wait_for_selector("#plot")
    assert "× as fast as" in page.locator("h1").inner_text()
    assert found.faults == []


def test_a_design_of_a_front_opens_its_own_page(served: ViewServer, open_page: OpenPage) -> None:
    found = open_page(served.address)
    page = found.page
    page.get_by_role("link", name="front", exact=True).click()
    page.wait_for_selector("#plot")
    page.goto(page.url + "#design=0")
    page.get_by_role("link", name="Its own page").first.click()
    page.wait_for_selector("#against-the-baseline")
    assert "On the front" in page.inner_text("main")
    assert found.faults == []
    missing = page.goto(page.url.rpartition("/")[0] + "/999999")
    assert missing.status == 422 and "there is no design" in page.inner_text("body")


def figure(page: Any, name: str) -> Any:
    """What a card of the course says."""
    return page.locator(".card", has=page.get_by_role("heading", name=name)).locator(".big")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_a_search_under_way_is_watched(
    width: int, scheme: str, served: ViewServer, open_page: OpenPage
) -> None:
    course(served, [[0.5, None, 0.9, 0, 10, 0, 90]])
    found = open_page(served.address, width, scheme)
    page = found.page
    page.goto(f"http://127.0.0.1:{served.server_port}/run/{key_of('going')}")
    page.locator(".card .big", has_text="90").wait_for()
    page.get_by_text("As a table").click()
    course(
        served,
        [
            [0.5, None, 0.9, 0, 10, 0, 90],
            [1.0, 1.25, 1.0, 3, 60, 0, 37],
            [2.0, 1.1, 1.0, 9, 90, 0, 1],
        ],
    )
    page.get_by_role("heading", name="Gap over time").wait_for()
    assert figure(page, "Evaluated").inner_text() == "9"
    assert figure(page, "Best score").inner_text() == "1.1"
    assert figure(page, "Gap").inner_text() == "9.09 %"
    assert page.locator("svg.chart").count() == 2 and page.locator("svg circle").count() > 5
    texts = [row.locator("td").all_inner_texts() for row in page.locator("tbody tr").all()]
    rows = [[text.partition(": ")[2] or text for text in row] for row in texts]
    assert rows[0] == ["2", "1.1", "1", "9.09 %", "9", "90", "1"], "what was unfolded stays so"
    assert [row[3] for row in rows] == ["9.09 %", "20 %", "-"]
    page.locator("summary").focus()
    page.locator("svg.chart circle").first.hover()
    course(served, [[0.5, None, 0.9, 0, 10, 0, 90], [1.0, 1.25, 1.0, 3, 60, 0, 37]])
    page.locator(".card .big", has_text="37").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY", "focus stays"
    assert "best score after" in page.locator(".say").first.inner_text(), "what was said stays"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert found.faults == []
    source = axe_source()
    if source is None:
        pytest.skip("NOT RUN: axe-core could not be fetched from the npm registry (make browser)")
    wrong = page.evaluate(source + ";axe.run(document).then((found) => found.violations)")
    assert [one["id"] for one in wrong if one["impact"] in ("serious", "critical")] == []


def test_a_list_of_many_runs_is_renewed_where_it_stands(
    served: ViewServer, open_page: OpenPage
) -> None:
    course(served, [[0.5, None, 0.9, 0, 10, 0, 90]])
    for number in range(30):
        place = served.root / f"many-{number:02d}"
        place.mkdir()
        (place / PROGRESS).write_text('{"rows": []}', encoding="utf-8")
    found = open_page(served.address)
    page = found.page
    page.get_by_label("Search").fill("many-07")
    state = page.locator("td[data-name=Status]")
    assert state.all_inner_texts() == ["running"]
    os.utime(served.root / "many-07" / PROGRESS, (1, 1))
    page.locator("td[data-name=Status]", has_text="stopped").wait_for(timeout=15_000)
    assert page.get_by_label("Search").input_value() == "many-07", "the page was not loaded again"
    for number in range(30):
        shutil.rmtree(served.root / f"many-{number:02d}")
    page.locator("h1", has_text="4 runs").wait_for(timeout=15_000)
    assert found.faults == []

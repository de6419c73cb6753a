"""phaze view in a real browser, while a search writes."""

import json
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
    assert {row.inner_text() for row in found.page.locator("td.status").all()} == {
        "finished",
        "running",
    }
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
    for box in page.locator("[data-compare]").all():
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


def test_a_search_under_way_is_watched(served: ViewServer, open_page: OpenPage) -> None:
    course(served, [[0.5, None, 0.9, 0, 10, 0, 90]])
    found = open_page(served.address)
    page = found.page
    page.goto(f"http://127.0.0.1:{served.server_port}/run/{key_of('going')}")
    page.locator("#live-open", has_text="90").wait_for()
    course(
        served,
        [
            [0.5, None, 0.9, 0, 10, 0, 90],
            [1.0, 1.25, 1.0, 3, 60, 0, 37],
            [2.0, 1.1, 1.0, 9, 90, 0, 1],
        ],
    )
    page.locator("#live-evaluated", has_text="9").wait_for()
    assert page.locator("#live-best").inner_text() == "1.1"
    assert page.locator("#live-gap").inner_text() == "9.09 %"
    assert page.evaluate("document.getElementById('course-plot').toDataURL().length") > 3000
    assert page.evaluate("document.getElementById('gap-plot').toDataURL().length") > 2000
    page.locator("summary").click()
    rows = [row.locator("td").all_inner_texts() for row in page.locator("#course-rows tr").all()]
    assert rows[0] == ["2", "1.1", "1", "9.09 %", "9", "90", "1"] and [row[3] for row in rows] == [
        "9.09 %",
        "20 %",
        "-",
    ]
    assert found.faults == []

"""Markup in any leaf of any document that has a page is refused or stays text: no script of it
runs."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.report.front_sheet import front_page
from phaze.report.sweep_sheet import sweep_page
from tests.browser.conftest import Opened
from tests.report.runs import PLAN, SPACE, STUDY, explained
from tests.search.made_silicon import SMALL
from tests.search.test_silicon_search import STUDY as SILICON

OpenPage = Callable[..., Opened]
MARKUP = (
    "</title></style></script><svg onload=window.ran=1><img src=x "
    "onerror=window.ran=1><script>window.ran=1</script>"
)
ATTRIBUTE = '" onmouseover=window.ran=1 style="color:red" x=\''
STEPS = tuple[int | str, ...]


def leaves(value: Any, every: bool, steps: STEPS = ()) -> Iterator[STEPS]:
    """Every leaf, or texts alone; of a list the first and the last element."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from leaves(one, every, (*steps, key))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1}) if value else ():
            yield from leaves(value[at], every, (*steps, at))
    elif every or isinstance(value, str):
        yield steps


def spoiled(document: Any, steps: STEPS, markup: str) -> Any:
    """A copy of a document with ``markup`` at a leaf."""
    copy = json.loads(json.dumps(document))
    inside = copy
    for step in steps[:-1]:
        inside = inside[step]
    inside[steps[-1]] = markup
    return copy


def _run(*arguments: object) -> str:
    with (
        contextlib.redirect_stdout(io.StringIO()) as said,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        assert exit_code_of(app, [str(one) for one in arguments]) == 0, arguments
    return said.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Path:
    """A plan, a search, a front and a sweep, with their documents and good pages."""
    found = tmp_path_factory.mktemp("documents")
    (found / "space.toml").write_text(SPACE)
    study = found / "study.toml"
    study.write_text(STUDY.replace("space.toml", str(found / "space.toml")))
    (found / "plan.json").write_text(_run(*PLAN.split(), "--json"))
    _run("report", found / "plan.json")
    _run("search", study, "--out", found / "run", "--workers", 1)
    explained(found / "run")
    (found / "space.json").write_text(json.dumps(SMALL))
    silicon = found / "silicon.toml"
    silicon.write_text(SILICON.replace("space.json", str(found / "space.json")))
    _run("search", silicon, "--out", found / "silicon", "--workers", 1)
    _run("front", study, "--of", "throughput,area", "--out", found / "front", "--workers", 1)
    _run(
        "sweep", study, "--over", "training.devices=32,64", "--out", found / "sweep", "--workers", 1
    )
    return found


def _refused_or_page(command: list[str], page: Path) -> str:
    """The page that a command makes of a spoiled document; nothing where it refuses it in a
    sentence."""
    page.unlink(missing_ok=True)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as wrong,
    ):
        code = exit_code_of(app, command)
    assert code in (0, 2), wrong.getvalue()
    return page.read_text(encoding="utf-8") if code == 0 else ""


def _pages(folder: Path, every: bool) -> Iterator[tuple[str, str]]:
    """(what was spoiled, page) of every document that a page was made of in spite of it."""
    page = folder / "spoiled.html"
    for markup in (MARKUP, ATTRIBUTE) if every else (MARKUP + ATTRIBUTE,):
        files = (
            (folder / "plan.json", ["report", str(folder / "plan.json"), "--out", str(page)]),
            (folder / "run" / "result.json", ["report", str(folder / "run"), "--out", str(page)]),
            (
                folder / "run" / "explanation.json",
                ["report", str(folder / "run"), "--out", str(page)],
            ),
            (
                folder / "silicon" / "result.json",
                ["report", str(folder / "silicon"), "--out", str(page)],
            ),
            (
                folder / "front" / "front.json",
                ["report", str(folder / "front"), "--design", "0", "--out", str(page)],
            ),
        )
        for path, command in files if every else files[:1]:
            good = path.read_text(encoding="utf-8")
            document = json.loads(good)
            for steps in leaves(document, every):
                path.write_text(json.dumps(spoiled(document, steps, markup)), encoding="utf-8")
                yield f"{path.name} {steps}", _refused_or_page(command, page)
            path.write_text(good, encoding="utf-8")
        makers = (
            (folder / "front" / "front.json", front_page),
            (folder / "sweep" / "sweep.json", sweep_page),
        )
        for path, make in makers:
            document = json.loads(path.read_text(encoding="utf-8"))
            for steps in leaves(document, every):
                with contextlib.suppress(
                    TypeError, ValueError, KeyError
                ):  # markup in the place of a number
                    yield f"{path.name} {steps}", make(spoiled(document, steps, markup))


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_script_of_a_hostile_document_runs(
    every: bool, folder: Path, open_page: OpenPage
) -> None:
    blank = folder / "blank.html"
    blank.write_text("<!doctype html><title>blank</title>")
    found = open_page(blank)
    seen, shown = set(), folder / "shown.html"
    for what, text in _pages(folder, every):
        if not text:
            continue
        shown.write_text(text, encoding="utf-8")
        found.page.goto(shown.as_uri())
        assert found.page.evaluate("window.ran") is None, what
        assert found.page.locator("[onerror], [onclick], [onmouseover], [style]").count() == 0, what
        assert found.faults == [], what
        seen.add(what.split()[0])
    assert seen == {"plan.json", "front.json", "sweep.json"} | (
        {"result.json", "explanation.json"} if every else set()
    )


def test_good_pages_obey_their_own_policy(folder: Path, open_page: OpenPage) -> None:
    for page in ("plan.html", "run/report.html", "front/front.html", "sweep/sweep.html"):
        found = open_page(folder / page)
        assert found.faults == [], page
        assert "unsafe" not in (folder / page).read_text(encoding="utf-8")
        paper = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == "rgb(255, 255, 255)", "the style is refused"


def test_the_policy_stops_a_script_that_got_in(folder: Path, open_page: OpenPage) -> None:
    good = (folder / "plan.html").read_text(encoding="utf-8")
    bad = folder / "injected.html"
    place = '<footer class="wrap end">'
    assert place in good
    bad.write_text(
        good.replace(place, f"{place}{MARKUP.replace('</script>', '', 1)}"), encoding="utf-8"
    )
    found = open_page(bad)
    assert found.page.evaluate("window.ran") is None
    assert any("Content Security Policy" in fault for fault in found.faults)

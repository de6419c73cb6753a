"""The pages as a person sees them, in Debian's chromium: light and dark, phone and desk, keyboard
alone, on paper."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.report.page.search_page import search_page
from tests.browser.axe import axe_source
from tests.browser.conftest import Opened
from tests.report.runs import CONTESTED_PLAN, HOSTILE, explained, made_run, named, small_run

OpenPage = Callable[..., Opened]
RUN: dict[str, Any] = {
    "schema": "phaze.run/1",
    "gpt": {"hidden": 2048, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 1024},
    "chip": "a100-40gb", "cluster": "selene", "devices": 8, "batch": 64,
    "plan": {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2},
}  # fmt: skip
# Given plans of other kinds, with what differs and the exit code.
GIVEN = {
    "interleaved": ({"chunks": 2}, 0),
    "short": ({"microbatch": 32, "pipeline": 1, "data": 2}, 3),
}
SIZES = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]
CHIP = (
    *("components", "against-the-baseline", "the-model", "step-time", "memory", "timeline"),
    *("accuracy", "study"),
)
PARTS = {
    "plan": ("launch-it", "step-time", "memory", "timeline", "alternatives", "what-if", "accuracy"),
    "search": ("all-chips", *CHIP, "certificate"),
    "explained": ("all-chips", "marginal-value", "against-the-baseline", "models", "study"),
    "front": ("front", "designs", "what-is-proved"),
    "design": CHIP,
    "sweep": ("answer", "points"),
    "compare": ("answer", "every-placement", "what-the-times-rest-on"),
    "explain": ("why-not-its-neighbours", "how-flat-the-optimum-is", "chips-that-exist"),
    "verify": ("what-is-claimed",),
    "validate": ("iteration-time",),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> dict[str, Path]:
    """A page of every kind, and one whose names are hostile; not made where no browser would see
    them."""
    folder = tmp_path_factory.mktemp("pages")
    run = made_run(folder / "made", (named(5, HOSTILE), named(6, HOSTILE + "2")), HOSTILE)
    (folder / "hostile.html").write_text(search_page(run), encoding="utf-8")
    assert exit_code_of(app, [*CONTESTED_PLAN.split(), "--html", str(folder / "plan.html")]) == 0
    for name, (changes, code) in GIVEN.items():
        (folder / f"{name}.json").write_text(
            json.dumps({**RUN, "plan": {**RUN["plan"], **changes}})
        )
        made = [
            "plan",
            "--fixed",
            str(folder / f"{name}.json"),
            "--html",
            str(folder / f"{name}.html"),
        ]
        assert exit_code_of(app, made) == code
    search = small_run(folder) / "report.html"
    explained(folder / "run")
    assert (
        exit_code_of(app, ["report", str(folder / "run"), "--out", str(folder / "explained.html")])
        == 0
    )
    study = str(folder / "study.toml")
    front = [
        "front",
        study,
        "--of",
        "throughput,area,power",
        "--out",
        str(folder / "front"),
        "--workers",
        "1",
    ]
    sweep = [
        "sweep",
        study,
        "--over",
        "training.devices=8,10,12,14,16,20,24,32,40,48,64",
        "--out",
        str(folder / "sweep"),
        "--workers",
        "1",
    ]
    assert exit_code_of(app, front) == 0
    assert exit_code_of(app, sweep) == 0
    assert exit_code_of(app, ["report", str(folder / "front"), "--design", "1"]) == 0
    for command in (
        f"compare --run {folder}/run --chip tpu-v4",
        f"verify {folder}/run",
        "validate --set sc21 --rows",
    ):
        name = command.split()[0]
        assert exit_code_of(app, [*command.split(), "--html", str(folder / f"{name}.html")]) == 0
    (folder / "run" / "explanation.json").unlink()
    explain = [
        "explain",
        str(folder / "run"),
        "--compare",
        "tpu-v4",
        "--html",
        str(folder / "explain.html"),
    ]
    assert exit_code_of(app, explain) == 0
    return {
        **{name: folder / f"{name}.html" for name in ("compare", "verify", "validate", "explain")},
        **{name: folder / f"{name}.html" for name in GIVEN},
        "search": search,
        "explained": folder / "explained.html",
        "plan": folder / "plan.html",
        "hostile": folder / "hostile.html",
        "front": folder / "front" / "front.html",
        "design": folder / "front" / "design-1.html",
        "sweep": folder / "sweep" / "sweep.html",
    }


@pytest.mark.parametrize(("width", "scheme"), SIZES)
@pytest.mark.parametrize("kind", [*PARTS, "hostile", *GIVEN])
def test_it_opens_without_a_fault_or_a_request_and_is_accessible(
    kind: str, width: int, scheme: str, pages: dict[str, Path], open_page: OpenPage
) -> None:
    found = open_page(pages[kind], width, scheme)
    assert found.faults == []
    assert found.requests == [pages[kind].as_uri()]
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width, (
        "it scrolls sideways"
    )
    paper = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    source = axe_source()
    if source is None:
        pytest.skip("NOT RUN: axe-core could not be fetched from the npm registry (make browser)")
    found.page.evaluate(source)
    wrong = found.page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)"
    )
    serious = [
        (one["id"], one["nodes"][0]["html"][:150])
        for one in wrong
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("width", [390, 1440, 2560])
@pytest.mark.parametrize("kind", sorted(PARTS))
def test_every_part_is_visible_and_no_page_is_endless(
    kind: str, width: int, pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages[kind], width).page
    for part in PARTS[kind]:
        place = page.locator(f"section#{part}")
        assert place.is_visible(), part
        assert place.bounding_box()["height"] > 50, part
    sizes = page.evaluate(
        "[...document.querySelectorAll('td,p,dd,dt,li,span.r')].filter(e => e.textContent.trim())"
        ".map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12, "too small to read on a phone"
    assert page.evaluate("document.documentElement.scrollHeight") < (9600 if width == 390 else 6500)


def test_pages_are_small_without_their_numbers(pages: dict[str, Path]) -> None:
    for kind in PARTS:
        text = pages[kind].read_text(encoding="utf-8")
        numbers = text.partition('id="numbers">')[2].partition("</script>")[0]
        assert len(text) - len(numbers) < 400_000, kind
        assert "unsafe" not in text


def test_the_first_screen_of_a_plan_answers(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["plan"]).page
    for title in ("Does it fit?", "How fast?", "What does it cost?", "Is it worth changing?"):
        box = page.get_by_role("heading", name=title).first.bounding_box()
        assert box["y"] < 500, title
    assert page.locator("h1").first.inner_text().startswith("Fits with")
    assert "floor plan" not in page.content()


def test_choosing_a_plan_changes_the_whole_page_and_its_address(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["plan"]).page
    first = page.locator("h1:visible").inner_text()
    drawn = page.locator("canvas:visible").get_attribute("data-timeline")
    page.locator("select[data-chooses=plan]").select_option("thumb")
    assert page.url.endswith("#plan=thumb")
    assert page.locator("h1:visible").inner_text() != first
    assert page.locator("h1:visible").count() == 1
    assert (
        page.locator("canvas:visible").get_attribute("data-timeline") == "timeline-thumb" != drawn
    )
    assert page.locator('input[value="thumb"]').is_checked()
    page.locator('input[value="a2"]').check()
    assert page.locator("select[data-chooses=plan]").input_value() == "a2"
    assert page.locator("nav a").first.get_attribute("href") == "#launch-it-a2"
    again = open_page(pages["plan"]).page
    again.goto(pages["plan"].as_uri() + "#plan=a2")
    again.reload()
    assert again.locator("canvas:visible").get_attribute("data-timeline") == "timeline-a2"


def test_costs_follow_what_is_typed(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["plan"]).page
    days = page.locator("[data-cost=days]:visible")
    tokens = page.locator("[data-term=tokens]:visible")
    tokens.fill("1T")
    first = float(days.inner_text().replace(",", ""))
    tokens.fill("2T")
    assert float(days.inner_text().replace(",", "")) == pytest.approx(2 * first, rel=0.02)
    tokens.fill("much")
    assert days.inner_text() == "unknown"
    tokens.fill("3T")
    page.locator("select[data-chooses=plan]").select_option("thumb")
    assert tokens.input_value() == "3T", "all plans are priced on the same terms"


def test_deltas_against_another_plan_sum_to_the_difference(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["plan"]).page
    page.locator("select.against:visible").select_option("thumb")
    total = page.locator('[data-fall="best"] .on .delta')
    assert total.inner_text().startswith("-"), "the best plan is faster"
    page.locator("select.against:visible").select_option("")
    assert total.inner_text() == ""


def test_the_timeline_zooms_by_keyboard_and_buttons(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["interleaved"]).page
    line = page.locator("canvas.line")

    def span() -> float:
        return float(line.get_attribute("data-to")) - float(line.get_attribute("data-from"))

    page.get_by_role("button", name="All", exact=True).click()
    whole = span()
    line.focus()
    page.keyboard.press("+")
    assert span() == pytest.approx(whole / 2)
    before = line.get_attribute("data-from")
    page.keyboard.press("ArrowRight")
    assert line.get_attribute("data-from") != before
    page.keyboard.press("Escape")
    assert span() == pytest.approx(whole)
    page.get_by_role("button", name="Zoom in").click()
    line.scroll_into_view_if_needed()
    box = line.bounding_box()
    for share in (0.3, 0.42, 0.57):
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * 0.4)
    assert "chunk" in page.locator("#said-timeline").inner_text()


def test_what_is_short_stands_before_the_rest(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["short"], 390).page
    assert page.locator("h1").inner_text().startswith("Does not fit")
    assert page.locator("section:has(> h2)").first.get_attribute("id") == "what-is-short"
    assert "each alone" in page.locator("section#what-is-short").inner_text()


def test_the_cloud_follows_its_axes_filters_and_pins(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["search"]).page
    picture = "document.getElementById('plot').toDataURL()"
    seen = {page.evaluate(picture)}
    page.locator("#axis-x").select_option(label="TDP")
    seen.add(page.evaluate(picture))
    page.locator("#axis-colour").select_option(label="rows")
    seen.add(page.evaluate(picture))
    assert len(seen) == 3, "the canvas does not change"
    before = page.locator("#shown-count").inner_text()
    page.locator("#only-exact").check()
    assert page.locator("#shown-count").inner_text() != before
    page.get_by_role("button", name="Reset").click()
    assert page.locator("#shown-count").inner_text() == before
    panel = page.locator("#pinned")
    page.get_by_role("button", name="Pin B", exact=True).click()
    page.locator("summary", has_text="nearest chips").click()
    page.locator("[data-pin]").last.click()
    pins = panel.get_attribute("data-pins").split()
    assert len(pins) == 2
    assert "B vs A" in panel.inner_text()
    page.locator("#plot").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert panel.get_attribute("data-pins").split() != pins


def test_a_search_names_its_rival_process_network_and_proof(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["search"]).page
    assert "× as fast as tpu-v4-paper" in page.locator("h1").inner_text()
    head = page.locator(".cards").inner_text()
    for word in (
        "paper-22nm",
        "TDP",
        "HBM",
        "links",
        "64 devices",
        "No chip is better",
        "TPU v3",
        "reticle",
    ):
        assert word in head or word in page.locator(".cards").inner_html(), word


def test_front_plot_and_table_are_one(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["front"]).page
    table = page.locator("#designs-table")
    assert table.locator("tbody tr").count() <= 14
    assert table.locator("tr.on").count() >= 1, "the pinned designs are marked"
    page.locator("th button", has_text="area").first.click()
    values = [
        float(cell.get_attribute("data-value"))
        for cell in table.locator("tbody tr td:nth-child(4)").all()
    ]
    assert values == sorted(values, reverse=True)
    middle = sorted(values)[len(values) // 2]
    page.locator("[data-limit]").nth(1).fill(f"{middle}")
    shown = [
        float(cell.get_attribute("data-value"))
        for cell in table.locator("tbody tr td:nth-child(4)").all()
    ]
    assert shown
    assert max(shown) <= middle
    page.get_by_role("button", name="Reset").click()
    page.get_by_role("link", name="Open the design").first.click()
    assert "#design=" in page.url
    page.locator("[data-chooser=design]:visible").first.wait_for(
        timeout=5000
    )  # the address changes before the page hears of it
    assert page.locator("[data-chooser=design]:visible").count() == 1
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    lines = Path(saved.value.path()).read_text().splitlines()
    assert lines[0].startswith("design,exact,throughput")
    assert len(lines) > 2


def test_the_step_stands_beside_that_of_the_baseline(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["search"]).page
    place = page.locator("#against-the-baseline")
    bars = place.locator(".bars.tall svg.bar")
    assert bars.count() == 2
    place.locator("summary").first.click()
    rows = [row.locator("td").all_inner_texts() for row in place.locator("tbody tr").all()]
    assert [row[0] for row in rows][:1] == ["GEMM FLOPs at peak"] and len(rows) > 2
    widths = (
        bars.nth(1)
        .locator("rect")
        .evaluate_all("found => found.map(one => parseFloat(one.getAttribute('width')))")
    )
    ratio = float(page.locator("h1").inner_text().partition(" × ")[0].split()[-1])
    assert sum(widths) == pytest.approx(100 / ratio, rel=0.02), (
        "this chip's bar is as much shorter as it is faster"
    )
    bars.nth(0).locator("rect").first.click()
    assert "GEMM FLOPs at peak" in place.locator(".say").inner_text()


def test_choosing_a_baseline_changes_the_whole_page_and_its_address(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["explained"]).page
    parts = (
        "h1:visible",
        ".cards",
        "#against-the-baseline:visible, #against-the-baseline-b200:visible",
        "table:visible:has-text('held out')",
    )
    before = [page.locator(part).inner_text() for part in parts]
    assert "as fast as tpu-v4-paper" in before[0] and "vs tpu-v4-paper" in before[3]
    page.locator("select[data-chooses=baseline]").focus()
    page.keyboard.press("ArrowDown")
    assert page.url.endswith("#baseline=b200")
    after = [page.locator(part).inner_text() for part in parts]
    assert "2.00 × as fast as B200" in after[0]
    assert "vs B200" in after[3] and "that on B200" in after[2]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert page.locator("[data-key=tpu-v4-paper]:visible").count() == 0
    held = page.locator("tr:visible", has_text="held out").inner_text()
    assert "3.00 ×" in held and "2.1 %" in held
    again = open_page(pages["explained"]).page
    again.goto(pages["explained"].as_uri() + "#baseline=b200")
    again.reload()
    assert "as fast as B200" in again.locator("h1:visible").inner_text()


def test_every_setting_says_where_it_comes_from(
    pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages["search"]).page
    page.locator("#study summary").click()
    found: dict[str, tuple[str, str]] = {}
    for key in ("training.devices", "hbm", "search.gap", "training.optimizer"):
        page.locator("#study input").fill(key)
        rows = [
            row.locator("td").all_inner_texts() for row in page.locator("#study tbody tr").all()
        ]
        found |= {name: (value, origin) for name, value, origin in rows}
    assert found["training.devices"] == ("64", "the study") and found["hbm"] == (
        "32 GiB",
        "the study",
    )
    assert found["search.gap"] == ("0.01 %", "default of rules icml24")
    assert found["training.optimizer"] == ("sgd", "the stack icml24")


def test_a_tap_says_what_a_block_is(pages: dict[str, Path], open_page: OpenPage) -> None:
    page = open_page(pages["search"], 390).page
    for part in (".card", "#memory"):
        shape = page.locator(f"{part} [data-say]").first
        shape.dispatch_event("click")
        assert page.locator(f"{part} .say").first.inner_text() == shape.get_attribute("data-say")


@pytest.mark.parametrize("kind", ["plan", "search"])
def test_what_is_taken_away_can_be_copied_and_saved(
    kind: str, pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages[kind]).page
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_role("button", name="Copied").wait_for(timeout=2000)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download").first.click()
    text = Path(saved.value.path()).read_text()
    assert ("MEGATRON_FLAGS=(" if kind == "plan" else 'name = "small"') in text


@pytest.mark.parametrize("kind", ["plan", "search", "front", "design", "sweep"])
def test_everything_is_reached_by_keyboard(
    kind: str, pages: dict[str, Path], open_page: OpenPage
) -> None:
    page = open_page(pages[kind]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        at = page.evaluate("[document.activeElement.tagName, document.activeElement.id]")
        if at[0] == "BODY":
            break
        reached.add(tuple(at))
    names = {tag for tag, _ in reached}
    wanted = {
        "plan": {"SELECT", "BUTTON", "PRE", "CANVAS", "INPUT"},
        "sweep": {"BUTTON", "INPUT"},
        "design": {"BUTTON", "CANVAS", "SUMMARY"},
    }
    assert wanted.get(kind, {"SELECT", "BUTTON", "CANVAS", "INPUT"}) <= names
    hidden = page.evaluate(
        "[...document.querySelectorAll('button:not([disabled]),select,input,canvas')]"
        ".filter((e) => e.offsetParent !== null && e.tabIndex < 0).length"
    )
    assert hidden == 0


def test_hostile_names_stay_text(pages: dict[str, Path], open_page: OpenPage) -> None:
    found = open_page(pages["hostile"])
    assert HOSTILE in found.page.locator("body").inner_text()
    assert found.page.locator("script:not([type])").count() == 1
    found.page.locator("summary", has_text="nearest chips").click()
    for button in found.page.locator("[data-pin]").all():
        button.click()
    found.page.locator("select[data-chooses=model]").select_option("m1")
    assert found.faults == []


@pytest.mark.parametrize("kind", sorted(PARTS))
def test_it_prints_in_black_on_white(
    kind: str, pages: dict[str, Path], open_page: OpenPage
) -> None:
    found = open_page(pages[kind], 1440, "dark")
    found.page.emulate_media(media="print")
    assert (
        found.page.evaluate("getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert not found.page.locator(".sticky").first.is_visible()
    assert not found.page.locator(".btn").first.is_visible()
    assert len(found.page.pdf()) > 15_000

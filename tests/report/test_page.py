"""The page: complete, one file, small, the same bytes twice, and text stays text."""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.evaluate.headroom import DeviceMemory
from phaze.hardware.library import load_chip
from phaze.report.drawings import Column, DesignParameter, DesignPlot
from phaze.report.front_sheet import knee_of
from phaze.report.lever_text import lever_rows
from phaze.report.page.floor_plan import Box, cells, components_of, treemap
from phaze.report.page.pipeline_timeline import MOST_EVENTS
from phaze.report.page.plot_thinning import MOST, front, thinned
from phaze.report.page.script_numbers import plot_numbers
from phaze.report.page.search_page import search_page
from phaze.report.plan_cards import fit_of
from phaze.units import show
from tests.report.runs import CONTESTED_PLAN, HOSTILE, PLAN, explained, made_run, named, small_run
from tests.search.made import traced_task

PARTS = (
    "all-chips",
    "components",
    "step-time",
    "timeline",
    "memory",
    "operators",
    "certificate",
    "study",
)


class Structure(HTMLParser):
    """Ids of elements, and what a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.loads: list[str] = []
        self.scripts = 0
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids.add(known.get("id") or "")
        self.scripts += tag == "script"
        self.loads += [v for k, v in attrs if k in ("src", "srcset", "data", "poster") and v]
        self.loads += [v for k, v in attrs if k == "href" and v and not v.startswith("#")]
        if tag not in ("meta", "rect", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids.add(known.get("id") or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag


def test_a_search_page_has_every_part_and_loads_nothing(tmp_path: Path) -> None:
    text = search_page(made_run(tmp_path, (traced_task(3),)))
    found = Structure(text)
    assert set(PARTS) <= found.ids
    assert found.loads == []
    assert found.open == []
    assert "http" not in re.sub(r"http-equiv", "", text)


def test_two_pages_of_one_run_have_the_same_bytes(tmp_path: Path) -> None:
    run = made_run(tmp_path, (traced_task(3),))
    assert search_page(run) == search_page(run)


def test_names_stay_text(tmp_path: Path) -> None:
    run = made_run(tmp_path, (named(5, HOSTILE), named(6, "plain")), HOSTILE)
    plain = made_run(tmp_path / "plain", (named(5, "first"), named(6, "plain")), "study")
    text, usual = search_page(run), search_page(plain)
    assert HOSTILE not in text
    assert Structure(text).scripts == Structure(usual).scripts
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;&amp;" in text


def test_every_model_of_a_run_has_its_parts(tmp_path: Path) -> None:
    run = made_run(tmp_path, (named(5, "first"), named(6, "second")))
    found = Structure(search_page(run))
    for part in ("step-time", "timeline", "memory", "operators"):
        assert {part, f"{part}-m1"} <= found.ids


def test_the_command_makes_the_page_again(phaze: Callable[..., Any], tmp_path: Path) -> None:
    run = small_run(tmp_path)
    page = run / "report.html"
    first = page.read_bytes()
    page.unlink()
    ran = phaze("report", run, "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {"page": str(page), "bytes": len(first)}
    assert page.read_bytes() == first
    assert phaze("report", run, "--out", tmp_path / "other.html").code == 0
    assert (tmp_path / "other.html").read_bytes() == first


@pytest.mark.parametrize("given", ["nothing-here", "."])
def test_a_folder_without_a_run_is_refused(
    given: str, phaze: Callable[..., Any], tmp_path: Path
) -> None:
    ran = phaze("report", tmp_path / given)
    assert ran.code == 2
    assert "there is no finished run here" in ran.err


def test_a_result_that_was_changed_is_refused(phaze: Callable[..., Any], tmp_path: Path) -> None:
    run = small_run(tmp_path)
    result = json.loads((run / "result.json").read_text())
    model = result["models"][0]
    model["plan"]["batch_s"] *= 1.01
    (run / "result.json").write_text(json.dumps(result))
    ran = phaze("report", run)
    assert ran.code == 2 and "let batch_s, " in ran.err
    model["batch_s"] *= 1.01
    for key in ("throughput_per_s", "tokens_per_s", "tokens_per_s_per_device"):
        model[key] /= 1.01
    (run / "result.json").write_text(json.dumps(result))
    ran = phaze("report", run)
    assert ran.code == 2
    assert "it is not what certificate.json proves" in ran.err


def test_a_plan_has_the_same_page_by_both_ways(phaze: Callable[..., Any], tmp_path: Path) -> None:
    ran = phaze(*PLAN.split(), "--json", "--html", tmp_path / "first.html")
    assert ran.code == 0, ran.err
    (tmp_path / "plan.json").write_text(ran.out)
    assert phaze("report", tmp_path / "plan.json").code == 0
    text = (tmp_path / "plan.html").read_text()
    assert text == (tmp_path / "first.html").read_text()
    found = Structure(text)
    assert {
        "launch-it",
        "step-time",
        "memory",
        "timeline",
        "alternatives",
        "what-if",
        "accuracy",
        "operators",
    } <= found.ids
    assert "components" not in found.ids, "one cannot change it"
    assert found.loads == []
    assert found.open == []


def test_a_given_plan_that_does_not_fit_has_a_page_too(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    run = {
        "schema": "phaze.run/1",
        "gpt": {"hidden": 4096, "layers": 24, "heads": 32, "vocabulary": 51200, "sequence": 2048},
        "chip": "a100-40gb", "cluster": "selene", "devices": 2, "batch": 8,
        "plan": {"tensor": 1, "pipeline": 1, "data": 2, "microbatch": 1},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(run))
    ran = phaze("plan", "--fixed", tmp_path / "run.json", "--html", tmp_path / "plan.html")
    assert ran.code == 3
    assert "does not fit" in (tmp_path / "plan.html").read_text()


@pytest.mark.parametrize("wrong", ["[]", "{}", '{"schema": "phaze.plan/1", "batch_s": 1.0}'])
def test_what_is_no_plan_is_refused(wrong: str, phaze: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(wrong)
    assert phaze("report", tmp_path / "plan.json").code == 2


def test_every_rectangle_of_a_die_has_its_area() -> None:
    parts = components_of(load_chip("a100-80gb"))
    boxes = treemap([part.area_mm2 for part in parts], Box(0, 0, 100, 100))
    total = sum(part.area_mm2 for part in parts)
    for part, box in zip(parts, boxes, strict=True):
        assert box.area == pytest.approx(1e4 * part.area_mm2 / total)
        inner = cells(box, part.count)
        assert [cell.area for cell in inner] == pytest.approx([box.area / part.count] * part.count)


@pytest.mark.parametrize("count", [1, 2, 7, 64, 433])
def test_cells_lie_inside_their_box_and_do_not_overlap(count: int) -> None:
    box = Box(3, 5, 20, 60)
    found = cells(box, count)
    assert len(found) == count
    assert all(
        cell.x + cell.width <= 23 + 1e-9 and cell.y + cell.height <= 65 + 1e-9 for cell in found
    )
    assert sum(cell.area for cell in found) == pytest.approx(box.area)


def random_plot(count: int) -> DesignPlot:
    rng = np.random.default_rng(1)
    area, height = rng.uniform(5, 300, count), rng.uniform(1, 1000, count)
    columns = [
        Column("throughput", "1/s", height, more=True, bound=True),
        Column("area", "mm²", area),
        Column("power", "W", area * 2),
        Column("cost", "USD", rng.uniform(1, 9, count)),
    ]
    which = rng.integers(0, 8, count)
    parameters = [
        DesignParameter(f"parameter {number}", tuple("abcdefgh"), which) for number in range(6)
    ]
    exact = np.zeros(count, bool)
    exact[::5000] = True
    best = int(np.argmax(height))
    return DesignPlot(columns, np.arange(count), best, "chips.csv", parameters, exact)


def test_the_numbers_of_all_chips_that_are_drawn_stay_small() -> None:
    assert len(json.dumps(plot_numbers(random_plot(MOST)))) < 1_000_000


def test_more_chips_are_drawn_as_fewer_and_nothing_that_matters_is_lost() -> None:
    plot = random_plot(200_000)
    assert plot.exact is not None
    index, stands_for = thinned(plot.columns, plot.exact, plot.best)
    assert len(index) <= MOST
    assert stands_for.sum() == 200_000
    shown = set(index.tolist())
    assert set(np.flatnonzero(plot.exact).tolist()) <= shown
    for axis in plot.columns[1:]:
        assert set(front(axis.values, plot.columns[0].values).tolist()) <= shown


def test_no_chip_beats_the_front() -> None:
    plot = random_plot(2_000)
    height, area = plot.columns[0].values, plot.columns[1].values
    line = front(area, height)
    for chip in range(2_000):
        assert any(area[f] <= area[chip] and height[f] >= height[chip] for f in line)


def page_numbers(text: str) -> dict[str, Any]:
    """The numbers that a page's script draws from."""
    found: dict[str, Any] = json.loads(re.findall(r'id="numbers">(.*?)</script>', text)[0])
    return found


def unpacked(packed: dict[str, Any]) -> Any:
    return np.frombuffer(b64decode(packed["data"]), dtype=f"<u{packed['bytes']}")


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_the_timeline_ends_when_the_events_do(
    zero: int, phaze: Callable[..., Any], tmp_path: Path
) -> None:
    ran = phaze(*PLAN.split(), "--zero", zero, "--json", "--html", tmp_path / "plan.html")
    assert ran.code == 0, ran.err
    text, plan = (tmp_path / "plan.html").read_text(), json.loads(ran.out)
    line = page_numbers(text)["timelines"]["timeline"]
    assert line["end"] == pytest.approx(plan["simulated_s"])
    assert ("Collectives of ZeRO lie inside the passes" in text) == (zero >= 2)
    assert (f">ZeRO-{zero}<" in text) == (zero > 0)
    assert "backward with recomputation" not in text


def test_a_plan_that_does_not_fit_says_what_would_help(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    run = {
        "schema": "phaze.run/1",
        "gpt": {"hidden": 4096, "layers": 8, "heads": 32, "vocabulary": 51200, "sequence": 2048},
        "chip": "a100-40gb", "cluster": "selene", "devices": 8, "batch": 16,
        "plan": {"tensor": 1, "pipeline": 1, "data": 2, "microbatch": 4},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(run))
    ran = phaze(
        "plan", "--fixed", tmp_path / "run.json", "--html", tmp_path / "plan.html", "--json"
    )
    assert ran.code == 3
    short, text = json.loads(ran.out)["shortage"], (tmp_path / "plan.html").read_text()
    assert show(short["needed_bytes"], "B") in text
    assert "What would make it fit, each alone" in text
    for name, words in lever_rows(short["levers"], "given"):
        assert f"<dt>{name}</dt><dd>{words}</dd>" in text


def test_where_nothing_fits_no_page_is_written_and_a_line_says_so(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    ran = phaze(
        "plan", "--model", "gpt3-175b", "--chip", "a100-40gb", "--devices", "8", "--batch", "8",
        "--microbatch", "1",
        "--tensor", "8", "--html", tmp_path / "plan.html",
    )  # fmt: skip
    assert ran.code == 3
    assert "was not written" in ran.err
    assert not (tmp_path / "plan.html").exists()


def test_a_timeline_of_many_events_keeps_both_ends_and_says_what_it_skips(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    run = {
        "schema": "phaze.run/1",
        "gpt": {"hidden": 1024, "layers": 64, "heads": 16, "vocabulary": 51200, "sequence": 512},
        "chip": "a100-80gb", "cluster": "selene", "devices": 16, "batch": 256,
        "plan": {"tensor": 1, "pipeline": 16, "data": 1, "microbatch": 1, "chunks": 4},
    }  # fmt: skip
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert (
        phaze("plan", "--fixed", tmp_path / "run.json", "--html", tmp_path / "plan.html").code == 0
    )
    line = page_numbers((tmp_path / "plan.html").read_text())["timelines"]["timeline"]
    names = [line["words"][word][0] for word in unpacked(line["word"])]
    passes = [name for name in names if "microbatch" in name]
    assert len(passes) <= MOST_EVENTS
    assert {"forward of microbatch 0, chunk 0", "backward of microbatch 255, chunk 3"} <= set(
        passes
    )
    begin, end = line["skipped"]
    assert 0 < begin < end < line["end"]
    ends = (unpacked(line["start"]) + unpacked(line["length"]).astype(float)) / (2**32 - 1)
    assert ends.max() == pytest.approx(1.0), "the last event is there"


def test_every_plan_of_a_document_is_whole_on_its_page(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    ran = phaze(*CONTESTED_PLAN.split(), "--json", "--html", tmp_path / "plan.html")
    plan, text = json.loads(ran.out), (tmp_path / "plan.html").read_text()
    numbers, shown = page_numbers(text), text.split("<script", maxsplit=1)[0]
    assert set(numbers["timelines"]) >= {"timeline", "timeline-a2", "timeline-thumb"}
    for row in plan["alternatives"][1:]:
        own = row["plan"]
        assert own["batch_s"] == row["batch_s"]
        assert sum(own["breakdown"].values()) == pytest.approx(own["batch_s"], rel=1e-9)
        assert set(row["launch"]) == {"megatron", "torchtitan", "maxtext", "deepspeed"}
    sums = [
        sum(map(float, re.findall(r'data-s="([^"]*)"', fall)))
        for fall in shown.split("data-fall=")[1:]
    ]
    steps = [
        plan["batch_s"],
        *(row["batch_s"] for row in plan["alternatives"][1:]),
        plan["rule_of_thumb"]["batch_s"],
    ]
    assert sums == pytest.approx([2 * step for step in steps], rel=1e-9), (
        "rows sum to the step, the last row is the sum"
    )


def test_a_framework_that_refuses_a_plan_says_why(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    ran = phaze(*PLAN.split(), "--zero", "0", "--json", "--html", tmp_path / "plan.html")
    launch, text = json.loads(ran.out)["launch"], (tmp_path / "plan.html").read_text()
    assert launch["megatron"]["refused"] is None
    assert "MEGATRON_FLAGS=(" in text
    reason = launch["torchtitan"]["refused"]
    assert reason
    assert escape(reason) in text


def test_what_if_rows_are_plans_or_say_why_not(phaze: Callable[..., Any], tmp_path: Path) -> None:
    small = PLAN.replace(
        "--microbatch 2 --tensor 1,2", "--microbatch 1 --tensor 1 --chunks 1 --zero 0"
    )
    ran = phaze(*small.split(), "--what-if", "--json", "--html", tmp_path / "plan.html")
    assert ran.code == 0, ran.err
    document, text = json.loads(ran.out), (tmp_path / "plan.html").read_text()
    groups = {group["axis"]: group["rows"] for group in document["what_if"]}
    assert set(groups) == {"devices", "sequences", "positions", "chip"}
    for rows in groups.values():
        assert [row["same"] for row in rows].count(True) == 1
        same = next(row for row in rows if row["same"])
        assert same["tokens_per_s_per_device"] == document["tokens_per_s_per_device"]
        for row in rows:
            assert (row["reason"] is None) == ("mfu" in row)
            assert escape(row["label"]) in text
    fewer = phaze(*small.replace("--devices 8", "--devices 4").split(), "--json")
    other = next(row for row in groups["devices"] if row["label"] == "4")
    assert other["batch_s"] == json.loads(fewer.out)["batch_s"]


def test_the_page_shows_an_explanation_of_its_own_answer_alone(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    run = small_run(tmp_path)
    assert 'id="marginal-value"' not in (run / "report.html").read_text()
    said = explained(run)
    for change, shown in (({}, True), ({"chip": "another"}, False), ({"score": 1.0}, False)):
        (run / "explanation.json").write_text(json.dumps({**said, **change}))
        assert phaze("report", run).code == 0
        text = (run / "report.html").read_text()
        assert ('id="marginal-value"' in text) == shown
        for words in (
            "tensor cores 8 would give +3.70% and is refused for 704 of 700 W, 0.6% over.",
            "More area &lt;b&gt; is worth most: 10 mm2 more buy +5.00%; HBM buys nothing.",
            "17 chips are within 1 %: all have rows 32 &lt;i&gt;.",
            "opt-350m loses most: t8 &lt;b&gt; would train it 2.1 % faster.",
            "opt-350m (held out)",
            "4 → 8",
        ):
            assert (words in text) == shown, words
        assert ("764 mm2, loses 0.3\u00a0%" in text) == shown
        assert ("2.00 × as fast as B200" in text) == shown
        assert ('<option value="b200">vs B200</option>' in text) == shown
        assert ("support area &lt;i&gt;: at -5 % wide wins" in text) == shown
        assert "<b> " not in text.partition("<main")[2].partition("<script")[0]
    (run / "explanation.json").write_text(
        json.dumps({**said, "marginals": [{**said["marginals"][0], "gain": "much"}]})
    )
    ran = phaze("report", run)
    assert ran.code == 2
    assert "marginals[0].gain" in ran.err
    for key, wrong in (
        ("held_out", {"plan": 7}),
        ("beside", {"band": "wide"}),
        ("alone", {"regret": None}),
    ):
        (run / "explanation.json").write_text(
            json.dumps({**said, key: [{**said[key][0], **wrong}]})
        )
        ran = phaze("report", run)
        assert ran.code == 2 and f"{key}[0].{next(iter(wrong))}" in ran.err


def test_the_knee_is_farthest_from_the_chord() -> None:
    up = Column("throughput", "1/s", np.array([1.0, 8.0, 9.0, 10.0, 2.0]), more=True)
    across = Column("area", "mm2", np.array([1.0, 2.0, 6.0, 10.0, 5.0]))
    assert knee_of(up, across) == 1
    fewer = Column("step", "s", np.array([10.0, 3.0, 2.0, 1.0, 9.0]))
    assert knee_of(fewer, across) == 1
    ends = np.array([1.0, 2.0])
    assert knee_of(Column("a", "", ends, more=True), Column("b", "", ends)) == 1


def test_the_ratio_on_the_page_is_that_of_the_comparison(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    run = small_run(tmp_path)
    rows = json.loads(phaze("compare", "--run", run, "--json").out)["rows"]
    ratio = next(
        row["ratio"] for row in rows if row["placement"] == "searched" and row["ratio"] != 1.0
    )
    assert f"{ratio:.2f} × as fast as tpu-v4-paper" in (run / "report.html").read_text()


def test_a_verdict_on_memory_follows_the_error_of_estimates() -> None:
    stage = {"layers": [0], "recompute": "none", "memory": {}}
    device = DeviceMemory(100.0, 0.06)
    fits = [
        fit_of({"stages": [{**stage, "memory_bytes": used}]}, device) for used in (70, 85, 95, 101)
    ]
    said = [fit.verdict[0] for fit in fits]
    assert said == ["Fits", "Likely fits", "Tight", "Does not fit"]

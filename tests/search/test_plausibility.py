"""An answer beside shipped chips, how flat its optimum is, and under what it holds: stated, true,
and checked."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.hardware.bundled import preset_names
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.library import load_chip
from phaze.hardware.shipped import shipped_beside, shipped_file
from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of, closed_chips
from phaze.search.chips import enumerate_space
from phaze.search.plausibility import plausibility_of
from phaze.search.run import search
from tests.conftest import Ran
from tests.search.made import exact_score, made_job, made_task, small_space
from tests.search.test_verify import run

__all__ = ["run"]
WORDS = (
    "paper-22nm",
    "attention eager",
    "optimizer sgd",
    "within 1 %",
    "TPU v3",
    "W a mm2",
    "TFLOP/s a W",
)


def test_the_densest_shipped_chips_are_dojo_at_n7_and_b200_at_n5() -> None:
    for process, name, density in (
        ("n7", "dojo-d1", 0.56),
        ("n5", "b200", 1.41),
        ("paper-22nm", "tpu-v3", 0.19),
    ):
        most = max(shipped_beside(process).near, key=lambda chip: chip.flops_per_mm2)
        assert (most.name, round(most.flops_per_mm2 / 1e12, 2)) == (name, density)
    assert "22 nm" in shipped_beside("paper-22nm").note
    assert "my-3nm" in shipped_beside("my-3nm").note and len(shipped_beside("my-3nm").near) == len(
        shipped_file().chips
    )


def test_shipped_figures_have_sources_and_are_those_of_the_presets() -> None:
    for chip in shipped_file().chips:
        figures = {"peak", "die", "power", "clock"} | ({"hbm"} if chip.hbm else set())
        assert set(chip.sources) == figures, chip.name
        if chip.name in preset_names("chips"):
            known = load_chip(chip.name, form="cores")
            published = known.published
            assert (chip.peak, chip.die, chip.power) == (
                published.peak_flops,
                published.die_mm2,
                published.tdp_w,
            )
            assert chip.die_is_upper_bound == published.die_is_upper_bound
            assert (chip.clock, chip.hbm) == (known.clock_hz, known.hbm.bandwidth_bytes_per_s)
            if known.technology is not None:
                assert chip.process == known.technology


def test_a_chip_that_nobody_could_build_is_called_so() -> None:
    opened = enumerate_space(
        small_space(clock=["1.05 GHz", "10.5 GHz"], hbm_bandwidth=["1.2 TB/s", "12 TB/s"])
    )
    fields = opened.chips
    wild = max(
        range(len(opened)),
        key=lambda at: (fields.clock_hz[at], fields.hbm_bytes_per_s[at], fields.rows[at]),
    )
    warnings = plausibility_of(opened.chip(wild, 2**35))["warnings"]
    assert [
        part in " ".join(warnings) for part in ("TFLOP/s a mm2", "W a mm2", "10.5 GHz", "12 TB/s")
    ] == [True] * 4
    tame = min(
        range(len(opened)),
        key=lambda at: (fields.clock_hz[at], fields.hbm_bytes_per_s[at], fields.rows[at]),
    )
    small = plausibility_of(opened.chip(tame, 2**35))
    assert not any("GHz" in text or "HBM" in text for text in small["warnings"])


def test_peak_a_watt_stands_beside_the_most_frugal_shipped_chip_of_the_process() -> None:
    chip = load_chip("a100-80gb")
    figure = plausibility_of(chip)["peak_flops_per_w"]
    figures = estimates_of(chip)
    assert figures is not None and figure["value"] == chip.peak_flops / figures.design_w
    near = shipped_beside("n7").near
    assert (
        figure["shipped"] == max(one.peak / one.power for one in near)
        and not figure["shipped_is_lower_bound"]
    )
    assert figure["ratio"] == figure["value"] / figure["shipped"]


def test_a_real_chip_is_plausible() -> None:
    assert plausibility_of(load_chip("a100-80gb"))["warnings"] == []


@pytest.mark.parametrize("seed", range(3))
def test_the_number_of_chips_within_a_percent_lies_between_what_is_proved(seed: int) -> None:
    job = made_job((made_task(seed),), gap=0.02)
    scale = scale_for(job)
    state = search(job, scale)
    found = certificate_of(
        closed_chips(state),
        list(state.evaluated.values()),
        state.best,
        job.gap,
        state.chips.left_out,
    )
    last = len(job.hbm_bytes) - 1
    scores = [exact_score(job, scale, state.chips, chip, last) for chip in range(len(state.chips))]
    true = sum(score <= state.best * 1.01 for score in scores)
    assert 1 <= found.near.at_least <= true <= found.near.at_most < len(scores)


def test_an_answer_says_what_it_holds_under(run: Path, phaze: Callable[..., Ran]) -> None:
    result = json.loads((run / "result.json").read_text())
    setting = result["setting"]
    assert (setting["rules"], setting["process"], setting["optimizer"]) == (
        "icml24",
        "paper-22nm",
        "sgd",
    )
    assert setting["link_bytes_per_s"] > 0 and setting["constants"]["basis"] == "ideal"
    assert result["models"][0]["attention"] == "eager"
    page = (run / "report.html").read_text()
    for words in ("paper-22nm", "attention eager", "optimizer sgd", "TPU v3", "no forecast"):
        assert words in page
    flat = page.split("How flat is the optimum?")[1]
    near = result["certificate"]["near"]
    rows = dict(re.findall(r"<dt>(within [^<]*)</dt><dd>([^<]*)</dd>", flat))
    assert rows["within 1 %, at most"] == f"{near['at_most']:,}"
    exact = [int(rows[f"within {share} %, exact"].replace(",", "")) for share in (1, 2, 5)]
    assert near["at_least"] <= exact[0] <= near["at_most"] and exact == sorted(exact)
    assert exact[-1] <= result["certificate"]["closed"]["evaluated"]
    again = phaze("search", run / "study.toml", "--out", run)
    said = " ".join(again.out.split())
    for words in WORDS:
        assert words in said


@pytest.mark.parametrize(
    "path", ["setting.optimizer", "plausibility.warnings", "certificate.near.at_most"]
)
def test_a_changed_line_is_found(path: str, run: Path, phaze: Callable[..., Ran]) -> None:
    text = (run / "result.json").read_text()
    bad = json.loads(text)
    *steps, last = path.split(".")
    place = bad
    for step in steps:
        place = place[step]
    place[last] = {"optimizer": "adam", "warnings": ["none"], "at_most": 1_000_000}[last]
    (run / "result.json").write_text(json.dumps(bad))
    try:
        ran = phaze("verify", run)
        assert ran.code != 0 and path.split(".", maxsplit=1)[0] in ran.out + ran.err
    finally:
        (run / "result.json").write_text(text)

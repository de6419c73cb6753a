"""Searches of chips of clusters: the answer of exhaustive evaluation, own memories and links, and
the proof."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.cost.chip_set import chip_set
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.library import load_stack
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.hardware.stack import ScheduleRule
from phaze.options.values import Kind
from phaze.report.search_cards import ends_words
from phaze.search.chips import enumerate_space
from phaze.search.objective import KINDS
from tests.conftest import Ran
from tests.search.made_cluster import cluster_task
from tests.search.made_silicon import SMALL, silicon_job, silicon_space
from tests.search.test_run import _check_against_exhaustive


def test_one_chip_of_a_space_has_the_figures_of_all_of_them_together() -> None:
    opened, terms = enumerate_space(silicon_space(keep={"sustained_power": "170 W"})), load_terms()
    assert len(opened) > 4
    many, static, watts = opened.arrays(), opened.static_w(), opened.design_w()
    usd, carbon = opened.making_usd(0), opened.making_kgco2e(0)
    for index in range(0, len(opened), 3):
        chip = opened.chip(index)
        figures, made = estimates_of(chip), manufacturing_of(chip, terms)
        assert figures is not None and made is not None
        one = chip_set([chip])
        assert one.hbm_bytes_per_s[0] == many.hbm_bytes_per_s[index]
        assert chip.clock_hz == opened.held_hz[index] <= 1.83e9
        assert figures.area_mm2 == opened.area_mm2[index]
        assert (figures.static_w, figures.design_w) == (static[index], watts[index])
        assert made.usd == usd[index]
        assert made.kgco2e == pytest.approx(carbon[index], rel=1e-12)
        assert chip.hbm.size_bytes == opened.hbm_bytes[index]
        assert opened.name(index) == chip.name


@pytest.mark.parametrize("kind", ["throughput", "throughput_per_usd"])
def test_the_best_chip_of_clusters_is_that_of_exhaustive_evaluation(kind: Kind) -> None:
    task = cluster_task(widths=(1, 2), microbatches=(2,))
    _check_against_exhaustive(silicon_job((task,), silicon_space(), kind))


@pytest.mark.parametrize("schedule", ["overlap", pytest.param("icml24", marks=pytest.mark.slow)])
def test_operators_on_one_cluster_each_are_searched_exhaustively(schedule: ScheduleRule) -> None:
    task = cluster_task(widths=(2,), microbatches=(1,), schedule=schedule)
    _check_against_exhaustive(silicon_job((task,), silicon_space(), "energy_delay"))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["gpt", "llama"]),
    st.sampled_from(["megatron-core", "ideal", "maxtext"]),
    st.sampled_from(KINDS),
    st.lists(st.sampled_from([1, 2, 3, 4, 8]), min_size=1, max_size=2),
    st.lists(st.sampled_from([16, 32, 64]), min_size=1, max_size=2),
    st.sampled_from([[2], [2, 4], [4, 6]]),
    st.sampled_from([120.0, 200.0, 700.0]),
    st.sampled_from([300.0, 500.0, 858.0]),
    st.sampled_from([0.0, 1e-3]),
)
def test_any_search_of_clusters_is_exhaustive(
    model: str,
    stack: str,
    kind: Kind,
    clusters: list[int],
    rows: list[int],
    stacks: list[int],
    watts: float,
    area: float,
    gap: float,
) -> None:
    space = silicon_space(
        keep={"sustained_power": watts, "most_area": area},
        clusters=clusters,
        rows=rows,
        hbm_stacks=stacks,
    )
    if len(enumerate_space(space)):
        task = cluster_task(model, stack=stack, microbatches=(2,))
        _check_against_exhaustive(silicon_job((task,), space, kind, gap))


def test_a_chip_has_the_memory_of_its_stacks_and_no_other() -> None:
    space = silicon_space()
    opened = enumerate_space(space)
    assert space.memories == (32 * 2**30, 64 * 2**30)
    allowed = np.stack([opened.allowed(size) for size in space.memories or ()])
    assert (allowed.sum(axis=0) == 1).all() and allowed.any(axis=1).all()


def test_what_the_rules_leave_out_is_counted() -> None:
    whole = enumerate_space(silicon_space())
    dear = enumerate_space(silicon_space(keep={"most_usd": float(np.median(whole.making_usd(0)))}))
    assert len(dear) + dear.left_out["cost"] == len(whole) and 0 < len(dear) < len(whole)
    edge = enumerate_space(silicon_space(keep={"most_area": "300 mm2"}))
    # Four stacks need a die of 353 mm2, whatever is on it.
    assert set(edge.chips.stacks.tolist()) == {2.0}
    assert sum(edge.left_out.values()) + len(edge) == len(edge.space)


STUDY = """
schema = "phaze.study/1"
name = "small-silicon"
rules = "cluster"
space = "space.json"
models = [{ name = "bert-large", widths = [1] }]
[training]
devices = 8
batch = 16
microbatches = [2]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("silicon")
    (folder / "space.json").write_text(json.dumps(SMALL))
    (folder / "study.toml").write_text(STUDY)
    words = [
        "search",
        str(folder / "study.toml"),
        "--out",
        str(folder / "run"),
        "--workers",
        "1",
        "--json",
    ]
    assert exit_code_of(app, words) == 0
    return folder / "run"


def test_a_run_is_verified_and_says_what_its_chip_is_made_of(
    run: Path, phaze: Callable[..., Ran]
) -> None:
    done = phaze("verify", str(run), "--all")
    assert done.code == 0, done.out + done.err
    chip = json.loads((run / "result.json").read_text())["chip"]
    assert chip["tensor_cores"] == chip["clusters"]["count"] * chip["clusters"]["arrays"]
    assert chip["clock_hz"] <= chip["clusters"]["clock_hz"] == 1.83e9
    assert chip["hbm_bytes"] == chip["clusters"]["hbm_stacks"] * 16 * 2**30
    assert (run / "report.html").is_file()


def test_a_chip_at_the_end_of_an_axis_says_so(run: Path) -> None:
    result = json.loads((run / "result.json").read_text())
    ends = {one["axis"]: one["end"] for one in result["at_ends"]}
    assert set(ends) == {"clusters", "lanes", "hbm_stacks", "links"}
    assert ends["clusters"] == "most" and result["chip"]["clusters"]["count"] == 8
    assert "at the end of the axes clusters (most)" in ends_words(result)


@pytest.mark.parametrize(
    ("change", "words"),
    [("rules=icml24", "such as paper-flat"), ('hbm=["80 GiB"]', "leave it out")],
)
def test_what_chips_of_clusters_cannot_be_asked_is_refused(
    change: str, words: str, run: Path, phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    done = phaze(
        "search", str(run.parent / "study.toml"), "--set", change, "--out", str(tmp_path / "other")
    )
    assert done.code == 2 and words in done.err


def test_a_searched_chip_and_a_real_one_stand_on_the_same_basis(
    run: Path, phaze: Callable[..., Ran]
) -> None:
    done = phaze("compare", "--run", str(run), "--chip", "a100-80gb", "--json")
    rows = json.loads(done.out)["rows"]
    assert {row["basis"] for row in rows} == {"held"}
    assert {row["constants_of"] for row in rows} == {"n5-reticle-base"}
    found = {row["chip"]: row["throughput_per_s"] for row in rows if row["placement"] == "searched"}
    result = json.loads((run / "result.json").read_text())
    assert found[result["chip"]["name"]] == pytest.approx(result["models"][0]["throughput_per_s"])
    assert found["a100-80gb"] < found["h100"]
    # What the stack leaves on the generation of the space's base, printed with the answer.
    assert (
        result["setting"]["constants"]["software_share"]
        == dict(load_stack("megatron-core").software_share)["n5"]
    )


@pytest.mark.slow
def test_other_questions_of_a_space_of_clusters_are_answered(
    run: Path, phaze: Callable[..., Ran]
) -> None:
    told = json.loads(phaze("explain", str(run), "--json", "--instead", "lanes=128").out)
    assert {one["axis"] for one in told["neighbours"]} == {
        "clusters",
        "lanes",
        "hbm_stacks",
        "links",
    }
    assert all(one["gain"] <= 1e-9 for one in told["neighbours"] if one["refused"] is None)
    assert told["instead"][0]["gain"] <= 1e-9
    study, folder = str(run.parent / "study.toml"), str(run.parent / "front")
    front = json.loads(
        phaze("front", study, "--of", "throughput,power,price", "--out", folder, "--json").out
    )
    assert len(front["points"]) > 1
    assert phaze("verify", folder, "--all").code == 0
    swept = phaze(
        "sweep",
        study,
        "--over",
        "budget.power=150,180",
        "--out",
        str(run.parent / "sweep"),
        "--json",
    )
    first, last = json.loads(swept.out)["points"]
    assert first["score"] >= last["score"]
    assert "hbm_stacks" in phaze("export", str(run), "--to", "csv").out

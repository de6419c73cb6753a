"""Explanations of runs on networks of levels: a row for every level, gains made anew by searches,
plans in words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.explain.marginal import marginals
from phaze.explain.neighbours import neighbours
from phaze.explain.question import ExplainedRun, best_with, question_of, score_on
from phaze.explain.ranges import constants_of, scaled, worst_case
from phaze.hardware.converted import changed_chip
from phaze.search.baseline import scale_for
from phaze.search.changed_network import levels_of, with_bandwidths, with_devices
from phaze.search.chips import enumerate_space
from phaze.search.plan_words import plan_words
from phaze.study.raw import default_study
from phaze.values import replace
from tests.conftest import Ran
from tests.explain.test_explain import SPACE
from tests.search.made_cluster import cluster_job, cluster_task

STUDY = default_study("bert-large", "icml24") | {
    "rules": "cluster",
    "space": str(SPACE),
    "hbm": ["4 GiB"],
    "training": {"cluster": "selene", "devices": 16, "batch": 64, "microbatches": [1], "zero": 1},
    "budget": {"area": "200 mm2"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search of a few chips on nodes of eight."""
    from phaze.cli.answer import exit_code_of
    from phaze.cli.main import app

    where = tmp_path_factory.mktemp("levels")
    (where / "study.json").write_text(json.dumps(STUDY), encoding="utf-8")
    arguments = ["search", str(where / "study.json"), "--out", str(where / "run"), "--workers", "1"]
    assert exit_code_of(app, arguments) == 0
    return where / "run"


@pytest.fixture(scope="module")
def question(folder: Path) -> ExplainedRun:
    return question_of(str(folder))


def test_every_level_has_a_row_and_its_gain_is_that_of_a_search(
    folder: Path, phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = phaze("explain", folder, "--workers", "1", "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    rows = {(one["resource"], one["more"]): one for one in said["marginals"]}
    assert [name for name in dict.fromkeys(name for name, _ in rows) if "bandwidth" in name] == [
        "HBM bandwidth", "buffer bandwidth", "node bandwidth", "fabric bandwidth",
    ]  # fmt: skip
    assert all(one["gain"] >= -1e-9 for one in rows.values())
    chip = said["chip"]
    for setting, key in (
        ("cluster.levels.fabric.bandwidth=27.5e9", ("fabric bandwidth", 2.5)),
        ("training.devices=18", ("devices", 2.0)),
    ):
        again = phaze(
            "search", folder / "study.toml", "--set", setting, "--out", tmp_path / key[0], "--json"
        )
        found = json.loads(again.out)
        assert found["chip"]["name"] == chip
        assert rows[key]["gain"] == pytest.approx(
            said["score"] / found["objective"]["score"] - 1, abs=1e-9
        )
    assert rows["fabric bandwidth", 2.5]["gain"] > rows["node bandwidth", 1.0]["gain"]
    shown = phaze("explain", folder, "--workers", "1", "--instead", "vector_cores=1")
    assert "fabric bandwidth" in shown.out and max(map(len, shown.out.splitlines())) <= 80


def test_neighbours_of_the_best_are_no_better(question: ExplainedRun) -> None:
    found = neighbours(question)
    assert found and all(one.gain <= 1e-9 or one.refused is not None for one in found)


def test_constants_are_those_of_chips_and_of_every_level(question: ExplainedRun) -> None:
    assert constants_of(question) == (
        "clock", "HBM bandwidth", "buffer bandwidth", "node bandwidth", "fabric bandwidth",
    )  # fmt: skip
    job, chips = scaled(question, {"fabric bandwidth": 0.5})
    assert [level.bandwidth_bytes_per_s for level in levels_of(job, question.chip)] == [
        300e9,
        12.5e9,
    ]
    assert chips.link_bytes_per_s.tolist() == question.chips.link_bytes_per_s.tolist()
    assert best_with(job, question.scale, 1, chips).score > question.score
    same, _ = scaled(question, {"clock": 0.5})
    assert same is question.job


def test_the_worst_case_is_slower_and_names_its_plan(question: ExplainedRun) -> None:
    found = worst_case(question, 0.2, 1)
    assert 0 < found.relative <= 1 + 1e-9
    assert "ZeRO 1" in found.plans[0]


def test_a_network_that_is_as_it_was_gives_the_run_again(question: ExplainedRun) -> None:
    job = with_bandwidths(
        question.job,
        [level.bandwidth_bytes_per_s for level in levels_of(question.job, question.chip)],
    )
    found = best_with(job, question.scale, 1)
    assert (found.name, found.plans) == (question.chip.name, question.plans)
    assert found.score == pytest.approx(question.score, rel=1e-12)


def test_a_cluster_that_cannot_grow_has_no_row_for_devices(question: ExplainedRun) -> None:
    cluster = question.job.cluster
    assert cluster is not None
    fixed = replace(question, job=replace(question.job, cluster=replace(cluster, limit=True)))
    assert with_devices(fixed.job, cluster.devices + 1) is None
    larger = with_devices(question.job, cluster.devices + 1)
    assert larger is not None and larger.models[0].training.devices == cluster.devices + 1


def _plan(modes: list[str], **more: Any) -> dict[str, Any]:
    return {
        "pipeline": len(modes),
        "data": 4,
        "order": "data",
        "stages": [{"recompute": m} for m in modes],
        **more,
    }


def test_a_plan_in_words_names_what_each_stage_recomputes() -> None:
    model = {
        "tensor": 2,
        "microbatch": 1,
        "recompute": "best",
        "sequence_parallel": True,
        "zero": 2,
    }
    said = plan_words(model, _plan(["full", "none", "full"], chunks=2))
    assert said == (
        "TP 2, PP 3, DP 4, microbatch 1, recompute full in 2 of 3 stages and none in 1 "
        "of 3 stages, sequence parallel, "
        "VPP 2, ZeRO 2, replicas adjacent"
    )
    assert plan_words(model | {"sequence_parallel": False, "zero": 0}, _plan(["none"])) == (
        "TP 2, PP 1, DP 4, microbatch 1, recompute none"
    )


def test_where_links_are_an_axis_the_innermost_level_is_the_chip_s() -> None:
    job = cluster_job(
        (cluster_task(widths=(2,), microbatches=(1,)),),
        rows=[16],
        tensor_cores=[4],
        links=["1 GB/s", "4 GB/s"],
    )
    opened, scale = enumerate_space(job.space), scale_for(job)
    for number in range(len(opened)):
        chip = opened.chip(number, job.hbm_bytes[-1])
        question = ExplainedRun(
            job, scale, opened, number, chip, score_on(job, scale, chip), (), np.zeros(len(opened))
        )
        rows = {
            (one.resource, one.more): one
            for one in marginals(question, 1, lambda _: None)
            if one.unit == "GB/s"
        }
        node = rows["node bandwidth", chip.links.bandwidth_bytes_per_s / 1e10]
        assert node.now == chip.links.bandwidth_bytes_per_s / 1e9
        faster = changed_chip(chip, link_bytes_per_s=1.1 * chip.links.bandwidth_bytes_per_s)
        assert node.gain == pytest.approx(
            question.score / score_on(job, scale, faster) - 1, abs=1e-12
        )
        assert node.gain > 0
        _, slower = scaled(question, {"node bandwidth": 0.5})
        assert slower.link_bytes_per_s.tolist() == [
            0.5 * own for own in opened.link_bytes_per_s.tolist()
        ]

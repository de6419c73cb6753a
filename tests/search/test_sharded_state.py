"""Searches where only some of the ranks with the same weights share out state (hybrid sharding)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.search.answer import best_of
from phaze.search.task import ModelTask
from phaze.study.load import question_of, study_of
from tests.cli.test_commands import Phaze
from tests.search.made import MIB
from tests.search.made_cluster import cluster_job, cluster_task
from tests.search.test_cluster_rules import _check_bounds
from tests.search.test_run import _check_against_exhaustive

DRAWN = st.builds(
    cluster_task,
    st.sampled_from(["gpt", "llama", "deep"]),
    st.sampled_from(["slow", "selene"]),
    st.sampled_from(["megatron-core", "torchtitan"]),
    microbatches=st.sampled_from([(1,), (1, 2)]),
    recompute=st.sampled_from([("best",), ("none", "full")]),
    zeros=st.sampled_from([(1,), (2,), (3,), (1, 2, 3)]),
    devices=st.sampled_from([8, 12, 16]),
    batch=st.sampled_from([8, 30]),
    bucket=st.sampled_from([None, 0.0]),
    shards=st.sampled_from([(2,), (3,), (4,), (16,), (0, 2, 8)]),
)
MEMORIES = st.sampled_from([MIB // 2, MIB, 2 * MIB, 64 * MIB])


@settings(max_examples=4, deadline=None)
@given(DRAWN, MEMORIES, st.integers(0, 2**32))
def test_no_plan_undercuts_a_bound_where_groups_share_out_state(
    task: ModelTask, hbm_bytes: int, seed: int
) -> None:
    _check_bounds(task, hbm_bytes, seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(DRAWN, MEMORIES, st.integers(0, 2**32))
def test_no_plan_undercuts_many_bounds_where_groups_share_out_state(
    task: ModelTask, hbm_bytes: int, seed: int
) -> None:
    _check_bounds(task, hbm_bytes, seed)


def test_the_answer_over_groups_is_that_of_exhaustive_evaluation() -> None:
    task = cluster_task("gpt", zeros=(1, 2, 3), shards=(0, 2, 4), microbatches=(1,))
    job = cluster_job((task,), hbm=(2 * MIB,), rows=[16], lanes=[16, 64])
    assert best_of(_check_against_exhaustive(job)) is not None


STUDY: dict[str, Any] = {"schema": "phaze.study/1", "name": "hybrid", "models": ["opt-350m"]}
JOB: dict[str, Any] = {"devices": 64, "batch": 256, "microbatches": [1], "zero": 3, "shard": [8]}


@pytest.mark.parametrize(
    ("rules", "changes", "seen"),
    [
        ("cluster", {"zero": 0}, "training.shard: ZeRO 0 shards no state"),
        ("cluster", {"shard": [128]}, "training.shard: 128 ranks of 64 devices"),
        ("cluster", {"shard": [1]}, "shard"),
        (
            "icml24",
            {"zero": 1},
            "training.shard: the stack icml24 reduces gradients over one flat link",
        ),
    ],
)
def test_what_cannot_share_out_state_so_is_refused(
    rules: str, changes: dict[str, Any], seen: str
) -> None:
    with pytest.raises(InputError, match=seen):
        question_of(study_of({**STUDY, "rules": rules, "training": JOB | changes}, "study"))


def test_a_mixture_whose_experts_are_shared_out_is_refused() -> None:
    raw = {**STUDY, "models": ["mixtral-8x7b"], "training": {**JOB, "expert": [1, 8]}}
    with pytest.raises(
        InputError, match=r"training.shard: \[8\] with training.expert \[1, 8\] is not priced"
    ):
        question_of(study_of(raw, "study"))


@pytest.mark.slow
def test_a_study_of_groups_goes_through_every_command(phaze: Phaze, tmp_path: Path) -> None:
    """Search, verify, explain, report, compare, front and sweep take and name the groups."""
    study, run = tmp_path / "hybrid.json", tmp_path / "run"
    study.write_text(json.dumps({**STUDY, "training": JOB, "search": {"gap": 0.05}}))
    ran = phaze("search", study, "--out", run, "--json")
    assert ran.code == 0, ran.err
    (model,) = json.loads(ran.out)["models"]
    assert model["shard"] == model["plan"]["shard"] == 8
    assert json.loads(ran.out)["setting"]["shard"] == [8]
    for command in ("verify", "explain", "report"):
        ran = phaze(command, run)
        assert ran.code == 0, (command, ran.out, ran.err)
    assert "hybrid sharding over 8 of 64 replicas" in phaze("explain", run, "--json").out
    rows = json.loads(phaze("compare", study, "--chip", "h100", "--chip", "h200", "--json").out)[
        "rows"
    ]
    assert {row["shard"] for row in rows if row["throughput_per_s"] is not None} == {8}
    front = json.loads(
        phaze("front", study, "--of", "throughput,area", "--out", tmp_path / "front", "--json").out
    )
    assert {model["shard"] for point in front["points"] for model in point["models"]} == {8}
    assert phaze("report", tmp_path / "front").code == 0
    over = "cluster.levels.fabric.bandwidth=25e9,100e9"
    assert phaze("sweep", study, "--over", over, "--out", tmp_path / "sweep").code == 0

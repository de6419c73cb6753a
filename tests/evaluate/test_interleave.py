"""Chunks at the best candidates: evaluated, labelled, never worse than what is proved, and never below the floor."""

from dataclasses import replace
from typing import Any

import pytest

from phaze.evaluate.answer import planned_document
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.interleave import best_interleaved, chunk_counts, trials, with_chunks
from phaze.evaluate.plan import Candidate, Request, candidates
from phaze.evaluate.prices import LevelPrices
from phaze.evaluate.request import Asked, request_of
from phaze.evaluate.run_file import job_of
from phaze.graph.zoo import load_model
from phaze.placement.cluster_pipeline import ModeCut
from phaze.placement.cluster_solve import least_seconds

SIZES = {"hidden": 2048, "layers": 16, "heads": 16, "vocabulary": 51200, "sequence": 1024}


def request(**changes: Any) -> Request:
    asked = Asked("gpt", SIZES, "a100-80gb", devices=32, batch=32, microbatches=(1, 2), widths=(2, 4), zero=0)
    return request_of(replace(asked, **changes))


@pytest.fixture(scope="module")
def job() -> Request:
    """Few microbatches: bubbles are long, so chunks pay."""
    small = request()
    chip = replace(small.setting.chip, hbm=replace(small.setting.chip.hbm, size_bytes=6 * 2**30))
    return replace(small, setting=replace(small.setting, chip=chip))


@pytest.fixture(scope="module")
def plain(job: Request) -> list[Candidate]:
    return list(candidates(job))


def test_chunks_are_answered_where_they_are_faster_and_never_where_they_are_not(
    job: Request, plain: list[Candidate]
) -> None:
    ranked = with_chunks(job, plain)
    proved = min(one.rank[0] for one in plain)
    best = ranked[0].plan
    assert best is not None
    assert best.chunks > 1
    assert best.batch_s < proved == min(one.proved_s for one in ranked)
    assert [one.rank for one in ranked] == sorted(one.rank for one in ranked)
    assert 0 < best.lower_bound_s <= best.batch_s
    for before in plain:
        after = next(one for one in ranked if one.model is before.model)
        assert after.rank[0] <= before.rank[0]


def test_the_answer_says_what_is_evaluated_and_what_is_proved(job: Request, plain: list[Candidate]) -> None:
    ranked = with_chunks(job, plain)
    document = planned_document(job, ranked, None)
    assert document["evaluated"] == ["chunks"]
    assert document["proved"]["batch_s"] > document["batch_s"] >= document["lower_bound_s"]
    assert [row["evaluated"] for row in document["alternatives"]] == [
        ["chunks"] if row["chunks"] > 1 else [] for row in document["alternatives"]
    ]
    only = replace(job, chunks=(1,))
    document = planned_document(only, with_chunks(only, plain), None)
    assert document["chunks"] == 1
    assert document["proved"]["batch_s"] == document["batch_s"] == document["lower_bound_s"]


def test_a_given_plan_of_the_same_split_takes_the_same_time() -> None:
    wide = request(widths=(4,), microbatches=(1,), batch=96)
    best = next(iter(candidates(wide)))
    plan = best_interleaved(best, float("inf"), None, LevelPrices(wide.setting.cluster, wide.setting.basis))
    assert plan is not None
    assert {stage.recompute for stage in plan.stages} == {"none"}
    raw = {
        "schema": "phaze.run/1",
        "gpt": SIZES,
        "chip": "a100-80gb",
        "cluster": "selene",
        "devices": 32,
        "batch": 96,
        "plan": {
            "tensor": 4,
            "pipeline": len(plan.stages),
            "data": plan.data,
            "microbatch": 1,
            "chunks": plan.chunks,
            "recompute": plan.stages[0].recompute,
            "sequence_parallel": best.sequence_parallel,
        },
    }
    assert fixed_plan(job_of(raw, "run"))[1].batch_s == pytest.approx(plan.batch_s, rel=1e-12)


def test_no_trial_is_below_the_floor_of_all_plans(job: Request, plain: list[Candidate]) -> None:
    prices = LevelPrices(job.setting.cluster, job.setting.basis)
    for one in plain:
        floor_s = least_seconds(one.problem, prices)
        assert floor_s <= one.rank[0]
        for trial in trials(one, float("inf")):
            assert trial.least_s >= 0
            rounds = one.problem.rounds(trial.data)
            assert rounds % len(trial.cuts) == 0


def test_chunks_divide_the_blocks_of_every_stage() -> None:
    model = load_model("bert-large", 1, 1)
    halves = [ModeCut(tuple(range(13)), "none"), ModeCut(tuple(range(13, 26)), "none")]
    assert chunk_counts(model, halves) == (2, 3, 4, 6, 12)
    uneven = [ModeCut(tuple(range(9)), "none"), ModeCut(tuple(range(9, 26)), "none")]
    assert chunk_counts(model, uneven) == (2, 4, 8)
    assert chunk_counts(model, [ModeCut(tuple(range(26)), "none")]) == ()
    both = load_model("t5-large", 1, 1)
    assert chunk_counts(both, [ModeCut(tuple(range(25)), "none"), ModeCut(tuple(range(25, 51)), "none")]) == ()

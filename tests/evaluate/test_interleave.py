"""Interleaving in ``phaze plan``: proved over all chunks, never worse than without, never beaten by
a plan we can write down."""

from itertools import product
from typing import Any

import pytest

from phaze.evaluate.answer import planned_document
from phaze.evaluate.fixed import even_cuts, fixed_plan
from phaze.evaluate.plan import Candidate, PlanRequest
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Job, request_of
from phaze.evaluate.run_file import job_of
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, price
from phaze.placement.rules import MODES, ORDERS
from phaze.values import replace
from tests.evaluate.every_choice import as_planned, candidates, every_choice

SIZES = {"hidden": 2048, "layers": 16, "heads": 16, "vocabulary": 51200, "sequence": 1024}


def request(**changes: Any) -> PlanRequest:
    asked = Job(
        "gpt", SIZES, "a100-80gb", devices=32, batch=32, microbatch=(1, 2), tensor=(2, 4), zero=0
    )
    return request_of(replace(asked, **changes))


@pytest.fixture(scope="module")
def job() -> PlanRequest:
    """Few microbatches: bubbles are long, so chunks pay."""
    small = request()
    chip = replace(small.setting.chip, hbm=replace(small.setting.chip.hbm, size_bytes=6 * 2**30))
    return replace(small, setting=replace(small.setting, chip=chip))


@pytest.fixture(scope="module")
def plain(job: PlanRequest) -> list[Candidate]:
    return list(candidates(job))


@pytest.fixture(scope="module")
def ranked(job: PlanRequest) -> list[Candidate]:
    return every_choice(job)


def test_chunks_are_answered_where_they_are_faster_and_never_where_they_are_not(
    plain: list[Candidate], ranked: list[Candidate]
) -> None:
    best = ranked[0].plan
    assert best is not None
    assert best.chunks > 1
    assert best.batch_s < min(one.rank[0] for one in plain)
    assert [one.rank for one in ranked] == sorted(one.rank for one in ranked)
    for before in plain:
        after = next(one for one in ranked if one.model == before.model)
        assert after.rank[0] <= before.rank[0]


def test_an_interleaved_answer_is_proved_and_its_bound_is_its_time(
    job: PlanRequest, plain: list[Candidate], ranked: list[Candidate]
) -> None:
    for asked, found in ((job, ranked), (replace(job, job=replace(job.job, chunks=(1,))), plain)):
        document = planned_document(
            asked, as_planned(asked, sorted(found, key=lambda one: one.rank)), None
        )
        assert document["proved"] is True
        assert document["lower_bound_s"] == document["batch_s"]
        assert "evaluated" not in document
        assert all("evaluated" not in row for row in document["alternatives"])


def test_chunks_that_are_not_asked_for_are_not_answered(job: PlanRequest) -> None:
    for asked, allowed in (((1,), {1}), ((2,), {1, 2})):
        own = replace(job, job=replace(job.job, chunks=asked))
        assert {
            one.plan.chunks for one in planned(own).candidates if one.plan is not None
        } <= allowed


def test_no_even_interleaved_split_beats_the_plan(
    job: PlanRequest, ranked: list[Candidate]
) -> None:
    tried = 0
    for one in ranked:
        for stages, chunks, order, mode in product((2, 4, 8), (2, 4, 8), ORDERS, MODES):
            for data in range(1, job.job.devices // (stages * one.model.tensor) + 1):
                if 16 // stages % chunks or one.problem.rounds(data) % stages:
                    continue
                shape = Shape(one.model.tensor, stages, data, order, chunks)
                plan = price(
                    one.problem,
                    shape,
                    even_cuts(one.model, stages, mode),
                    job.prices,
                    simulated=False,
                )
                if fits(one.problem, plan):
                    assert plan.batch_s >= ranked[0].rank[0] * (1 - 1e-9)
                    tried += 1
    assert tried > 20


def test_chunks_divide_the_blocks_of_every_stage(ranked: list[Candidate]) -> None:
    for one in ranked:
        if one.plan is not None and one.plan.chunks > 1:
            blocks = {layer.id for layer in one.problem.graphs[0].layers if layer.block}
            assert all(
                len(blocks.intersection(stage.layers)) % one.plan.chunks == 0
                for stage in one.plan.stages
            )


def test_a_given_plan_of_the_same_split_takes_the_same_time() -> None:
    wide = request(tensor=(4,), microbatch=(1,), batch=96)
    own = next(iter(candidates(wide)))
    cuts = even_cuts(own.model, 4, "none")
    plans = [price(own.problem, Shape(4, 4, 2, order, 2), cuts, wide.prices) for order in ORDERS]
    raw = {
        "schema": "phaze.run/1",
        "gpt": SIZES,
        "chip": "a100-80gb",
        "cluster": "selene",
        "devices": 32,
        "batch": 96,
        "plan": {
            "tensor": 4,
            "pipeline": 4,
            "data": 2,
            "microbatch": 1,
            "chunks": 2,
            "recompute": "none",
            "sequence_parallel": own.sequence_parallel,
        },
    }
    given = fixed_plan(job_of(raw, "run"))[1]
    assert given.batch_s == pytest.approx(min(plan.batch_s for plan in plans), rel=1e-12)

"""Searches over context and expert degrees: honest bounds, and the answer of exhaustive
evaluation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.search.answer import best_of
from phaze.search.task import ModelTask
from tests.search.made_cluster import cluster_job, cluster_task
from tests.search.test_cluster_rules import _check_bounds
from tests.search.test_run import _check_against_exhaustive

GIB = 2**30
DEGREES: dict[str, Any] = {"contexts": (1, 2), "experts": (1, 4)}
DRAWN = st.builds(
    cluster_task,
    st.just("mixture"),
    st.sampled_from(["slow", "selene"]),
    st.sampled_from(["megatron-core", "torchtitan"]),
    microbatches=st.sampled_from([(1,), (2,)]),
    recompute=st.sampled_from([("best",), ("none", "full")]),
    zeros=st.sampled_from([(0,), (1,), (2,), (3,), (0, 1, 2, 3)]),
    devices=st.sampled_from([8, 12, 16]),
    batch=st.sampled_from([8, 30]),
    bucket=st.sampled_from([None, 0.0]),
    contexts=st.sampled_from([(1,), (2,), (1, 2)]),
    experts=st.sampled_from([(2,), (4,), (8,)]),
)
MEMORIES = st.sampled_from([6 * GIB, 12 * GIB, 24 * GIB, 200 * GIB])


@settings(max_examples=3, deadline=None)
@given(DRAWN, MEMORIES, st.integers(0, 2**32))
def test_no_plan_undercuts_a_bound_where_ranks_share_sequences_and_experts(
    task: ModelTask, hbm_bytes: int, seed: int
) -> None:
    _check_bounds(task, hbm_bytes, seed)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(DRAWN, MEMORIES, st.integers(0, 2**32))
def test_no_plan_undercuts_many_bounds_where_ranks_share(
    task: ModelTask, hbm_bytes: int, seed: int
) -> None:
    _check_bounds(task, hbm_bytes, seed)


def test_the_answer_over_degrees_is_that_of_exhaustive_evaluation() -> None:
    task = cluster_task(
        "mixture", microbatches=(1,), zeros=(0, 1, 2, 3), devices=8, batch=16, **DEGREES
    )
    job = cluster_job((task,), hbm=(12 * GIB,), rows=[16], lanes=[16, 64])
    state = _check_against_exhaustive(job)
    best = best_of(state)
    assert best is not None
    chosen = task.configurations[best.ran[0].configuration]
    assert task.graphs[chosen.graph].model.expert == 4  # whole experts do not fit

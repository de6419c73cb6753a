"""A search of chips of clusters in boxes: the answer of exhaustive evaluation, and no chip is
lost."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaze.hardware.stack import ScheduleRule
from phaze.options.values import Mean
from phaze.search.chips import enumerate_space
from phaze.search.objective import KINDS, Objective
from phaze.search.space import Space
from phaze.search.task import SearchJob
from tests.search.boxes.exhaustive import check_against_exhaustive
from tests.search.made_cluster import cluster_task
from tests.search.made_silicon import silicon_job, silicon_space

SCHEDULES: tuple[ScheduleRule, ...] = ("serial", "companions", "links", "overlap", "icml24")
MEANS: tuple[Mean, ...] = ("geometric", "arithmetic")
AXES: dict[str, list[Any]] = {
    "clusters": [1, 2, 4, 12, 13], "arrays": [1, 2, 3], "rows": [16, 32], "columns": [32, 64],
    "lanes": [128, 512],
    "registers": [2**18, 2**20], "global_width": [1000.0, 2048.0], "hbm_stacks": [2, 3, 4],
    "links": [1e11, 9e11], "global_buffer": [2**23, 25 * 2**20],
}  # fmt: skip


@st.composite
def _spaces(draw: st.DrawFn) -> Space:
    """Some axes of one or two values, within limits of area, power and price that bind or do
    not."""
    chosen = draw(st.sets(st.sampled_from(sorted(AXES)), min_size=2, max_size=4))
    axes = {
        name: sorted(draw(st.sets(st.sampled_from(AXES[name]), min_size=1, max_size=2)))
        for name in chosen
    }
    keep = {
        "most_area": draw(st.sampled_from([330.0, 500.0, 800.0])),
        "sustained_power": draw(st.sampled_from([110.0, 180.0, 600.0])),
        "most_w_per_mm2": draw(st.sampled_from([0.5, 3.0])),
        "most_usd": draw(st.sampled_from([None, None, 900.0])),
        "least_share": draw(st.sampled_from([0.0, 0.5])),
    }
    return silicon_space(keep=keep, **axes)


@st.composite
def cluster_box_jobs(draw: st.DrawFn) -> SearchJob:
    """A search under any schedule rule and objective, one or two models."""
    schedule = draw(st.sampled_from(SCHEDULES))
    names = draw(st.sampled_from([("gpt",), ("llama",), ("gpt", "llama")]))
    tasks = tuple(
        cluster_task(name, schedule=schedule, widths=(2,), microbatches=(1,), devices=8, batch=8)
        for name in names
    )
    job = silicon_job(tasks, draw(_spaces()), gap=draw(st.sampled_from([0.0, 0.0, 0.02])))
    mean: Mean = draw(st.sampled_from(MEANS))
    return replace(job, objective=Objective(draw(st.sampled_from(KINDS)), mean, baseline="h100"))


EVERY = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _check(job: SearchJob) -> None:
    if len(enumerate_space(job.space)):
        check_against_exhaustive(job)


@settings(EVERY, max_examples=2)
@given(job=cluster_box_jobs())
def test_the_answer_of_clusters_by_boxes_is_that_of_exhaustive_evaluation(
    small_boxes: None, job: SearchJob
) -> None:
    _check(job)


@pytest.mark.slow
@settings(EVERY, max_examples=60)
@given(job=cluster_box_jobs())
def test_many_answers_of_clusters_by_boxes_are_those_of_exhaustive_evaluation(
    small_boxes: None, job: SearchJob
) -> None:
    _check(job)

"""A search that looks at its space in boxes: its answer is that of exhaustive evaluation, and no
chip is lost."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaze.hardware.stack import ScheduleRule
from phaze.search.baseline import scale_for
from phaze.search.boxes.counts import count_left_out
from phaze.search.boxes.opening import chips_numbered, is_boxed, reopened
from phaze.search.chips import enumerate_space
from phaze.search.evaluated import Evaluated
from phaze.search.objective import KINDS, Objective
from phaze.search.run import search
from phaze.search.space import Space
from phaze.search.spaces import load_space
from phaze.search.task import SearchJob
from tests.search.boxes.exhaustive import check_against_exhaustive
from tests.search.made import GIB, MIB, made_job, made_task, small_space, traced_task
from tests.search.made_cluster import cluster_task

SCHEDULES: tuple[ScheduleRule, ...] = ("serial", "companions", "links", "overlap")
AXES: dict[str, list[Any]] = {
    "tensor_cores": [1, 2, 8], "rows": [16, 64], "columns": [32, 64], "vector_cores": [1, 4],
    "lanes": [8, 64],
    "global_buffer": [2 * MIB, 8 * MIB],
}  # fmt: skip
MORE: dict[str, list[Any]] = {
    "hbm_bandwidth": [3e11, 9e11], "links": [1e9, 1e11], "clock": [7e8, 1e9],
    "global_bandwidth": [1e12, 4e12],
    "tensor_buffer": [2**15, 2**17], "vector_buffer": [2**12, 2**15],
}  # fmt: skip


@st.composite
def _spaces(draw: st.DrawFn) -> Space:
    """Some axes, of one to three values, within limits of area, power and price that bind or do
    not."""
    axes = {
        name: sorted(draw(st.sets(st.sampled_from(v), min_size=1, max_size=2)))
        for name, v in AXES.items()
    }
    for name in draw(st.sets(st.sampled_from(sorted(MORE)), max_size=2)):
        axes[name] = MORE[name]
    space = small_space(**axes)
    space = space.keeping(
        least_share=draw(st.sampled_from([0.0, 0.02])), smaller_with_one_core=draw(st.booleans())
    )
    limits = {"area": [20.0, 100.0], "power": [30.0, 120.0], "usd": [40.0, 400.0]}
    chosen = draw(st.sets(st.sampled_from(sorted(limits)), max_size=2))
    return space.within({name: draw(st.sampled_from(limits[name])) for name in chosen})


@st.composite
def box_jobs(draw: st.DrawFn) -> SearchJob:
    """A search under published or cluster rules, any objective, one or two models."""
    kind = draw(st.sampled_from(["made", "traced", "cluster", "several"]))
    if kind == "several":
        tasks = tuple(made_task(seed, microbatches=(1,)) for seed in (21, 22))
    elif kind == "made":
        tasks = (made_task(draw(st.integers(0, 20)), microbatches=(1,)),)
    elif kind == "traced":
        tasks = (traced_task(draw(st.integers(0, 3)), (1, 2), (1,)),)
    else:
        schedule = draw(st.sampled_from(SCHEDULES))
        tasks = (
            cluster_task(
                "gpt", widths=(2,), microbatches=(1,), schedule=schedule, devices=8, batch=8
            ),
        )
    objective = Objective(draw(st.sampled_from(KINDS)), "arithmetic")
    memories = draw(st.sampled_from([(2 * MIB, GIB), (GIB,)]))
    gap = draw(st.sampled_from([0.0, 0.0, 0.02]))
    return SearchJob(
        "boxes", tasks, draw(_spaces()), memories, objective, gap, "boxes", round_size=3
    )


EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(EVERY, max_examples=4)
@given(job=box_jobs())
def test_the_answer_by_boxes_is_that_of_exhaustive_evaluation(
    small_boxes: None, job: SearchJob
) -> None:
    check_against_exhaustive(job)


@pytest.mark.slow
@settings(EVERY, max_examples=60)
@given(job=box_jobs())
def test_many_answers_by_boxes_are_those_of_exhaustive_evaluation(
    small_boxes: None, job: SearchJob
) -> None:
    check_against_exhaustive(job)


@settings(max_examples=30, deadline=None)
@given(space=_spaces())
def test_chips_are_counted_without_looking_at_them(space: Space) -> None:
    opened = enumerate_space(space)
    assert all(count_left_out(space, at_once) == opened.rules for at_once in (1, 7, 100, 10**6))
    assert len(space) - sum(opened.rules.values()) == len(opened)


def test_a_space_of_the_paper_is_not_looked_at_in_boxes() -> None:
    space = load_space("paper")
    assert not is_boxed(space)


def test_chips_are_found_again_by_their_combinations(small_boxes: None) -> None:
    space = small_space()
    every = chips_numbered(space, np.arange(len(space)))
    assert [every.name(at) for at in range(len(every))] == [
        enumerate_space(space).name(at) for at in range(len(every))
    ]
    numbers = np.array([every.number(3), every.number(7)])
    some = reopened(space, numbers)
    assert some.total == every.total and [some.number(at) for at in range(2)] == numbers.tolist()
    assert some.index_of(every.number(7)) == 1 and some.index_of(10**9) is None
    assert some.name(1) == every.name(7)


class _Kept:
    """A journal in memory."""

    def __init__(self) -> None:
        self.rows: dict[int, Evaluated] = {}
        self.added = 0
        self.notes: dict[str, str] = {}

    def note(self, key: str, text: str) -> None:
        self.notes[key] = text

    def noted(self, key: str) -> str | None:
        return self.notes.get(key)

    def evaluated(self) -> dict[int, Evaluated]:
        return self.rows

    def add(self, found: Iterable[Evaluated]) -> None:
        fresh = {one.chip: one for one in found}
        self.rows, self.added = self.rows | fresh, self.added + len(fresh)


def test_a_search_by_boxes_goes_on_from_its_journal(small_boxes: None) -> None:
    job, kept = made_job((made_task(5),)), _Kept()
    first = search(job, scale_for(job), journal=kept)
    assert {first.chips.number(chip) for chip in first.evaluated} == set(kept.rows)
    rows, kept.rows = kept.rows, dict(list(kept.rows.items())[:1])
    again = search(job, scale_for(job), journal=kept)
    assert again.evaluated == first.evaluated and kept.rows == rows
    kept.added = 0
    assert (
        search(job, scale_for(job), journal=kept).evaluated == first.evaluated and kept.added == 0
    )

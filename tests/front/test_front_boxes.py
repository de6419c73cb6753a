"""Fronts of spaces that are looked at in boxes: the designs of a front that looks at every chip, and no chip is lost."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaze.front import boxed
from phaze.front.answer import front_document
from phaze.front.certificate import closed_units
from phaze.front.metrics import RequestedMetrics, asked_of
from phaze.front.run import front, job_for, scales_for
from phaze.front.state import FrontState
from phaze.search.boxes import opening
from phaze.search.spaces import enumerate_space
from phaze.search.task import SearchJob
from tests.front.test_front import FRONTS
from tests.search.boxes.conftest import small_boxes
from tests.search.boxes.test_box_search import box_jobs

__all__ = ["small_boxes"]
EVERY = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture
def coarse_grid() -> Iterator[None]:
    """Few chips are looked at before boxes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxed, "COARSE", 4)
        patch.setattr(boxed, "ROUNDS", 1)
        yield


def _found(job: SearchJob, asked: RequestedMetrics, boxes: bool) -> FrontState:
    own = job_for(job, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BOXED", 0 if boxes else 1 << 40)
        return front(own, asked, scales_for(own, asked))


def _named(state: FrontState) -> list[tuple[Any, ...]]:
    """Every design: chip, memory, its place among those of its unit, and its metrics."""
    rows = []
    for number, values in zip(state.archive.numbers.tolist(), state.archive.values.T, strict=True):
        unit, place = divmod(number, state.span)
        chip, memory = state.place(unit)
        rows.append((state.opened.name(chip), memory, place, *(float(f"{value:.9g}") for value in values)))
    return sorted(rows)


def _check(job: SearchJob, of: tuple[str, ...], within: list[str]) -> None:
    asked = asked_of(of, within)
    every, some = _found(job, asked, False), _found(job, asked, True)
    assert some.opened.total == len(enumerate_space(job.space)) or not len(some.archive.numbers)
    assert not some.alive.any()
    if job.gap == 0:
        assert _named(some) == _named(every)
        return
    # Designs may lack that are better by less than the gap, in metrics of a run.
    run, found = every.run_metrics, some.archive.values[: some.weighed]
    for column in every.archive.values[: every.weighed].T:
        room = np.where(run, column / (1 - job.gap), column) * (1 + 2e-9)
        assert (found <= room[:, None]).all(axis=0).any()


LIMITS = [[], ["area=40"], ["power=60"], ["price=200"], ["throughput=1000"], ["throughput=100000000"]]


@settings(EVERY, max_examples=6)
@given(job=box_jobs(), of=st.sampled_from(FRONTS), within=st.sampled_from(LIMITS))
def test_a_front_by_boxes_is_that_of_every_chip(
    small_boxes: None, coarse_grid: None, job: SearchJob, of: tuple[str, ...], within: list[str]
) -> None:
    _check(job, of, within)


@pytest.mark.slow
@settings(EVERY, max_examples=80)
@given(job=box_jobs(), of=st.sampled_from(FRONTS), within=st.sampled_from(LIMITS))
def test_many_fronts_by_boxes_are_those_of_every_chip(
    small_boxes: None, coarse_grid: None, job: SearchJob, of: tuple[str, ...], within: list[str]
) -> None:
    _check(job, of, within)

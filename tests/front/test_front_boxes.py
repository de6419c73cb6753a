"""Fronts of spaces that are looked at in boxes: the designs of one that looks at every chip, and no
chip is lost."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaze.check import boxes as checked_boxes
from phaze.front import boxed, run
from phaze.front.metrics import RequestedMetrics, metrics_of
from phaze.front.run import front, job_for, scales_for
from phaze.front.state import FrontState
from phaze.search.boxes import opening
from phaze.search.chips import enumerate_space
from phaze.search.deadline import OutOfTime
from phaze.search.task import SearchJob
from tests.conftest import Ran
from tests.front.test_front import FRONTS, small_job
from tests.front.test_front_command import made_study
from tests.search.boxes.conftest import small_boxes
from tests.search.boxes.test_box_search import box_jobs
from tests.search.boxes.test_cluster_search import cluster_box_jobs
from tests.search.made import made_job, made_task

__all__ = ["small_boxes"]
EVERY = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


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
        rows.append(
            (state.chips.name(chip), memory, place, *(float(f"{value:.9g}") for value in values))
        )
    return sorted(rows)


def _check(job: SearchJob, of: tuple[str, ...], within: list[str]) -> None:
    asked = metrics_of(of, within)
    every, some = _found(job, asked, False), _found(job, asked, True)
    assert some.chips.total == len(enumerate_space(job.space)) or not len(some.archive.numbers)
    assert not some.alive.any()
    if job.gap == 0:
        assert _named(some) == _named(every)
        return
    # Designs may lack that are better by less than the gap, in metrics of a run.
    run, found = every.run_metrics, some.archive.values[: some.weighed]
    for column in every.archive.values[: every.weighed].T:
        room = np.where(run, column / (1 - job.gap), column) * (1 + 2e-9)
        assert (found <= room[:, None]).all(axis=0).any()


LIMITS = [
    [],
    ["area=40"],
    ["power=60"],
    ["price=200"],
    ["throughput=1000"],
    ["throughput=100000000"],
]


@settings(EVERY, max_examples=6)
@given(job=box_jobs(), of=st.sampled_from(FRONTS), within=st.sampled_from(LIMITS))
def test_a_front_by_boxes_is_that_of_every_chip(
    small_boxes: None, coarse_grid: None, job: SearchJob, of: tuple[str, ...], within: list[str]
) -> None:
    _check(job, of, within)


@settings(EVERY, max_examples=2)
@given(job=cluster_box_jobs(), of=st.sampled_from(FRONTS), within=st.sampled_from(LIMITS))
def test_a_front_of_clusters_by_boxes_is_that_of_every_chip(
    small_boxes: None, coarse_grid: None, job: SearchJob, of: tuple[str, ...], within: list[str]
) -> None:
    if len(enumerate_space(job.space)):
        _check(job, of, within)


@pytest.mark.slow
@settings(EVERY, max_examples=40)
@given(job=cluster_box_jobs(), of=st.sampled_from(FRONTS), within=st.sampled_from(LIMITS))
def test_many_fronts_of_clusters_by_boxes_are_those_of_every_chip(
    small_boxes: None, coarse_grid: None, job: SearchJob, of: tuple[str, ...], within: list[str]
) -> None:
    if len(enumerate_space(job.space)):
        _check(job, of, within)


@pytest.mark.slow
@settings(EVERY, max_examples=80)
@given(job=box_jobs(), of=st.sampled_from(FRONTS), within=st.sampled_from(LIMITS))
def test_many_fronts_by_boxes_are_those_of_every_chip(
    small_boxes: None, coarse_grid: None, job: SearchJob, of: tuple[str, ...], within: list[str]
) -> None:
    _check(job, of, within)


@pytest.mark.parametrize("of", [("throughput", "area"), ("throughput", "energy", "price")])
def test_no_design_of_the_coarse_grid_is_needed(
    small_boxes: None, coarse_grid: None, of: tuple[str, ...]
) -> None:
    """Limits that nothing of the coarse grid is within: what is left of the space has the front."""
    job = small_job(1)
    every = _found(job, metrics_of(of, []), False)
    row = every.metrics.measured.index(every.metrics.runs[0])
    best = 64 / float(every.archive.values[row].min()) * (1 - 1e-6)
    _check(job, of, [f"throughput={best!r}"])


def _points(folder: Path) -> list[dict[str, Any]]:
    """Designs without what numbers chips and counts rivals."""
    document = json.loads((folder / "front.json").read_text())
    for point in document["points"]:
        del point["chip"]["number"], point["certificate"]
    found: list[dict[str, Any]] = document["points"]
    return found


def test_a_front_by_boxes_is_written_verified_resumed_and_seen_when_changed(
    small_boxes: None,
    coarse_grid: None,
    tmp_path: Path,
    phaze: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def command(name: str) -> tuple[object, ...]:
        return (
            "front",
            study,
            "--of",
            "throughput,price",
            "--out",
            tmp_path / name,
            "--workers",
            "1",
        )

    study, few = made_study(tmp_path), 1 << 40
    assert phaze(*command("boxes")).code == 0
    text = (tmp_path / "boxes" / "front.json").read_text()
    assert phaze("verify", tmp_path / "boxes").code == 0, (
        "chip by chip, numbers of combinations aside"
    )
    monkeypatch.setattr(checked_boxes, "MOST_CHIPS", 0)
    proved = phaze("verify", tmp_path / "boxes")
    assert proved.code == 0 and " boxes " in " ".join(proved.out.split()), proved.out
    assert phaze(*command("boxes")).code == 0
    assert (tmp_path / "boxes" / "front.json").read_text() == text, "it goes on from its journal"
    assert (
        phaze("report", tmp_path / "boxes", "--design", "0", "--out", tmp_path / "design.html").code
        == 0
    )
    document = json.loads(text)
    document["points"][0]["chip"]["number"] += 1
    (tmp_path / "boxes" / "front.json").write_text(json.dumps(document, indent=2) + "\n")
    assert phaze("verify", tmp_path / "boxes").code == 1
    (tmp_path / "boxes" / "front.json").write_text(text)
    monkeypatch.setattr(opening, "BOXED", few)
    assert phaze(*command("every")).code == 0
    assert _points(tmp_path / "every") == _points(tmp_path / "boxes")
    closed = [
        json.loads((tmp_path / one / "front.json").read_text())["certificate"]
        for one in ("every", "boxes")
    ]
    assert closed[0]["units"] == closed[1]["units"]
    assert sum(closed[0]["closed"].values()) == sum(closed[1]["closed"].values())


def test_a_front_out_of_time_before_its_boxes_says_that_all_else_is_open(
    small_boxes: None,
    coarse_grid: None,
    tmp_path: Path,
    phaze: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(boxed, "chips_left", late)
    out = tmp_path / "run"
    ran = phaze(
        "front", made_study(tmp_path), "--of", "throughput,area", "--out", out, "--time", "1000"
    )
    assert ran.code == 0, ran.err
    proof = json.loads((out / "front.json").read_text())["certificate"]
    assert proof["gap"] == 1.0 and proof["closed"]["open"] > 0


def test_boxes_are_open_where_the_designs_that_closed_them_were_not_evaluated_again(
    small_boxes: None, coarse_grid: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, asked = made_job((made_task(5),)), metrics_of(("throughput", "area"), [])
    whole = _found(job, asked, True)
    assert whole.boxed.chips > 0 and whole.boxed.pruned
    wanted, opening_units = len(whole.chips), run._open

    def some(state: FrontState, units: list[int], *rest: Any) -> None:
        opening_units(state, units[:1] if len(state.chips) == wanted else units, *rest)
        if len(state.chips) == wanted:
            raise OutOfTime

    monkeypatch.setattr(run, "_open", some)
    stopped = _found(job, asked, True)
    assert stopped.stopped and not stopped.boxed.pruned and stopped.boxed.chips == whole.boxed.chips

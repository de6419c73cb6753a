"""A time limit holds inside a round and inside the bounds; what was found is kept, and going on
gives equal bytes."""

import time
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from phaze.errors import InfeasibleError
from phaze.front.answer import front_document
from phaze.front.certificate import closed_units
from phaze.front.ending import Ending
from phaze.front.folder import FRONT, front_in
from phaze.front.metrics import metrics_of
from phaze.front.run import front, job_for, scales_for
from phaze.options.values import Kind
from phaze.search import baseline, engine
from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of, closed_chips
from phaze.search.code import code_digest
from phaze.search.deadline import Deadline, OutOfTime, after
from phaze.search.evaluated import Evaluated
from phaze.search.folder import JOURNAL, RESULT, run_in
from phaze.search.journal import SqliteJournal
from phaze.search.objective import scale_of
from phaze.search.question_files import Papers
from phaze.search.run import evaluate_one, in_process, search
from phaze.search.state import SearchState
from phaze.search.task import SearchJob
from tests.front.test_front import small_job
from tests.search.made import made_job, made_task

# Far beyond any test's patience: what takes so long was ended.
LONG_S = 60.0
SOON_S = 2.0


def _job() -> SearchJob:
    return made_job((made_task(4, widths=(1, 2)),))


class Counted(Deadline):
    """A deadline that passes when it is looked at for the n-th time."""

    def __init__(self, n: int) -> None:
        object.__setattr__(self, "moment_s", time.monotonic() + 3600.0)
        object.__setattr__(self, "left", n)

    left: int

    def earlier(self, seconds: float) -> "Counted":
        return self

    def check(self) -> None:
        object.__setattr__(self, "left", self.left - 1)
        if self.left < 0:
            raise OutOfTime


def _slow_after(count: int, monkeypatch: pytest.MonkeyPatch, marks: Path) -> None:
    """Opening a chip takes a minute once so many were opened."""
    plain = evaluate_one

    def slow(state: SearchState, chip: int, cut: float) -> Evaluated:
        marks.mkdir(exist_ok=True)
        if len(list(marks.iterdir())) >= count:
            time.sleep(LONG_S)
        (marks / str(chip)).touch()
        return plain(state, chip, cut)

    monkeypatch.setattr(engine, "evaluate_one", slow)


@pytest.mark.parametrize("limit_s", [1e30, 2.0**63, 1.1e9])
def test_a_limit_beyond_what_a_system_can_wait_for_is_none(limit_s: float) -> None:
    assert after(limit_s).left_s is None
    assert after(1e8).left_s is not None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_limit_holds_inside_a_round_and_what_was_done_is_kept(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = replace(_job(), round_size=16)  # four chips in the first round
    whole = run_in(tmp_path / "whole", Papers(""), job, workers)
    with monkeypatch.context() as patch:
        _slow_after(2, patch, tmp_path / "marks")
        began = time.monotonic()
        stopped = run_in(tmp_path / "run", Papers(""), replace(job, limit_s=4.0), workers)
        assert time.monotonic() - began < 4.0 + SOON_S
    assert stopped.state.stopped
    proof = stopped.document["certificate"]
    assert proof["gap"] > 0
    assert (
        proof["lower_bound"]
        <= whole.document["objective"]["score"]
        <= stopped.document["objective"]["score"]
    )
    with SqliteJournal(tmp_path / "run" / JOURNAL, "made", code_digest()) as journal:
        assert 2 <= len(journal.evaluated()) <= 3, "every chip that was done, and none that was not"
    assert run_in(tmp_path / "run", Papers(""), job, workers).document == whole.document
    assert (tmp_path / "run" / RESULT).read_bytes() == (tmp_path / "whole" / RESULT).read_bytes()


@pytest.mark.parametrize("kind", ["throughput", "throughput_per_watt"])
def test_without_any_time_there_is_a_feasible_design_and_the_same_command_goes_on(
    kind: Kind, tmp_path: Path
) -> None:
    job = replace(_job(), objective=replace(_job().objective, kind=kind))
    stopped = run_in(tmp_path / "run", Papers(""), replace(job, limit_s=0.0)).document
    whole = run_in(tmp_path / "whole", Papers(""), job)
    assert stopped["provisional"] and "provisional" not in whole.document
    assert stopped["certificate"]["gap"] == 1.0, "nothing was proved"
    assert stopped["objective"]["score"] >= whole.document["objective"]["score"]
    run_in(tmp_path / "run", Papers(""), job)
    assert (tmp_path / "run" / RESULT).read_bytes() == (tmp_path / "whole" / RESULT).read_bytes()
    assert not whole.state.stopped


def test_a_run_that_goes_on_without_time_keeps_the_best_chip_that_it_had(tmp_path: Path) -> None:
    whole = run_in(tmp_path / "run", Papers(""), _job())
    again = run_in(tmp_path / "run", Papers(""), replace(_job(), limit_s=0.0))
    assert again.document["chip"]["number"] == whole.document["chip"]["number"]
    assert again.document["certificate"]["closed"]["evaluated"] == len(whole.state.evaluated)
    # Its exact schedules are not in the journal, and there was no time to find them again.
    assert again.document["objective"]["score"] >= whole.document["objective"]["score"]


def test_bounds_of_all_chips_are_there_before_a_chip_is_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _slow_after(0, monkeypatch, tmp_path / "marks")
    began = time.monotonic()
    stopped = run_in(tmp_path / "run", Papers(""), replace(_job(), limit_s=1.0)).document
    assert time.monotonic() - began < 1.0 + SOON_S
    assert stopped["provisional"]
    assert stopped["certificate"]["closed"]["evaluated"] == 0
    assert 0 < stopped["certificate"]["gap"] < 1


def test_the_values_of_several_models_on_their_baseline_end_with_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = made_job((made_task(4), made_task(5)))
    truth = scale_for(job)
    assert scale_for(job, deadline=after(30.0)) == truth
    with monkeypatch.context() as patch:
        patch.setattr(baseline, "value_on", lambda *_: time.sleep(LONG_S))
        began = time.monotonic()
        with pytest.raises(InfeasibleError, match="within the time") as said:
            scale_for(job, deadline=after(0.2))
        assert time.monotonic() - began < 0.2 + SOON_S
        assert said.value.document["feasible"] is None, "it is not known whether anything is"


@pytest.mark.parametrize("kind", ["throughput", "throughput_per_watt"])
def test_a_search_stopped_at_any_moment_claims_no_more_than_it_proved(kind: Kind) -> None:
    job = replace(_job(), objective=replace(_job().objective, kind=kind))
    scale = scale_of(job.objective, [1.0], [64.0], [1.0])
    truth, count, checks = search(job, scale), 0, 0
    while True:
        state = search(job, scale, in_process, deadline=Counted(count))
        if not state.stopped:
            break
        checks, count = checks + 1, count + 1 if count < 12 else count + 7
        assert state.best >= truth.best
        closed = closed_chips(state)
        opened = list(state.evaluated.values())
        if opened and state.best < float("inf"):
            proof = certificate_of(closed, opened, state.best, job.gap, state.chips.left_out)
            assert proof.lower_bound <= truth.best * (1 + 1e-9)
            assert proof.gap == pytest.approx(1 - proof.lower_bound / state.best, abs=1e-12)
            assert sum(proof.closed.values()) - proof.closed["area"] == len(closed)
        for chip, found in state.evaluated.items():
            assert chip in truth.evaluated, "it opened a chip that a search without limit does not"
            assert found == truth.evaluated[chip]
    assert checks > 10
    assert state.best == truth.best


def test_a_front_under_a_limit_states_designs_as_they_come_and_keeps_what_its_end_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, moment = metrics_of("throughput,area"), iter(range(1_000_000))
    job, limit = job_for(replace(small_job(3), round_size=1), asked), after(3600.0)
    monkeypatch.setattr(
        import_module("phaze.front.ending"), "monotonic", lambda: float(next(moment))
    )  # each look takes a second
    ending = Ending()
    state = front(job, asked, scales_for(job, asked), in_process, deadline=limit, ending=ending)
    assert (ending.designs_s, ending.document_s) == (1.0, 1.0)
    assert state.deadline.moment_s == limit.moment_s - 3.0, (
        "a round's designs and twice the document"
    )
    truth = front_document(state, closed_units(state), "")
    monkeypatch.setattr(
        import_module("phaze.front.answer"), "_stated", None
    )  # what would be solved again at the end
    assert front_document(state, closed_units(state), "", ending.stated) == truth
    assert set(state.archive.numbers.tolist()) <= set(ending.stated)


@pytest.mark.parametrize(
    "of", [pytest.param("throughput,area", marks=pytest.mark.slow), "throughput,energy"]
)
def test_a_front_stopped_at_any_moment_goes_on_to_the_same_bytes(
    of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, job = metrics_of(of), replace(small_job(3), round_size=1)
    clock = Counted(1_000_000)
    monkeypatch.setattr(import_module("phaze.front.folder"), "after", lambda _: clock)
    whole = front_in(tmp_path / "whole", Papers(""), job, asked)
    looked, gaps = 1_000_000 - clock.left, []
    for back in (1, 2, 4, looked):
        clock = Counted(looked - back)
        with suppress(InfeasibleError):
            stopped = front_in(tmp_path / str(back), Papers(""), job, asked)
            gaps.append(stopped.document["certificate"]["gap"])
        clock = Counted(1_000_000)
        front_in(tmp_path / str(back), Papers(""), job, asked)
        assert (tmp_path / str(back) / FRONT).read_bytes() == (
            tmp_path / "whole" / FRONT
        ).read_bytes()
    assert whole.document["certificate"]["gap"] <= 1e-9
    assert any(gap > 0 for gap in gaps), "none was stopped in the middle"

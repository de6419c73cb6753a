"""A run in its folder: the same bytes whatever the workers or interruptions, and refusals in one
sentence."""

import contextlib
import json
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from phaze.errors import InfeasibleError, InputError, PhazeError
from phaze.search import run, work_item
from phaze.search.code import code_digest
from phaze.search.engine import workers
from phaze.search.evaluated import Evaluated
from phaze.search.folder import JOURNAL, RESULT, run_in
from phaze.search.journal import SqliteJournal, read_closed
from phaze.search.objective import scale_of
from phaze.search.question_files import Papers, differences
from phaze.search.run import evaluate_one, search
from phaze.search.state import SearchState
from phaze.search.task import SearchJob
from tests.search.made import made_job, made_task, stopping_after_one


def _job(digest: str = "made") -> SearchJob:
    job = made_job((made_task(63, widths=(1, 2)),), gap=1e-4)
    return SearchJob(
        job.name, job.models, job.space, job.hbm_bytes, job.objective, job.gap, digest, 2
    )


def test_two_runs_have_the_same_bytes_whatever_the_workers(tmp_path: Path) -> None:
    for name, processes in (("one", 1), ("again", 1), ("two", 2)):
        run_in(tmp_path / name, Papers(""), _job(), processes)
    first, *others = ((tmp_path / name / RESULT).read_bytes() for name in ("one", "again", "two"))
    assert all(other == first for other in others)
    lists = [read_closed(tmp_path / name / JOURNAL) for name in ("one", "two")]
    assert lists[0] == lists[1]


def test_an_interrupted_run_goes_on_and_evaluates_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_in(tmp_path / "whole", Papers(""), _job())
    plain = run.evaluate_one
    monkeypatch.setattr(run, "evaluate_one", stopping_after_one(plain))
    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path / "run", Papers(""), _job())
    with SqliteJournal(tmp_path / "run" / JOURNAL, "made", code_digest()) as journal:
        before = set(journal.evaluated())
    assert 0 < len(before) < len(whole.state.evaluated)
    asked: list[int] = []

    def counting(state: SearchState, chip: int, cut: float) -> Evaluated:
        asked.append(chip)
        return plain(state, chip, cut)

    monkeypatch.setattr(run, "evaluate_one", counting)
    run_in(tmp_path / "run", Papers(""), _job())
    assert not before & set(asked)
    assert (tmp_path / "run" / RESULT).read_bytes() == (tmp_path / "whole" / RESULT).read_bytes()


def test_a_killed_worker_is_replaced_and_its_chip_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from phaze.search import engine

    marker = tmp_path / "killed"
    plain = evaluate_one

    def dying(state: SearchState, chip: int, cut: float) -> Evaluated:
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(state, chip, cut)

    monkeypatch.setattr(engine, "evaluate_one", dying)
    job = _job()
    scale = scale_of(job.objective, [1.0], [64.0], [1.0])
    killed, whole = search(job, scale, workers(2)), search(job, scale)
    assert marker.exists()
    assert killed.evaluated == whole.evaluated


def test_a_folder_of_another_study_is_refused(tmp_path: Path) -> None:
    run_in(tmp_path, Papers(""), _job())
    with pytest.raises(InputError, match="another study"):
        run_in(tmp_path, Papers(""), _job("other"))


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / JOURNAL, "made", "another code").close()
    with pytest.raises(InputError, match="another version of phaze"):
        run_in(tmp_path, Papers(""), _job())


def test_two_searches_in_one_folder_are_refused(tmp_path: Path) -> None:
    with (
        SqliteJournal(tmp_path / JOURNAL, "made", "code"),
        pytest.raises(InputError, match="another search"),
    ):
        SqliteJournal(tmp_path / JOURNAL, "made", "code")


@pytest.mark.parametrize("size", [600, 5000])
def test_a_damaged_journal_is_said(tmp_path: Path, size: int) -> None:
    run_in(tmp_path, Papers(""), _job())
    content = (tmp_path / JOURNAL).read_bytes()
    (tmp_path / JOURNAL).write_bytes(content[:size])
    with pytest.raises(InputError, match="journal"):
        run_in(tmp_path, Papers(""), _job())


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        run_in(tmp_path / "file" / "run", Papers(""), _job())


def test_nothing_feasible_says_the_least_shortage(tmp_path: Path) -> None:
    job = _job()
    tight = SearchJob(job.name, job.models, job.space, (2**20,), job.objective, job.gap, "made", 2)
    with pytest.raises(InfeasibleError, match="nothing fits") as caught:
        run_in(tmp_path, Papers(""), tight)
    assert caught.value.document["needed_bytes"] > 2**20


def test_a_space_without_a_chip_and_a_price_that_none_meets_are_said(tmp_path: Path) -> None:
    from dataclasses import replace

    from phaze.search.spaces import space_in

    job = _job()
    for keep, match in (
        ({"most_area": 0.5}, "no chip"),
        ({"area_of": "tpu-v4-paper", "most_usd": 301.0}, "cheapest"),
    ):
        raw = job.space.model_dump(by_alias=True) | {"keep": keep}
        space = space_in(raw, "made")
        with pytest.raises(InfeasibleError, match=match):
            run_in(tmp_path / match, Papers(""), replace(job, space=space, hbm_bytes=(2**34,)))


def test_when_every_chip_fails_the_fault_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*anything: object) -> Evaluated:
        raise RuntimeError("broken")

    monkeypatch.setattr(work_item, "evaluate", failing)
    with pytest.raises(PhazeError, match="broken"):
        run_in(tmp_path, Papers(""), _job())


def test_a_journal_that_lies_about_the_best_chip_is_said(tmp_path: Path) -> None:
    run_in(tmp_path, Papers(""), _job())
    with contextlib.closing(sqlite3.connect(tmp_path / JOURNAL)) as kept, kept:
        rows = kept.execute("select chip, document from evaluated").fetchall()
        for chip, text in rows:
            raw = json.loads(text)
            raw["score"] = None if raw["score"] is None else raw["score"] * 0.5
            kept.execute(
                "update evaluated set document = ? where chip = ?", (json.dumps(raw), chip)
            )
    with pytest.raises(InputError, match="the journal was changed"):
        run_in(tmp_path, Papers(""), _job())


def test_a_changed_problem_orders_nothing_to_a_terminal() -> None:
    said = differences('{"a": 1}', '{"\\u001b[31m": 2}')
    assert said == "its problem.json cannot be read"
    assert differences('{"a": 1}', '{"a": 2}') == "a is 2 and was 1"


def test_a_journal_in_a_folder_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")) / "journal.sqlite"
    path.parent.mkdir()
    with SqliteJournal(path, "study", "code"):
        pass
    assert read_closed(path) == []

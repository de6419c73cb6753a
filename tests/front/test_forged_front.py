"""Forged fronts: a front cut short is refused, whatever its list says, by one who made every digest and count fit."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.export.frame import csv_text
from phaze.front.answer import bounds_of, front_view
from phaze.front.folder import front_frame
from phaze.front.measures import listed_from, measures_of
from phaze.front.metrics import asked_of
from phaze.front.reference import PlainFront
from phaze.front.run import job_for, memories_of, scales_for
from phaze.front.verify import regenerated_designs
from phaze.search.journal import PrunedChip, read_closed, read_evaluated
from phaze.search.result import code_digest, written
from phaze.search.spaces import enumerate_space
from phaze.search.verify import plain_of
from phaze.search.verify_answer import check_text
from phaze.study.load import question_in
from tests.conftest import Ran
from tests.front.test_front_command import _made
from tests.search.test_verify import changed_documents

Fate = Callable[[PrunedChip], PrunedChip]
FATES: dict[str, Fate] = {
    "area": lambda row: PrunedChip(row.chip, "area", None, "cheap"),
    "memory": lambda row: PrunedChip(row.chip, "memory", None, "cheap"),
    "within": lambda row: PrunedChip(row.chip, "within", row.bound, "cheap"),
    "bound": lambda row: PrunedChip(row.chip, "bound", row.bound, "cheap"),
    "a false bound": lambda row: PrunedChip(row.chip, "bound", 1e9, "cheap"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished front."""
    where = tmp_path_factory.mktemp("front")
    arguments = ["front", str(_made(where)), "--of", "throughput,area", "--out", str(where / "one"), "--workers", "1"]
    assert exit_code_of(app, arguments) == 0
    return where / "one"


def _cut(folder: Path, kept: slice, fate: Fate) -> int:
    """Leave only some designs, close the units of all others otherwise, and make everything else fit."""
    document: dict[str, Any] = json.loads((folder / "front.json").read_text())
    asked = asked_of(document["of"])
    job = job_for(question_in(folder, asked.document()).job, asked)
    scales, memories = scales_for(job, asked), tuple(memories_of(job, asked))
    plain = plain_of(job, scales[0], enumerate_space(job.space))
    front, measures = (
        PlainFront(plain, asked, scales, np.empty((2, 0)), memories),
        measures_of(job, asked, scales, plain.opened, memories),
    )
    designs, _ = regenerated_designs(front, measures, document["points"])
    left = designs[kept]
    gone = {measures.unit(one.chip, one.hbm) for one in designs if one not in left}
    base = sqlite3.connect(folder / "journal.sqlite")
    rows = [fate(row) if row.chip in gone else row for row in read_closed(folder / "journal.sqlite")]
    base.execute("DELETE FROM closed")
    base.executemany("INSERT INTO closed VALUES (?, ?, ?, ?)", [(r.chip, r.reason, r.bound, r.step) for r in rows])
    base.executemany("DELETE FROM evaluated WHERE chip = ?", [(unit,) for unit in gone])
    base.commit()
    base.close()
    values = np.stack([one.values for one in left], axis=1)
    listed, evaluated = listed_from(measures, bounds_of(rows), values), read_evaluated(folder / "journal.sqlite")
    forged = front_view(measures, plain.opened, left, listed, (rows, evaluated, code_digest()))
    (folder / "front.json").write_text(written(forged))
    (folder / "front.csv").write_text(csv_text(front_frame(forged)))
    return len(designs)


@pytest.mark.parametrize("fate", FATES.values(), ids=FATES.keys())
def test_a_front_cut_to_one_design_is_refused(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran], fate: Fate
) -> None:
    shutil.copytree(good, tmp_path / "run")
    assert _cut(tmp_path / "run", slice(-1, None), fate) > 2
    ran = phaze("verify", tmp_path / "run", "--sample", "2")
    assert ran.code == 1 and "unit" in ran.out, ran.out


def test_one_design_left_out_falls_to_a_small_sample(good: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    shutil.copytree(good, tmp_path / "run")
    count = _cut(tmp_path / "run", slice(0, -1), FATES["a false bound"])
    assert len(json.loads((tmp_path / "run" / "front.json").read_text())["points"]) == count - 1
    assert phaze("verify", tmp_path / "run", "--sample", "4").code == 1


def test_a_front_written_anew_with_nothing_false_holds(good: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    shutil.copytree(good, tmp_path / "run")
    _cut(tmp_path / "run", slice(None), FATES["area"])
    assert (tmp_path / "run" / "front.json").read_bytes() == (good / "front.json").read_bytes()
    ran = phaze("verify", tmp_path / "run", "--all")
    assert ran.code == 0 and "holds" in ran.out, ran.out


def test_any_change_of_any_value_of_the_front_is_seen(good: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    document = json.loads((good / "front.json").read_text())
    count = 0
    for path, bad in changed_documents(document):
        count += 1
        assert check_text(json.dumps(bad, indent=2) + "\n", bad, document, "front.json"), path
    assert count > 500
    shutil.copytree(good, tmp_path / "run")
    for change in (
        ("points", 0, "certificate", "rivals"),
        ("points", 0, "models", 0, "data"),
        ("certificate", "units"),
    ):
        bad = place = json.loads((good / "front.json").read_text())
        for step in change[:-1]:
            place = place[step]
        place[change[-1]] += 1
        (tmp_path / "run" / "front.json").write_text(written(bad))
        assert phaze("verify", tmp_path / "run", "--sample", "1").code == 1, change
    (tmp_path / "run" / "front.json").write_text((good / "front.json").read_text())
    (tmp_path / "run" / "front.csv").write_text("x\n")
    assert phaze("verify", tmp_path / "run", "--sample", "1").code == 1


def test_a_changed_result_beside_a_front_is_not_passed_over(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(good, tmp_path / "run")
    (tmp_path / "run" / "result.json").write_text("{}")
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 2 and "result.json" in ran.err

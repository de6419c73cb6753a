"""The best plan beside the one that was run."""

import pytest

from phaze.evaluate.memo import Memo
from phaze.validate.best import best_beside, best_document, jobs_of
from phaze.validate.rows import MeasuredRun, read_rows
from tests.validate.test_rows import HEADER, changed

TINY = {"layers": "4", "devices": "8", "batch": "16", "tensor": "2", "pipeline": "2", "data": "2"}


def tiny(**cells: str) -> MeasuredRun:
    (row,) = read_rows(changed(**{**TINY, **cells}), "mine.csv")
    return row


def test_a_job_is_its_fastest_run() -> None:
    lines = [
        changed(**{**TINY, "seconds": seconds}).splitlines()[1] for seconds in ("0.7", "0.4", "0.5")
    ]
    other = changed(**{**TINY, "batch": "32"}).splitlines()[1]
    rows = read_rows("\n".join([HEADER, *lines, other]), "mine.csv")
    assert [row.seconds for row in jobs_of(rows)] == [0.4, 0.5]


@pytest.mark.parametrize("mode", ["none", "full"])
def test_no_run_of_the_searched_space_beats_the_best_plan(mode: str) -> None:
    header, line = changed(**{**TINY, "recompute": mode}).splitlines()
    (row,) = read_rows(f"{header},chunks\n{line},1", "mine.csv")
    found = best_beside(row, "calibrated", Memo())
    assert found.gain is not None
    assert found.gain >= -1e-12
    (said,) = best_document([found])
    assert said["best_s"] == found.best_s
    assert said["best"]["tensor"] * said["best"]["pipeline"] * said["best"]["data"] <= 8


def test_the_microbatch_of_the_run_is_searched_too() -> None:
    cells = {
        "batch": "24",
        "tensor": "1",
        "pipeline": "1",
        "data": "8",
        "microbatch": "3",
        "recompute": "none",
    }
    header, line = changed(**{**TINY, **cells}).splitlines()
    (row,) = read_rows(f"{header},chunks\n{line},1", "mine.csv")
    found = best_beside(row, "calibrated", Memo())
    assert found.gain is not None and found.gain >= -1e-12
    assert found.best is not None and found.best.microbatch == 3


def test_a_job_that_fits_nowhere_has_no_best_plan() -> None:
    (row,) = read_rows(
        changed(hidden="16384", layers="64", devices="1", tensor="1", pipeline="1", data="1"),
        "m.csv",
    )
    found = best_beside(row, "calibrated", Memo())
    assert (found.best, found.best_s, found.gain) == (None, None, None)

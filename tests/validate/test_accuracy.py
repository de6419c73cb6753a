"""Whole runs against published ones: the marks that hold today, by the real model over all rows."""

from statistics import median

import pytest

from phaze.evaluate.shelf import Shelf
from phaze.validate.compare import Compared, compare, scores_of
from phaze.validate.predict import predict
from phaze.validate.rows import read_rows
from phaze.validate.sets import rows_of, set_named
from phaze.validate.statistics import Score
from tests.validate.test_rows import changed


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    return Shelf()


def scored(name: str, shelf: Shelf, basis: str = "calibrated") -> Compared:
    one = set_named(name)
    return compare(one.name, one.title, rows_of(one), basis, shelf)  # type: ignore[arg-type]


def stated(name: str, shelf: Shelf) -> Score:
    return scored(name, shelf).scores["seconds", False]


def test_megatron_runs_on_selene(shelf: Shelf) -> None:
    rows = [*scored("sc21", shelf).predictions, *scored("korthikanti", shelf).predictions]
    found = scores_of(rows)["seconds", False]
    assert found.median < 0.04
    assert found.nine_tenths < 0.10
    assert abs(found.bias) < 0.03


def test_vtrain_over_many_nodes(shelf: Shelf) -> None:
    found = stated("vtrain-multi", shelf)
    assert found.median < 0.06
    assert found.rank is not None and found.rank > 0.78
    assert found.regret is not None and found.regret < 0.02


def test_vtrain_inside_a_node(shelf: Shelf) -> None:
    found = stated("vtrain-single", shelf)
    assert found.median < 0.08
    assert found.rank is not None and found.rank > 0.9


def test_fully_sharded_runs_that_nothing_was_fitted_on(shelf: Shelf) -> None:
    found = stated("mosaic-mpt", shelf)
    assert found.rows == 50
    assert found.median < 0.06
    assert abs(found.bias) < 0.03


def test_h100_with_the_best_of_what_the_rows_leave_open(shelf: Shelf) -> None:
    assert scored("megatron-core-h100", shelf).scores["seconds", True].median < 0.08


@pytest.mark.parametrize("name", ["maxtext-v5e", "maxtext-v5p"])
def test_tpus(name: str, shelf: Shelf) -> None:
    assert stated(name, shelf).median < 0.10


def test_memory_of_the_h100_sweep(shelf: Shelf) -> None:
    found = scored("nanotron-h100", shelf).scores["memory_bytes", False]
    assert found.median < 0.12
    assert found.rank is not None and found.rank > 0.9


def test_a_data_sheet_is_worse_and_still_of_use(shelf: Shelf) -> None:
    plain = scored("sc21", shelf, "datasheet").scores["seconds", False]
    assert stated("sc21", shelf).median < plain.median < 0.25


def test_what_a_row_leaves_open_is_the_fastest_that_fits(shelf: Shelf) -> None:
    (open_row,) = read_rows(changed(microbatch="", recompute="", pipeline="1", tensor="1", data="16"), "mine.csv")
    best = predict(open_row, "calibrated", shelf)
    assert set(best.chosen) == {"microbatch", "recompute"}
    assert best.fits
    for size in ("1", "2", "4"):
        for mode in ("none", "selective", "full"):
            cells = {"microbatch": size, "recompute": mode, "pipeline": "1", "tensor": "1", "data": "16"}
            (row,) = read_rows(changed(**cells), "mine.csv")
            stated_run = predict(row, "calibrated", shelf)
            assert not stated_run.fits or best.seconds <= stated_run.seconds


def test_predictions_do_not_depend_on_what_was_asked_before(shelf: Shelf) -> None:
    rows = rows_of(set_named("vtrain-multi"))[:6]
    together = [predict(row, "calibrated", shelf).seconds for row in rows]
    assert together == [predict(row, "calibrated", Shelf()).seconds for row in reversed(rows)][::-1]
    assert median(together) > 0

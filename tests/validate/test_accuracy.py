"""Whole runs against published ones: the marks that hold today, by the real model over all rows."""

from statistics import mean, median

import pytest

from phaze.evaluate.memo import Memo
from phaze.validate.compare import ScoredSet, compare, scores_of
from phaze.validate.predict import predict
from phaze.validate.rows import read_rows
from phaze.validate.sets import rows_of, set_named
from phaze.validate.statistics import Score
from tests.validate.test_rows import changed


@pytest.fixture(scope="module")
def memo() -> Memo:
    return Memo()


def scored(name: str, memo: Memo, basis: str = "calibrated") -> ScoredSet:
    one = set_named(name)
    return compare(one.name, one.title, rows_of(one), basis, memo)  # type: ignore[arg-type]


def stated(name: str, memo: Memo) -> Score:
    return scored(name, memo).scores["seconds", False]


def test_megatron_runs_on_selene(memo: Memo) -> None:
    rows = [*scored("sc21", memo).predictions, *scored("korthikanti", memo).predictions]
    found = scores_of(rows)["seconds", False]
    assert found.median < 0.04
    assert found.nine_tenths < 0.10
    assert abs(found.bias) < 0.03


def test_vtrain_over_many_nodes(memo: Memo) -> None:
    found = stated("vtrain-multi", memo)
    assert found.median < 0.06
    assert found.rank is not None and found.rank > 0.77
    assert found.regret is not None and found.regret < 0.02


def test_vtrain_inside_a_node(memo: Memo) -> None:
    own = scored("vtrain-single", memo)
    found = own.scores["seconds", False]
    assert found.median < 0.06
    assert mean(abs(one.error or 0.0) for one in own.predictions) <= 0.07
    assert found.rank is not None and found.rank > 0.9


def test_fully_sharded_runs(memo: Memo) -> None:
    found = stated("mosaic-mpt", memo)
    assert found.rows == 50
    assert found.median < 0.05
    assert abs(found.bias) < 0.02


def test_h100_with_the_best_of_what_the_rows_leave_open(memo: Memo) -> None:
    assert scored("megatron-core-h100", memo).scores["seconds", True].median < 0.08


@pytest.mark.parametrize("name", ["maxtext-v5e", "maxtext-v5p"])
def test_tpus(name: str, memo: Memo) -> None:
    assert stated(name, memo).median < 0.10


@pytest.mark.parametrize(
    ("name", "cores"),
    [
        ("sc21", 0.021), ("korthikanti", 0.019), ("vtrain-multi", 0.045), ("vtrain-single", 0.054),
        ("mosaic-mpt", 0.048), ("nanotron-h100", 0.205), ("torchtitan", 0.104),
        ("maxtext-v5e", 0.024),
        ("maxtext-v5p", 0.043),
    ],
)  # fmt: skip
def test_chips_of_clusters_meet_runs_as_well_as_chips_of_cores_did(
    name: str, cores: float, memo: Memo
) -> None:
    # ``cores``: the median before the bundled chips became chips of clusters (docs/accuracy.md).
    # Nothing is fitted on mosaic-mpt; causal attention by measured kernels moved it from 3.6 to 6.2
    # %, which that page shows.
    allowed = 0.02 if name == "mosaic-mpt" else 0.005
    assert stated(name, memo).median <= cores + allowed


def test_memory_of_the_h100_sweep(memo: Memo) -> None:
    found = scored("nanotron-h100", memo).scores["memory_bytes", False]
    assert found.median < 0.12
    assert found.rank is not None and found.rank > 0.9


def test_memory_of_kernels_that_keep_their_inputs(memo: Memo) -> None:
    """12 runs on 8 B200; constants of its stack are derived, none is fitted on them."""
    errors = [
        abs(one.memory_error)
        for one in scored("megatron-b200", memo).predictions
        if one.memory_error is not None
    ]
    assert len(errors) == 12
    assert sum(errors) / len(errors) <= 0.03
    assert max(errors) <= 0.06


def test_memory_of_compiled_and_of_eager_pytorch(memo: Memo) -> None:
    errors = [
        abs(one.memory_error)
        for one in scored("torchtitan", memo).predictions
        if one.memory_error is not None
    ]
    assert len(errors) == 4
    assert max(errors) <= 0.12


def test_a_data_sheet_is_worse_and_still_of_use(memo: Memo) -> None:
    plain = scored("sc21", memo, "datasheet").scores["seconds", False]
    assert stated("sc21", memo).median < plain.median < 0.25


def test_what_a_row_leaves_open_is_the_fastest_that_fits(memo: Memo) -> None:
    (open_row,) = read_rows(
        changed(microbatch="", recompute="", pipeline="1", tensor="1", data="16"), "mine.csv"
    )
    best = predict(open_row, "calibrated", memo)
    assert set(best.chosen) == {"microbatch", "recompute"}
    assert best.fits
    for size in ("1", "2", "4"):
        for mode in ("none", "selective", "full"):
            cells = {
                "microbatch": size,
                "recompute": mode,
                "pipeline": "1",
                "tensor": "1",
                "data": "16",
            }
            (row,) = read_rows(changed(**cells), "mine.csv")
            stated_run = predict(row, "calibrated", memo)
            assert not stated_run.fits or best.seconds <= stated_run.seconds


def test_predictions_do_not_depend_on_what_was_asked_before(memo: Memo) -> None:
    rows = rows_of(set_named("vtrain-multi"))[:6]
    together = [predict(row, "calibrated", memo).seconds for row in rows]
    assert together == [predict(row, "calibrated", Memo()).seconds for row in reversed(rows)][::-1]
    assert median(together) > 0

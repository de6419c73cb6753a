"""Runs in FP8 that nothing was fitted on."""

from phaze.evaluate.memo import Memo
from phaze.validate.compare import compare
from phaze.validate.sets import rows_of, set_named


def test_dense_fp8_runs_of_nemo_are_within_12_percent_at_the_median() -> None:
    memo = Memo()
    for name, most in (("nemo-h100-fp8", 0.12), ("nemo-h100", 0.12)):
        one = set_named(name)
        found = compare(one.name, one.title, rows_of(one), "calibrated", memo)
        assert found.scores["seconds", False].median <= most
        assert not found.left_out

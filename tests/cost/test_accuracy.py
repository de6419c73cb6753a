"""Costs against measurements on hardware: the marks that must hold."""

from statistics import median

import pytest

from phaze.cost import accuracy
from phaze.cost.fitting import FOLDS, errors_of, fit_chip
from phaze.cost.measured_clock import chip_constants
from phaze.errors import InputError
from phaze.hardware.library import load_chip


def test_a100_products_are_within_5_percent_in_the_median_and_none_is_far_off() -> None:
    errors = [abs(row.error) for row in accuracy.operator_rows() if row.group == "gemm"]
    assert len(errors) == 20
    assert median(errors) < 0.05
    assert max(errors) < 0.10


def test_a100_softmaxes_are_within_20_percent() -> None:
    errors = [abs(row.error) for row in accuracy.operator_rows() if row.group == "softmax"]
    assert len(errors) == 22
    assert max(errors) < 0.20
    assert median(errors) < 0.10


def test_all_reduce_on_8_devices_holds_its_marks() -> None:
    rows = [row for row in accuracy.all_reduce_rows() if row.group.endswith("8 devices")]
    large = [row for row in rows if int(row.label.split()[0]) >= 16]
    small = [row for row in rows if int(row.label.split()[0]) <= 1]
    assert len(large) == 18
    assert max(abs(row.error) for row in large) < 0.10
    assert small
    assert all(0.5 < row.calibrated_s / row.measured_s < 2 for row in small)


def test_all_reduce_on_fewer_devices_is_close_where_bandwidth_counts() -> None:
    rows = [row for row in accuracy.all_reduce_rows() if int(row.label.split()[0]) >= 64]
    assert max(abs(row.error) for row in rows) < 0.10


def test_a_layer_forward_and_backward_is_within_5_percent() -> None:
    rows = accuracy.layer_rows()
    assert len(rows) == 4
    assert all(abs(row.error) < 0.05 for row in rows)


def test_a_data_sheet_alone_stays_within_its_band_on_large_products_and_layers() -> None:
    large = [
        row for row in accuracy.operator_rows() if row.group == "gemm" and row.measured_s > 1e-3
    ]
    assert median(abs(row.datasheet_error) for row in large) < 0.20
    assert all(abs(row.datasheet_error) < 0.20 for row in accuracy.layer_rows())


def test_the_fastest_product_of_another_laboratory_is_within_12_percent() -> None:
    rows = {row.label.split()[0]: row for row in accuracy.rate_rows()}
    assert abs(rows["a100-80gb"].error) < 0.10
    # The constants of H100 and B200 are those of hundreds of products of one laboratory, not of the
    # fastest of another.
    assert abs(rows["h100"].error) < 0.06 and abs(rows["b200"].error) < 0.12
    assert all(abs(rows[name].error) < 0.03 for name in rows.keys() - {"a100-80gb", "h100", "b200"})


def test_every_row_has_a_source() -> None:
    assert all(row.source for row in accuracy.accuracy_rows())


@pytest.mark.slow
def test_a_fit_predicts_rows_that_it_has_not_seen() -> None:
    chip = load_chip("a100-80gb")
    rows = accuracy.measured_operators()
    found = fit_chip(rows, chip)
    assert found.fitted <= found.validated < 0.10
    shipped = [abs(e) for e in errors_of(rows, chip, chip_constants(chip))]
    assert median(shipped) == pytest.approx(found.fitted, abs=0.01)


def test_too_few_measurements_are_one_sentence() -> None:
    with pytest.raises(InputError, match="give 4 rows of a kind"):
        fit_chip(accuracy.measured_operators()[:3], load_chip("a100-80gb"))


def test_folds_leave_every_row_out_once() -> None:
    rows = range(23)
    assert sorted(i for fold in range(FOLDS) for i in rows if i % FOLDS == fold) == list(rows)

"""Measured constants of chips and links: what is used where nothing was measured, and what is
refused."""

import pytest

from phaze.documents import check
from phaze.errors import InputError
from phaze.hardware.bundled import preset_names
from phaze.hardware.calibration import (
    DATASHEET,
    DATASHEET_LINK,
    IDEAL,
    IDEAL_LINK,
    TRAINING_SHARE,
    Calibration,
    constants_of,
)
from phaze.hardware.cluster import switch_level
from phaze.hardware.library import load_chip, load_cluster
from phaze.values import replace


def test_a_chip_has_at_most_ten_measured_numbers_and_a_family() -> None:
    assert len(Calibration.model_fields) == 10


def test_without_measurements_the_data_sheet_speaks_and_says_so() -> None:
    assert constants_of(None) == DATASHEET
    assert constants_of(None).basis == "datasheet"
    assert constants_of(Calibration(matrix_share=0.5), "datasheet") == DATASHEET
    assert constants_of(Calibration(matrix_share=0.5), "ideal") == IDEAL


def test_what_was_measured_comes_first() -> None:
    found = constants_of(Calibration.model_validate({"matrix_share": 0.9, "start_up": 3e-5}))
    assert (found.basis, found.matrix_share, found.start_up_s) == ("calibrated", 0.9, 3e-5)
    assert (found.hbm_share, found.vector_hbm_share, found.vector_start_up_s) == (0.8, 0.8, 3e-5)


def test_queued_operators_start_sooner_and_warm_chips_are_slower() -> None:
    chip = load_chip("a100-80gb")
    alone, training = (
        constants_of(chip.calibration, "calibrated", load) for load in ("alone", "training")
    )
    assert training.start_up_s == DATASHEET.start_up_s < alone.start_up_s
    assert training.matrix_share < alone.matrix_share
    only = constants_of(Calibration(matrix_share=0.9), "calibrated", "training")
    assert only.matrix_share == pytest.approx(0.9 * TRAINING_SHARE)


def test_links_likewise() -> None:
    unmeasured = switch_level("node", 8, 1e9, 0.0)
    assert unmeasured.constants() == DATASHEET_LINK
    half = replace(unmeasured, share=0.5)
    assert half.constants("ideal") == IDEAL_LINK
    assert half.constants().share == 0.5
    assert half.constants("datasheet") == DATASHEET_LINK
    flat = load_cluster("paper-flat").levels[0]
    assert (flat.share, flat.start_s) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["matrix_share", "hbm_share"])
def test_a_share_is_above_0_and_at_most_1(name: str) -> None:
    for value in (0.0, 1.01, -0.5, float("nan")):
        with pytest.raises(InputError, match=name):
            check(Calibration, {name: value}, "")


def test_every_preset_has_constants() -> None:
    for name in preset_names("chips"):
        found = constants_of(load_chip(name).calibration, "calibrated", "training")
        assert 0.3 < found.matrix_share <= 1

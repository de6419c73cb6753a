"""What was measured of a chip of clusters: plans and estimates take it, searches do not."""

import pytest

from phaze.cost.estimate import estimate_product
from phaze.cost.mapping import product
from phaze.cost.measured_clock import chip_constants, measured_clock_hz, rate_clock_hz
from phaze.hardware.chip_measurements import UNMEASURED
from phaze.hardware.converted import without_measurements
from phaze.hardware.library import load_chip
from phaze.hardware.provenance import chip_provenance
from phaze.values import replace
from tests.hardware.chips import stated_chip


@pytest.mark.parametrize("name", ["a100-80gb", "h100", "b200", "mi300x", "gaudi3"])
def test_the_clock_of_a_rate_gives_that_rate(name: str) -> None:
    own = stated_chip(name)
    said, chip = own.measured, load_chip(name)
    assert said.rate_shape is not None and said.rate_flops is not None
    found = estimate_product(product(1, *said.rate_shape), chip, load="training")
    rate = 2.0 * product(1, *said.rate_shape).macs / (found.time_s - found.start_up_s)
    assert rate == pytest.approx(said.rate_flops, rel=1e-9)


def test_a_rate_beyond_the_rated_clock_is_that_of_the_rated_clock() -> None:
    own = stated_chip("gaudi2")
    assert rate_clock_hz(own) == own.clock_hz


def test_alone_and_training_take_each_others_measurement_where_they_have_none() -> None:
    own = replace(stated_chip("h100"), measured=replace(UNMEASURED, clock_hz=1.4e9))
    assert measured_clock_hz(own, "alone") == measured_clock_hz(own, "training") == 1.4e9
    rated = replace(
        own, measured=replace(UNMEASURED, rate_flops=700e12, rate_shape=(4096, 4096, 4096))
    )
    assert (
        measured_clock_hz(rated, "alone")
        == measured_clock_hz(rated, "training")
        == rate_clock_hz(rated)
    )
    both = replace(own, measured=replace(rated.measured, clock_hz=1.4e9))
    assert measured_clock_hz(both, "alone") == 1.4e9 and measured_clock_hz(
        both, "training"
    ) == rate_clock_hz(rated)
    assert measured_clock_hz(replace(own, measured=UNMEASURED), "training") is None


def test_a_data_sheet_and_a_search_know_no_measurement() -> None:
    chip = load_chip("a100-80gb")
    assert chip_constants(chip, "calibrated", "training").clock_hz is not None
    assert chip_constants(chip, "datasheet", "training").clock_hz is None
    plain = without_measurements(chip)
    assert (
        chip_constants(plain, "calibrated", "training").clock_hz is None
        and plain.calibration is None
    )
    assert plain.clock_hz == chip.clock_hz, "the clock that its power limit allows"


@pytest.mark.parametrize(
    ("name", "basis"), [("a100-80gb", "calibrated"), ("h100", "fitted"), ("tpu-v4", "held")]
)
def test_an_answer_says_how_much_was_measured(name: str, basis: str) -> None:
    assert chip_provenance(load_chip(name)).basis == basis
    assert chip_provenance(load_chip(name), "datasheet").basis == "held"

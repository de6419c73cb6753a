"""Power, price and carbon of all chips of a space at once are those of each chip by itself."""

from dataclasses import replace

import numpy as np
import pytest

from phaze.hardware.clocked import full_rate_power
from phaze.hardware.ownership import GB, load_terms, ownership_of
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.ownership_cost import making_kgco2e, making_usd
from tests.search.made import small_space

HBM_BYTES = 48 * 10**9


@pytest.fixture(scope="module")
def opened() -> SpaceChips:
    return enumerate_space(small_space())


@pytest.mark.parametrize("dies", [1, 2, 4])
def test_a_chip_of_several_dies_costs_and_emits_as_the_chip_by_itself(opened: SpaceChips, dies: int) -> None:
    technology, terms = opened.space.technology, load_terms()
    usd = making_usd(opened.area_mm2, dies, technology.fab, terms, HBM_BYTES)
    kgco2e = making_kgco2e(opened.area_mm2, dies, technology.fab, terms, HBM_BYTES)
    for number in range(0, len(opened), max(1, len(opened) // 7)):
        chip = opened.chip(number, HBM_BYTES)
        chip = replace(chip, built=replace(chip.built, dies=dies))
        own = ownership_of(chip, terms)
        assert usd[number] == pytest.approx(own.making_usd, rel=1e-12)
        assert kgco2e[number] == pytest.approx(own.embodied_kgco2e, rel=1e-12)


def test_more_dies_of_the_same_silicon_cost_other_money(opened: SpaceChips) -> None:
    fab, terms = opened.space.technology.fab, load_terms()
    one, four = (making_usd(opened.area_mm2, dies, fab, terms, 0) for dies in (1, 4))
    # Smaller dies yield more, and the package is paid once either way.
    assert (four < one).all() and (four > terms.package_usd).all()
    assert np.allclose(making_usd(opened.area_mm2, 1, fab, terms, int(GB)) - one, terms.hbm_usd_per_gb)


def test_a_die_larger_than_a_wafer_cannot_be_bought_and_several_smaller_ones_can(opened: SpaceChips) -> None:
    technology, terms = opened.space.technology, load_terms()
    wafer_mm2 = np.pi * (technology.fab.wafer_diameter_mm / 2) ** 2
    huge = np.full(len(opened), 0.9 * wafer_mm2)
    assert np.isinf(making_usd(huge, 1, technology.fab, terms, 0)).all()
    assert np.isfinite(making_usd(huge, 64, technology.fab, terms, 0)).all()


def test_the_power_of_all_chips_is_that_of_each(opened: SpaceChips) -> None:
    watts = opened.design_w()
    for number in range(0, len(opened), max(1, len(opened) // 7)):
        own = full_rate_power(opened.chip(number, HBM_BYTES)).design_w
        assert watts[number] == pytest.approx(own, rel=1e-12)

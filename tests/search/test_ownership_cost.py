"""Power, price and carbon of all chips of a space at once are those of each chip by itself."""

import numpy as np
import pytest

from phaze.hardware.clocked import full_rate_power
from phaze.hardware.columns import Floats
from phaze.hardware.manufacturing import chips_usd, manufacturing_kgco2e, manufacturing_of
from phaze.hardware.ownership import GB, load_terms
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.values import replace
from tests.search.made import small_space

HBM_BYTES = 48 * 10**9


@pytest.fixture(scope="module")
def opened() -> SpaceChips:
    return enumerate_space(small_space())


def priced(opened: SpaceChips, area_mm2: Floats, dies: int, hbm_bytes: int = 0) -> Floats:
    base = opened.space.base
    several = replace(base, built=replace(base.built, dies=dies))
    return chips_usd(
        opened.chips, area_mm2, several, hbm_bytes, load_terms(), opened.space.technology
    )


@pytest.mark.parametrize("dies", [1, 2, 4])
def test_a_chip_of_several_dies_costs_and_emits_as_the_chip_by_itself(
    opened: SpaceChips, dies: int
) -> None:
    technology, terms = opened.space.technology, load_terms()
    usd = priced(opened, opened.area_mm2, dies, HBM_BYTES)
    kgco2e = manufacturing_kgco2e(
        opened.area_mm2 / dies, dies, float(HBM_BYTES), technology.fab, terms
    )
    for number in range(0, len(opened), max(1, len(opened) // 7)):
        chip = opened.chip(number, HBM_BYTES)
        chip = replace(chip, built=replace(chip.built, dies=dies))
        cost = manufacturing_of(chip, terms)
        assert cost is not None and usd[number] == pytest.approx(cost.usd, rel=1e-12)
        assert kgco2e[number] == pytest.approx(cost.kgco2e, rel=1e-12)


def test_more_dies_of_the_same_silicon_cost_other_money(opened: SpaceChips) -> None:
    terms = load_terms()
    one, four = (priced(opened, opened.area_mm2, dies) for dies in (1, 4))
    # Smaller dies yield more, and the package is paid once either way.
    assert (four < one).all() and (four > terms.package_usd).all()
    assert np.allclose(priced(opened, opened.area_mm2, 1, int(GB)) - one, terms.hbm_usd_per_gb)


def test_a_die_larger_than_a_wafer_cannot_be_bought_and_several_smaller_ones_can(
    opened: SpaceChips,
) -> None:
    technology = opened.space.technology
    wafer_mm2 = np.pi * (technology.fab.wafer_diameter_mm / 2) ** 2
    huge = np.full(len(opened), 0.9 * wafer_mm2)
    assert np.isinf(priced(opened, huge, 1)).all()
    assert np.isfinite(priced(opened, huge, 64)).all()


def test_the_power_of_all_chips_is_that_of_each(opened: SpaceChips) -> None:
    watts = opened.design_w()
    for number in range(0, len(opened), max(1, len(opened) // 7)):
        own = full_rate_power(opened.chip(number, HBM_BYTES)).design_w
        assert watts[number] == pytest.approx(own, rel=1e-12)

"""Money and carbon of a chip."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.errors import InfeasibleError
from phaze.hardware import chip_estimates
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import Ownership
from phaze.hardware.library import load_chip
from phaze.hardware.manufacturing import die_yield, dies_per_wafer
from phaze.hardware.ownership import OF_THE_FILE, Terms, load_terms
from phaze.hardware.technology import Technology, load_technology
from phaze.values import replace
from tests.hardware.chips import areas_in


def cores_in(name: str, process: str) -> tuple[Chip, Technology]:
    """A chip as cores in a process that does not set its clock."""
    technology = load_technology(process)
    return replace(load_chip(name, form="cores"), process=technology), technology


def ownership_of(chip: Chip, terms: Terms, average_w: float | None = None) -> Ownership:
    owned = chip_estimates.ownership_of(chip, terms, average_w)
    assert owned is not None
    return owned


def test_dies_per_wafer_follows_the_formula() -> None:
    assert (
        dies_per_wafer(814.0, 300)
        == math.floor(math.pi * (150**2 - 150 * math.sqrt(2 * 814)) / 814)
        == 63
    )


def test_good_h100_dies_a_wafer_are_near_the_published_28() -> None:
    # TrendForce, March 2024: 28 usable H100 on a wafer; not used for fitting.
    good = dies_per_wafer(814.0, 300) * die_yield(814.0, 0.09, 3)
    assert 28 <= good <= 28 * 1.25


@given(st.floats(1, 20_000), st.floats(1, 20_000), st.floats(0, 2))
def test_a_larger_die_never_yields_more(one: float, other: float, defects: float) -> None:
    small, large = sorted((one, other))
    assert die_yield(small, defects, 3) >= die_yield(large, defects, 3)
    assert dies_per_wafer(small, 300) >= dies_per_wafer(large, 300)
    assert 0 < die_yield(large, defects, 3) <= 1


def test_costs_add_up_and_follow_their_constants() -> None:
    (chip, _), terms = cores_in("tpu-v4", "n7"), load_terms()
    owned = ownership_of(chip, terms, average_w=200.0)
    assert owned.making.hbm_usd == pytest.approx(32 * 2**30 / 1e9 * terms.hbm_usd_per_gb)
    assert owned.making.die_usd == pytest.approx(
        9346 / (owned.making.dies_per_wafer * owned.making.yield_share)
    )
    assert owned.energy_kwh == pytest.approx(0.2 * 0.7 * 1.1 * 4 * 8766)
    assert owned.total_usd == pytest.approx(owned.making.usd + owned.energy_usd)
    parts = owned.making.die_usd + owned.making.hbm_usd + owned.making.package_usd
    assert owned.making.usd == pytest.approx(parts)
    assert owned.operational_kgco2e == pytest.approx(owned.energy_kwh * terms.grid_kgco2e_per_kwh)


def test_carbon_of_making_is_energy_gas_and_material_of_all_silicon_that_is_spent() -> None:
    (chip, technology), terms = cores_in("tpu-v4", "n7"), load_terms()
    fab = replace(
        technology.fab,
        energy_kwh_per_cm2=2.0,
        gas_kgco2e_per_cm2=0.25,
        materials_kgco2e_per_cm2=0.5,
    )
    chip = replace(chip, process=replace(technology, fab=fab))
    owned = ownership_of(chip, replace(terms, fab_grid_kgco2e_per_kwh=0.375), average_w=200.0)
    area_cm2 = areas_in(technology, chip).total / 100
    silicon = area_cm2 * (0.375 * 2.0 + 0.25 + 0.5) / owned.making.yield_share
    memory = 32 * 2**30 / 1e9 * terms.hbm_kgco2e_per_gb
    assert owned.making.kgco2e == pytest.approx(silicon + memory + terms.package_kgco2e)
    assert owned.total_kgco2e == pytest.approx(owned.making.kgco2e + owned.operational_kgco2e)


def test_every_ownership_constant_changes_an_answer() -> None:
    (chip, _), terms = cores_in("tpu-v4", "n7"), load_terms()
    base = ownership_of(chip, terms)
    for name in type(terms).model_fields.keys() - OF_THE_FILE:
        changed = replace(terms, **{name: getattr(terms, name) * 1.5})
        assert ownership_of(chip, changed) != base, name


def test_more_dies_of_the_same_silicon_cost_less_than_one() -> None:
    (chip, _), terms = cores_in("b200", "n5"), load_terms()
    one = replace(chip, built=replace(chip.built, dies=1))
    assert ownership_of(chip, terms).making.die_usd < ownership_of(one, terms).making.die_usd


def test_a_die_larger_than_the_wafer_is_nothing_feasible() -> None:
    chip, _ = cores_in("tpu-v4", "n7")
    huge = replace(chip, global_buffer=replace(chip.global_buffer, size_bytes=2**40))
    with pytest.raises(InfeasibleError, match="does not fit a wafer") as caught:
        ownership_of(huge, load_terms())
    assert caught.value.document["needed_mm2"] > 70_000


def test_a_chip_of_two_dies_pays_for_both() -> None:
    (chip, technology), terms = cores_in("tpu-v4", "n7"), load_terms()
    two = replace(chip, built=replace(chip.built, dies=2))
    one, split = ownership_of(chip, terms).making, ownership_of(two, terms).making
    assert split.die_usd == pytest.approx(
        2 * technology.fab.wafer_usd / (split.dies_per_wafer * split.yield_share)
    )
    assert split.die_usd < one.die_usd, "smaller dies yield better"
    assert split.die_usd > 0.5 * one.die_usd
    made = one.kgco2e - split.kgco2e
    assert 0 < made < 0.5 * one.kgco2e, "the same silicon, fewer lost"

"""How several models make one score: by the worst of them, by the geometric mean, by sequences a
second."""

from dataclasses import replace

import numpy as np
import pytest

from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.options.values import Kind, Mean
from phaze.search.chips import enumerate_space
from phaze.search.objective import Objective, Rates, scale_of
from phaze.search.rates import chip_rates, rates_of
from tests.search.made import GIB, small_space


@pytest.mark.parametrize(
    ("mean", "expected"),
    [
        ("regret", [3.0, 2.0]),  # the worst of 3 and 1, and of 2 and 2: a mean would call both 2
        ("geometric", [3.0**0.25, 2.0]),
        ("arithmetic", [1 / (0.25 * 8 / 12 + 0.75 * 4 / 5), 1 / (0.25 * 8 / 8 + 0.75 * 4 / 10)]),
    ],
)
def test_a_score_of_two_models_follows_its_mean(mean: Mean, expected: list[float]) -> None:
    scale = scale_of(Objective("throughput", mean), [1.0, 3.0], [8.0, 4.0], [4.0, 5.0])
    found = scale.score(np.array([[12.0, 8.0], [5.0, 10.0]]))
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_model_that_fits_nowhere_leaves_no_score() -> None:
    for mean in ("regret", "geometric", "arithmetic"):
        scale = scale_of(Objective("throughput", mean), [1.0, 1.0], [8.0, 4.0], [4.0, 5.0])
        assert np.isinf(scale.score(np.array([np.inf, 1.0])))


@pytest.mark.parametrize("mean", ["regret", "geometric", "arithmetic"])
def test_the_last_value_of_a_model_is_where_the_score_is_reached(mean: Mean) -> None:
    scale = scale_of(Objective("throughput", mean), [1.0, 3.0], [8.0, 4.0], [4.0, 5.0])
    values = np.array([[12.0, 2.0, 7.0], [5.0, 6.0, 1.0]])
    for model in range(2):
        score = scale.score(values) * np.array([1.1, 1.5, 3.0])
        last = scale.last(values, model, score)
        for more, reached in ((1 + 1e-9, True), (1 - 1e-6, False)):
            changed = values.copy()
            changed[model] = last * more
            found, real = scale.score(changed), np.isfinite(last)
            assert ((found >= score) == reached)[real].all()
            # Where no value of the model reaches the score, a huge one does not either.
            changed[model] = 1e30
            assert (scale.score(changed) <= score)[~real].all()


def test_a_value_is_static_and_dynamic_energy_times_the_delays() -> None:
    batch_s = np.array([2.0, 4.0])
    assert Rates(np.array([3.0, 5.0]), 0.0, 0).value(batch_s, 99.0).tolist() == [6.0, 20.0]
    assert Rates(np.array([3.0, 5.0]), 0.5, 0).value(batch_s, 8.0).tolist() == [10.0, 24.0]
    assert Rates(np.array([3.0, 5.0]), 0.5, 1).value(batch_s, 8.0).tolist() == [20.0, 96.0]


@pytest.mark.parametrize("delays", [0, 1])
def test_the_last_useful_batch_time_has_the_value_that_it_was_asked_for(delays: int) -> None:
    rates = Rates(np.asarray(3.0), 0.5, delays)
    last_s = rates.last_s(100.0, 8.0)
    assert float(rates.value(np.asarray(last_s), 8.0)) == pytest.approx(100.0, rel=1e-12)
    assert Rates(np.asarray(3.0), 0.5, 0).last_s(1.0, 8.0) == 0.0, (
        "the dynamic energy alone is more"
    )
    assert Rates(np.asarray(np.inf), 0.5, delays).last_s(100.0, 8.0) == 0.0, "the chip is too dear"


LIFE_S = load_terms().lifetime_years * 8766 * 3600.0


@pytest.mark.parametrize(
    "kind",
    [
        "throughput",
        "throughput_per_watt",
        "throughput_per_usd",
        "throughput_per_kgco2e",
        "energy_delay",
    ],
)
def test_the_rates_of_a_space_are_those_of_each_chip_and_of_the_formula(kind: Kind) -> None:
    opened, terms, sizes, devices = enumerate_space(small_space()), load_terms(), [GIB, 4 * GIB], 8
    objective = Objective(kind)
    found = rates_of(objective, opened, sizes, devices)
    a_kwh = {
        "throughput_per_usd": terms.electricity_usd_per_kwh,
        "throughput_per_kgco2e": terms.grid_kgco2e_per_kwh,
    }
    weight = (
        a_kwh[kind] * terms.power_usage_effectiveness / 3.6e6
        if kind in a_kwh
        else float(kind != "throughput")
    )
    assert found.weight == pytest.approx(weight)
    for number in range(0, len(opened), max(1, len(opened) // 5)):
        for memory, size in enumerate(sizes):
            chip = opened.chip(number, size)
            cost = manufacturing_of(chip, terms)
            assert cost is not None
            static_w = opened.space.technology.energy.static_w_per_mm2 * float(
                opened.area_mm2[number]
            )
            made = {"throughput_per_usd": cost.usd, "throughput_per_kgco2e": cost.kgco2e}.get(
                kind, 0
            )
            rate = 1.0 if kind == "throughput" else devices * (static_w * weight + made / LIFE_S)
            assert float(found.rate[memory, number]) == pytest.approx(rate, rel=1e-9)
            assert float(chip_rates(objective, chip, devices).rate) == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize(
    "kind", ["throughput", "throughput_per_watt", "throughput_per_usd", "energy_delay"]
)
def test_a_chip_above_the_price_of_its_space_has_no_rate(kind: Kind) -> None:
    plain = enumerate_space(small_space())
    costs = [manufacturing_of(plain.chip(at, GIB), load_terms()) for at in range(len(plain))]
    prices = [cost.usd for cost in costs if cost is not None]
    most = sorted(prices)[len(prices) // 2]
    space = plain.space
    limited = replace(plain, space=space.keeping(most_usd=most))
    found = rates_of(Objective(kind), limited, [GIB], 8).rate[0]
    assert [bool(np.isfinite(rate)) for rate in found] == [price <= most for price in prices]


def test_a_memory_that_a_chip_may_not_have_is_infinite_before_any_bound_is_known() -> None:
    rates = Rates(np.array([[np.inf, 2.0]]), 0.0, 0)
    assert rates.value(np.zeros((1, 1, 2)), 0.0).tolist() == [[[np.inf, 0.0]]]
    with_energy = Rates(np.array([[np.inf, 2.0]]), 1.0, 1)
    assert with_energy.value(np.zeros((1, 1, 2)), 3.0).tolist() == [[[np.inf, 0.0]]]

"""How several models make one score: by the worst of them, by the geometric mean, by sequences a second."""

import numpy as np
import pytest

from phaze.search.objective import Mean, Objective, Rates, scale_of


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
    assert Rates(np.asarray(3.0), 0.5, 0).last_s(1.0, 8.0) == 0.0, "the dynamic energy alone is more"
    assert Rates(np.asarray(np.inf), 0.5, delays).last_s(100.0, 8.0) == 0.0, "the chip is too dear"

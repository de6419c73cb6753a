"""How several models make one score: by the worst of them, by the geometric mean, by sequences a second."""

import numpy as np
import pytest

from phaze.search.objective import Mean, Objective, scale_of


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

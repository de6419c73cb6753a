"""The figures of a set, against their definitions written out plainly."""

from itertools import pairwise, permutations
from math import isclose
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.validate.statistics import rank_correlation, ranks, regret, score, within

VALUES = st.lists(st.integers(1, 6).map(float), min_size=2, max_size=7)


@given(VALUES)
def test_ranks_are_the_mean_places_over_all_ways_to_break_ties(values: list[float]) -> None:
    if len(values) > 5:
        values = values[:5]
    orders = [
        order
        for order in permutations(range(len(values)))
        if all(values[a] <= values[b] for a, b in pairwise(order))
    ]
    for place, rank in enumerate(ranks(values)):
        assert rank == pytest.approx(mean(order.index(place) for order in orders))


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_without_ties_the_correlation_is_the_closed_formula_of_spearman(
    a: list[int], b: list[int]
) -> None:
    apart = sum((x - y) ** 2 for x, y in zip(a, b, strict=True))
    found = rank_correlation([float(x) for x in a], [float(y) for y in b])
    assert found == pytest.approx(1 - 6 * apart / (6 * (36 - 1)))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=8))
def test_the_correlation_only_sees_the_order(pairs: list[tuple[int, int]]) -> None:
    a, b = ([float(x) for x in side] for side in zip(*pairs, strict=True))
    found, stretched = rank_correlation(a, b), rank_correlation([x**3 for x in a], b)
    assert found == stretched
    if found is not None:
        assert -1 - 1e-12 <= found <= 1 + 1e-12
        turned = rank_correlation([-x for x in a], b)
        assert turned is not None
        assert isclose(turned, -found, abs_tol=1e-12)


def test_a_constant_side_has_no_correlation() -> None:
    assert rank_correlation([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None


@given(VALUES)
def test_a_prediction_in_the_right_order_is_not_regretted(measured: list[float]) -> None:
    assert regret(measured, [10 * value for value in measured]) == 0


def test_regret_is_what_the_predicted_best_loses() -> None:
    assert regret([4.0, 5.0, 8.0], [3.0, 1.0, 2.0]) == pytest.approx(0.25)


def test_a_score_by_hand() -> None:
    measured, predicted = [1.0, 2.0, 4.0, 10.0, 10.0], [1.1, 1.8, 4.0, 9.0, 12.0]
    found = score(measured, predicted, ["a", "a", "a", "b", "c"])
    assert found.rows == 5
    assert found.median == pytest.approx(0.1)
    assert found.nine_tenths == pytest.approx(0.1 + 0.6 * 0.1)
    assert found.bias == pytest.approx((0.1 - 0.1 + 0 - 0.1 + 0.2) / 5)
    assert found.worst == pytest.approx(0.2)
    assert found.groups == 3
    assert found.rank == pytest.approx(1.0)
    assert found.regret == 0


def test_sets_without_alternatives_have_neither_rank_nor_regret() -> None:
    found = score([1.0, 2.0], [1.0, 2.0], ["a", "b"])
    assert (found.rank, found.regret) == (None, None)


@given(
    st.lists(
        st.tuples(
            st.floats(0.5, 2.0),
            st.lists(st.tuples(st.floats(1.0, 9.0), st.floats(1.0, 9.0)), min_size=1, max_size=5),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_an_error_common_to_a_job_is_none_between_its_plans(
    jobs: list[tuple[float, list[tuple[float, float]]]],
) -> None:
    plain = [([m for m, _ in rows], [p for _, p in rows]) for _, rows in jobs]
    scaled = [
        (m, [factor * each for each in p]) for (factor, _), (m, p) in zip(jobs, plain, strict=True)
    ]
    found, other = within(plain), within(scaled)
    assert (found is None) == all(len(rows) < 2 for _, rows in jobs) and (found is None) == (
        other is None
    )
    if found is not None and other is not None:
        assert other == pytest.approx(found, abs=1e-9)


def test_the_deviation_between_plans_is_that_of_their_logarithms() -> None:
    assert within([([1.0, 1.0], [1.0, np.e])]) == pytest.approx(np.sqrt(0.5))
    assert within([([1.0], [2.0])]) is None

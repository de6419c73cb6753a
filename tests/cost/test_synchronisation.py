"""Synchronisation behind passes: the formulas are what an event by event walk over layers finds."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.synchronisation import open_reduction_of_equal_layers_s

SECONDS = st.floats(0.0, 10.0)


def walked_s(reductions_s: Sequence[float], backwards_s: Sequence[float]) -> float:
    """Seconds of the reductions after the last backward pass, event by event."""
    work = network = 0.0
    for reduction, backward in zip(reductions_s, backwards_s, strict=True):
        work += backward
        network = max(work, network) + reduction
    return network - work


@given(SECONDS, SECONDS, st.integers(1, 40))
def test_equal_layers_fall_behind_by_the_same_each(
    reduction: float, backward: float, layers: int
) -> None:
    walked = walked_s([reduction] * layers, [backward] * layers)
    shown = open_reduction_of_equal_layers_s(reduction, backward, np.array([float(layers)]))
    assert shown[0] == pytest.approx(walked, abs=1e-9)


@given(SECONDS, SECONDS, st.floats(1, 40), st.floats(0.1, 1.0))
def test_a_faster_network_never_shows_more(
    reduction: float, backward: float, layers: float, factor: float
) -> None:
    many, both = np.array([layers]), (factor * reduction, reduction)
    fast, slow = (open_reduction_of_equal_layers_s(own, backward, many) for own in both)
    assert fast[0] <= slow[0] + 1e-12


def test_short_reductions_show_the_last_alone() -> None:
    assert open_reduction_of_equal_layers_s(1.0, 5.0, np.array([3.0]))[0] == 1.0
    assert open_reduction_of_equal_layers_s(3.0, 1.0, np.array([4.0]))[0] == 9.0

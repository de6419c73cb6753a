"""Activations in the memory of the host: what copying them shows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.offload import HOST_SHARE, exposed_copies_s

RATE, SIZE = st.floats(1e6, 1e12), st.floats(0, 1e12)
SHARE, SECONDS = st.floats(0, 1), st.floats(0, 100)


@given(SIZE, RATE, SECONDS, SHARE, st.floats(1, 10))
def test_a_faster_link_fewer_bytes_and_longer_passes_never_show_more(
    size: float, rate: float, window_s: float, hidden: float, factor: float
) -> None:
    shown = exposed_copies_s(size, rate, np.array([window_s]), hidden)[0]
    assert shown >= 0
    assert exposed_copies_s(size, rate * factor, np.array([window_s]), hidden)[0] <= shown
    assert exposed_copies_s(size / factor, rate, np.array([window_s]), hidden)[0] <= shown
    assert exposed_copies_s(size, rate, np.array([window_s * factor]), hidden)[0] <= shown
    assert shown <= 2 * size / (HOST_SHARE * rate)


def test_copies_of_both_ways_are_shown_beyond_the_passes() -> None:
    shown = exposed_copies_s(8.5e9, 10e9, np.array([0.0, 1.0, 5.0]), 0.5)
    assert np.allclose(shown, [2.0, 1.5, 0.0])

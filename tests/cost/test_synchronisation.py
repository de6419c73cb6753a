"""Synchronisation behind passes: the formulas are what an event by event walk over layers finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.synchronisation import open_gathers_s, open_reduction_of_equal_layers_s, open_reduction_s

SECONDS = st.floats(0.0, 10.0)
LAYERS = st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=12)


@given(LAYERS)
def test_what_is_seen_of_reductions_is_left_after_the_last_backward_pass(
    layers: list[tuple[float, float]],
) -> None:
    work = network = 0.0
    for reduction, backward in layers:
        work += backward
        network = max(work, network) + reduction
    reductions, backwards = zip(*layers, strict=True)
    assert open_reduction_s(reductions, backwards) == pytest.approx(network - work, abs=1e-9)


@given(SECONDS, SECONDS, st.integers(1, 40))
def test_equal_layers_fall_behind_by_the_same_each(reduction: float, backward: float, layers: int) -> None:
    walked = open_reduction_s([reduction] * layers, [backward] * layers)
    shown = open_reduction_of_equal_layers_s(reduction, backward, np.array([float(layers)]))
    assert shown[0] == pytest.approx(walked, abs=1e-9)


@given(LAYERS)
def test_gathers_run_one_layer_ahead(layers: list[tuple[float, float]]) -> None:
    gathers, passes = zip(*layers, strict=True)
    now, ready = 0.0, gathers[0]
    for at, length in enumerate(passes):
        start = max(now, ready)
        if at + 1 < len(passes):
            ready = start + gathers[at + 1]
        now = start + length
    assert open_gathers_s(gathers, passes) == pytest.approx(now - sum(passes), abs=1e-9)


@given(LAYERS, st.floats(0.1, 1.0))
def test_a_faster_network_never_shows_more(layers: list[tuple[float, float]], factor: float) -> None:
    slow, work = zip(*layers, strict=True)
    fast = [factor * one for one in slow]
    assert open_reduction_s(fast, work) <= open_reduction_s(slow, work) + 1e-12
    assert open_gathers_s(fast, work) <= open_gathers_s(slow, work) + 1e-12


def test_short_reductions_show_the_last_alone_and_nothing_shows_nothing() -> None:
    assert open_reduction_s([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]) == 3.0
    assert open_reduction_of_equal_layers_s(3.0, 1.0, np.array([4.0]))[0] == 9.0
    assert open_reduction_s([], []) == open_gathers_s([], []) == 0.0

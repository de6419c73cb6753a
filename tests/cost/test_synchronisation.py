"""Synchronisation behind passes: the formulas are what an event by event walk over pieces finds."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.synchronisation import exposed_s, shown_s, window

SECONDS, SHARE = st.floats(0.0, 10.0), st.floats(0.0, 1.0)


def walked_s(sent_s: Sequence[float], works_s: Sequence[float]) -> float:
    """Seconds of the communications after the last of the work, event by event."""
    work = network = 0.0
    for sent, own in zip(sent_s, works_s, strict=True):
        work += own
        network = max(work, network) + sent
    return network - work


@given(SECONDS, SECONDS, st.integers(1, 40))
def test_equal_pieces_fall_behind_by_the_same_each(sent: float, work: float, count: int) -> None:
    walked = walked_s([sent] * count, [work] * count)
    many = np.array([float(count)])
    assert shown_s(sent * many, sent, sent, work, many)[0] == pytest.approx(walked, abs=1e-9)


@given(SECONDS, SECONDS, SECONDS, st.floats(1, 40), st.floats(0.1, 1.0), SHARE)
def test_a_faster_network_or_a_shorter_piece_never_exposes_more(
    sent: float, more: float, work: float, count: float, factor: float, cost: float
) -> None:
    many = np.array([count])

    def exposed(by: float, beside: float) -> float:
        whole = by * (sent * many + more)
        return float(
            exposed_s(shown_s(whole, by * sent, by * (sent + more), beside, many), whole, cost)[0]
        )

    assert exposed(factor, work) <= exposed(1.0, work) + 1e-12
    assert exposed(1.0, work + more) <= exposed(1.0, work) + 1e-12


@given(SECONDS, SECONDS, st.floats(1, 40), SHARE)
def test_all_is_exposed_where_nothing_runs_beside_and_the_last_piece_always(
    sent: float, work: float, count: float, cost: float
) -> None:
    many = np.array([count])
    whole, shown = sent * many, shown_s(sent * many, sent, sent, work, many)
    assert exposed_s(shown, whole, 1.0)[0] == whole[0]
    assert sent - 1e-12 <= shown[0] <= exposed_s(shown, whole, cost)[0] + 1e-12 <= whole[0] + 1e-9


def test_short_pieces_show_the_last_alone() -> None:
    whole, many = np.array([9.0]), np.array([3.0])
    assert shown_s(whole, 1.0, 1.0, 5.0, many)[0] == 1.0
    assert shown_s(whole, 3.0, 4.0, 1.0, many)[0] == 8.0
    assert shown_s(whole, 3.0, 4.0, 0.0, many)[0] == 9.0


def test_the_window_grows_with_chunks_and_stages() -> None:
    assert window(1, 8) == 1.0
    assert window(4, 1) == 1.0
    assert window(4, 8) == (1 + 3 * 8) / 4

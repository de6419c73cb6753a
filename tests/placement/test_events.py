"""The events of pipelines against their formulas, and the checker's own run of them against the
compiled one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.check import events as checked
from phaze.check.events import events_range, run_events
from phaze.check.families import Family as CheckedFamily
from phaze.pipeline.families import GPIPE, ONE_F_ONE_B, interleaved
from phaze.pipeline.family import Family
from phaze.pipeline.replica import NO_ROOM, Floats, StageSeconds, last_event_s

SECONDS = st.floats(0.0, 10.0)
LONGER = st.floats(0.01, 10.0)
PASSES = st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=8)
FAMILIES = (
    *map(CheckedFamily, ("1f1b", "gpipe")),
    *(CheckedFamily("interleaved", chunks) for chunks in (2, 3)),
)


def end_of(
    family: Family, forward: Floats, backward: Floats, rounds: int, starts: Floats = NO_ROOM
) -> float:
    """End of the last event where nothing is sent."""
    nothing = np.zeros(len(forward)).tolist()
    stages = StageSeconds(forward.tolist(), backward.tolist(), nothing, nothing, nothing)
    return last_event_s(family, stages, rounds, starts)


def formula_s(family: Family, passes: list[tuple[float, float]], rounds: int) -> float:
    """alpha pace + beta sum T."""
    pace_s = (
        max(map(sum, passes))
        if not family.separate_passes
        else sum(max(column) for column in zip(*passes, strict=True))
    )
    return family.alpha(rounds, len(passes)) * pace_s + family.beta(len(passes)) * sum(
        map(sum, passes)
    )


@given(PASSES, st.integers(1, 30))
def test_events_of_gpipe_are_the_formula(passes: list[tuple[float, float]], rounds: int) -> None:
    forward, backward = np.array(passes).T.copy()
    starts = np.empty((3, len(passes), rounds))
    end_s = end_of(GPIPE, forward, backward, rounds, starts)
    assert end_s == pytest.approx(formula_s(GPIPE, passes, rounds), rel=1e-12, abs=1e-12)
    assert end_s == pytest.approx((starts[1] + backward[:, None]).max(), abs=1e-12)


@given(PASSES, st.integers(1, 40))
def test_events_of_1f1b_end_between_what_is_proved(
    passes: list[tuple[float, float]], rounds: int
) -> None:
    forward, backward = np.array(passes).T.copy()
    end_s, times = end_of(ONE_F_ONE_B, forward, backward, rounds), forward + backward
    assert end_s <= (times[0] + (rounds + len(passes) - 2) * times.max()) * (1 + 1e-12)
    slowest = int(times.argmax())
    assert end_s >= (rounds * times.max() + times[:slowest].sum()) * (1 - 1e-12)
    assert end_s >= times.sum() * (1 - 1e-12)


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.floats(0.1, 10.0), st.integers(1, 40)
)
def test_events_of_1f1b_meet_the_formula_when_stages_take_equal_time(
    shares: list[float], time_s: float, rounds: int
) -> None:
    forward = np.array(shares) * time_s
    passes = list(zip(forward.tolist(), (time_s - forward).tolist(), strict=True))
    end_s = end_of(ONE_F_ONE_B, forward, time_s - forward, rounds)
    assert end_s == pytest.approx(formula_s(ONE_F_ONE_B, passes, rounds), rel=1e-12)


@given(st.integers(1, 8), st.integers(1, 6), st.integers(1, 5), LONGER, LONGER)
def test_events_of_equal_interleaved_stages_end_when_the_formula_says(
    stages: int, chunks: int, laps: int, forward_s: float, backward_s: float
) -> None:
    rounds, both = laps * stages, forward_s + backward_s
    forward, backward = np.full(stages, forward_s), np.full(stages, backward_s)
    end_s = end_of(interleaved(chunks), forward, backward, rounds)
    assert end_s == pytest.approx(rounds * both + (stages - 1) * both / chunks, rel=1e-9)


@given(
    st.lists(st.tuples(LONGER, LONGER), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(2, 4),
)
def test_events_of_the_checker_are_those_of_the_simulation(
    passes: list[tuple[float, float]], laps: int, chunks: int
) -> None:
    ahead, behind = (np.array(column) for column in zip(*passes, strict=True))
    rounds = laps * len(passes)
    thirds = [(*own, 0.0) for own in passes]
    end_s = run_events(CheckedFamily("1f1b"), thirds, rounds)
    assert end_s == pytest.approx(end_of(ONE_F_ONE_B, ahead, behind, rounds), rel=1e-12)
    end_s = run_events(CheckedFamily("gpipe"), thirds, rounds)
    assert end_s == pytest.approx(end_of(GPIPE, ahead, behind, rounds), rel=1e-12)
    end_s = end_of(interleaved(chunks), ahead, behind, rounds)
    assert run_events(CheckedFamily("interleaved", chunks), thirds, rounds) == pytest.approx(
        end_s, rel=1e-12
    )
    assert end_s >= rounds * (ahead + behind).max() * (1 - 1e-12)


@given(
    st.lists(st.tuples(LONGER, LONGER), min_size=1, max_size=6),
    st.integers(1, 4),
    st.sampled_from(FAMILIES),
)
def test_events_too_many_to_run_end_where_it_is_proved(
    passes: list[tuple[float, float]], laps: int, family: CheckedFamily
) -> None:
    rounds = laps * len(passes)
    thirds = [(*own, 0.0) for own in passes]
    end_s = run_events(family, thirds, rounds)
    assert events_range(family, thirds, rounds) == (end_s, end_s)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checked, "MOST_EVENTS", 0)
        least_s, most_s = events_range(family, thirds, rounds)
    assert least_s * (1 - 1e-12) <= end_s <= most_s * (1 + 1e-12)

"""The parts of a step as a plan's document states them: one below the other, and their sum."""

import pytest

from phaze.report.drawings import Bars
from phaze.report.step_time import part_words, step_time

BREAKDOWN = {
    "forward_s": 1.0,
    "backward_s": 2.0,
    "recompute_s": 0.0,
    "bubble_s": 0.5,
    "optimizer_s": 0.25,
}


def _bars(breakdown: dict[str, float]) -> Bars:
    (bars,) = step_time({"batch_s": sum(breakdown.values()), "breakdown": breakdown})
    assert isinstance(bars, Bars)
    return bars


def test_parts_follow_each_other_and_sum_to_the_step() -> None:
    *parts, whole = _bars(BREAKDOWN).rows
    assert [row.name for row in parts] == [
        part_words(key) for key, seconds in BREAKDOWN.items() if seconds
    ]
    assert [row.pieces[0].start for row in parts] == pytest.approx([0.0, 1.0, 3.0, 3.5])
    assert whole.length == pytest.approx(sum(row.length for row in parts))


def test_a_step_without_time_is_its_sum_alone() -> None:
    bars = _bars(dict.fromkeys(BREAKDOWN, 0.0))
    assert [(row.name, row.length) for row in bars.rows] == [("step time", 0.0)]


def test_a_part_is_named_with_and_without_its_unit() -> None:
    assert part_words("bubble_s") == part_words("bubble") == "pipeline bubble"
    assert part_words("host_copies_s") == "host copies"

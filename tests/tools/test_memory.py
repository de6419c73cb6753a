"""Peak memory of a function: what it holds at once counts, what it frees again too, what was there
before does not."""

import sys

import numpy as np
import pytest
from tools.bench.clock import once, warm
from tools.bench.memory import grown

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="the high-water mark of a process is Linux's"
)
MIB = 2**20


def touched(mib: int) -> float:
    return float(np.ones(mib * MIB // 8).sum())


def test_memory_that_is_freed_again_counts_each_time() -> None:
    for _ in range(3):
        total, held = grown(lambda: touched(64))
        assert total == 64 * MIB / 8
        assert held is not None
        assert 60 * MIB < held < 80 * MIB


def test_what_the_process_held_before_does_not_count() -> None:
    before = np.ones(64 * MIB // 8)
    _, held = grown(lambda: touched(8))
    assert held is not None
    assert 7 * MIB < held < 24 * MIB, before.size


def test_two_at_once_take_more_than_one_after_the_other() -> None:
    _, apart = grown(lambda: touched(32) + touched(32))
    _, together = grown(lambda: float((np.ones(32 * MIB // 8) + np.ones(32 * MIB // 8)).sum()))
    assert apart is not None
    assert together is not None
    assert together > apart + 24 * MIB


def test_times_come_with_it() -> None:
    for measured in (once, warm):
        _, spent = measured(lambda: touched(16))
        assert spent.memory_bytes is not None
        assert spent.memory_bytes > 15 * MIB

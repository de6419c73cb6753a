"""Processor and elapsed seconds of a function, warm: the median of repeats after one run that is not counted."""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

from phaze.bench.line import Took, took

T = TypeVar("T")
FEWEST = 5
"""Repetitions: a median of fewer says little."""
MOST = 200
"""Repetitions of what takes microseconds: more do not change the median."""


def _busy_s() -> float:
    """Processor seconds of this process and of the workers that it has waited for."""
    workers = os.times()
    return time.process_time() + workers.children_user + workers.children_system


def once(run: Callable[[], T]) -> tuple[T, Took]:
    """What ``run`` returns, and what it took."""
    start, busy = time.perf_counter(), _busy_s()
    found = run()
    return found, took(_busy_s() - busy, time.perf_counter() - start)


def warm(run: Callable[[], T], enough_s: float = 0.5) -> tuple[T, Took]:
    """The median of repeats after a first run: at least 5, then until ``enough_s`` are spent."""
    found = run()
    busy: list[float] = []
    elapsed: list[float] = []
    spent = 0.0
    while len(busy) < FEWEST or (spent < enough_s and len(busy) < MOST):
        found, one = once(run)
        busy.append(one.most_s)
        elapsed.append(one.elapsed_s or 0.0)
        spent += elapsed[-1]
    return found, took(median(busy), median(elapsed))

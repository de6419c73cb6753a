"""Processor and elapsed seconds of a function, warm: the median of repeats after a first run;
memory of that one."""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

from tools.bench.line import Took, took
from tools.bench.memory import grown

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

    def timed() -> tuple[T, float, float]:
        start, busy = time.perf_counter(), _busy_s()
        found = run()
        return found, _busy_s() - busy, time.perf_counter() - start

    (found, processor_s, elapsed_s), memory_bytes = grown(timed)
    return found, took(processor_s, elapsed_s, memory_bytes=memory_bytes)


def warm(run: Callable[[], T], enough_s: float = 0.5) -> tuple[T, Took]:
    """The median of repeats after a first run: at least 5, then until ``enough_s`` are spent;
    memory of the first."""
    found, memory_bytes = grown(run)
    busy: list[float] = []
    elapsed: list[float] = []
    spent = 0.0
    while len(busy) < FEWEST or (spent < enough_s and len(busy) < MOST):
        start, before = time.perf_counter(), _busy_s()
        found = run()
        busy.append(_busy_s() - before)
        elapsed.append(time.perf_counter() - start)
        spent += elapsed[-1]
    return found, took(median(busy), median(elapsed), memory_bytes=memory_bytes)

"""A moment at which a search stops: checked between pieces of work, none of which takes long.

Bounds are computed a graph, a way or a chunk of chips at a time. Opening a chip can take a minute
inside one kernel; so where there is a deadline, engines open chips in processes that can be ended,
and a chip that was not done stays open with its bound. What was done is the same as without a
deadline, so a search that goes on later gives the same bytes. The clock runs from the start of a
command; whatever the limit, there is a design at its end, by list schedules if need be
(:mod:`phaze.search.initial_incumbent`).
"""

import multiprocessing
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

from phaze.errors import InfeasibleError, InputError


class OutOfTime(Exception):
    """The deadline has passed; everything that was found is in the state and in the journal."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock, or never."""

    moment_s: float = float("inf")

    @property
    def is_set(self) -> bool:
        return self.moment_s < float("inf")

    @property
    def left_s(self) -> float | None:
        """Seconds that are left, none where there is no deadline: what a wait may take."""
        return max(0.0, self.moment_s - time.monotonic()) if self.is_set else None

    def earlier(self, seconds: float) -> "Deadline":
        """A deadline so many seconds before this one."""
        return Deadline(self.moment_s - seconds)

    def check(self) -> None:
        """Raise where it has passed."""
        if self.is_set and time.monotonic() >= self.moment_s:
            raise OutOfTime


NEVER = Deadline()
LONGEST_S = 1e9
"""Thirty years: a system waits for at most 2^63 ns, and what is longer is no limit."""


def after(limit_s: float | None) -> Deadline:
    """The deadline so many seconds from now."""
    return NEVER if limit_s is None or limit_s > LONGEST_S else Deadline(time.monotonic() + limit_s)


def left_of(limit_s: float | None, began: float) -> float | None:
    """What is left of a limit that began then, 0 where nothing is."""
    if limit_s is not None and not limit_s >= 0:
        raise InputError("--time", f"{limit_s:g} is not a number of seconds", "give 0 or more")
    return None if limit_s is None else max(0.0, limit_s - (time.monotonic() - began))


def _sent(work: Callable[[], list[float]], pipe: Connection) -> None:
    """The work of a process of its own; an interrupt is the parent's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pipe.send(work())
    except Exception as fault:
        pipe.send(fault)


def within(deadline: Deadline, work: Callable[[], list[float]]) -> list[float]:
    """What ``work`` gives; where there is a deadline in a process that is ended then, for one
    kernel can take long."""
    if not deadline.is_set:
        return work()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_sent, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(deadline.left_s):
            raise OutOfTime
        answer: list[float] | Exception = ours.recv()
    except EOFError:
        raise OutOfTime from None
    finally:
        process.kill()
        process.join()
        ours.close()
    if isinstance(answer, Exception):
        raise answer
    return answer


def nothing_in_time(schema: str) -> InfeasibleError:
    """What to say when the time was too short for any answer."""
    sentence = (
        "No design was found within the time; the same command with more --time, or without, "
        "resumes from here."
    )
    return InfeasibleError(sentence, {"schema": schema, "feasible": None})

"""Worker processes: the chips of a round side by side, merged in order. A worker that dies is
replaced.

Workers are forked when a round begins, so they see the bounds of that moment without copying them.
Each gets one chip at a time through a pipe and sends back what it found; the parent alone writes. A
worker that ends without an answer (killed, out of memory) is replaced and its chip given out again,
three times at most; then the chip has failed.
"""

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable
from multiprocessing.connection import Connection, wait
from typing import Any

from phaze.search.evaluated import Evaluated, evaluated_from
from phaze.search.run import Evaluate, evaluate_one, in_process
from phaze.search.state import SearchState
from phaze.search.work_item import failed

# A worker that dies three times over one chip dies of that chip.
TRIES = 3


def _work(state: SearchState, cut: float, pipe: Connection) -> None:
    """Answer chips until the pipe closes; an interrupt is the parent's to hear."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while (chip := pipe.recv()) is not None:
            memo = state.memo
            before, requested, placements = len(memo.schedules), memo.requests, memo.placements
            if memo.solved is not None:  # what the parent has need not be sent to it
                memo.solved.schedules.clear()
            result = evaluate_one(state, chip, cut)
            fresh = list(memo.schedules.items())[before:]
            solved = [] if memo.solved is None else list(memo.solved.schedules.items())
            pipe.send(
                (
                    result.document(),
                    fresh,
                    solved,
                    memo.requests - requested,
                    memo.placements - placements,
                )
            )
    except EOFError:
        return


class _Crew:
    """The workers of one round."""

    def __init__(self, state: SearchState, cut: float, size: int) -> None:
        self.context = multiprocessing.get_context("fork")
        self.state, self.cut = state, cut
        self.busy: dict[Connection, int | None] = {}
        self.processes: dict[Connection, Any] = {}
        for _ in range(size):
            self.hire()

    def hire(self) -> Connection:
        """Start one more worker."""
        ours, theirs = self.context.Pipe()
        process = self.context.Process(
            target=_work, args=(self.state, self.cut, theirs), daemon=True
        )
        process.start()
        theirs.close()
        self.busy[ours], self.processes[ours] = None, process
        return ours

    def dismiss(self, pipe: Connection) -> None:
        """Forget a worker that has died."""
        pipe.close()
        self.processes.pop(pipe).join()
        self.busy.pop(pipe)

    def end(self) -> None:
        """Workers have nothing to put away: they are not waited for."""
        for pipe, process in self.processes.items():
            process.kill()
            process.join()
            pipe.close()


def _give(crew: _Crew, waiting: deque[int]) -> None:
    for pipe, chip in list(crew.busy.items()):
        if chip is None and waiting:
            crew.busy[pipe] = waiting.popleft()
            try:
                pipe.send(crew.busy[pipe])
            except OSError:  # it died while idle; wait() will report it
                continue


def _collect(
    crew: _Crew, waiting: deque[int], tries: dict[int, int], results: dict[int, Evaluated]
) -> bool:
    """Take what is ready; False where nothing came before the deadline."""
    ready: Iterable[Any] = wait(list(crew.busy), crew.state.deadline.left_s)
    for pipe in ready:
        chip = crew.busy[pipe]
        try:
            raw, fresh, solved, requested, placements = pipe.recv()
        except (EOFError, OSError):
            crew.dismiss(pipe)
            crew.hire()
            if chip is not None:
                tries[chip] = tries.get(chip, 0) + 1
                if tries[chip] < TRIES:
                    waiting.appendleft(chip)
                else:
                    bound = float(crew.state.scored()[chip])
                    results[chip] = failed(chip, crew.state.memories[-1], bound, "its worker died")
            continue
        if chip is not None:
            results[chip] = evaluated_from(chip, raw)
            crew.state.memo.schedules.update(fresh)
            if crew.state.memo.solved is not None:
                crew.state.memo.solved.update(solved)
            crew.state.memo.requests += requested
            crew.state.memo.placements += placements
            crew.busy[pipe] = None
    return bool(ready)


def workers(count: int) -> Evaluate:
    """An engine of that many processes; with one, everything runs in this process where there is no
    deadline.

    At a deadline the processes are ended; chips that were not done are left out.
    """

    def evaluate(state: SearchState, chips: list[int], cut: float) -> list[Evaluated]:
        if count <= 1 and not state.deadline.is_set:
            return in_process(state, chips, cut)
        crew = _Crew(state, cut, min(count, len(chips)))
        waiting, tries, evaluated = deque(chips), dict[int, int](), dict[int, Evaluated]()
        try:
            while len(evaluated) < len(chips):
                _give(crew, waiting)
                if not _collect(crew, waiting, tries, evaluated):
                    break
        finally:
            crew.end()
        return [evaluated[chip] for chip in chips if chip in evaluated]

    return evaluate

"""Traces in processes of their own, as many as there are cores: a model that exits, hangs or dies
ends only those.

Every process builds the model once (:mod:`phaze.graph.torch.worker`) and then traces points as they
are requested; the answers are the same whichever process gives them.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phaze.errors import InputError
from phaze.graph.supply.point import Facts, RankPoint, facts_of

# Seconds that one request may take before its process is stopped; the largest bundled model needs
# 15.
REQUEST_LIMIT_S = 300.0
# What is said while somebody's code builds a model.
OPENING = f"opening the model (its code may take {REQUEST_LIMIT_S / 60:g} min)"
# Seconds that a process may take longer than that to say in which line it is, before it is killed.
GRACE_S = 10.0
LOOK = "look for a loop or a download in the code that builds or runs it"
# Seconds that importing torch may take: some 4 on a quiet machine, far more on a busy one or a slow
# disk.
START_LIMIT_S = 600.0
# Interrupts of the terminal are for the command; this process ends when its standard input does.
START = (
    "import signal; signal.signal(2, signal.SIG_IGN); from phaze.graph.torch.worker import "
    "main; main()"
)
Watch = Callable[[int, int, str], None]


def silent(done: int, total: int, what: str) -> None:
    """Who watches nothing."""


class EndedError(InputError):
    """A process that traces ended or was stopped: the next one may not be."""


@dataclass(slots=True)
class Tracer:
    """One process that traces one model."""

    model: str
    limit_s: float = REQUEST_LIMIT_S
    process: "subprocess.Popen[str] | None" = None
    expired: bool = False
    ended: "EndedError | None" = None
    answer: Mapping[str, Any] = field(default_factory=dict)

    def start(self, facts: Facts | None = None) -> Mapping[str, Any]:
        """Start the process and let it build the model, whose ``facts`` may be known."""
        if self.process is None:
            self.process = subprocess.Popen(
                # -c, not -m: an interrupt while torch is imported must be ignored too;
                # -P: what the working folder calls torch.py or numpy.py is not imported for them
                [sys.executable, "-P", "-c", START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                # a compiled model is traced as it was written
                env={**os.environ, "OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"},
            )
            self.ask(None, START_LIMIT_S)
            self.answer = self.ask(
                {"open": self.model, "facts": None if facts is None else facts.document()},
                self.limit_s,
            )
        return self.answer

    def _expire(self) -> None:
        self.expired = True
        self.stop()

    def ask(self, request: Mapping[str, Any] | None, limit_s: float) -> Mapping[str, Any]:
        """The answer to one request (None: that it is ready), or an InputError."""
        process = self.process
        assert process is not None and process.stdin is not None and process.stdout is not None
        if self.ended is not None:
            raise self.ended
        timer = threading.Timer(limit_s + GRACE_S, self._expire)
        timer.daemon = True
        timer.start()
        try:
            if request is not None:
                process.stdin.write(json.dumps({**request, "limit_s": limit_s}) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = ""
        finally:
            timer.cancel()
        if self.expired:
            problem = f"its code did not end within {limit_s:g} s"
            raise EndedError(self.model, problem, LOOK)
        if not line:
            code = process.wait()
            raise EndedError(
                self.model,
                f"the process that traces it ended (exit code {code})",
                "its code ends it",
            )
        answer: Mapping[str, Any] = json.loads(line)
        if answer.get("ended"):
            self.ended = EndedError(answer["where"], answer["problem"], answer["remedy"])
            raise self.ended
        if "problem" in answer:
            raise InputError(answer["where"], answer["problem"], answer["remedy"])
        return answer

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()


@dataclass(slots=True)
class Workshop:
    """The processes that trace one model; none runs before something is requested."""

    model: str
    workers: int
    limit_s: float = REQUEST_LIMIT_S
    tracers: list[Tracer] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    facts: Facts | None = None

    def _take(self) -> Tracer:
        with self.lock:
            return self.tracers.pop() if self.tracers else Tracer(self.model, self.limit_s)

    def _give(self, tracer: Tracer) -> None:
        with self.lock:
            self.tracers.append(tracer)

    def open(self) -> tuple[Facts, tuple[str, ...]]:
        """What is known of the model, and the files of the user's code that it is made from."""
        tracer = self._take()
        try:
            answer = tracer.start()
        finally:
            self._give(tracer)
        self.facts = facts_of(answer["facts"])
        return self.facts, tuple(answer["files"])

    def _trace(self, point: RankPoint) -> Mapping[str, Any]:
        tracer = self._take()
        try:
            tracer.start(self.facts)
            graph: Mapping[str, Any] = tracer.ask(point.document(), self.limit_s)["graph"]
            return graph
        finally:
            self._give(tracer)

    def trace(
        self,
        points: Sequence[RankPoint],
        keep: Callable[[RankPoint, Mapping[str, Any]], None],
        watch: Watch = silent,
    ) -> dict[RankPoint, InputError]:
        """Hand the graph of every point to ``keep``, in any order; what a model refuses is
        returned."""
        # Only here: most models are bundled, and it brings logging and more.
        from concurrent.futures import ThreadPoolExecutor, as_completed

        failed: dict[RankPoint, InputError] = {}
        with ThreadPoolExecutor(min(self.workers, len(points)) or 1) as pool:
            points_of = {pool.submit(self._trace, point): point for point in points}
            try:
                for done, future in enumerate(as_completed(points_of), start=1):
                    point = points_of[future]
                    try:
                        keep(point, future.result())
                    except InputError as fault:
                        failed[point] = fault
                    watch(done, len(points), str(point))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise
        return failed

    def close(self) -> None:
        """End all processes."""
        with self.lock:
            for tracer in self.tracers:
                tracer.stop()
            for tracer in self.tracers:
                if tracer.process is not None:
                    tracer.process.wait()
            self.tracers.clear()

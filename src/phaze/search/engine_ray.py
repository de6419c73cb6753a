"""Workers on a Ray cluster: the chips of a round on any number of machines, merged in order, as
with local processes.

Ray lives in a process of its own beside the search, its *bridge*, in a session of its own and
joined by one pipe. So nothing that happens to Ray (a lost cluster aborts the process that is joined
to it) can harm the journal, its words do not reach the terminal, and when the search ends in any
way, SIGKILL too, the pipe closes and the bridge takes its workers down. The bridge starts while the
search computes its bounds.

A worker is an actor with loaded kernels. What travels: :class:`Common` once for each machine, a
:class:`WorkItem` and the cut-off for each chip, the chip's document and its fresh schedules back,
and at the start of a round the schedules that others have found. A worker that dies is replaced and
its chip given out again, three times at most.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.search.deadline import NEVER, Deadline, OutOfTime, after
from phaze.search.engine import TRIES
from phaze.search.evaluated import Evaluated, evaluated_from
from phaze.search.ray_worker import Answered, Worker
from phaze.search.state import SearchState
from phaze.search.work_item import Common, WorkItem, failed

WHERE = "--engine ray"
# Within these seconds a Ray head must have answered, a worker been given, and workers have ended.
START_S, PATIENCE_S, END_S = 90.0, 120.0, 20.0
# How long after a deadline the bridge may still answer with what was done.
LATE_S = 1.0
PROGRAM = "from phaze.search.engine_ray import bridge; bridge()"
LOST = "the Ray cluster was lost", "start it again; the same command resumes from here"


class _RayCrew:
    """The workers, as the bridge sees them: on their way, idle, or busy with a chip."""

    def __init__(self, ray: Any, count: int, gone: Callable[[], bool]) -> None:
        from phaze.search.code import code_digest

        self.ray, self.gone, self.code = ray, gone, code_digest()
        self.kind = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(Worker)
        self.arriving: dict[Any, Any] = {}
        self.idle: list[Any] = []
        self.busy: dict[Any, tuple[Any, int]] = {}
        self.common: Any = None
        self.news: list[Any] = []
        self.reported: dict[Any, int] = {}
        self.stillborn = 0
        for _ in range(count):
            self.hire()

    def hire(self) -> None:
        worker = self.kind.remote()
        self.arriving[worker.about.remote()] = worker

    def begin(self, common: Common) -> None:
        """Another search: nobody knows anything of it."""
        self.common, self.news, self.reported = self.ray.put(common), [], {}

    def give(self, item: WorkItem, cut: float) -> None:
        worker = self.idle.pop()
        learnt = self.reported.get(worker)
        if learnt is None:
            worker.begin.remote(self.common)
        if self.news[learnt or 0 :]:
            worker.learn.remote(*self.news[learnt or 0 :])
        self.reported[worker] = len(self.news)
        self.busy[worker.open.remote(item, cut)] = (worker, item.chip)

    def _arrived(self, ref: Any) -> None:
        worker, errors = self.arriving.pop(ref), self.ray.exceptions
        try:
            host, _, code = self.ray.get(ref)
        except errors.RayActorError as fault:
            self.stillborn += 1
            if self.stillborn >= TRIES:
                why = f"a worker cannot start ({_sentence(fault)})"
                raise InputError(WHERE, why, "install the same phaze on every machine") from None
            self.hire()
            return
        if code != self.code:
            remedy = "install the same phaze on every machine"
            raise InputError(WHERE, f"the machine {host} has another version of phaze", remedy)
        self.stillborn = 0
        worker.warm.remote()
        self.idle.append(worker)

    def _answered(self, ref: Any) -> tuple[int, Answered | None]:
        """The chip and what was found, or None when its worker has died."""
        worker, chip = self.busy.pop(ref)
        try:
            answered: Answered = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError:
            raise
        except self.ray.exceptions.RayError:
            self.ray.kill(worker)
            self.reported.pop(worker, None)
            self.hire()
            return chip, None
        self.idle.append(worker)
        return chip, answered

    def round(
        self, items: list[WorkItem], cut: float, deadline: Deadline = NEVER
    ) -> dict[int, Answered | None]:
        """Every chip evaluated, or those done before the deadline; None for one whose workers all
        died."""
        waiting, by_chip, quiet_s = items[::-1], {item.chip: item for item in items}, 0.0
        tries, answers = dict[int, int](), dict[int, Answered | None]()
        while len(answers) < len(items) and deadline.left_s != 0.0:
            while waiting and self.idle:
                self.give(waiting.pop(), cut)
            pause_s = min(0.5, deadline.left_s or 0.5)
            ready, _ = self.ray.wait([*self.busy, *self.arriving], num_returns=1, timeout=pause_s)
            if self.gone():
                raise EOFError
            quiet_s = 0.0 if ready or self.busy else quiet_s + 0.5
            if quiet_s > PATIENCE_S:
                raise InputError(
                    WHERE,
                    f"the cluster gave no worker in {PATIENCE_S:g} s",
                    "free some of its cores",
                )
            for ref in ready:
                if ref in self.arriving:
                    self._arrived(ref)
                    continue
                chip, answer = self._answered(ref)
                tries[chip] = tries.get(chip, 0) + 1
                if answer is None and tries[chip] < TRIES:
                    waiting.append(by_chip[chip])
                else:
                    answers[chip] = answer
        fresh = [pair for answer in answers.values() if answer is not None for pair in answer[1]]
        if fresh:
            self.news.append(self.ray.put(fresh))
        return answers


def _sentence(fault: Exception) -> str:
    """The last line of an error, where Ray says what went wrong."""
    lines = [line.strip() for line in str(fault).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(fault).__name__


def _joined(ray: Any, address: str, count: int, folder: str) -> int:
    """Join the cluster, or start one here; how many workers it may have."""
    quiet = {"log_to_driver": False, "configure_logging": False}
    if address == "local":
        small = {
            "include_dashboard": False,
            "object_store_memory": 100 * 2**20,
            "_temp_dir": folder,
        }
        ray.init(address="local", num_cpus=count, **small, **quiet)
        return count
    ray.init(address=address, namespace="phaze", **quiet)
    return count or max(1, int(ray.cluster_resources().get("CPU", 1)))


def bridge() -> None:
    """The process beside the search: joins Ray, then answers rounds until the pipe closes."""
    pipe, (address, count, folder) = Connection(int(sys.argv[1])), sys.argv[2:5]
    gone = (
        pipe.poll
    )  # during a round nothing is sent, so that there is something to read means the end
    try:
        import ray

        try:
            crew = _RayCrew(ray, _joined(ray, address, int(count), folder), gone)
        except (ConnectionError, RuntimeError, ValueError, OSError) as fault:
            remedy = (
                "start one with: ray start --head; where it asks for a token set "
                "RAY_AUTH_MODE=token"
            )
            seen = f"no Ray cluster can be joined at '{address}' ({_sentence(fault)})"
            raise InputError("--address", seen, remedy) from None
        pipe.send(None)
        while (round_ := pipe.recv()) is not None:
            common, items, cut, limit_s = round_
            if common is not None:
                crew.begin(common)
            pipe.send(crew.round(items, cut, after(limit_s)))
    except (EOFError, BrokenPipeError):
        pass
    except InputError as fault:
        pipe.send(fault)
    except Exception as fault:
        pipe.send(InputError(WHERE, f"Ray failed ({_sentence(fault)})", LOST[1]))
    finally:
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def checked_address(text: str) -> str:
    """``auto``, ``local``, or HOST:PORT where something answers."""
    host, _, port = text.rpartition(":")
    if text in ("auto", "local"):
        return text
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(
            "--address", f"'{text}' is not an address", "give auto, local or HOST:PORT"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5.0).close()
    except OSError as fault:
        why = fault.strerror or str(fault)
        remedy = "start a head there with: ray start --head --port PORT"
        raise InputError("--address", f"nothing answers at {text} ({why})", remedy) from None
    return text


def session_of(leader: int) -> list[int]:
    """The processes of a session, where the system shows them; workers have groups of their own."""
    processes = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
            if int(session) == leader and state != "Z":
                processes.append(int(stat.parent.name))
    return processes


class RayEngine:
    """An engine on a cluster; ``close`` it, or use it in a ``with`` statement."""

    def __init__(self, address: str, count: int) -> None:
        if importlib.util.find_spec("ray") is None:
            raise InputError(
                WHERE, "Ray is not installed", "pip install -e '.[ray]' in phaze's folder"
            )
        self.address = checked_address(address)
        short = "/tmp" if Path("/tmp").is_dir() else None  # the names of sockets must be short
        self.folder = tempfile.mkdtemp(prefix="phaze-ray-", dir=short)
        self.pipe, theirs = Pipe()
        words = None if os.environ.get("PHAZE_TRACEBACK") else subprocess.DEVNULL
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                PROGRAM,
                str(theirs.fileno()),
                self.address,
                str(count),
                self.folder,
            ],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,
            env={
                **os.environ,
                "RAY_USAGE_STATS_ENABLED": "0",
                "RAY_gcs_rpc_server_reconnect_timeout_s": "20",
            },
        )
        theirs.close()
        self.state: SearchState | None = None
        self.joined, self.patient = False, True

    def _join(self, deadline: Deadline) -> None:
        """Wait until the bridge has joined the cluster."""
        if not self.pipe.poll(
            START_S if deadline.left_s is None else min(START_S, deadline.left_s)
        ):
            deadline.check()
            seen = f"no Ray cluster answered at '{self.address}' in {START_S:g} s"
            raise InputError("--address", seen, "give the address of a Ray head")
        self._received()
        self.joined = True

    def _received(self) -> Any:
        received = self.pipe.recv()
        if isinstance(received, InputError):
            raise received
        return received

    def _round(
        self, state: SearchState, chips: list[int], cut: float
    ) -> dict[int, Answered | None]:
        common = None if state is self.state else state.common()
        self.state = state
        try:
            if not self.joined:
                self._join(state.deadline)
            limit_s = state.deadline.left_s
            self.pipe.send((common, [state.item(chip) for chip in chips], cut, limit_s))
            if limit_s is not None and not self.pipe.poll(limit_s + LATE_S):
                raise OutOfTime
            answers: dict[int, Answered | None] = self._received()
        except (EOFError, OSError):
            raise InputError(WHERE, *LOST) from None
        return answers

    def __call__(self, state: SearchState, chips: list[int], cut: float) -> list[Evaluated]:
        merged: list[Evaluated] = []
        try:
            answers = self._round(state, chips, cut)
        except OutOfTime:
            answers = {}
        self.patient = len(answers) == len(chips)
        for chip in chips:
            if chip not in answers:
                continue
            answer = answers[chip]
            if answer is None:
                merged.append(
                    failed(chip, state.memories[-1], float(state.scored()[chip]), "its worker died")
                )
                continue
            raw, fresh, requests, placements = answer
            merged.append(evaluated_from(chip, raw))
            state.memo.schedules.update(fresh)
            state.memo.requests += requests
            state.memo.placements += placements
        return merged

    def close(self) -> None:
        """End the bridge, and with it all workers; what is left of its session is killed."""
        with suppress(EOFError, OSError):
            self.pipe.send(None)
            # Where there is time: an answer nobody waits for, then the end of the pipe.
            while self.joined and self.patient and self.pipe.poll(END_S):
                self.pipe.recv()
        for left in session_of(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(left, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        self.pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "RayEngine":
        return self

    def __exit__(self, *fault: object) -> None:
        self.patient = self.patient and fault[0] is None
        self.close()

"""What the Ray engine costs, and what a search leaves to its workers.

python docs/scaling.py               evaluates the same chips of bert-large in this process and on 1
                                     and 2 Ray workers
python docs/scaling.py --chips N     the same with N chips
python docs/scaling.py --share NAME  searches NAME; the share of CPU time spent evaluating chips,
                                     the rest being serial

Wall seconds are the least of three; CPU seconds are those of the workers, of the bridge and of the
search itself, so they hold on a busy machine too. Bytes are those of one chip's work item and its
result, and of the job, sent once.
"""

import os
import sys
import time
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from phaze.search.baseline import scale_for
from phaze.search.engine_ray import RayEngine, session_of
from phaze.search.evaluated import Evaluated
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.ray_worker import Worker
from phaze.search.run import Evaluate, in_process, search
from phaze.search.state import SearchState
from phaze.search.task import SearchJob
from phaze.study.load import job_of, study_of
from phaze.study.raw import default_study

CHIPS = 96


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _bytes(value: Any) -> int:
    return len(ForkingPickler.dumps(value))


def _workers(engine: RayEngine) -> list[int]:
    every = session_of(engine.process.pid)
    return [
        pid for pid in every if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::Worker")
    ]


def _timed(
    engine: Evaluate, state: SearchState, chips: list[int], pids: list[int]
) -> tuple[float, list[float]]:
    """Wall seconds, and CPU seconds of each process, of one round from nothing."""
    before, own, start = [_cpu_s(pid) for pid in pids], time.process_time(), time.perf_counter()
    engine(replace(state, memo=ScheduleMemo()), chips, float("inf"))
    wall = time.perf_counter() - start
    return wall, [
        time.process_time() - own,
        *(_cpu_s(pid) - was for pid, was in zip(pids, before, strict=True)),
    ]


def _job(model: str) -> SearchJob:
    return job_of(study_of(default_study(model, "icml24") | {"models": [model]}, "scaling"))


def share(model: str) -> None:
    """The serial share of a search, and what its workers could do at once."""
    job, rounds = _job(model), list[tuple[int, float]]()
    in_process(search(replace(job, gap=0.5), scale_for(job)), [0], 0.0)  # kernels loaded

    def timed(state: SearchState, chips: list[int], cut: float) -> list[Evaluated]:
        start = time.process_time()
        found = in_process(state, chips, cut)
        rounds.append((len(chips), time.process_time() - start))
        return found

    start = time.process_time()
    search(job, scale_for(job), timed)
    total, opening = time.process_time() - start, sum(took for _, took in rounds)
    said = " + ".join(f"{count} chips {took:.2f} s" for count, took in rounds)
    serial = f"serial share {1 - opening / total:.0%}"
    print(f"{model}: {total:.2f} CPU s, of it evaluating chips {opening:.2f} s ({said}); {serial}")
    for count in (2, 16, 100):
        away = sum(took / min(count, chips) for chips, took in rounds)
        print(f"  at most {total / (total - opening + away):.2f} times as fast on {count} workers")


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--share"]:
        return share(sys.argv[2])
    count_of_chips = int(sys.argv[2]) if sys.argv[1:2] == ["--chips"] else CHIPS
    model = "bert-large"
    job = _job(model)
    state = search(job, scale_for(job))
    chips = [int(chip) for chip in state.scored().argsort(kind="stable")[:count_of_chips]]
    in_process(replace(state, memo=ScheduleMemo()), chips, float("inf"))
    plain = min(_timed(in_process, state, chips, []) for _ in range(3))
    print(
        f"{model}, {len(chips)} chips evaluated: in this process {plain[0]:.2f} s wall, "
        f"{plain[1][0]:.2f} CPU s"
    )
    for count in (1, 2):
        with RayEngine("local", count) as engine:
            engine(replace(state, memo=ScheduleMemo()), chips, float("inf"))
            pids = [engine.process.pid, *_workers(engine)]
            wall, cpu = min(_timed(engine, state, chips, pids) for _ in range(3))
        total = sum(cpu)
        print(
            f"ray, {count} workers: {wall:.2f} s wall (efficiency "
            f"{plain[0] / wall / count:.0%}), CPU s: workers "
            f"{sum(cpu[2:]):.2f}, bridge {cpu[1]:.2f}, search {cpu[0]:.2f}; efficiency "
            f"by CPU {plain[1][0] / total:.0%}"
        )
    worker = Worker()
    worker.begin(state.common())
    items = [state.item(chip) for chip in chips]
    answers = [worker.open(item, float("inf")) for item in items]
    out, back = (sum(map(_bytes, some)) / len(chips) for some in (items, answers))
    news = _bytes([pair for answer in answers for pair in answer[1]]) / len(chips)
    print(
        f"bytes: {_bytes(state.common()):,} once a machine; a chip {out:,.0f} there and "
        f"{back:,.0f} back, of which "
        f"{news:,.0f} (its new schedules) go to every machine"
    )
    return None


if __name__ == "__main__":
    main()

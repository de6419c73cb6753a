"""The engine on a real Ray: the same bytes as local, whatever dies; refusals in one sentence;
nothing left running."""

import importlib.util
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.search.engine_ray import RayEngine, session_of
from phaze.search.folder import JOURNAL, RESULT, run_in
from phaze.search.objective import scale_of
from phaze.search.question_files import Papers
from phaze.search.run import in_process, search
from phaze.search.state import SearchState
from phaze.search.task import SearchJob
from phaze.search.work_item import WorkItem
from tests.conftest import Ran
from tests.search.deadly import Deadly
from tests.search.made import made_job, made_task
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed; make test does"
)


def _job() -> SearchJob:
    job = made_job((made_task(7, widths=(1, 2)),), gap=1e-4)
    return SearchJob(
        job.name, job.models, job.space, job.hbm_bytes, job.objective, job.gap, "made", 2
    )


def _state() -> SearchState:
    job = _job()
    return search(job, scale_of(job.objective, [1.0], [64.0], [1.0]))


def _workers(leader: int) -> list[int]:
    """The Ray workers of a session."""
    found = []
    for pid in session_of(leader):
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        found += [pid] if name.startswith(b"ray::Worker") else []
    return found


def _until(done: Callable[[], Any], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def engine() -> Iterator[RayEngine]:
    """Two workers on this machine."""
    with RayEngine("local", 2) as made:
        yield made
    assert _until(lambda: not session_of(made.process.pid), 60), "Ray still runs"
    assert not Path(made.folder).exists()


@needs_ray
def test_ray_gives_the_bytes_of_local_and_a_killed_worker_changes_nothing(
    engine: RayEngine, tmp_path: Path
) -> None:
    plain, away = (
        run_in(tmp_path / "local", Papers(""), _job()),
        run_in(tmp_path / "ray", Papers(""), _job(), engine),
    )
    for name in (RESULT, JOURNAL):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "local" / name).read_bytes(), (
            name
        )
    assert away.state.memo.sentence == plain.state.memo.sentence
    state = _state()
    chips = list(range(0, len(state.arrays), 3))
    whole = in_process(state, chips, float("inf"))
    frozen = _workers(engine.process.pid)[0]
    os.kill(
        frozen, signal.SIGSTOP
    )  # it takes a chip and never answers, until it is killed in the middle of it
    threading.Timer(1.0, os.kill, (frozen, signal.SIGKILL)).start()
    assert engine(state, chips, float("inf")) == whole
    assert frozen not in _workers(engine.process.pid)
    engine.process.kill()
    with pytest.raises(InputError, match=r"the Ray cluster was lost; .*the same command resumes"):
        engine(state, chips, float("inf"))


def _made(folder: Path) -> None:
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.format(folder=folder))


def _start(folder: Path, run: str, *more: str) -> "subprocess.Popen[str]":
    command = [
        sys.executable,
        "-m",
        "phaze",
        "search",
        str(folder / "study.toml"),
        "--out",
        str(folder / run),
    ]
    command += ["--set", "search.round_size=2", "--gap", "0", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


RAY = ("--engine", "ray", "--address", "local", "--workers", "2")


def _bridge(driver: int) -> int:
    """The process that a search keeps beside it, or 0."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == driver:
                return int(stat.parent.name)
        except OSError:
            continue
    return 0


@needs_ray
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_search_that_is_stopped_leaves_nothing_running_and_goes_on(
    sign: signal.Signals, tmp_path: Path
) -> None:
    _made(tmp_path)
    local = _start(tmp_path, "local", "--workers", "1")
    process = _start(tmp_path, "run", *RAY)
    assert _until(lambda: _bridge(process.pid), 180)
    bridge = _bridge(process.pid)
    assert _until(lambda: len(_workers(bridge)) == 2 or process.poll() is not None, 300)
    process.send_signal(sign)
    _, said = process.communicate(timeout=180)
    assert _until(lambda: not session_of(bridge), 180), "Ray still runs"
    if sign == signal.SIGINT and process.returncode:
        assert process.returncode == 130
        assert said.strip() == "phaze: stopped; the same command resumes from here"
    assert local.wait() == 0
    assert _start(tmp_path, "run", "--workers", "1").wait() == 0
    for name in (RESULT, JOURNAL):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "local" / name).read_bytes(), (
            name
        )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--engine", "ray", "--address", "127.0.0.1:1"],
            "--address: nothing answers at 127.0.0.1:1 (Connection",
        ),
        (
            ["--engine", "ray", "--address", "nowhere"],
            "--address: 'nowhere' is not an address; give auto, local or",
        ),
        (
            ["--engine", "ray", "--address", "host:99999"],
            "--address: 'host:99999' is not an address; give auto",
        ),
        (
            ["--engine", "ray", "--address", "no.such.host.invalid:6379"],
            "nothing answers at no.such.host.invalid",
        ),
        (["--engine", "rya"], "--engine: unknown engine 'rya'; did you mean 'ray'"),
        (["--address", "auto"], "--address: the engine 'local' has no address; add --engine ray"),
        (["--workers", "-1"], "--workers: -1 is not a number of workers"),
    ],
)
def test_bad_addresses_and_engines(
    arguments: list[str], sentence: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    for command in (["search"], ["sweep", "--over", "training.devices=8,16"]):
        ran = phaze(*command, "--model", "bert-large", "--out", tmp_path / "run", *arguments)
        assert ran.code == 2 and ran.err.startswith("phaze: ") and sentence in ran.err, ran.err
        assert len(ran.err.splitlines()) == 1


def test_without_ray_it_is_said_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Ran]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    ran = phaze("search", "--model", "bert-large", "--engine", "ray", "--out", tmp_path)
    assert ran.code == 2
    assert (
        ran.err
        == "phaze: --engine ray: Ray is not installed; pip install -e '.[ray]' in phaze's folder.\n"
    )


@needs_ray
@pytest.mark.slow
def test_ten_killed_workers_lose_nothing(engine: RayEngine) -> None:
    state, rng = _state(), random.Random(10)
    chips = list(range(len(state.arrays)))
    whole, killed, over = in_process(state, chips, float("inf")), list[int](), threading.Event()

    def kill() -> None:
        while len(killed) < 10 and not over.is_set():
            time.sleep(rng.uniform(0.0, 1.0))
            there = _workers(engine.process.pid)
            if len(there) == 2 and there[0] not in killed:
                killed.append(rng.choice(there))
                os.kill(killed[-1], signal.SIGKILL)

    assert engine(state, chips, float("inf")) == whole
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        while killer.is_alive():
            found = engine(state, chips, float("inf"))
            assert [one.error for one in found] == [""] * len(chips) and found == whole
    finally:
        over.set()
        killer.join()
    assert len(killed) == 10


@needs_ray
@pytest.mark.slow
def test_a_chip_whose_workers_die_three_times_has_failed_and_keeps_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state, plain = _state(), SearchState.item
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))

    def deadly(self: SearchState, chip: int) -> WorkItem:
        item = plain(self, chip)
        return replace(item, floors=(Deadly(),)) if chip == 1 else item  # type: ignore[arg-type]

    with RayEngine("local", 2) as engine:
        expected = in_process(state, [0, 1, 2], float("inf"))
        assert engine(state, [0, 1, 2], float("inf")) == expected
        monkeypatch.setattr(SearchState, "item", deadly)
        found = engine(state, [0, 1, 2], float("inf"))
    assert [found[0], found[2]] == [expected[0], expected[2]]
    assert (
        found[1].error == "its worker died"
        and found[1].lower == state.scored()[1] <= expected[1].score
    )


@needs_ray
@pytest.mark.slow
@pytest.mark.parametrize(
    "parts", [("gcs_server",), ("raylet/raylet",), ("gcs_server", "raylet/raylet", "ray::")]
)
def test_a_lost_cluster_is_one_sentence(parts: tuple[str, ...], engine: RayEngine) -> None:
    state = _state()
    chips = list(range(len(state.arrays)))
    whole = in_process(state, chips, float("inf"))
    assert engine(state, chips, float("inf")) == whole
    for pid in session_of(engine.process.pid):
        if any(part in Path(f"/proc/{pid}/cmdline").read_bytes().decode() for part in parts):
            os.kill(pid, signal.SIGKILL)
    for _ in range(300):  # a cluster without its head goes on for some seconds
        try:
            assert engine(state, chips, float("inf")) == whole
        except InputError as fault:
            assert "the same command resumes" in str(fault)
            return
        time.sleep(0.2)
    raise AssertionError("nothing was noticed")


def _killed_after(process: "subprocess.Popen[str]", wait_s: float) -> None:
    """SIGKILL, after which Ray goes down by itself."""
    assert _until(lambda: _bridge(process.pid), 180)
    bridge = _bridge(process.pid)
    time.sleep(wait_s)
    process.kill()
    process.wait()
    assert _until(lambda: not session_of(bridge), 180), "Ray still runs"


@needs_ray
@pytest.mark.slow
def test_a_driver_killed_ten_times_goes_on(tmp_path: Path) -> None:
    _made(tmp_path)
    began = time.monotonic()
    assert _start(tmp_path, "whole", *RAY).wait() == 0
    took, rng = time.monotonic() - began, random.Random(11)
    for name in ("a", "b"):
        before = -1
        for _ in range(5):
            _killed_after(_start(tmp_path, name, *RAY), rng.uniform(0.2, 1.0) * took)
            with sqlite3.connect(tmp_path / name / JOURNAL) as base:
                there = base.execute(
                    "SELECT count(*) FROM sqlite_master WHERE name = 'evaluated'"
                ).fetchone()[0]
                rows = base.execute("SELECT count(*) FROM evaluated").fetchone()[0] if there else 0
            base.close()
            assert rows >= before
            before = rows
        assert _start(tmp_path, name, *RAY).wait() == 0
        assert (tmp_path / name / RESULT).read_bytes() == (tmp_path / "whole" / RESULT).read_bytes()
        assert (
            json.loads((tmp_path / name / RESULT).read_text())["certificate"]["closed"]["failed"]
            == 0
        )

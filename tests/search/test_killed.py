"""A search whose process group is killed at any moment goes on and gives the same bytes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY


def _command(folder: Path, run: str) -> list[str]:
    arguments = ["search", str(folder / "study.toml"), "--out", str(folder / run), "--workers", "2"]
    return [sys.executable, "-m", "phaze", *arguments, "--set", "search.round_size=2", "--gap", "0"]


def _start(folder: Path, run: str) -> "subprocess.Popen[bytes]":
    command = _command(folder, run)
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def _made(folder: Path) -> None:
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.format(folder=folder))


def _check(folder: Path, seeds: range) -> None:
    _made(folder)
    began = time.monotonic()
    assert _start(folder, "whole").wait() == 0
    took = time.monotonic() - began
    expected = (folder / "whole" / "result.json").read_bytes()
    for seed in seeds:
        wait_s = random.Random(seed).uniform(0.3, 1.1) * took
        process = _start(folder, f"run-{seed}")
        time.sleep(wait_s)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        again = _start(folder, f"run-{seed}")
        _, said = again.communicate(timeout=300)
        assert again.returncode == 0, f"seed {seed}, killed after {wait_s:.2f} s: {said.decode()}"
        assert (folder / f"run-{seed}" / "result.json").read_bytes() == expected, f"seed {seed}"


def test_a_killed_search_goes_on(tmp_path: Path) -> None:
    _check(tmp_path, range(3))


def test_a_search_that_is_interrupted_says_how_to_go_on(tmp_path: Path) -> None:
    _made(tmp_path)
    process = _start(tmp_path, "run")
    while not (tmp_path / "run" / "journal.sqlite").exists():
        time.sleep(0.01)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=300)
    if process.returncode != 0:
        assert process.returncode == 130
        assert "the same command resumes" in said.decode()
    assert _start(tmp_path, "run").wait() == 0


@pytest.mark.slow
def test_a_search_killed_many_times_goes_on(tmp_path: Path) -> None:
    _check(tmp_path, range(100, 120))

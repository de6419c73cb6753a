"""Nothing is silent for more than two seconds on a terminal; elsewhere standard error stays for
errors."""

import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.report import progress as shown
from phaze.report.progress import Progress, clock, form_for

SLOW = """
import sys, time
from phaze.cli import schema
from phaze.cli.main import main
formats = schema.formats
def late():
    time.sleep(2.8)
    return formats()
schema.formats = late
sys.argv = ["phaze", "schema", "chip"]
main()
"""


def watched(command: list[str], folder: Path, **environment: str) -> tuple[int, list[float], str]:
    """Run a command whose standard error is a terminal: its exit code, the moments of its bytes,
    and their text."""
    ours, theirs = pty.openpty()
    began = time.monotonic()
    run = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        cwd=folder,
        env={**os.environ, **environment},
    )
    os.close(theirs)
    moments, text = [0.0], b""
    while True:
        ready, _, _ = select.select([ours], [], [], 0.1)
        try:
            found = os.read(ours, 4096) if ready else b""
        except OSError:  # the other end is closed
            break
        if found:
            moments.append(time.monotonic() - began)
            text += found
    os.close(ours)
    code = run.wait()
    return code, [*moments, time.monotonic() - began], text.decode()


def longest_silence(moments: list[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(moments))


def test_a_slow_step_is_seen_on_a_terminal_and_its_line_is_taken_away(tmp_path: Path) -> None:
    code, moments, text = watched([sys.executable, "-c", SLOW], tmp_path)
    assert code == 0 and longest_silence(moments) < 2.0
    assert "phaze schema; " in text and text.endswith(shown.CLEAR)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "--model", "t5-large", "--rules", "icml24", "--set", "training.devices=256"),
        (
            "plan",
            "--model",
            "gpt3-175b",
            "--chip",
            "a100-80gb",
            "--devices",
            "1024",
            "--batch",
            "1536",
        ),
        ("validate",),
        ("graph", "--model", "own.py:build"),
        ("estimate", "--model", "own.py:build", "--chip", "h100"),
        ("schedule", "--model", "own.py:build", "--chip", "h100"),
        (
            "compare",
            "--model",
            "bert-large",
            "--rules",
            "icml24",
            "--chip",
            "a100-80gb",
            "--chip",
            "h100",
        ),
        (
            "sweep",
            "--model",
            "bert-large",
            "--rules",
            "icml24",
            "--over",
            "training.devices=64,128",
        ),
        (
            "plan",
            "--model",
            "own.py:build",
            "--chip",
            "h100",
            "--devices",
            "4",
            "--batch",
            "8",
            "--microbatch",
            "1",
        ),
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_command_is_silent_for_two_seconds(arguments: tuple[str, ...], tmp_path: Path) -> None:
    model = "import time\nimport torch\n\ndef build():\n    time.sleep(3)\n"
    model += (
        "    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)), "
        "torch.zeros(2, 8)\n"
    )
    (tmp_path / "own.py").write_text(model, encoding="utf-8")
    command = [sys.executable, "-m", "phaze", *arguments]
    code, moments, text = watched(command, tmp_path, PHAZE_CACHE=str(tmp_path / "cache"))
    assert code == 0, text
    # A machine that runs other tests beside this one may be late by as much again.
    assert longest_silence(moments) < 4.0, text


def test_files_and_sets_are_counted_while_they_are_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: list[tuple[int, int, str]] = []
    monkeypatch.setattr(
        Progress,
        "count",
        lambda self, done, total, what, at_most=False: counts.append((done, total, what)),
    )
    bad = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for command, what in (("place", "placing profiles"), ("schedule", "scheduling files")):
        counts.clear()
        assert exit_code_of(app, [command, *bad]) == 2
        assert counts == [(0, 2, what), (1, 2, what)]
        assert capsys.readouterr().err.count("phaze: ") == 2


def test_progress_is_for_terminals_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PHAZE_PROGRESS", raising=False)
    assert form_for(io.StringIO()) == "none" and form_for(None) == "none"
    monkeypatch.setenv("PHAZE_PROGRESS", "1")
    assert form_for(io.StringIO()) == "lines"
    monkeypatch.setenv("PHAZE_PROGRESS", "0")
    assert form_for(io.StringIO()) == "none"


def test_in_a_notebook_progress_is_one_line_that_is_written_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class ZMQInteractiveShell:
        pass

    monkeypatch.delenv("PHAZE_PROGRESS", raising=False)
    kernel = type(sys)("IPython")
    kernel.get_ipython = ZMQInteractiveShell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setattr(shown, "PATIENCE_S", 0.01)
    monkeypatch.setattr(shown, "REPEAT_S", 0.01)
    stream = io.StringIO()
    with Progress(stream, form_for(stream)) as progress:
        progress.step("searching")
        time.sleep(0.2)
    text = stream.getvalue()
    assert text.count("\rsearching") > 1 and "\n" not in text and "\x1b" not in text
    assert text.split("\r")[-2].strip() == ""


def test_a_line_says_what_is_done_how_far_it_is_and_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(shown, "monotonic", lambda: now[0])
    progress = Progress()
    progress.count(0, 40, "tracing")
    now[0] = 110.0
    progress.count(10, 40, "tracing")
    assert progress.text() == "tracing: 10 of 40; 10 s, about 30 s left"
    progress.count(20, 40, "evaluating", at_most=True)
    assert re.search("at most 10 s left", progress.text())
    assert [clock(seconds) for seconds in (8, 200, 7500)] == ["8 s", "3 min 20 s", "2 h 5 min"]

"""Ctrl-C ends every command with one sentence and exit code 130 within two seconds, wherever it
is."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.search.test_verify import STUDY, finished

SOON_S = 2.0
# A program that stops at the import of a module until it is interrupted, then runs phaze as the
# script does.
SLOW_IMPORT = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.{heard})
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            print("here", flush=True)
            {wait}
sys.meta_path.insert(0, Finder())
from phaze.cli.main import main
main()
"""
# A test run in the background of a shell would hand on that interrupts are ignored.
PLAIN = (
    "import signal as s; s.signal(s.SIGINT, s.default_int_handler); from phaze.cli.main "
    "import main; main()"
)
WAIT = "time.sleep(30)"
SWALLOWED = """for _ in range(300):
                try:
                    time.sleep(0.1)
                except BaseException:
                    pass"""


def _start(program: str, arguments: list[str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _ended(process: "subprocess.Popen[bytes]", sentence: str, may_finish: bool = False) -> bytes:
    """Interrupt it; what it wrote to standard output. ``may_finish``: it may have given its answer
    at that moment."""
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    took = time.monotonic() - began
    if may_finish and process.returncode == 0:
        assert err == b""
        return out
    assert process.returncode == 130, err.decode()
    assert err.decode() == f"phaze: {sentence}\n"
    assert took < SOON_S
    return out


@pytest.mark.parametrize("wait", [WAIT, SWALLOWED], ids=["raised", "swallowed"])
@pytest.mark.parametrize(
    ("module", "arguments", "sentence"),
    [
        ("typer", ["models"], "stopped"),
        (
            "numpy",
            ["search", "--model", "bert-large", "--json"],
            "stopped; the same command resumes from here",
        ),
    ],
)
def test_a_command_is_stopped_while_it_imports(
    wait: str, module: str, arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    program = SLOW_IMPORT.format(module=module, wait=wait, heard="default_int_handler")
    out = [*arguments, "--out", str(tmp_path / "run")] if arguments[0] == "search" else arguments
    process = _start(program, out)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    said = _ended(process, sentence)
    assert said == (
        json.dumps({"error": sentence}, separators=(",", ":")).encode() + b"\n"
        if "--json" in out
        else b""
    )
    assert not (tmp_path / "run").exists()


def _hard(path: Path) -> str:
    """Sixty operators with a few edges: a minute of compiled code."""
    drawn = random.Random(3)
    operators, names = [], [f"o{i}" for i in range(60)]
    for name in names:
        one, core = drawn.uniform(1, 9), drawn.choice(["tensor", "vector", "both"])
        operators.append(
            {
                "id": name,
                "core": core,
                "one_core_s": one,
                "all_cores_s": one / drawn.uniform(1.5, 4),
            }
        )
    edges = [
        [a, b] for i, a in enumerate(names) for b in names[i + 1 : i + 12] if drawn.random() < 0.12
    ]
    problem = {
        "schema": "phaze.operators/1",
        "rules": "icml24",
        "tensor_cores": 4,
        "vector_cores": 3,
    }
    path.write_text(json.dumps({**problem, "operators": operators, "edges": edges}))
    return str(path)


def _worked(process: "subprocess.Popen[bytes]", cpu_s: float) -> None:
    """Wait until a process has worked for so long, however busy the machine is."""
    tick = os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        user, system = (
            Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        )
        if (int(user) + int(system)) / tick >= cpu_s:
            return
        time.sleep(0.02)


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not show what a process has used"
)
@pytest.mark.parametrize("scheduler", ["exact", pytest.param("cpsat", marks=pytest.mark.slow)])
def test_a_command_is_stopped_inside_compiled_code(scheduler: str, tmp_path: Path) -> None:
    command = ["schedule", _hard(tmp_path / "hard.json"), "--scheduler", scheduler]
    process = _start(PLAIN, command)
    _worked(process, 2.0)
    assert _ended(process, "stopped") == b""


# An interrupt while Python finalizes an object is not raised but shown and forgotten.
FINALIZER = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from phaze.cli.interrupt import Interrupt
Interrupt(["search"]).listen()
class Slow:
    def __del__(self):
        print("here", flush=True)
        time.sleep(30)
Slow()
time.sleep(30)
"""


def test_a_command_is_stopped_inside_a_finalizer() -> None:
    process = _start(FINALIZER, [])
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    _ended(process, "stopped; the same command resumes from here")


# The interpreter takes a moment to end, after the answer was given.
ENDING = """
import atexit, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: (print("here", flush=True), time.sleep(0.5)))
from phaze.cli.main import main
main()
"""


def test_an_interrupt_after_the_answer_changes_nothing() -> None:
    process = _start(ENDING, ["--version"])
    assert process.stdout is not None
    process.stdout.readline()
    assert process.stdout.readline() == b"here\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


GOES_ON = "stopped; the same command resumes from here"
COMMANDS = {
    "plan": (
        "plan --model gpt3-175b --chip a100-80gb --devices 1024 --batch 1536 --microbatch 1,2,4,8",
        "stopped",
    ),
    "search": (
        "search --model t5-large --rules icml24 --out run --workers 2",
        GOES_ON,
    ),
    "search alone": (
        "search --model t5-large --rules icml24 --out run --workers 1",
        GOES_ON,
    ),
    "front": (
        "front --model bert-large --rules icml24 --of throughput,area --out run",
        GOES_ON,
    ),
    "sweep": (
        "sweep --model bert-large --rules icml24 --over training.batch=1024,2048 --out run",
        GOES_ON,
    ),
    "verify": ("verify {finished} --all", "stopped"),
    "graph": ("graph --model bert-large --fresh", "stopped"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose rows take some seconds to be proved anew."""
    return finished(
        tmp_path_factory.mktemp("interrupt"), STUDY.replace("sequence = 64", "sequence = 128")
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not show what a process has used"
)
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("cpu_s", [0.3, 0.8, 1.2, 2.0, 5.0])
def test_any_command_is_stopped_at_any_moment(
    name: str, cpu_s: float, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments, sentence = COMMANDS[name]
    process = _start(PLAIN, arguments.format(finished=run).split())
    _worked(process, cpu_s)
    if process.poll() is None:
        _ended(process, sentence, may_finish=True)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {
        "study.toml",
        "problem.json",
        "graphs.json",
        "result.json",
        "progress.json",
        "certificate.json",
        "report.html",
        "sweep.json",
        "sweep.csv",
        "sweep.html",
        "journal.sqlite",
        "journal.sqlite-wal",
        "journal.sqlite-shm",
        "front.json",
        "front.csv",
        "front.html",
    }


def test_a_process_that_was_started_to_ignore_interrupts_ignores_them() -> None:
    program = SLOW_IMPORT.format(module="typer", wait="time.sleep(0.5)", heard="SIG_IGN")
    process = _start(program, ["models"])
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0

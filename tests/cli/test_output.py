"""Where standard output takes nothing there is a sentence and an exit code, never a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = [
    ("--help",),
    ("--version",),
    ("models",),
    ("models", "--json"),
    ("plan", "--help"),
    ("estimate", "--gemm", "1x64x64x64", "--chip", "h100", "--json"),
    ("place", "/nope.json", "--json"),
]
PHAZE = (sys.executable, "-c", "from phaze.cli.main import main; main()")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_sentence(
    command: tuple[str, ...], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123 - a device
        ran = subprocess.run(
            [*PHAZE, *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (
        ran.returncode == 2
        and "no space left on device" in ran.stderr
        and "Traceback" not in ran.stderr
    )
    assert all(line.startswith("phaze: ") for line in ran.stderr.splitlines())


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_closed_output_swallows_the_answer(command: tuple[str, ...]) -> None:
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *PHAZE, *command]
    ran = subprocess.run(shell, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == (2 if "/nope.json" in command else 0) and "Traceback" not in ran.stderr
    assert ran.stderr == (
        "phaze: /nope.json: there is no such file.\n" if "/nope.json" in command else ""
    )


@pytest.mark.parametrize("encoding", ["utf-8:strict", "ascii:strict"])
def test_a_name_that_is_no_text_is_escaped(encoding: str, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff"
    plan = Path(__file__).parents[1] / "golden/answers/plan-dense/answer.json"
    command: list[str | bytes] = [*PHAZE, "export", str(plan), "--to", "csv", "--out", odd]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    ran = subprocess.run(command, capture_output=True, check=False, env=environment)
    assert ran.returncode == 0, ran.stderr
    assert rb"\udcff" in ran.stdout.replace(b"\n", b"")

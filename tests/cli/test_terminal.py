"""What people see in a terminal: 80 columns, no colours where there is none, no blanks at the end
of lines."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.main import app
from tests.report.runs import small_run

ROOT = Path(__file__).parent.parent.parent
GPT = "hidden=1024,layers=8,heads=16,vocabulary=51200,sequence=512"
COMMANDS = [
    "technologies",
    "technologies n5",
    "cache",
    "doctor",
    "chips",
    "chips tpu-v4",
    "chips --space paper --count",
    "clusters",
    "clusters dgx-h100",
    "stacks",
    "models",
    "models bert-large",
    "schema",
    "graph --model llama2-7b --tensor 4",
    "estimate --gemm 1x4096x4096x4096 --chip tpu-v4",
    "estimate --vector softmax:16777216:4096 --chip tpu-v4",
    "estimate --collective all_reduce:64MiB:8 --cluster dgx-h100",
    f"schedule {ROOT}/tests/api/operators.json",
    f"place {ROOT}/examples/profile.json",
    f"plan --fixed {ROOT}/examples/run.json",
    f"plan --gpt {GPT} --chip a100-80gb --devices 8 --batch 32 --microbatch 2 --tensor 1,2",
    f"study check {ROOT}/examples/quickstart.toml",
    "validate --silicon",
    "validate --operators",
    "validate --set sc21 --rows",
]
# In a folder with a study, its run, measurements and a plan.
WITH_A_RUN = [
    "new chip --out made-chip.toml",
    "search study.toml --out again",
    "report run",
    "export run --to csv --out chips.csv",
    "export plan.json --to megatron --out flags.sh",
    "verify run",
    "compare study.toml --run run --chip tpu-v4",
    "explain run",
    "sweep study.toml --over training.devices=32,64 --out swept",
    "front study.toml --of throughput,area --out front",
    "calibrate measured.csv --chip a100-80gb --out mine.toml",
]
MEASURED = """operator,batch,m,n,k,elements,rows,seconds
gemm,1,4096,4096,4096,,,6.0e-4
gemm,1,2048,2048,2048,,,9.0e-5
gemm,1,8192,8192,8192,,,4.6e-3
gemm,1,1024,1024,1024,,,2.0e-5
softmax,,,,,16777216,4096,9.0e-5
add,,,,,16777216,,9.0e-5
"""


def _require_plain(said: str) -> None:
    assert "\x1b" not in said
    for line in said.splitlines():
        assert len(line) <= 80 or str(ROOT) in line, line
        assert line == line.rstrip(), repr(line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands of WITH_A_RUN need."""
    made = tmp_path_factory.mktemp("terminal")
    small_run(made)
    (made / "measured.csv").write_text(MEASURED)
    (made / "flat.json").write_text((ROOT / "examples" / "run.json").read_text())
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_output_can_be_pasted_into_a_mail(command: str, phaze: Callable[..., Any]) -> None:
    ran = phaze(*command.split())
    assert ran.code == 0, ran.err
    _require_plain(ran.out)


@pytest.mark.parametrize("command", WITH_A_RUN)
def test_output_about_a_run_can_be_pasted_into_a_mail(
    command: str, folder: Path, phaze: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if "plan.json" in command:
        (folder / "plan.json").write_text(phaze("plan", "--fixed", "flat.json", "--json").out)
    ran = phaze(*command.split())
    assert ran.code == 0, ran.err
    _require_plain(ran.out)
    assert "\x1b" not in ran.err


def _commands() -> list[str]:
    from typer.main import get_command

    found = get_command(app)
    return [name for name, command in found.commands.items() if not command.hidden]  # type: ignore[attr-defined]


def test_every_command_was_looked_at() -> None:
    # ``view`` serves until it is stopped; tests/browser looks at what it shows.
    assert set(_commands()) - {"view"} == {line.split()[0] for line in (*COMMANDS, *WITH_A_RUN)}


@pytest.mark.parametrize("command", _commands())
def test_help_fits_a_terminal(command: str, phaze: Callable[..., Any]) -> None:
    ran = phaze(command, "--help")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_shortages_and_faults_can_be_pasted_too(phaze: Callable[..., Any]) -> None:
    short = phaze(
        "plan", "--model", "gpt3-175b", "--chip", "a100-40gb", "--devices", "8", "--batch", "8"
    )
    assert short.code == 3
    _require_plain(short.out)
    fault = phaze("chips", "tpu-v44")
    assert fault.code == 2
    assert fault.err.startswith("phaze: ")
    assert "\x1b" not in fault.err


def _on_a_terminal(**environment: str) -> bytes:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")
    }
    command = [sys.executable, "-m", "phaze", "clusters", "dgx-h100"]
    subprocess.run(
        command, stdout=theirs, check=True, env={**clean, "TERM": "xterm-256color", **environment}
    )
    os.close(theirs)
    found = b""
    try:
        while part := os.read(ours, 65536):
            found += part
    except OSError:  # the other end is closed and everything was read
        pass
    os.close(ours)
    return found


def test_a_terminal_has_colours_unless_it_says_no() -> None:
    assert b"\x1b[1m" in _on_a_terminal()
    plain = _on_a_terminal(NO_COLOR="1")
    assert b"\x1b[3" not in plain, "a colour"
    assert b"\x1b[9" not in plain, "a bright colour"

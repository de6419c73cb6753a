"""What people see in a terminal: 80 columns, no colours where there is none, no blanks at the end of lines."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
GPT = "hidden=1024,layers=8,heads=16,vocabulary=51200,sequence=512"
COMMANDS = [
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
]


@pytest.mark.parametrize("command", COMMANDS)
def test_output_can_be_pasted_into_a_mail(command: str, phaze: Callable[..., Any]) -> None:
    ran = phaze(*command.split())
    assert ran.code == 0, ran.err
    assert "\x1b" not in ran.out
    for line in ran.out.splitlines():
        assert len(line) <= 80 or str(ROOT) in line, line
        assert line == line.rstrip(), repr(line)


def _on_a_terminal(**environment: str) -> bytes:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    command = [sys.executable, "-m", "phaze", "clusters", "dgx-h100"]
    subprocess.run(command, stdout=theirs, check=True, env={**clean, "TERM": "xterm-256color", **environment})
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

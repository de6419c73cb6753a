"""How long the first commands take, from a new process; printed, not judged."""

import subprocess
import sys
import time

import pytest

COMMANDS = (
    ("--help", 0.3),
    ("chips tpu-v4", None),
    ("chips --space paper --count", None),
)


@pytest.mark.parametrize(("arguments", "budget_s"), COMMANDS)
def test_start(arguments: str, budget_s: float | None) -> None:
    command = [sys.executable, "-c", "from phaze.cli.main import main; main()", *arguments.split()]
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(time.perf_counter() - start)
    print(f"phaze {arguments:32} {min(seconds):6.3f} s   budget {budget_s if budget_s else '-'}")

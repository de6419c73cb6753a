"""Processor seconds of whole commands, each from a new process, with start-up and pages; printed,
not judged.

    pytest -n 0 -m slow -s tests/bench/test_commands.py

Of ``RUNS`` runs, one of what takes long, the least and the median are shown: on a machine that does
other work the least says more. A command that needs the run of another one stands after it. Workers
count; bytecode is written by the first run of all.
"""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

RUNS = 3
# From this mark on a command is run once.
LONG_S = 5.0
PAPER = "--rules icml24"
# What is shown, the command with {run} for a folder, whether its folder is new in every run, and
# the mark in seconds.
COMMANDS: tuple[tuple[str, str, bool, float | None], ...] = (
    ("help", "--help", False, 0.15),
    ("a chip", "chips h100", False, 0.5),
    ("a product", "estimate --gemm 1x4096x4096x4096 --chip tpu-v4", False, 0.5),
    ("plan, one choice", (
        "plan --model llama2-7b --chip h100 --devices 8 --batch 8 "
        "--tensor 1 --microbatch 1"
    ),
     False, 0.5),
    ("plan gpt3-175b, 1,024 A100", (
        "plan --model gpt3-175b --chip a100-80gb "
        "--devices 1024 --batch 1536"
    ), False, 1.5),
    ("plan llama3-70b, 4,096 H100", (
        "plan --model llama3-70b --chip h100 "
        "--devices 4096 --batch 2048"
    ), False, 2.0),
    ("plan mixtral-8x7b, 256 H100", (
        "plan --model mixtral-8x7b --chip h100 "
        "--devices 256 --batch 1024"
    ), False, 1.5),
    ((
        "search bert-large, "
        "paper's space"
    ), (
        f"search --model bert-large {PAPER} "
        f"--out {{run}}/bert"
    ), True, 3.0),
    ("the same again", f"search --model bert-large {PAPER} --out {{run}}/bert", False, 0.5),
    ("its report", "report {run}/bert", False, 1.0),
    ("its explanation", "explain {run}/bert", False, 3.0),
    ("sweep of 7 link rates", f"sweep --model bert-large {PAPER} --over "
        "cluster.link_bytes_per_s=1e9..1e12 "
        "--points 7"
     " --out {run}/sweep", True, 5.0),
    ("front of throughput and area", (
        f"front --model bert-large {PAPER} --of "
        f"throughput,area --out {{run}}/front"
    ),
     True, 10.0),
    ((
        "search t5-large, "
        "paper's space"
    ), (
        f"search --model t5-large {PAPER} "
        f"--out {{run}}/t5"
    ), True, 10.0),
    ("search llama3-70b, n5-reticle", "search --model llama3-70b --out {run}/llama", True, 20.0),
)  # fmt: skip


def _spent(arguments: list[str]) -> tuple[float, float]:
    """Processor seconds of a command and of its workers, and the peak memory of the largest of them
    in GiB."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"
    }
    process = subprocess.Popen(
        [sys.executable, "-c", "from phaze.cli.main import main; main()", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, arguments
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    _spent(["chips", "h100"])
    print(f"\n{'command':34} {'least':>6} {'median':>7}   {'mark':>4} {'GiB':>6}")
    for label, command, fresh, mark in COMMANDS:
        found = []
        for number in range(1 if mark is not None and mark >= LONG_S else RUNS):
            folder = tmp_path / (str(number) if fresh else "0")
            found.append(_spent(command.format(run=folder).split()))
        seconds, held = [one for one, _ in found], max(gib for _, gib in found)
        shown = "-" if mark is None else f"{mark:g}"
        print(
            f"{label:34} {min(seconds):6.2f} {median(seconds):7.2f}   {shown:>4} {held:6.2f}",
            flush=True,
        )

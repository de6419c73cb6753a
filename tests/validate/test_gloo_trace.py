"""A real trace: a small model on two processes of this machine, profiled by PyTorch, its gradients
summed by gloo."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from phaze.validate.measured_step import measured_step
from phaze.validate.profiler_trace import read_trace, trace_text

pytestmark = pytest.mark.slow

STEP = Path(__file__).parent / "gloo_step.py"
# A processor core with room to spare: what a share of it is, is to be found.
CHIP = """
schema = "phaze.chip/2"
name = "cpu-core"
title = "One core of a CPU"
clock = "3 GHz"
clock_basis = "recalled"
technology = "n7"
global_buffer = { size = "8 MiB", width = 512 }
hbm = { stacks = 1, generation = "hbm2", bandwidth = "100 GB/s", size = "16 GiB" }
links = { bandwidth = "10 GB/s", lane = "25 Gb/s" }
formats = { fp32 = 1.0 }

[clusters]
count = 1
arrays = 1
rows = 16
columns = 16
lanes = 64
operand_buffer = "256 KiB"
registers = "64 KiB"
"""
CLUSTER = """
schema = "phaze.cluster/1"
name = "two-processes"
title = "Two processes of one machine"
devices = 2
levels = [{ name = "memory", kind = "switch", size = 2, bandwidth = "10 GB/s", latency = "1 us" }]
"""
RUN = {
    "schema": "phaze.run/1",
    "gpt": {"hidden": 256, "layers": 2, "heads": 4, "vocabulary": 1024, "sequence": 128},
    "chip": "chip.toml",
    "cluster": "cluster.toml",
    "stack": "torchtitan-eager",
    "devices": 2,
    "batch": 8,
    "precision": "fp32",
    "attention": "fused",
    "plan": {"tensor": 1, "pipeline": 1, "data": 2, "microbatch": 4},
}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gloo")
    ranks = [
        subprocess.Popen([sys.executable, str(STEP), str(rank), "2", str(folder)])
        for rank in range(2)
    ]
    assert [rank.wait(timeout=300) for rank in ranks] == [0, 0]
    for name, text in (
        ("chip.toml", CHIP),
        ("cluster.toml", CLUSTER),
        ("run.json", json.dumps(RUN)),
    ):
        (folder / name).write_text(text)
    return folder


def test_operators_and_collectives_of_two_processes_are_seen(traced: Path) -> None:
    paths = [str(traced / f"rank{rank}.json") for rank in range(2)]
    step = measured_step([read_trace(trace_text(path), path) for path in paths])
    assert (step.ranks, step.steps, step.on_device) == (2, 2, False)
    assert {"gemm", "attention", "vector", "optimizer", "collective"} <= set(step.class_s)
    assert all(one.kind == "all_reduce" and one.ranks == 2 for one in step.collectives)
    # The largest gradient: the embedding's, or the last layer's, in 32 bits.
    assert max(one.bytes for one in step.collectives) == 4 * 256 * 1024
    assert step.class_s["gemm"] < step.step_s
    total = sum(step.class_s.values())
    assert step.class_s.get("unknown", 0.0) < 0.25 * total


def test_a_real_trace_ends_in_files_that_plan_takes(
    traced: Path, phaze: Callable[..., Any]
) -> None:
    asked = (
        "--trace",
        traced / "rank0.json",
        "--trace",
        traced / "rank1.json",
        "--run",
        traced / "run.json",
    )
    found = phaze("calibrate", *asked, "--out", traced / "mine", "--json")
    assert found.code == 0, found.err
    document = json.loads(found.out)
    fitted = {one["key"]: one["value"] for one in document["fitted"]}
    assert 0 < fitted["software_share"] <= 1
    reasons = {one["key"]: one["reason"] for one in document["undetermined"]}
    assert reasons["host_time"] == "host and device are the same processor"
    assert "levels[0].share" in fitted or "levels[0]" in reasons
    (traced / "again.json").write_text(json.dumps({**RUN, **document["files"]}))
    priced = phaze("plan", "--fixed", traced / "again.json", "--json")
    assert priced.code == 0, priced.err
    assert json.loads(priced.out)["batch_s"] == pytest.approx(document["step_s"]["fitted"])
    seconds = document["measured"]["seconds"]["gemm"]
    assert seconds["predicted"] < seconds["measured"] * 1.5
    shown = phaze("calibrate", *asked, "--out", traced / "mine")
    assert shown.code == 0
    assert "software_share" in shown.out
    assert "Not determined" in shown.out

"""The search of the paper's whole space: wall and CPU seconds, memory, chips closed, schedules,
placements.

Every search runs in a process of its own, as ``phaze search`` would, so that peak memory is its
own.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

EIGHT = (
    "bert-large", "gpt2-xl", "opt-350m", "llama2-7b", "megatron-bert-large", "megatron-gpt2-54",
    "megatron-gpt2-72",
    "gpt3-175b",
)  # fmt: skip
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from phaze.search.folder import run_in
from phaze.search.question_files import Papers
from phaze.study.load import job_of, study_of
from phaze.study.raw import default_study, with_settings
models, settings, folder = json.loads(sys.argv[1])
start = time.perf_counter()
raw = with_settings(default_study("bench", "icml24") | {"models": models}, settings)
done = run_in(Path(folder), Papers(""), job_of(study_of(raw, "bench")))
memo = done.state.memo
print(json.dumps({
    "wall_s": time.perf_counter() - start, "cpu_s": time.process_time(),
    "gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    "closed": {k: n for k, n in done.document["certificate"]["closed"].items() if n},
    "gap": done.document["certificate"]["gap"], "chip": done.document["chip"]["name"],
    "schedules": len(memo.schedules), "asked": memo.requests, "placements": memo.placements,
}))
"""


def searched(
    models: list[str], settings: list[str], folder: Path, name: str, most_s: float
) -> dict[str, Any]:
    """One search, its line of the table printed."""
    asked = json.dumps([models, settings, str(folder)])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    print(
        f"\n{name:<24}{found['wall_s']:7.1f} s ({most_s:g}) {found['cpu_s']:6.1f} CPU s "
        f"{found['gib']:5.2f} GiB"
        f"  {found['closed']}  {found['schedules']} of {found['asked']} schedules, "
        f"{found['placements']} placements,"
        f" gap {found['gap']:.1e}, {found['chip']}"
    )
    return found


@pytest.mark.parametrize("model", EIGHT)
def test_one_model_in_thirty_seconds(model: str, tmp_path: Path) -> None:
    found = searched([model], [], tmp_path, model, 30)
    assert found["wall_s"] < 30 and found["gib"] < 2 and found["gap"] <= 1e-4


@pytest.mark.parametrize("cluster", ["paper-flat", "selene", "tpu-v4-pod"])
@pytest.mark.parametrize("model", ["bert-large", "llama2-7b", "gpt3-175b"])
def test_one_model_under_rules_cluster_in_a_minute(
    model: str, cluster: str, tmp_path: Path
) -> None:
    settings = ["rules=cluster", f"training.cluster={cluster}", "training.devices=1024"]
    assert searched([model], settings, tmp_path, f"{model}, {cluster}", 60)["gap"] <= 1e-4


def test_an_encoder_and_a_decoder(tmp_path: Path) -> None:
    assert searched(["t5-large"], [], tmp_path, "t5-large", 60)["gap"] <= 1e-4


def test_the_common_chip_of_eight_models_in_five_minutes(tmp_path: Path) -> None:
    found = searched(list(EIGHT), [], tmp_path, "all eight, one chip", 300)
    assert found["wall_s"] < 300 and found["gap"] <= 1e-4


def test_free_lanes_in_two_minutes(tmp_path: Path) -> None:
    found = searched(["bert-large"], ["space=paper-free-lanes"], tmp_path, "free lanes", 120)
    assert found["wall_s"] < 120 and found["gap"] <= 1e-4


@pytest.mark.parametrize(
    "kind", ["throughput_per_watt", "throughput_per_usd", "throughput_per_kgco2e", "energy_delay"]
)
def test_other_objectives(kind: str, tmp_path: Path) -> None:
    assert searched(["bert-large"], [f"objective.kind={kind}"], tmp_path, kind, 60)["gap"] <= 1e-4


MILLION = """
schema = "phaze.space/1"
name = "million"
title = "Over a million chips: the paper's axes, lanes free, HBM and global-buffer bandwidth varied"
base = "tpu-v4-paper"
[axes]
tensor_cores = { from = 1, to = 4096, times = 2 }
rows = { from = 2, to = 256, times = 2 }
columns = { from = 2, to = 256, times = 2 }
vector_cores = { from = 1, to = 4096, times = 2 }
lanes = { from = 2, to = 256, times = 2 }
global_buffer = { from = "2 MiB", to = "128 MiB", times = 2 }
hbm_bandwidth = ["300 GB/s", "600 GB/s", "900 GB/s", "1200 GB/s", "1500 GB/s"]
[core_buffers]
least = "1 KiB"
bytes_per_unit = 16
[keep]
area_of = "tpu-v4-paper"
least_share = 0.3
smaller_with_one_core = true
"""


def test_a_million_chips_in_five_minutes(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(MILLION)
    settings = [f"space={tmp_path}/space.toml", "search.gap=0.001"]
    found = searched(["bert-large"], settings, tmp_path / "run", "1,190,285 chips", 300)
    assert found["wall_s"] < 300 and found["gib"] < 4 and found["gap"] <= 1e-3


def _ten_million() -> str:
    """The same with counts 3, 6, 12 ..., 13 global buffers and 8 HBM bandwidths; docs/growth.py has
    it too."""
    counts = sorted({2**k for k in range(13)} | {3 * 2**k for k in range(11)})
    buffers = [f"{n} MiB" for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)]
    bandwidths = [f"{300 + 1200 * k // 7} GB/s" for k in range(8)]
    grown = {
        "tensor_cores": counts,
        "vector_cores": counts,
        "global_buffer": buffers,
        "hbm_bandwidth": bandwidths,
    }
    lines = [line for line in MILLION.splitlines() if line.split(" ")[0] not in grown]
    at = lines.index("[axes]") + 1
    return "\n".join(
        [
            *lines[:at],
            *(f"{name} = {json.dumps(values)}" for name, values in grown.items()),
            *lines[at:],
        ]
    )


def test_ten_million_chips_in_an_hour(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(_ten_million())
    settings = [f"space={tmp_path}/space.toml", "search.gap=0.001"]
    found = searched(["bert-large"], settings, tmp_path / "run", "10,893,968 chips", 3600)
    assert found["wall_s"] < 3600 and found["gib"] < 0.5 and found["gap"] <= 1e-3


def test_the_first_search_after_the_caches_are_gone(tmp_path: Path) -> None:
    """Nothing compiled: Python's caches and numba's lie in an empty folder."""
    program = "from phaze.cli.main import main; main()"
    command = [sys.executable, "-X", f"pycache_prefix={tmp_path}/python", "-c", program, "search"]
    start = time.perf_counter()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "numba")}
    arguments = ["--model", "bert-large", "--out", str(tmp_path / "run")]
    subprocess.run([*command, *arguments], env=environment, capture_output=True, check=True)
    print(f"\n{'cold, bert-large':<24}{time.perf_counter() - start:7.1f} s (60)")

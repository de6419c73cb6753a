"""A first command after set-up compiles nothing: ``phaze kernels`` warms every kernel for every way
it is called."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from phaze.compiled.sources import warming_modules
from tests.search.test_study import SPACE

ROOT = Path(__file__).parents[2]
GPT = "hidden=256,layers=6,heads=4,vocabulary=512,sequence=64"
STUDY = """schema = "phaze.study/1"
name = "tiny"
space = "space.toml"
models = [{{name = "bert-large", sequence = 64, widths = [1, 2]}}]
rules = "{rules}"
[training]
devices = 8
batch = 16
microbatches = [1]
"""
COMMANDS = [
    "estimate --gemm 1x512x512x512 --chip tpu-v4",
    "estimate --vector softmax:16777216:4096 --chip tpu-v4",
    f"schedule {ROOT}/tests/api/operators.json",
    f"place {ROOT}/examples/profile.json --perfetto place.json",
    (
        f"plan --gpt {GPT} --chip a100-80gb --devices 8 --batch 32 --microbatch 1,2 --tensor "
        "1,2 --html plan.html"
    ),
    f"plan --fixed {ROOT}/examples/run.json --html fixed.html",
    "plan --fixed chunks.json --html chunks.html",
    "search icml24.toml --out flat --workers 1",
    "search cluster.toml --out levels --workers 1",
    "verify flat",
    "verify levels",
    "report flat",
    "compare --run flat",
    "compare --run levels",
    "explain flat",
    "export flat --to perfetto --out flat.json",
    "front icml24.toml --of throughput,area --out front",
    "sweep icml24.toml --over training.devices=8,16 --out swept",
]


def test_every_module_of_kernels_can_be_warmed() -> None:
    names = warming_modules()
    assert "phaze.placement.kernels" in names and "phaze.cost.kernels" in names
    assert all(callable(import_module(name).warm) for name in names)


@pytest.mark.slow
def test_after_warming_no_command_compiles_a_kernel(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    for rules in ("icml24", "cluster"):
        (tmp_path / f"{rules}.toml").write_text(STUDY.format(rules=rules))
    run = json.loads((ROOT / "examples" / "run.json").read_text())
    run["plan"] |= {"pipeline": 2, "data": 16, "microbatch": 1, "chunks": 2}
    (tmp_path / "chunks.json").write_text(json.dumps(run))
    command = [sys.executable, "-m", "tests.cli.compiled", *COMMANDS]
    environment = {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {line: one["said"] for line, one in found.items() if one["code"] != 0} == {}
    found.pop("kernels")
    assert {line: one["compiled"] for line, one in found.items() if one["compiled"]} == {}

"""Every command that reads a file, with good files that it reads: what a fuzz test starts from."""

import contextlib
import io
import json
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from tests.report.runs import PLAN, SPACE, STUDY

ROOT = Path(__file__).parents[2]
PRESETS = ROOT / "src" / "phaze" / "hardware" / "presets"
OPERATORS: dict[str, Any] = {
    "schema": "phaze.operators/1",
    "tensor_cores": 2,
    "vector_cores": 2,
    "operators": [
        {"id": "a", "core": "tensor", "one_core_s": 0.004, "all_cores_s": 0.0025},
        {"id": "b", "core": "vector", "one_core_s": 0.002, "all_cores_s": 0.001},
        {"id": "c", "core": "tensor", "one_core_s": 0.003, "all_cores_s": 0.002},
        {"id": "d", "core": "both", "one_core_s": 0.001, "all_cores_s": 0.001, "network": True},
        {"id": "e", "core": "none", "one_core_s": 0.001, "all_cores_s": 0.001},
    ],
    "edges": [["a", "b"], ["a", "c"], ["b", "d"], ["c", "d"], ["c", "e"]],
}
RUN: dict[str, Any] = {
    "schema": "phaze.run/1",
    "gpt": {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 512},
    "chip": "a100-40gb", "cluster": "selene", "stack": "megatron-2021", "devices": 8, "batch": 64,
    "plan": {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2, "recompute": "full", "zero": 1, "chunks": 1},
}  # fmt: skip
ROWS = (
    "id,model,hidden,layers,heads,vocabulary,sequence,chip,cluster,stack,devices,batch,tensor,pipeline,data,microbatch,"
    "chunks,recompute,sequence_parallel,zero,seconds,memory_gib,source\n"
    "r1,gpt,1024,4,16,51200,512,a100-40gb,selene,megatron-2021,8,64,1,2,4,2,1,full,no,0,1.5,8.5,made\n"
    "r2,gpt,1024,4,16,51200,512,a100-40gb,selene,megatron-2021,8,64,2,2,2,2,1,none,yes,1,1.25,,made\n"
)
MEASURED = (
    "operator,batch,m,n,k,elements,rows,seconds\ngemm,1,1024,1024,1024,,,2e-5\ngemm,1,4096,4096,4096,,,7e-4\n"
    "softmax,,,,,16777216,4096,1e-4\ngemm,8,512,512,64,,,1e-5\ngemm,1,2048,2048,512,,,4e-5\nrelu,,,,,1048576,,1e-5\n"
)


@dataclass(frozen=True)
class Case:
    """A command and the file of it that is made bad; ``raw`` where that file is a document. ``weight``: how often."""

    name: str
    arguments: tuple[str, ...]
    path: Path
    good: bytes
    raw: Any
    weight: int = 10


def _run(*arguments: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as said:
        code = exit_code_of(app, list(arguments))
    assert code == 0, arguments
    return said.getvalue()


def _raw(path: Path) -> Any:
    """A document from TOML or JSON; nothing where it is a table of text."""
    if path.suffix == ".csv":
        return None
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def _folders(folder: Path) -> list[tuple[str, str, int]]:
    """A search, a front and a sweep that have ended; the commands that read them, by the file that is made bad."""
    study, workers = str(folder / "study.toml"), ("--workers", "1")
    _run("search", study, "--out", str(folder / "run"), *workers)
    _run("front", study, "--of", "throughput,area", "--out", str(folder / "front"), *workers)
    run, front = folder / "run", folder / "front"
    found = []
    for file in sorted(path for path in run.rglob("*") if path.suffix in (".json", ".toml")):
        for command in (
            f"report {run} --out {folder}/page.html", f"export {run} --to csv", f"export {run} --to megatron",
            f"export {run} --to perfetto", f"verify {run} --sample 1", f"compare --run {run}",
            f"explain {run} --workers 1",
        ):  # fmt: skip
            found.append((command, str(file), 3 if command.startswith(("verify", "explain", "compare")) else 6))
    for file in sorted(path for path in front.rglob("*") if path.suffix in (".json", ".toml")):
        found.append((f"verify {front} --sample 1", str(file), 3))
    return found


def _singles(folder: Path) -> list[tuple[str, str, int]]:
    """(command, file, weight) of commands that read one file."""
    f = str(folder)
    plan = [
        (f"report {f}/plan.json --out {f}/plan.html", 20), (f"export {f}/plan.json --to csv", 10),
        (f"export {f}/plan.json --to megatron", 10), (f"export {f}/plan.json --to torchtitan", 10),
        (f"export {f}/plan.json --to perfetto", 10),
    ]  # fmt: skip
    return [
        (f"chips {f}/chip.toml", f"{f}/chip.toml", 20),
        (f"chips tpu-v4 --terms {f}/terms.toml", f"{f}/terms.toml", 15),
        (f"chips --space {f}/space.toml --count", f"{f}/space.toml", 20),
        (f"clusters {f}/cluster.toml", f"{f}/cluster.toml", 20),
        (f"stacks {f}/stack.toml", f"{f}/stack.toml", 20),
        (f"estimate --gemm 1x512x512x512 --chip {f}/chip.toml", f"{f}/chip.toml", 20),
        (f"estimate --vector softmax:65536:64 --chip {f}/chip.toml", f"{f}/chip.toml", 10),
        (f"estimate --collective all_reduce:64MiB:16 --cluster {f}/cluster.toml", f"{f}/cluster.toml", 20),
        (f"estimate --graph {f}/graph.json --chip tpu-v4", f"{f}/graph.json", 20),
        (f"graph --model {f}/graph.json", f"{f}/graph.json", 20),
        (f"schedule {f}/operators.json", f"{f}/operators.json", 30),
        (f"place {f}/profile.json", f"{f}/profile.json", 30),
        (f"plan --fixed {f}/run.json", f"{f}/run.json", 30),
        (f"validate {f}/rows.csv", f"{f}/rows.csv", 30),
        (f"calibrate {f}/measured.csv --chip a100-80gb --out {f}/fitted.toml", f"{f}/measured.csv", 10),
        (f"study check {f}/study.toml", f"{f}/study.toml", 20),
        *(
            (f"search {f}/study.toml --out {f}/again --workers 1 --time 2", f"{f}/{file}.toml", 3)
            for file in ("study", "space")  # without a key "space" it would be the 29,360 chips of the paper
        ),
        *((command, f"{f}/plan.json", weight) for command, weight in plan),
    ]


def cases_in(folder: Path, runs: bool) -> list[Case]:
    """All cases, with their good files written into ``folder``; with ``runs`` those of finished searches too."""
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    (folder / "space.toml").write_text(SPACE)
    for kind, name in (("chip", "a100-80gb"), ("cluster", "selene"), ("stack", "megatron-2021")):
        shutil.copy(PRESETS / f"{kind}s" / f"{name}.toml", folder / f"{kind}.toml")
    shutil.copy(PRESETS / "ownership" / "default.toml", folder / "terms.toml")
    (folder / "operators.json").write_text(json.dumps(OPERATORS))
    (folder / "run.json").write_text(json.dumps(RUN))
    (folder / "rows.csv").write_text(ROWS)
    (folder / "measured.csv").write_text(MEASURED)
    profile = json.loads((ROOT / "examples" / "profile.json").read_text())
    (folder / "profile.json").write_text(json.dumps({**profile, "widths": {"1": profile["widths"]["1"]}, "devices": 8}))
    sizes = "hidden=256,layers=2,heads=4,vocabulary=512,sequence=64"
    (folder / "graph.json").write_text(_run("graph", "--gpt", sizes, "--json"))
    (folder / "plan.json").write_text(_run(*PLAN.split(), "--json"))
    found = []
    for command, path, weight in (*_singles(folder), *(_folders(folder) if runs else ())):
        file = Path(path)
        name = command.replace(f"{folder}/", "").split(" --out")[0]
        name += "" if file.name in name else f" ({file.relative_to(folder)})"
        found.append(Case(name, tuple(command.split()), file, file.read_bytes(), _raw(file), weight))
    return found

"""Every command that reads a file, with good files that it reads: what a fuzz test starts from."""

import json
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.fuzz_folders import rows_of_folders
from tests.cli.fuzz_rows import Row, answer_of
from tests.cli.fuzz_theirs import rows_of_theirs, write_theirs
from tests.placement.profile_cases import random_profile
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
    "plan": {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2, "recompute": "full", "zero": 1,
    "chunks": 1},
}  # fmt: skip
# A model that does not fit: its plan has a shortage.
LARGE = {"hidden": 8192, "layers": 8, "heads": 64, "vocabulary": 51200, "sequence": 2048}
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
# Functions of the API that read a file.
APIS = (
    *(
        ("chip", "chip.toml"),
        ("estimate", "chip.toml"),
        ("place", "profile.json"),
        ("place", "clustered.json"),
    ),
    *(
        ("schedule", "operators.json"),
        ("price", "run.json"),
        ("graph", "graph.json"),
        ("load", "plan.json"),
    ),
)
CLUSTER_SEED = 40  # three layers, tied, two tensor widths, four levels, recompute chosen
# Few chips, so that a search of them ends in a fraction of a second.
FEW = SPACE.replace("[4, 16]", "[4, 8]").replace("[32, 128]", "[128]").replace("[64, 256]", "[64]")
STACK = (
    'schema = "phaze.stack/1"\nname = "own"\ntitle = "own"\nbase = '
    '"megatron-2022"\nhost_time = "20 us"\n'
)
# Under rules cluster, with everything that a study may name in files beside it.
CLUSTERED = """schema = "phaze.study/1"
name = "clustered"
rules = "cluster"
models = ["bert-large"]
space = "F/few.toml"
hbm = ["80 GiB"]
[training]
devices = 8
batch = 64
microbatches = [2]
cluster = "F/cluster.toml"
stack = "F/stack.toml"
[objective]
baseline = "F/chip.toml"
"""


@dataclass(frozen=True)
class Case:
    """A command and the file of it that is made bad; ``raw`` where that file is a document.
    ``weight``: how often."""

    name: str
    arguments: tuple[str, ...]
    path: Path
    good: bytes
    raw: Any
    weight: int = 10
    fresh: Path | None = None
    copied: Path | None = None

    def prepare(self) -> None:
        """The folder that the command writes as it should be before: gone, or a copy of a good
        one."""
        if self.fresh is None:
            return
        shutil.rmtree(self.fresh, ignore_errors=True)
        if self.copied is not None:
            shutil.copytree(self.copied, self.fresh)


def _raw(path: Path) -> Any:
    """A document from TOML or JSON; nothing where it is a table of text."""
    if path.suffix not in (".json", ".toml"):
        return None
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def _single_rows(folder: Path) -> list[Row]:
    """Commands that read one file and write nothing of it."""
    f = str(folder)
    plan = (
        "plan --gpt hidden=256,layers=4,heads=4,vocabulary=512,sequence=64 --devices 4 "
        f"--batch 8 --chip {f}/chip.toml"
    )
    plan += f" --cluster {f}/cluster.toml --stack {f}/stack.toml --microbatch 1,2 --tensor 1,2"
    rows = [
        (f"chips {f}/chip.toml", "chip.toml", 20), ((
            "chips tpu-v4 --terms "
            f"{f}/terms.toml"
        ), "terms.toml", 15),
        ((
            "chips --space "
            f"{f}/space.toml --count"
        ), "space.toml", 20), (f"clusters {f}/cluster.toml", "cluster.toml", 20),
        (f"stacks {f}/stack.toml", "stack.toml", 15), (f"stacks {f}/own.toml", "own.toml", 15),
        (f"technologies {f}/technology.toml", "technology.toml", 20),
        (f"chips {f}/second-chip.toml", "second-chip.toml", 8),
        (f"technologies {f}/second-technology.toml", "second-technology.toml", 8),
        (f"chips --space {f}/second-space.toml --count", "second-space.toml", 8),
        (f"schedule --model {f}/graph.json --chip {f}/chip.toml", "graph.json", 8),
        (f"schedule --model {f}/graph.json --chip {f}/chip.toml --rules overlap", "chip.toml", 5),
        (f"study check {f}/tables.toml", "tables.toml", 20),
        (f"estimate --gemm 1x512x512x512 --chip {f}/chip.toml", "chip.toml", 15),
        (f"estimate --vector softmax:65536:64 --chip {f}/chip.toml", "chip.toml", 10),
        ((
            "estimate --collective all_reduce:64MiB:16 "
            f"--cluster {f}/cluster.toml"
        ), "cluster.toml", 20),
        (f"estimate --graph {f}/graph.json --chip tpu-v4", "graph.json", 15),
        (f"graph --model {f}/graph.json", "graph.json", 15),
        (f"schedule {f}/operators.json", "operators.json", 30),
        (f"place {f}/profile.json", "profile.json", 20),
        (f"place {f}/clustered.json", "clustered.json", 30),
        (f"plan --fixed {f}/run.json", "run.json", 20), (f"validate {f}/rows.csv", "rows.csv", 20),
        (f"calibrate {f}/measured.csv --chip a100-80gb --out {f}/fitted.toml", "measured.csv", 10),
        (f"study check {f}/study.toml", "study.toml", 20), ((
            "study check "
            f"{f}/clustered.toml"
        ), "clustered.toml", 10),
        (f"report {f}/plan.json --out {f}/plan.html", "plan.json", 15),
        ((
            f"report {f}/short.json --out "
            f"{f}/plan.html"
        ), "short.json", 8), (f"api load {f}/short.json", "short.json", 5),
        *(((
            f"export {f}/plan.json "
            f"--to {to}"
        ), "plan.json", 5) for to in ("csv", "megatron", "torchtitan", "perfetto")),
        *((plan, file, 10) for file in ("chip.toml", "cluster.toml", "stack.toml")),
        *((plan.replace("/stack.toml", "/own.toml"), "own.toml", weight) for weight in (10,)),
        *((f"api {name} {f}/{file}", file, 8) for name, file in APIS),
        *(((
            f"compare {f}/clustered.toml "
            f"--chip {f}/chip.toml"
        ), file, 3) for file in ("chip.toml", "clustered.toml")),
    ]  # fmt: skip
    return [Row(command, f"{f}/{file}", weight) for command, file, weight in rows]


def _search_rows(folder: Path) -> list[Row]:
    """Commands that search: each input into a folder that is new."""
    f, new = str(folder), str(folder / "new")
    end = f"--out {new} --workers 1"
    kinds = (
        (f"search {f}/study.toml {end} --time 2", ("study.toml", "space.toml"), 5),
        (f"search {f}/clustered.toml {end} --time 2", ("clustered.toml", "few.toml"), 3),
        (f"search {f}/clustered.toml {end}", ("cluster.toml", "stack.toml", "chip.toml"), 4),
        (
            f"front {f}/study.toml --of throughput,power,cost {end} --time 2",
            ("study.toml", "few.toml"),
            4,
        ),
        (f"sweep {f}/study.toml --over training.devices=4,8 {end}", ("study.toml", "few.toml"), 3),
    )
    return [
        Row(command, f"{f}/{file}", weight, new)
        for command, files, weight in kinds
        for file in files
    ]


def _write_files(folder: Path) -> None:
    def put(name: str, text: str) -> None:
        (folder / name).write_text(text, encoding="utf-8")

    sizes = "hidden=256,layers=2,heads=4,vocabulary=512,sequence=64"
    put("graph.json", answer_of("graph", "--gpt", sizes, "--json"))
    small = (
        STUDY.replace("space.toml", str(folder / "few.toml"))
        .replace("= 64", "= 8")
        .replace("= 256", "= 32")
        .replace("[1, 2]", "[1]")
    )
    # A small model, so that a search takes a fraction of a second; the clustered study has a
    # bundled one.
    put(
        "study.toml",
        small.replace('["bert-large"]', f'[{{name = "own", graphs = ["{folder}/graph.json"]}}]'),
    )
    own = (
        f'[{{model = "{folder}/graph.json", weight = 2, sequence = 64}}, '
        f'{{name = "two", graphs = ["g.json"]}}]'
    )
    held = (
        f"[files]\n'g.json' = {json.dumps((folder / 'graph.json').read_text())}\n'few.toml' "
        f"= {json.dumps(FEW)}\n"
    )
    put(
        "tables.toml",
        small.replace('["bert-large"]', own).replace(str(folder / "few.toml"), "few.toml") + held,
    )
    put("space.toml", SPACE)
    put("few.toml", FEW)
    put("clustered.toml", CLUSTERED.replace("F/", f"{folder}/"))
    put("own.toml", STACK)
    for kind, name in (("chip", "a100-80gb"), ("cluster", "selene"), ("stack", "megatron-2021")):
        shutil.copy(PRESETS / f"{kind}s" / f"{name}.toml", folder / f"{kind}.toml")
    shutil.copy(PRESETS / "ownership" / "default.toml", folder / "terms.toml")
    shutil.copy(PRESETS / "technologies" / "n5.toml", folder / "technology.toml")
    # Chips of clusters: a count takes their spaces, and no command the other files yet.
    for kind, name in (("chip", "h100"), ("space", "n5-reticle")):
        shutil.copy(
            PRESETS / "silicon" / f"{kind}s" / f"{name}.toml", folder / f"second-{kind}.toml"
        )
    shutil.copy(PRESETS / "silicon" / "technologies" / "n5.toml", folder / "second-technology.toml")
    put("operators.json", json.dumps(OPERATORS))
    put("run.json", json.dumps(RUN))
    put("rows.csv", ROWS)
    put("measured.csv", MEASURED)
    profile = json.loads((ROOT / "examples" / "profile.json").read_text())
    put(
        "profile.json",
        json.dumps({**profile, "widths": {"1": profile["widths"]["1"]}, "devices": 8}),
    )
    put("clustered.json", json.dumps(random_profile(CLUSTER_SEED)))
    large = {**RUN, "gpt": LARGE, "plan": {**RUN["plan"], "recompute": "none", "zero": 0}}
    put("large.json", json.dumps(large))
    put("short.json", answer_of("plan", "--fixed", str(folder / "large.json"), "--json", code=3))
    put("plan.json", answer_of(*PLAN.split(), "--json"))
    write_theirs(folder)


def cases_in(folder: Path, runs: bool) -> list[Case]:
    """All cases, with their good files written into ``folder``; with ``runs`` those of searches
    too."""
    _write_files(folder)
    found = []
    for row in (
        *_single_rows(folder),
        *(
            (*_search_rows(folder), *rows_of_folders(folder), *rows_of_theirs(folder))
            if runs
            else ()
        ),
    ):
        file, copied = Path(row.path), Path(row.copied) if row.copied else None
        source = file if copied is None else copied / file.relative_to(row.fresh)
        name = row.command.replace(f"{folder}/", "").split(" --out")[0]
        name += "" if name.endswith(file.name) else f" ({file.relative_to(folder)})"
        good, fresh = source.read_bytes(), Path(row.fresh) if row.fresh else None
        found.append(
            Case(
                name,
                tuple(row.command.split()),
                file,
                good,
                _raw(source),
                row.weight,
                fresh,
                copied,
            )
        )
    return found

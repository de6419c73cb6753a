"""Python runs where the caller names it; no file makes any command import code, whatever it
says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import phaze as library
from phaze.api.studies import search
from phaze.cli.tour import COMMANDS, HIDDEN
from phaze.errors import InputError
from phaze.graph.supply.permission import REMEDY
from tests.cli.fuzz_own import CODE, CONFIG
from tests.cli.test_commands import Phaze
from tests.validate.test_rows import changed

# What a hostile file brings along: it leaves a mark when it is imported.
HOSTILE = "import pathlib\n(pathlib.Path(__file__).parent / 'ran').touch()\n" + CODE
PLAN = {"tensor": 1, "pipeline": 1, "data": 4, "microbatch": 1}
JOB = {"chip": "h100", "cluster": "dgx-h100", "devices": 4, "batch": 8}


def _texts(place: str) -> dict[str, str]:
    """Every kind of file that can name a model, each naming ``place``."""
    run = {"schema": "phaze.run/1", "model": place, **JOB, "plan": PLAN}
    study = f'schema = "phaze.study/1"\nname = "s"\nmodels = ["{place}"]\n'
    table = f'schema = "phaze.study/1"\nname = "s"\n[[models]]\nmodel = "{place}"\n'
    job = {
        "model": place,
        **JOB,
        "stack": "megatron-core",
        "precision": "bf16",
        "optimizer": "adam",
        "sequence": 16,
    }
    stage = {"layers": [0, 1], "recompute": "none"}
    planned = {
        "schema": "phaze.plan/1",
        "job": job,
        **PLAN,
        "stages": [stage],
        "breakdown": {},
        "batch_s": 1.0,
    }
    return {
        "study.toml": study,
        "table.toml": table,
        "study.json": json.dumps({"schema": "phaze.study/1", "name": "s", "models": [place]}),
        "run.json": json.dumps(run),
        "rows.csv": changed(model=place, hidden="", layers="", heads=""),
        "plan.json": json.dumps(planned),
        "folder/study.toml": study,
        "folder/problem.json": "{}",
        "folder/result.json": json.dumps(
            {"schema": "phaze.result/1", "chip": {"number": 0, "hbm_bytes": 1}}
        ),
        "proof/plan.json": json.dumps(planned),
        "proof/problem.json": "{}",
        "swept/sweep.json": json.dumps(
            {"schema": "phaze.sweep/1", "over": "training.devices", "points": []}
        ),
        "swept/0/study.toml": study,
    }


SEARCHED = "--workers 1 --set training.devices=4 --set training.batch=8"
# Every command, each place of it where a file can be given; {} is the file.
LINES = (
    *(f"search {{}} {SEARCHED} --out out", f"front {{}} --of throughput,area {SEARCHED} --out out"),
    f"sweep {{}} --over training.devices=4,8 {SEARCHED} --out out",
    *("compare {}", "compare --run {}", "compare {} --chips {}"),
    *(
        "plan --fixed {}",
        "plan --against {}",
        "plan --against {} --chip h100 --devices 4 --batch 8",
    ),
    *("plan --model {} --chip h100 --devices 4 --batch 8", "plan --fixed {} --html page.html"),
    *(
        "validate {}",
        "validate {} --best",
        "calibrate --trace {} --run {}",
        "calibrate {} --chip h100",
    ),
    *(
        "study check {}",
        "verify {}",
        "verify {} --study {}",
        "verify real --study {}",
        "explain {}",
        "report {}",
    ),
    *(
        "export {} --to megatron",
        "export {} --to chakra",
        "graph --model {}",
        "graph --model {} --check",
    ),
    *(
        "estimate --model {} --chip h100",
        "estimate --graph {} --chip h100",
        "schedule {}",
        "place {}",
    ),
    *(
        "schedule --model {} --chip h100",
        "chips {}",
        "chips --space {} --count",
        "clusters {}",
        "stacks {}",
    ),
    *("technologies {}", "models {}", "new study --model {} --out new.toml"),
)
# Those that take no file that could name a model: a server of folders, and what is about the
# installation alone.
WITHOUT = ("cache", "doctor", "schema", "view", HIDDEN)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("", "folder", "proof", "swept/0", "swept"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "hostile.py").write_text(HOSTILE, encoding="utf-8")
    cut = '[[cut]]\nweight = "first.up.weight"\ndim = 0\n'
    (tmp_path / "plan.toml").write_text(f'schema = "phaze.tensor-plan/1"\n{cut}', encoding="utf-8")
    return tmp_path


def _ran(folder: Path) -> list[Path]:
    return sorted(folder.rglob("ran"))


def test_every_command_is_tried() -> None:
    every = set(COMMANDS)
    assert every == {line.split()[0] for line in LINES} | set(WITHOUT) - {HIDDEN}


def test_no_command_runs_code_that_any_kind_of_file_names(folder: Path, phaze: Phaze) -> None:
    texts = _texts("hostile.py:build")
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    for line in LINES:
        for file in (
            *(name for name in texts if "/" not in name),
            "folder/study.toml",
            "folder",
            "proof",
            "swept",
        ):
            said = phaze(*line.replace("{}", file).split())
            assert not _ran(folder), f"phaze {line.replace('{}', file)} ran code"
            assert said.code in (0, 1, 2, 3) and "Traceback" not in said.err, (line, file, said.err)


@pytest.mark.parametrize(
    "line",
    [
        (
            "search study.toml "
            f"{SEARCHED} --out out"
        ), "search table.toml --out out", "compare --run folder",
        (
            "front study.json --of "
            "throughput,area --out out"
        ), "compare table.toml", "plan --fixed run.json",
        (
            "sweep study.toml --over "
            "training.devices=4,8 --out out"
        ), "plan --against run.json", "validate rows.csv",
        "validate rows.csv --best", (
            "calibrate --trace log "
            "--run run.json"
        ), "study check study.toml",
    ],
)  # fmt: skip
# A file beside the document, a module that Python would find, and one with a tensor-parallel plan.
@pytest.mark.parametrize(
    "place", ["hostile.py:build", "hostile:build", "hostile.py:build@plan.toml"]
)
def test_a_file_that_names_code_is_refused_with_what_is_allowed(
    line: str, place: str, folder: Path, phaze: Phaze
) -> None:
    for name, text in _texts(place).items():
        (folder / name).write_text(text, encoding="utf-8")
    said = phaze(*line.split())
    words = " ".join(said.err.split())
    assert said.code == 2 and REMEDY in words and "' is Python code" in words, said.err
    named = next(word for word in line.split() if "." in word or word == "folder")
    assert named in words and not _ran(folder), "the sentence has the path of the file"


def test_functions_refuse_what_their_files_and_values_name(folder: Path) -> None:
    for name, text in _texts("hostile.py:build").items():
        (folder / name).write_text(text, encoding="utf-8")
    study: dict[str, Any] = {"schema": "phaze.study/1", "name": "s", "models": ["hostile.py:build"]}
    run = json.loads((folder / "run.json").read_text())
    for call in (
        lambda: search(study), lambda: search("study.toml"), lambda: library.price(run),
        lambda: library.sweep(study, over="training.devices=4,8"), lambda: library.compare(study),
        lambda: library.front(study, of="throughput,area"), lambda: library.Space(study),
        lambda: library.price("run.json"), lambda: library.validate("rows.csv"),
    ):  # fmt: skip
        with pytest.raises(InputError, match="is Python code"):
            call()
    assert not _ran(folder)


def test_code_runs_where_the_caller_names_or_allows_it(folder: Path, phaze: Phaze) -> None:
    (folder / "run.json").write_text(_texts("hostile.py:build")["run.json"], encoding="utf-8")
    priced = phaze("plan", "--fixed", "run.json", "--allow-code")
    assert priced.code == 0 and _ran(folder), priced.err
    (folder / "ran").unlink()
    # Its graph is kept now: a file that names it is refused all the same, and the answer depends on
    # no cache.
    assert phaze("plan", "--fixed", "run.json").code == 2
    named = phaze("graph", "--model", "hostile:build", "--fresh")
    assert named.code == 0 and _ran(folder), "a module by its name, which the command line gives"


def test_a_configuration_runs_no_code_of_its_own_nor_of_the_working_folder(folder: Path) -> None:
    mark = "import pathlib\n(pathlib.Path(__file__).parent / 'ran').touch()\n"
    for name in (
        "modeling_hostile.py",
        "configuration_hostile.py",
        "torch.py",
        "transformers.py",
        "numpy.py",
    ):
        (folder / name).write_text(mark, encoding="utf-8")
    places = {
        "AutoConfig": "configuration_hostile.Config",
        "AutoModelForCausalLM": "modeling_hostile.Model",
    }
    (folder / "config.json").write_text(
        json.dumps({**CONFIG, "auto_map": places, "trust_remote_code": True})
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [
        str(Path(sys.executable).parent / "phaze"),
        "graph",
        "--model",
        "config.json",
        "--json",
    ]
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0 and json.loads(ran.stdout)["tensor"] == 1, ran.stderr
    assert not _ran(folder)


def test_a_configuration_names_models_of_the_library_alone(folder: Path, phaze: Phaze) -> None:
    (folder / "config.json").write_text(json.dumps({**CONFIG, "architectures": ["Trainer"]}))
    said = phaze("graph", "--model", "config.json", "--check")
    assert said.code == 2 and "transformers has no model Trainer" in said.err

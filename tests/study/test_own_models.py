"""Models of one's own in a study: as tables, beside its file, and in a run that needs neither code
nor torch."""

import json
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from phaze.errors import InputError
from phaze.study.load import study_of
from phaze.study.own_models import with_own_models, with_tables
from phaze.study.raw import read_study
from tests.cli.fuzz_own import CODE, traced_here
from tests.cli.test_commands import Phaze
from tests.few_chips import few_chips

SPACE = few_chips("base.toml")
STUDY = """schema = "phaze.study/1"
rules = "icml24"
name = "both"
space = "space.toml"
hbm = ["32 GiB"]
[training]
devices = 8
batch = 64
sequence = 16
microbatches = [1, 2]
[[models]]
model = "own.py:build"
tensor_plan = "plan.toml"
weight = 2
sequence = 8
widths = [1, 2]
[[models]]
name = "bert-large"
sequence = 32
"""
PLAN = """schema = "phaze.tensor-plan/1"
[[cut]]
weight = "first.up.weight"
dim = 0
[[cut]]
weight = "first.down.weight"
dim = 1
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study in a folder of its own, with all that it names; we are elsewhere."""
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    folder, elsewhere = tmp_path / "study", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    chip = Path(__file__).parents[2] / "src/phaze/hardware/presets/chips/tpu-v4-paper.toml"
    shutil.copy(chip, folder / "base.toml")
    for name, text in (
        ("own.py", CODE),
        ("plan.toml", PLAN),
        ("space.toml", SPACE),
        ("study.toml", STUDY),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    return folder


@pytest.mark.slow
def test_a_study_with_an_own_model_runs_from_anywhere_and_its_run_without_code_or_torch(
    written: Path, phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with traced_here():
        ran = phaze(
            "search",
            written / "study.toml",
            "--allow-code",
            "--out",
            "run",
            "--workers",
            1,
            "--json",
        )
        assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert [model["name"] for model in found["models"]] == ["own-build", "bert-large"]
    graphs = json.loads(Path("run/graphs.json").read_text())["models"][0]
    assert {(g["tensor"], g["microbatch"], g["sequence"]) for g in graphs} == {
        (w, m, 8) for w in (1, 2) for m in (1, 2)
    }
    one, two = (next(g for g in graphs if g["tensor"] == width) for width in (1, 2))
    assert one["layers"] != two["layers"], (
        "a plan that cuts the first block alone makes it another layer than the rest"
    )
    assert "tensor-parallel plan" in ran.err and "sequence 8" in ran.err

    shutil.rmtree(written)
    shutil.rmtree(tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        import_module("phaze.graph.sources"),
        "need_torch",
        lambda *_, **__: pytest.fail("torch is requested"),
    )
    run = "elsewhere/run"
    for command in (
        ("verify", run, "--all"), ("report", run), ("export", run, "--to", "csv"),
        ("search", f"{run}/study.toml", "--out", "again", "--workers", 1),
    ):  # fmt: skip
        said = phaze(*command)
        assert said.code == 0, (command, said.err)
    assert Path("again/result.json").read_bytes() == Path(f"{run}/result.json").read_bytes()


@pytest.mark.slow
def test_a_width_that_a_study_names_and_the_model_lacks_is_refused(written: Path) -> None:
    raw, origin = read_study(str(written / "study.toml"))
    raw["models"] = [{"model": "own.py:build", "widths": [1, 3]}]
    with traced_here(), pytest.raises(InputError, match="3"):
        with_own_models(raw, replace(origin, allow_code=True))


def test_a_table_states_one_source_of_a_model() -> None:
    head = {"schema": "phaze.study/1", "name": "s"}
    for table, said in (
        ({"model": "own.py:build", "graphs": ["g.json"]}, "not both"),
        ({"name": "bert-large", "tensor_plan": "plan.toml"}, "with model"),
        ({"weight": 2}, "name"),
    ):
        with pytest.raises(InputError, match=said):
            study_of({**head, "models": [table]}, "study")
    tables = with_tables({**head, "models": ["own.py:build", "bert-large"]})["models"]
    assert tables == [{"name": "own-build", "model": "own.py:build"}, "bert-large"]


def test_a_path_given_with_set_lies_in_the_working_folder(written: Path, phaze: Phaze) -> None:
    shutil.copy(written / "base.toml", "base.toml")
    Path("space.toml").write_text(SPACE.replace("[8, 32]", "[8, 16, 32]"), encoding="utf-8")
    study = written / "named.toml"
    study.write_text(
        STUDY.split("[[models]]", maxsplit=1)[0].replace("hbm", 'models = ["bert-large"]\nhbm')
    )
    beside = phaze("study", "check", study, "--json")
    here = phaze("study", "check", study, "--set", "space=space.toml", "--json")
    assert beside.code == here.code == 0, beside.err + here.err
    assert (json.loads(beside.out)["chips"], json.loads(here.out)["chips"]) == (2, 3)

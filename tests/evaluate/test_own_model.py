"""A user's own model, planned: traced as it is needed, then planned again and shown without its
code being run."""

import json
from pathlib import Path

import pytest

from phaze.study.places import name_of
from tests.cli.test_commands import Phaze
from tests.few_chips import few_chips
from tests.graph.supply.test_supply import MODEL


def test_an_own_model_is_planned_and_its_plan_shown_without_running_it(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, encoding="utf-8")
    Path("widths.py").write_text("HIDDEN = 64\n", encoding="utf-8")
    job = (
        "plan",
        "--model",
        "model.py:build",
        "--chip",
        "h100",
        "--devices",
        4,
        "--batch",
        8,
        "--microbatch",
        "1",
    )
    asked = (*job, "--tensor", "1,2")
    first = phaze(*asked, "--json")
    kept = {
        file: file.stat().st_mtime_ns for file in (tmp_path / "cache" / "graphs").glob("*.json")
    }
    assert first.code == 0 and len(kept) == 3, "width 1; 2 without and with sequence parallelism"
    assert "TP degrees 1, 2, 4, 8; tensor-parallel plan: inferred, proved on two ranks" in first.err
    found = json.loads(first.out)
    assert found["feasible"] and found["job"]["model"] == "model.py:build" and found["tensor"] == 1
    again = phaze(*asked, "--json")
    assert again.out == first.out and kept == {file: file.stat().st_mtime_ns for file in kept}
    assert phaze(*asked, "--fresh", "--json").out == first.out
    assert all(file.stat().st_mtime_ns > then for file, then in kept.items()), (
        "--fresh traces again"
    )

    Path("plan.json").write_text(first.out, encoding="utf-8")
    assert phaze("report", "plan.json").code == 0
    run = {
        "schema": "phaze.run/1",
        "model": "model.py:build",
        "chip": "h100",
        "cluster": "dgx-h100",
        "devices": 4,
        "batch": 8,
        "attention": found.get("attention", "eager"),
        "plan": {key: found[key] for key in ("tensor", "pipeline", "data", "microbatch")},
    }
    Path("run.json").write_text(json.dumps(run), encoding="utf-8")
    assert phaze("plan", "--fixed", "run.json", "--allow-code").code == 0

    Path("model.py").write_text("open('ran', 'w').close()\n" + MODEL, encoding="utf-8")
    shown = phaze("report", "plan.json")
    assert shown.code == 2 and "a document traces no model" in shown.err
    assert not Path("ran").exists(), "somebody's plan ran somebody's code"


SPACE = few_chips()


@pytest.mark.slow
def test_an_own_model_is_searched_and_its_run_verified_elsewhere_without_its_code(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, encoding="utf-8")
    Path("widths.py").write_text("HIDDEN = 64\n", encoding="utf-8")
    Path("space.toml").write_text(SPACE, encoding="utf-8")
    small = (
        "--set",
        "space=space.toml",
        "--set",
        "training.microbatches=[1, 2]",
        "--set",
        "training.devices=8",
    )
    ran = phaze(
        "search", "--model", "model.py:build", *small, "--set", "training.batch=64", "--json"
    )
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert (
        found["models"][0]["name"] == "model-build" and (tmp_path / "runs" / "model-build").is_dir()
    )
    for name in ("model.py", "widths.py", "space.toml"):
        Path(name).unlink()
    for file in (tmp_path / "cache" / "graphs").iterdir():
        file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert phaze("verify", str(tmp_path / "runs" / "model-build"), "--all").code == 0
    assert phaze("report", str(tmp_path / "runs" / "model-build")).code == 0


def test_a_model_is_called_by_its_file_and_function() -> None:
    assert name_of("models/My_Model.py:build") == "my-model-build"
    assert name_of("my.package.model:Small") == "my.package-small"
    assert name_of("qwen/config.json") == "qwen" and name_of("config.json") == "config"


def test_a_run_file_names_files_beside_it_and_a_plan_only_for_an_own_model(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    presets = Path(__file__).parents[2] / "src" / "phaze" / "hardware" / "presets"
    (folder / "chip.toml").write_text(
        (presets / "chips" / "h100.toml").read_text(), encoding="utf-8"
    )
    plan = {"tensor": 1, "pipeline": 1, "data": 4, "microbatch": 1}
    job = {"chip": "chip.toml", "cluster": "dgx-h100", "devices": 4, "batch": 8, "plan": plan}
    run = {"schema": "phaze.run/1", "model": "bert-large", **job}
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    priced = phaze("plan", "--fixed", "runs/run.json", "--json")
    assert priced.code == 0 and json.loads(priced.out)["job"]["chip"] == "runs/chip.toml", (
        priced.err
    )
    (folder / "run.json").write_text(
        json.dumps({**run, "tensor_plan": "plan.toml"}), encoding="utf-8"
    )
    refused = phaze("plan", "--fixed", "runs/run.json")
    assert refused.code == 2 and "your own model that it shards" in refused.err

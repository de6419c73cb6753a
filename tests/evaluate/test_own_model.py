"""A user's own model, planned: traced as it is needed, then planned again and shown without its code being run."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import Phaze
from tests.graph.supply.test_supply import MODEL


def test_an_own_model_is_planned_and_its_plan_shown_without_running_it(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHAZE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, encoding="utf-8")
    Path("widths.py").write_text("HIDDEN = 64\n", encoding="utf-8")
    asked = ("plan", "--model", "model.py:build", "--chip", "h100", "--devices", 4, "--batch", 8, "--microbatch", "1,2")
    first = phaze(*asked, "--json")
    assert first.code == 0 and "traced 2 of 2" in first.err
    found = json.loads(first.out)
    assert found["feasible"] and found["job"]["model"] == "model.py:build" and found["tensor"] == 1
    again = phaze(*asked, "--json")
    assert again.out == first.out and "traced" not in again.err

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
    assert phaze("plan", "--fixed", "run.json").code == 0

    Path("model.py").write_text("open('ran', 'w').close()\n" + MODEL, encoding="utf-8")
    shown = phaze("report", "plan.json")
    assert shown.code == 2 and "a document does not run it" in shown.err
    assert not Path("ran").exists(), "somebody's plan ran somebody's code"

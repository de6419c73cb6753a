"""Neighbours of the best chip of clusters: one that its fixed power leaves no clock trains
nothing."""

import json
from pathlib import Path

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.explain.neighbours import near_misses, neighbours
from phaze.explain.question import question_of
from tests.search.made_silicon import SMALL

STUDY = {
    "schema": "phaze.study/1",
    "name": "small-silicon",
    "models": [{"name": "bert-large", "widths": [1]}],
    "training": {"devices": 8, "batch": 16, "microbatches": [2]},
}


def test_a_neighbour_that_holds_no_clock_gains_nothing(tmp_path: Path) -> None:
    space = {**SMALL, "axes": {**SMALL["axes"], "clusters": [4, 8, 12]}}
    (tmp_path / "space.json").write_text(json.dumps(space), encoding="utf-8")
    study = {**STUDY, "space": str(tmp_path / "space.json")}
    (tmp_path / "study.json").write_text(json.dumps(study), encoding="utf-8")
    run = str(tmp_path / "run")
    assert (
        exit_code_of(app, ["search", str(tmp_path / "study.json"), "--out", run, "--workers", "1"])
        == 0
    )
    rows = neighbours(question_of(run))
    stopped = [row for row in rows if row.refused is not None and "0.00 GHz" in row.refused]
    assert [row.axis for row in stopped] == ["hbm_stacks"], (
        "four stacks and their links draw all of 180 W"
    )
    assert [row.gain for row in stopped] == [-1.0]
    assert near_misses(rows) == []
    assert all(-1.0 < row.gain < 0 for row in rows if row not in stopped)

"""What the cache keeps of a model is believed only as far as it can be true."""

import json
from pathlib import Path

import pytest

from phaze.graph.supply.cache import GraphCache
from phaze.graph.supply.point import Facts

PLAN = {"schema": "phaze.tensor-plan/1", "cut": [{"weight": "up.weight", "dim": 0}]}


def test_a_kept_plan_is_read_back(tmp_path: Path) -> None:
    kept = GraphCache(tmp_path)
    kept.remember("my.py:build", Facts("my.py:build", 32, None, False, (1, 2), plan=PLAN), [])
    known = kept.cached_model("my.py:build")
    assert known is not None and known.facts.shards


@pytest.mark.parametrize(
    "plan", [{}, {**PLAN, "cut": []}, {**PLAN, "sequence_parallel": "yes"}, {"cut": 3}]
)
def test_a_kept_plan_that_is_none_is_made_again(plan: object, tmp_path: Path) -> None:
    kept = GraphCache(tmp_path)
    kept.remember("my.py:build", Facts("my.py:build", 32, None, False, (1, 2), plan=PLAN), [])
    (path,) = (tmp_path / "models").iterdir()
    raw = json.loads(path.read_text())
    path.write_text(json.dumps({**raw, "facts": {**raw["facts"], "plan": plan}}))
    assert kept.cached_model("my.py:build") is None

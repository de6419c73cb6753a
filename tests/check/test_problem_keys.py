"""``problem.json``: every key that stands in one is documented, and every key that is documented
stands in one."""

import json
from pathlib import Path
from typing import Any

from phaze.check.restricted import OPTIONS
from phaze.study.load import question_of, study_of
from tests.check.problem_keys import documented, tables

# Tables that stand only in some questions: the chip of a plan whose attention kernels were
# measured, degrees above 1, state that some ranks share out, a token budget, options that restrict
# a plan.
SOMETIMES = {
    *(("restricted", option) for option in OPTIONS),
    ("models[].training", "shards"),
    ("models[].configurations[]", "shard"),
    *(("models[].graphs[]", key) for key in ("context", "context_way", "expert", "expert_tensor")),
}


def _asked(**more: Any) -> dict[str, Any]:
    raw = {"schema": "phaze.study/1", "name": "keys", "models": ["bert-large"], **more}
    return dict(question_of(study_of(raw, "keys")).problem)


def test_every_key_is_documented_and_every_documented_one_is_there(
    proof: Path, clusters: Path
) -> None:
    kept = [json.loads((folder / "problem.json").read_text()) for folder in (proof, clusters)]
    several = _asked(rules="cluster", training={"shard": [2]})
    seen = {pair for one in (*kept, _asked(rules="icml24"), several) for pair in tables(one)}
    page = {(row, key) for row, keys in documented().items() for key in keys}
    assert not seen - page, sorted(seen - page)
    left = {
        pair
        for pair in page - seen - SOMETIMES
        if not pair[0].startswith("models[].training.constants.attention")
    }
    assert not left, sorted(left)

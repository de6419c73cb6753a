"""Chips side by side: each stands once, the baseline too, whoever names it."""

import phaze

STUDY = {
    "schema": "phaze.study/1", "name": "once", "rules": "icml24", "models": ["bert-large"],
    "training": {"devices": 8, "batch": 64, "microbatches": [2]},
}  # fmt: skip


def test_a_chip_that_is_named_again_stands_once() -> None:
    once = phaze.compare(STUDY, chips=["tpu-v4-paper", "tpu-v3", "tpu-v3"])
    baseline = once.document["baseline"]
    rows = [(row["chip"], row["placement"]) for row in once.rows]
    assert baseline == "tpu-v4-paper" and len(set(rows)) == len(rows)
    assert {chip for chip, _ in rows} == {"tpu-v4-paper", "tpu-v3"}

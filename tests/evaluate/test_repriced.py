"""A plan's document priced anew from what it says of its plan."""

import json
from pathlib import Path

from phaze.evaluate.repriced import repriced

ANSWER = Path(__file__).parent.parent / "golden" / "answers" / "plan-interleaved" / "answer.json"


def test_a_plan_whose_stages_recompute_in_other_modes_is_priced_anew() -> None:
    document = json.loads(ANSWER.read_text(encoding="utf-8"))
    document["stages"][1]["recompute"] = "full"
    again = repriced(document, 0.06, "plan.json")
    assert [stage["recompute"] for stage in again["stages"][:3]] == [
        "selective",
        "full",
        "selective",
    ]
    assert again["batch_s"] > document["batch_s"]

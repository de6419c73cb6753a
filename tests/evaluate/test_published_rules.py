"""Plans under the rules of the ICML 2024 paper, asked for as any stack is."""

from typing import Any

import pytest

import phaze
from phaze.api.values import NothingFitsError

JOB: dict[str, Any] = {
    "chip": "tpu-v4",
    "batch": 64,
    "stack": "icml24",
    "cluster": "paper-flat",
    "tensor": 1,
}


def test_a_plan_under_the_published_rules_says_so_and_passes_its_check() -> None:
    plan = phaze.plan("bert-large", **JOB, devices=8, microbatch=2, recompute="none").document
    assert plan["rules"] == "icml24"
    assert plan["feasible"]
    assert plan["simulated_s"] <= plan["batch_s"]


def test_what_does_not_fit_under_the_published_rules_says_so() -> None:
    with pytest.raises(NothingFitsError) as raised:
        phaze.plan("gpt3-175b", **JOB, devices=1, microbatch=1)
    assert raised.value.document["rules"] == "icml24"

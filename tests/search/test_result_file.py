"""What a searched model says of its experts is read back whole, or refused."""

from typing import Any

import pytest

from phaze.documents import check
from phaze.errors import InputError
from phaze.search.result_file import AnswerModelTable

STAGE = {
    "layers": [0], "devices": 1, "recompute": "none", "time_s": 1.0, "forward_s": 0.5,
    "backward_s": 0.5,
    "memory_bytes": 1.0, "memory": {"weights": 1},
}  # fmt: skip
MODEL: dict[str, Any] = {
    "devices_used": 8, "batch": 8, "sequence": 8, "tokens_per_s": 32.0,
    "tokens_per_s_per_device": 4.0, "mfu": 0.5,
    "hfu": 0.5, "flops_per_token": 1.0, "run_flops_per_token": 1.0, "name": "one", "weight": 1.0,
    "microbatch": 1,
    "tensor": 1, "attention": "fused", "recompute": "none", "zero": 1, "batch_s": 2.0,
    "throughput_per_s": 4.0,
    "energy_j": 1.0, "power_w": 1.0,
    "memory_left": {
        "left_bytes": 1.0, "left_share": 0.1, "headroom": 0.0,
        "band": {"median": 0.1, "ninetieth": 0.2},
    },
    "plan": {
        "batch_s": 2.0, "lower_bound_s": 2.0, "simulated_s": 2.0, "pipeline": 1, "data": 8,
        "tensor": 1,
        "stages": [STAGE], "breakdown": {},
    },
}  # fmt: skip
SHARED = {"expert": 8, "exchange_s": 0.6, "exchange_hidden_s": 0.3, "expert_nodes": 1}


def test_a_model_says_its_exchange_where_experts_are_shared_out() -> None:
    check(AnswerModelTable, MODEL, "model")
    check(AnswerModelTable, {**MODEL, **SHARED}, "model")


@pytest.mark.parametrize(
    "change",
    [
        {"exchange_s": 0.5, "expert_nodes": 1},
        {"expert": 8},
        {"expert": 8, "exchange_s": 0.6},
        {**SHARED, "exchange_s": "long"},
        {**SHARED, "exchange_s": -1.0},
        {**SHARED, "exchange_s": 2.5},
        {**SHARED, "exchange_hidden_s": 0.7},
        {**SHARED, "expert_nodes": 0},
    ],
)
def test_an_exchange_that_cannot_be_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        check(AnswerModelTable, {**MODEL, **change}, "model")

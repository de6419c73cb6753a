"""Given plans with ranks that share sequences and experts: what they compute, hold and are refused
for."""

from typing import Any

import pytest

import phaze
from phaze.errors import InputError
from phaze.evaluate.job_file import reopened
from phaze.evaluate.parallel_rank import Parallel
from phaze.export.source import planned_split
from phaze.placement.sharing import Sharing
from tests.export.launching import written

LLAMA = {
    "hidden": 1024,
    "layers": 4,
    "heads": 8,
    "mlp": 4096,
    "vocabulary": 32000,
    "sequence": 2048,
}


def _run(given: dict[str, Any], devices: int, batch: int, **plan: Any) -> dict[str, Any]:
    own = {"tensor": 1, "pipeline": 1, "data": devices, "microbatch": 1, "zero": 1, **plan}
    return {
        "schema": "phaze.run/1",
        **given,
        "chip": "h100",
        "cluster": "dgx-h100",
        "stack": "megatron-core",
        "devices": devices,
        "batch": batch,
        "attention": "fused",
        "plan": own,
    }


def _dense(devices: int = 8, **plan: Any) -> dict[str, Any]:
    return _run({"llama": LLAMA}, devices, 64, **plan)


def _mixture(devices: int = 16, **plan: Any) -> dict[str, Any]:
    return _run({"model": "mixtral-8x7b", "sequence": 1024}, devices, 64, **plan)


def _priced(run: dict[str, Any]) -> dict[str, Any]:
    return dict(phaze.price(run).document)


def test_ranks_that_share_a_sequence_hold_less_and_train_the_same_model() -> None:
    alone, shared = _priced(_dense(data=8)), _priced(_dense(data=4, context=2))
    assert shared["context"] == 2
    assert shared["devices_used"] == 8
    assert shared["sequence"] == alone["sequence"]
    assert shared["flops_per_token"] == pytest.approx(alone["flops_per_token"], rel=1e-9)
    assert (
        shared["stages"][0]["memory"]["activations"]
        < 0.6 * alone["stages"][0]["memory"]["activations"]
    )
    assert shared["stages"][0]["memory"]["optimizer"] == pytest.approx(
        alone["stages"][0]["memory"]["optimizer"]
    )


def test_experts_shared_out_leave_room_and_cost_exchanges() -> None:
    whole, shared = _priced(_mixture(data=16)), _priced(_mixture(data=16, expert=8))
    assert shared["expert"] == 8
    assert shared["flops_per_token"] == pytest.approx(whole["flops_per_token"], rel=1e-9)
    assert (
        shared["stages"][0]["memory"]["parameters"]
        < 0.3 * whole["stages"][0]["memory"]["parameters"]
    )
    assert not any("expert parallelism is not planned" in text for text in shared["approximations"])
    assert any("expert parallelism is not planned" in text for text in whole["approximations"])


def test_experts_beside_tensor_and_context_are_cut_as_the_rest_unless_stated() -> None:
    plan = {"tensor": 2, "context": 2, "data": 4, "sequence_parallel": True, "expert": 8}
    cut = _priced(_mixture(**plan))
    whole = _priced(_mixture(**plan, expert_tensor=1))
    assert (cut["expert_tensor"], cut["context"], cut["tensor"]) == (2, 2, 2)
    assert "expert_tensor" not in whole
    for document in (cut, whole):
        assert document["devices_used"] == 16
        assert document["feasible"]


def test_the_state_of_experts_is_shared_out_over_those_that_hold_the_same() -> None:
    every = {p: _priced(_mixture(data=16, expert=p))["stages"][0]["memory"] for p in (2, 4, 8)}
    # Twice as many ranks hold half as many experts each, and half as many the same ones.
    assert every[2]["optimizer"] == pytest.approx(every[8]["optimizer"], rel=1e-9)
    assert every[2]["parameters"] > every[4]["parameters"] > every[8]["parameters"]


def test_zero_shares_out_experts_too_over_those_that_hold_the_same() -> None:
    zero, one, two, three = (
        _priced(_mixture(data=16, expert=4, zero=z))["stages"][0]["memory"] for z in range(4)
    )
    assert zero["optimizer"] > one["optimizer"] == two["optimizer"] == three["optimizer"]
    assert zero["gradients"] == one["gradients"] > two["gradients"] == three["gradients"]
    assert two["parameters"] > three["parameters"]
    # Four ranks hold the same experts: of all but one layer at most three quarters go.
    assert three["parameters"] > 0.2 * two["parameters"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (_dense(data=4, expert=2), "has no experts"),
        (_mixture(data=15, expert=3), "8 experts do not divide by 3"),
        (_mixture(data=12, expert=8), "do not divide the 12 of a stage"),
        (_dense(data=2, context=3), "6 chunks"),
        (_dense(data=8, context=2), "devices"),
        (_mixture(tensor=2, data=8, expert=4), "tokens of its own"),
        (_mixture(data=16, expert_tensor=2), "leave it out"),
        ({**_dense(data=4, context=2), "attention": "eager"}, "use fused attention"),
    ],
)
def test_degrees_that_cannot_be_are_refused_in_a_sentence(run: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        phaze.price(run)


def test_a_priced_run_is_opened_again_as_it_was_priced() -> None:
    run = _mixture(tensor=2, context=2, data=4, sequence_parallel=True, expert=8)
    document = _priced(run)
    again = reopened(document, "plan")
    kinds = {
        op.kind
        for layer in again.model.layers
        for op in layer.forward.operators
        if op.core == "network"
    }
    assert {"all_to_all", "ring", "all_gather", "reduce_scatter"} <= kinds
    assert again.model.sequence == document["sequence"]
    split = planned_split(document, again)
    flags = written("megatron", split)
    for flag in (
        "--context-parallel-size 2",
        "--expert-model-parallel-size 8",
        "--expert-tensor-parallel-size 2",
    ):
        assert flag in flags
    assert "16 x h100" in flags
    dense = _priced(_dense(data=4, context=2))
    job = written("torchtitan", planned_split(dense, reopened(dense, "plan")))
    assert "context_parallel_degree = 2" in job
    assert "Start 8 processes" in job


def test_experts_that_are_not_shared_out_are_no_group_of_their_own() -> None:
    assert Parallel(4, 2).sharing == Sharing(2)
    assert Parallel(4, 2, 8).sharing == Sharing(2, 8, 4)
    assert Parallel(4, 2, 8, 1).sharing == Sharing(2, 8, 1)

"""Modes of recompute by modules: how they are named, what they cost, and that plans choose among
them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import phaze
from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.recomputing import (
    KNOWN,
    joined,
    mode_given,
    mode_named,
    parts_of,
    stack_recomputing,
)
from phaze.hardware.library import load_stack

LLAMA = {
    "hidden": 1024,
    "layers": 8,
    "heads": 8,
    "mlp": 4096,
    "vocabulary": 32000,
    "sequence": 2048,
}


def run(recompute: Any = "none", stack: str = "megatron-core", **plan: Any) -> dict[str, Any]:
    split = {
        "tensor": 1,
        "pipeline": 2,
        "data": 4,
        "microbatch": 1,
        "recompute": recompute,
        "zero": 1,
        **plan,
    }
    where = {"chip": "h100", "cluster": "dgx-h100", "stack": stack, "devices": 8, "batch": 64}
    return {"schema": "phaze.run/1", "llama": LLAMA, **where, "plan": split}


def priced(recompute: Any, stack: str = "megatron-core", **plan: Any) -> dict[str, Any]:
    return dict(phaze.price(run(recompute, stack, **plan)).document)


def most_bytes(document: dict[str, Any]) -> float:
    return float(max(stage["memory_bytes"] for stage in document["stages"]))


def test_modules_lie_between_none_and_full_in_time_and_memory() -> None:
    found = [priced(mode) for mode in ("none", ["mlp"], ["mlp", "layernorm"], "full")]
    seconds, sizes = [one["batch_s"] for one in found], [most_bytes(one) for one in found]
    assert seconds == sorted(seconds) and len(set(seconds)) == 4
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4
    assert {stage["recompute"] for stage in found[2]["stages"]} == {"layernorm+mlp"}
    assert found[1]["hfu"] > found[1]["mfu"] * 1.05


def test_every_second_block_takes_half_of_a_full_recompute() -> None:
    none, half, full = (priced(mode, "torchtitan") for mode in ("none", "alternate", "full"))
    assert half["breakdown"]["recompute_s"] == pytest.approx(full["breakdown"]["recompute_s"] / 2)
    assert most_bytes(full) < most_bytes(half) < most_bytes(none)


def test_a_list_and_its_name_are_the_same_mode() -> None:
    assert priced(["mlp", "layernorm"]) == priced("layernorm+mlp")
    assert (
        mode_named("mlp,layernorm", "--recompute")
        == joined(["mlp", "layernorm"])
        == "layernorm+mlp"
    )
    assert parts_of("layernorm+mlp") == ["layernorm", "mlp"] and parts_of("full") == []


@pytest.mark.parametrize(
    "wrong", [[], ["mpl"], "some", ["mlp", "alternate"], [1], ["none", "mlp"], 3]
)
def test_what_is_no_mode_is_refused_with_what_is_allowed(wrong: Any) -> None:
    with pytest.raises(InputError) as fault:
        priced(wrong)
    assert "recompute" in str(fault.value)


def test_a_module_that_the_stack_cannot_recompute_is_refused() -> None:
    with pytest.raises(InputError, match="torchtitan cannot recompute 'mlp'"):
        priced(["mlp"], "torchtitan")
    with pytest.raises(InputError, match="way to recompute"):
        mode_named("mpl", "--recompute")


def test_a_named_mode_is_offered_alone_and_best_offers_the_stacks_own() -> None:
    stack = load_stack("megatron-core")
    assert stack_recomputing(stack, "best", "") is stack
    assert stack_recomputing(stack, "full", "").recompute_modules == ()
    assert stack_recomputing(stack, "mlp", "").recompute_named == ("mlp",)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([one for one in KNOWN if one != "alternate"]), min_size=1, max_size=5)
)
def test_the_name_of_a_union_does_not_depend_on_order_or_repeats(modules: list[str]) -> None:
    assert (
        mode_given(modules)
        == mode_given(sorted(set(modules), reverse=True))
        == mode_given(mode_given(modules))
    )


def test_a_plan_takes_the_cheapest_mode_that_fits() -> None:
    """Where nothing recomputed does not fit, a part of the block is cheaper than all of it."""
    job: dict[str, Any] = {
        "model": "llama3-8b",
        "chip": "h100",
        "devices": 8,
        "batch": 64,
        "zero": 1,
    }
    best = phaze.plan(**job, microbatch=[2], tensor=[1]).document
    for mode in ("none", "full", "mlp", "mlp,layernorm"):
        try:
            other = phaze.plan(**job, microbatch=[2], tensor=[1], recompute=mode).document
        except InfeasibleError:
            continue
        assert other["batch_s"] >= best["batch_s"] * (1 - 1e-9)
    assert "mlp" in {part for stage in best["stages"] for part in stage["recompute"].split("+")}

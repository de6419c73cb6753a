"""What of a job's state is shared out and sent: hybrid sharding, gathers in 8 bits, precision-aware
optimizers."""

from typing import Any

import pytest

import phaze
from phaze.cost.memory import stack_state, update_bytes
from phaze.errors import InputError
from phaze.evaluate.flow import placed_layers
from phaze.evaluate.layers import Setting, model_table
from phaze.graph.zoo import load_family
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.hardware.stack import StateBytes
from phaze.placement.settings import gathered_share
from phaze.values import replace

SIZES = {
    "hidden": 4096, "layers": 8, "heads": 32, "kv_heads": 8, "head_dim": 128, "mlp": 14336,
    "vocabulary": 32000,
    "sequence": 4096,
}  # fmt: skip
PLAN: dict[str, Any] = {
    "tensor": 1,
    "pipeline": 1,
    "data": 64,
    "microbatch": 1,
    "recompute": "none",
    "zero": 3,
}


def _run(stack: str = "torchtitan", **plan: Any) -> dict[str, Any]:
    return {
        "schema": "phaze.run/1", "llama": SIZES, "chip": "h100", "cluster": "dgx-h100",
        "stack": stack,
        "devices": 64, "batch": 1024, "plan": {**PLAN, **plan},
    }  # fmt: skip


def _priced(stack: str = "torchtitan", precision: str = "bf16", **plan: Any) -> dict[str, Any]:
    return dict(phaze.price(_run(stack, **plan) | {"precision": precision}).document)


def test_state_shared_out_over_fewer_ranks_takes_more_memory_and_less_time_across_nodes() -> None:
    whole, node, pair = _priced(), _priced(shard=8), _priced(shard=2)
    memory = [document["stages"][0]["memory_bytes"] for document in (whole, node, pair)]
    assert memory[0] < memory[1] < memory[2]
    assert node["batch_s"] < whole["batch_s"]
    assert node["shard"] == 8 and "shard" not in whole
    for zero in (1, 2):
        less, all_ = _priced(zero=zero, shard=8), _priced(zero=zero)
        assert less["stages"][0]["memory"]["optimizer"] == pytest.approx(
            8 * all_["stages"][0]["memory"]["optimizer"]
        )


def test_hybrid_sharding_is_planned_and_refused_with_a_sentence() -> None:
    job: dict[str, Any] = {
        "llama": SIZES,
        "chip": "h100",
        "devices": 16,
        "batch": 32,
        "microbatch": [1],
        "tensor": [1],
    }
    found = phaze.plan(**job, shard=[8], zero=3).document
    assert found["shard"] == 8 and found["data"] * found["tensor"] % 8 == 0
    with pytest.raises(InputError, match="--shard: ZeRO 0 shards no state"):
        phaze.plan(**job, shard=[8], zero=0)
    with pytest.raises(InputError, match="shard 3 does not divide the 64 ranks"):
        _priced(shard=3)
    with pytest.raises(InputError, match="only ZeRO 1, 2 and 3 shard state"):
        _priced(shard=8, zero=0)


def test_weights_held_in_8_bits_are_gathered_in_8_bits() -> None:
    model = load_family("llama", SIZES, tensor=1, microbatch=1, attention="fused")
    core = load_stack("megatron-core")
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), core, precision="fp8-delayed")
    placed = [placed_layers(model, model_table(model, setting))]
    blocks = 1 - 2 * 32000 * 4096 / model.parameters
    assert gathered_share(placed, core, "fp8-delayed") == pytest.approx(1 - blocks / 2, rel=1e-3)
    assert gathered_share(placed, core, "bf16") == 1
    assert gathered_share(placed, replace(core, low_precision_weights=False), "fp8-delayed") == 1


def test_a_layer_that_is_gathered_ahead_is_held_beside_the_one_that_runs(tmp_path: Any) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'schema = "phaze.stack/1"\nbase = "torchtitan"\nname = "own"\ntitle = '
        '"own"\nprefetch = "stage"\n'
    )
    ahead, alone = _priced(), _priced(str(own))
    more = ahead["stages"][0]["memory_bytes"] - alone["stages"][0]["memory_bytes"]
    block = (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336) * 6 * 63 / 64
    assert more == pytest.approx(block, rel=0.01)


def test_a_precision_aware_optimizer_holds_and_moves_fewer_bytes() -> None:
    core = load_stack("megatron-core")
    few = StateBytes(main_weight=2.0, gradient=2.0, first_moment=1.0, second_moment=1.0)
    usual, aware = replace(core, state=StateBytes()), replace(core, state=few)
    assert stack_state("bf16", "adam", usual) == stack_state("bf16", "adam", core)
    assert stack_state("bf16", "adam", aware).total == 8
    assert stack_state("fp8-delayed", "adam", aware).optimizer == 4
    assert update_bytes(usual, "bf16", "adam") == update_bytes(core, "bf16", "adam") == 30 + 4
    assert update_bytes(aware, "bf16", "adam") == 2 + 2 * (2 + 1 + 1) + 2 + 4

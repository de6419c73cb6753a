"""fp32: a layer in 32 bits, its products at the chip's rate for them, its bytes doubled but for
casts that are none."""

import pytest

from phaze.errors import InputError
from phaze.evaluate.layers import Setting, model_table
from phaze.graph.ir import Layer
from phaze.graph.opset import flops
from phaze.graph.rewrites.wide_precision import wide_layer
from phaze.graph.zoo import load_family
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.hardware.stack import require_priced
from tests.keys.small import run

SIZES = {
    "hidden": 256, "layers": 2, "heads": 8, "kv_heads": 2, "head_dim": 32, "mlp": 512,
    "vocabulary": 1024,
    "sequence": 128,
}  # fmt: skip
MODEL = load_family(
    "llama", SIZES, tensor=2, microbatch=1, sequence_parallel=True, attention="fused"
)


def _flops(layer: Layer) -> int:
    return sum(flops(op) for graph in (layer.forward, layer.backward) for op in graph.operators)


@pytest.mark.parametrize("layer", MODEL.layers, ids=lambda layer: layer.name)
def test_a_layer_in_32_bits_multiplies_as_much_and_holds_at_most_twice(layer: Layer) -> None:
    wide = wide_layer(layer)
    assert _flops(wide) == _flops(layer)
    assert (
        wide.parameter_elements == layer.parameter_elements
        and wide.parameter_bytes == 2 * layer.parameter_bytes
    )
    for mode in ("none", "selective", "full"):
        narrow, own = getattr(layer, mode), getattr(wide, mode)
        assert (
            narrow.saved_bytes <= own.saved_bytes <= 2 * narrow.saved_bytes
            or narrow.saved_bytes == 0
        )
    sizes = {tensor.id: tensor.element_bytes for tensor in layer.forward.tensors}
    sent = {op.id: op.size("bytes") for op in wide.forward.operators if op.core == "network"}
    for op in layer.forward.operators:
        if op.core == "network":
            assert sent[op.id] == (2 if sizes[op.reads[0].tensor] == 2 else 1) * op.size("bytes")


def test_no_operator_of_32_bits_reads_what_nobody_made() -> None:
    for layer in MODEL.layers:
        wide = wide_layer(layer)
        for graph in (wide.forward, wide.backward):
            made = set(graph.inputs)
            for op in graph.operators:
                assert {access.tensor for access in op.reads} <= made
                made |= {access.tensor for access in op.writes}
            assert set(graph.outputs) <= made
        assert not any(
            tensor.element_bytes == 2 for tensor in (*wide.forward.tensors, *wide.backward.tensors)
        )


def test_products_in_32_bits_take_twice_as_long_where_arrays_are_half_as_fast() -> None:
    sizes = {
        **SIZES,
        "hidden": 4096,
        "heads": 32,
        "head_dim": 128,
        "kv_heads": 8,
        "mlp": 14336,
        "sequence": 4096,
    }
    model = load_family("llama", sizes, tensor=1, microbatch=1, attention="fused")
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), load_stack("megatron-core"))
    wide = Setting(setting.chip, setting.cluster, setting.stack, precision="fp32")
    narrow_s, wide_s = (float(model_table(model, one).forward_s[1, 0]) for one in (setting, wide))
    assert 1.7 < wide_s / narrow_s < 2.6


def test_a_run_in_fp32_is_slower_and_holds_more_and_its_state_is_16_bytes_a_parameter() -> None:
    import phaze

    narrow, wide = (
        phaze.price(
            run(chip="h100", cluster="dgx-h100", stack="megatron-core", precision=precision)
        ).document
        for precision in ("bf16", "fp32")
    )
    assert wide["batch_s"] > narrow["batch_s"]
    first, second = (document["stages"][0]["memory"] for document in (narrow, wide))
    assert second["activations"] > first["activations"]
    state = [
        sum(memory[name] for name in ("parameters", "gradients", "optimizer"))
        for memory in (first, second)
    ]
    assert state[1] == pytest.approx(state[0] * 16 / 18, rel=0.02)


def test_fp32_is_refused_where_chip_or_stack_has_none() -> None:
    core, maxtext = load_stack("megatron-core"), load_stack("maxtext")
    assert require_priced("fp32", core, load_chip("a100-80gb"), "x") == "fp32"
    with pytest.raises(InputError, match="needs arrays of fp32, and tpu-v5p has none but 16 bits"):
        require_priced("fp32", core, load_chip("tpu-v5p"), "x")
    with pytest.raises(InputError, match="'fp32' is not a recipe of the stack maxtext"):
        require_priced("fp32", maxtext, load_chip("h100"), "x")

"""What stacks keep of named models: published counts, and what holds for every graph."""

import pytest

from phaze.graph import sources
from phaze.graph.ir import Attention, Layer, Model
from phaze.graph.saved.buffers import gradient_elements, weight_shapes
from phaze.graph.saved.modes import AS_TRACED, Keeping, Modes, unions, work_of
from phaze.graph.saved.regions import MODULES
from phaze.graph.saved.rules import SAVES, Saves, flow_of, logits
from phaze.graph.supply.point import Rank

NAMES = (
    "llama2-7b",
    "llama3-8b",
    "llama3-70b",
    "mixtral-8x7b",
    "gpt3-175b",
    "bert-large",
    "t5-large",
    "vit-large",
)
# Bytes a token and unit of width. A Llama-3 8B block by count: 2 + 2 (norm and its result), 2 + 1
# (queries, keys and values), 2 (attention), 2 + 2, 4 x 3.5 (gate, up), 2 x 3.5 (their product) and
# statistics.
COUNTED = {
    "llama2-7b": (45.5, 32.2, 22.8),
    "llama3-8b": (52.0, 34.0, 23.0),
    "llama3-70b": (52.0, 33.5, 22.5),
    "mixtral-8x7b": (88.1, 59.0, 45.1),
}
HIDDEN = {
    "llama2-7b": 4096,
    "llama3-8b": 4096,
    "llama3-70b": 8192,
    "mixtral-8x7b": 4096,
    "gpt3-175b": 12288,
}


def model(
    name: str, tensor: int = 1, attention: Attention = "fused", sequence: int | None = None
) -> Model:
    return sources.load(
        sources.ModelRequest(name, rank=Rank(tensor, 1, sequence, attention, tensor > 1))
    )


def block(own: Model) -> Layer:
    return max(enumerate(own.layers), key=lambda pair: own.count(pair[0]))[1]


def kept_bytes(layer: Layer, rule: Saves) -> int:
    """What a stack keeps of a layer when nothing is recomputed."""
    return Modes(layer, Keeping(rule)).none_bytes


@pytest.mark.parametrize("name", COUNTED)
def test_a_block_keeps_the_bytes_that_its_kernels_count(name: str) -> None:
    own = model(name, sequence=4096)
    for rule, counted in zip(SAVES, COUNTED[name], strict=True):
        kept = kept_bytes(block(own), rule)
        assert kept / HIDDEN[name] / 4096 == pytest.approx(counted, abs=0.06)


def test_a_gpt_block_keeps_34_h_with_fused_attention() -> None:
    """Korthikanti et al. 2022: 34 s b h without the scores, masks of dropout with it."""
    layer = block(model("gpt3-175b", sequence=2048))
    for rule in ("trace", "kernels"):
        assert kept_bytes(layer, rule) / 12288 / 2048 == pytest.approx(34.0, abs=0.05)


@pytest.mark.parametrize("attention", ["eager", "fused"])
@pytest.mark.parametrize("tensor", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_no_rule_keeps_more_than_eager_pytorch_saves(
    name: str, tensor: int, attention: Attention
) -> None:
    for layer in model(name, tensor, attention).layers:
        assert kept_bytes(layer, "trace") == layer.none.saved_bytes
        for rule in ("kernels", "mincut"):
            assert kept_bytes(layer, rule) <= layer.none.saved_bytes


@pytest.mark.parametrize("rule", SAVES)
@pytest.mark.parametrize("name", NAMES)
def test_a_mode_that_keeps_less_holds_no_more_with_one_microbatch_in_flight(
    name: str, rule: Saves
) -> None:
    keeping = Keeping(rule, 6.0, "scores", MODULES)
    for layer in model(name, 2, "eager").layers:
        modes = Modes(layer, keeping)
        none = modes.none()
        for own in ("selective", *modes.regions, *unions(modes), "alternate", "full"):
            mode = modes.of(own)
            assert 0 <= mode.saved_bytes <= none.saved_bytes, own
            most = none.saved_bytes + none.live_bytes + (own == "alternate") * none.saved_bytes
            assert mode.saved_bytes + mode.live_bytes <= most, own


@pytest.mark.parametrize("name", NAMES)
def test_selective_is_what_the_trace_says_under_the_rule_trace(name: str) -> None:
    for own in (model(name, 1, "eager"), model(name, 1, "fused")):
        for layer in own.layers:
            mode = Modes(layer, AS_TRACED).selective()
            assert mode.saved_bytes == layer.selective.saved_bytes
            assert mode.rerun == layer.selective.rerun


def test_logits_are_the_result_of_the_vocabulary_product() -> None:
    own = model("llama3-8b", sequence=4096)
    last = own.layers[own.calls[-1].layer]
    tensor = logits(last)
    assert tensor is not None and flow_of(last).tensors[tensor].elements == 4096 * 128256
    assert all(logits(layer) is None for layer in own.layers if layer is not last)
    modes = Modes(last, Keeping("kernels", 6.0))
    assert modes.logit_bytes == 6 * 4096 * 128256
    assert modes.none_bytes == 2 * 2 * 4096 * 4096


def test_weights_that_read_one_activation_share_a_shape() -> None:
    layer = block(model("llama3-8b"))
    h, f = 4096, 14336
    assert weight_shapes(layer) == {(h + 2 * 1024, h), (h, h), (2 * f, h), (h, f)}
    assert gradient_elements(layer) == (h + 2048) * h + h * h + 3 * f * h


def test_megatron_modules_of_a_llama_block_drop_what_they_say() -> None:
    layer = block(model("llama3-8b", sequence=4096))
    modes = Modes(layer, Keeping("kernels", None, "scores", MODULES))
    token = 4096 * 4096
    assert set(modes.regions) == {"core_attn", "layernorm", "mlp"}
    saved = {
        name: (modes.none_bytes - modes.of(name).saved_bytes) / token for name in modes.regions
    }
    # Attention keeps its result for the next product; both norms' results; gate, up and their
    # product.
    assert saved == pytest.approx({"core_attn": 0.03125, "layernorm": 4.0, "mlp": 21.0})
    kinds = [op.kind for op in modes.of("mlp").rerun.operators]
    assert kinds == ["product", "silu", "product", "multiply"]
    assert unions(modes) == ("layernorm", "mlp", "layernorm+mlp")


def test_megatron_modules_of_experts() -> None:
    layer = block(model("mixtral-8x7b", sequence=4096))
    modes = Modes(layer, Keeping("kernels", None, "scores", MODULES))
    assert set(modes.regions) == {"core_attn", "layernorm", "moe_act", "moe"}
    assert (modes.none_bytes - modes.of("moe_act").saved_bytes) / 4096**2 == pytest.approx(14.0)
    assert [op.kind for op in modes.of("moe_act").rerun.operators] == ["silu", "multiply"]


def test_operator_level_selective_keeps_every_second_product() -> None:
    """Inputs 2, queries 2, values 0.5, attention 2, gate 7, down 2 bytes a token and unit of width,
    and statistics."""
    layer = block(model("llama3-8b", sequence=4096))
    mode = Modes(layer, Keeping("mincut", None, "operators")).selective()
    assert mode.saved_bytes / 4096**2 == pytest.approx(15.5 + 0.03125)
    assert 0.3 < work_of(mode.rerun) / work_of(layer.forward) < 0.6

"""What a traced model must have, by public formulas: products, saved activations, collectives,
folds, parameters."""

import math
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from phaze.errors import InputError
from phaze.graph import opset
from phaze.graph.ir import Layer, Model, OperatorGraph
from phaze.graph.torch.fake import without_weights
from phaze.graph.torch.families import Gpt, GptModel
from phaze.graph.torch.hf import hf_config, hf_source
from phaze.graph.torch.named import NAMED
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.source import gpt_source, named_source
from phaze.graph.torch.trace import discover, trace_model
from tests.graph.torch.small import EVERY, small

GPT = Gpt(hidden=512, layers=2, heads=8, vocabulary=1024, sequence=256)


def flops(graph: OperatorGraph) -> int:
    return sum(opset.flops(operator) for operator in graph.operators)


def collectives(graph: OperatorGraph) -> list[str]:
    return sorted(operator.kind for operator in graph.operators if operator.core == "network")


def block(model: Model) -> Layer:
    """The layer that was folded most."""
    return model.layers[max(range(len(model.layers)), key=model.count)]


def total_flops(model: Model) -> int:
    return sum(flops(model.layers[call.layer].forward) for call in model.calls)


def test_products_of_a_gpt_block_are_24_b_s_h2_and_attention() -> None:
    b, s, h = 2, GPT.sequence, GPT.hidden
    found = flops(block(trace_model(gpt_source(GPT), microbatch=b)).forward)
    assert found == pytest.approx(24 * b * s * h**2 * (1 + s / (6 * h)), rel=0.01)


@pytest.mark.parametrize("name", EVERY)
def test_backward_does_twice_the_products_of_forward(name: str) -> None:
    for layer in trace_model(small(name)).layers:
        if layer.name not in ("prologue", "model"):
            assert flops(layer.backward) == pytest.approx(2 * flops(layer.forward), rel=0.01)


def test_a_frozen_weight_has_no_gradient_product() -> None:
    def build(shape: TensorShape) -> TracedProgram:
        module = GptModel(GPT, shape.fused)
        for each in module.blocks:
            assert isinstance(each, nn.Module)
            each.get_parameter("mlp.up.weight").requires_grad_(False)
        tokens = torch.zeros(shape.sequence, shape.microbatch, dtype=torch.long)
        return TracedProgram(module, tokens, lambda: module(tokens, tokens))

    frozen = Source("frozen", build, GPT.sequence, GPT.sequence, False, None)
    less = block(trace_model(frozen))
    more = block(trace_model(gpt_source(GPT)))
    assert (
        flops(more.backward) - flops(less.backward)
        == 2 * GPT.sequence * GPT.hidden * 4 * GPT.hidden
    )
    assert [p.name for p in less.parameters if not p.trained] == ["mlp.up.weight"]


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_saved_activations_of_a_gpt_block_follow_the_published_formula(
    tensor: int, sequence_parallel: bool
) -> None:
    b, s, h, a, t = 2, GPT.sequence, GPT.hidden, GPT.heads, tensor
    model = trace_model(
        gpt_source(GPT), tensor=t, microbatch=b, sequence_parallel=sequence_parallel
    )
    scores = 5 * a * s / (h * t)
    kept = s * b * h * (34 / t + scores if sequence_parallel else 10 + 24 / t + scores)
    assert block(model).none.saved_bytes == pytest.approx(kept, rel=0.01 if t == 1 else 0.02)
    assert block(model).selective.saved_bytes == pytest.approx(kept - s * b * h * scores, rel=0.02)
    assert block(model).full.saved_bytes == 2 * s * b * h // (t if sequence_parallel else 1)


@pytest.mark.parametrize("tensor", [1, 4])
def test_saved_activations_of_bert_follow_the_published_formula(tensor: int) -> None:
    b, s, h, a, t = 1, 512, 1024, 16, tensor
    source = named_source("bert-large", num_hidden_layers=2)
    for sequence_parallel in (False, True):
        model = trace_model(source, tensor=t, microbatch=b, sequence_parallel=sequence_parallel)
        rest = 34 / t if sequence_parallel else 10 + 24 / t
        assert block(model).none.saved_bytes == pytest.approx(
            s * b * h * (rest + 5 * a * s / (h * t)), rel=0.01
        )


def test_gpt2_of_transformers_keeps_24_sbh_more_for_its_gelu_of_five_operators() -> None:
    s, h, a = 256, 512, 8
    source = named_source("gpt2-xl", n_embd=h, n_head=a, n_layer=2, n_positions=s, vocab_size=512)
    kept = block(trace_model(source, sequence=s)).none.saved_bytes
    assert kept == pytest.approx(s * h * (34 + 24 + 5 * a * s / h), rel=0.01)


def test_fused_attention_keeps_no_scores() -> None:
    b, s, h = 2, GPT.sequence, GPT.hidden
    model = trace_model(gpt_source(GPT), microbatch=b, attention="fused")
    assert block(model).none.saved_bytes == pytest.approx(34 * s * b * h, rel=0.01)
    assert [o.kind for o in block(model).forward.operators].count("attention") == 1
    eager = trace_model(gpt_source(GPT), microbatch=b)
    assert flops(block(model).forward) == flops(block(eager).forward)


@pytest.mark.parametrize("name", EVERY)
def test_fused_attention_leaves_no_product_of_two_activations(name: str) -> None:
    model = trace_model(small(name), tensor=2, sequence_parallel=True, attention="fused")
    assert not any("nothing is fused" in text for text in model.approximations)
    layer = next(layer for layer in model.layers if "." in layer.name)
    kinds = [operator.kind for operator in (*layer.forward.operators, *layer.backward.operators)]
    assert (
        kinds.count("attention")
        == kinds.count("attention_backward")
        == (2 if layer.name[:7] == "decoder" else 1)
    )
    assert layer.selective.saved_bytes == layer.none.saved_bytes
    assert "softmax" not in kinds or name == "mixtral-8x7b"


@pytest.mark.parametrize("name", EVERY)
def test_equal_layers_fold(name: str) -> None:
    model = trace_model(small(name))
    blocks = [
        layer
        for layer in model.layers
        if "." in layer.name and not layer.name.startswith("between")
    ]
    assert len(blocks) == (4 if name == "t5-large" else 1)


def test_a_changed_layer_in_the_middle_does_not_fold() -> None:
    def build(shape: TensorShape) -> TracedProgram:
        module = GptModel(GPT, shape.fused)
        module.blocks.insert(1, nn.TransformerEncoderLayer(GPT.hidden, GPT.heads))
        module.blocks.append(module.blocks[0])
        tokens = torch.zeros(shape.sequence, shape.microbatch, dtype=torch.long)
        return TracedProgram(module, tokens, lambda: module(tokens, tokens))

    found = discover(Source("changed", build, 256, 256, False, None))
    assert found.classes == (0, 1, 0, 0)


def test_a_setting_that_changes_no_shape_does_not_fold() -> None:
    def build(shape: TensorShape) -> TracedProgram:
        module = GptModel(GPT, shape.fused)
        module.blocks[1].dropout = nn.Dropout(0.3)
        tokens = torch.zeros(shape.sequence, shape.microbatch, dtype=torch.long)
        return TracedProgram(module, tokens, lambda: module(tokens, tokens))

    assert discover(Source("changed", build, 256, 256, False, None)).classes == (0, 1)


@pytest.mark.parametrize(
    "name", ["llama3-8b", "llama", "gpt", "bert-large", "gpt2-xl", "opt-350m", "vit-large"]
)
def test_a_block_reduces_twice_in_each_pass(name: str) -> None:
    layer = block(trace_model(small(name), tensor=2))
    assert collectives(layer.forward) == ["all_reduce"] * 2
    assert collectives(layer.backward) == ["all_reduce"] * 2


def test_sequence_parallel_gathers_again_in_backward() -> None:
    layer = block(trace_model(small("llama3-8b"), tensor=2, sequence_parallel=True))
    assert collectives(layer.forward) == ["all_gather"] * 2 + ["reduce_scatter"] * 2
    assert collectives(layer.backward) == ["all_gather"] * 4 + ["reduce_scatter"] * 2


def test_the_loss_over_a_split_vocabulary_needs_three_small_reductions() -> None:
    model = trace_model(gpt_source(GPT), tensor=2)
    prologue, epilogue = model.layers[0], model.layers[-1]
    assert collectives(prologue.forward) == ["all_reduce"]
    assert collectives(epilogue.forward) == ["all_reduce"] * 3
    assert collectives(epilogue.backward) == ["all_reduce"]
    small_ones = [o.size("bytes") for o in epilogue.forward.operators if o.core == "network"]
    assert small_ones == [4 * GPT.sequence] * 3


@pytest.mark.parametrize("name", ["llama3-8b", "gpt", "t5-large", "mixtral-8x7b"])
def test_ranks_share_the_work(name: str) -> None:
    alone = total_flops(trace_model(small(name)))
    assert 2 * total_flops(trace_model(small(name), tensor=2)) == pytest.approx(alone, rel=0.01)


def _built(source: Source) -> int:
    with without_weights():
        module = source.build(TensorShape(1, source.sequence)).module
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("name", EVERY)
def test_parameters_are_those_that_pytorch_counts(name: str) -> None:
    assert trace_model(small(name)).parameters == _built(small(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMED)
def test_named_models_have_the_parameters_that_pytorch_counts(name: str) -> None:
    assert trace_model(named_source(name)).parameters == _built(named_source(name))


def test_a_width_that_does_not_divide_is_the_fullest_rank_and_says_so() -> None:
    source = named_source("gpt2-xl", n_embd=80, n_head=5, n_layer=2, n_positions=16, vocab_size=51)
    model = trace_model(source, tensor=2, sequence=16)
    scores = next(
        o for o in block(model).forward.operators if o.kind == "product" and o.size("n") == 16
    )
    assert scores.size("batch") == math.ceil(5 / 2)
    assert any("do not divide by 2" in text and "holds 3" in text for text in model.approximations)
    assert any("51 tokens" in text for text in model.approximations)


def test_query_key_and_value_of_a_head_stay_together() -> None:
    model = trace_model(
        small("gpt_neox"), tensor=3
    )  # 4 heads: two on the fullest rank, not 12 thirds of heads
    fused = next(o for o in block(model).forward.operators if o.module.endswith("query_key_value"))
    assert fused.size("n") == 2 * 3 * 8
    assert any(
        "4 pieces do not divide by 3" in text and "holds 2" in text for text in model.approximations
    )


def test_code_that_fails_at_a_width_that_does_not_divide_says_so() -> None:
    with pytest.raises(
        InputError, match=r"multiple of 16 bytes.*try a width that divides: .* do not divide by 3"
    ):
        trace_model(small("deepseek_v2"), tensor=3)


def test_grouped_queries_refuse_a_width_that_splits_a_group() -> None:
    with pytest.raises(InputError, match="2 heads do not divide by 4; TP degrees: 1, 2"):
        trace_model(small("llama3-8b"), tensor=4)


def test_numbers_do_not_depend_on_sizes() -> None:
    one = trace_model(gpt_source(GPT), microbatch=2)
    two = trace_model(
        gpt_source(Gpt(hidden=256, layers=2, heads=4, vocabulary=512, sequence=128)), microbatch=4
    )
    for left, right in zip(one.layers, two.layers, strict=True):
        for a, b in ((left.forward, right.forward), (left.backward, right.backward)):
            assert [(o.id, o.kind, [r.tensor for r in o.reads]) for o in a.operators] == [
                (o.id, o.kind, [r.tensor for r in o.reads]) for o in b.operators
            ]
            assert (a.inputs, a.outputs) == (b.inputs, b.outputs)
        assert left.none.saved == right.none.saved


def test_two_traces_are_equal() -> None:
    assert trace_model(small("t5-large"), tensor=2) == trace_model(small("t5-large"), tensor=2)


@pytest.mark.parametrize("name", EVERY)
def test_every_tensor_has_one_writer_and_every_read_a_source(name: str) -> None:
    for layer in trace_model(small(name), tensor=2).layers:
        known = {t.id for t in layer.forward.tensors if t.role != "intermediate"}
        known |= {
            t.id for t in layer.backward.tensors if t.role in ("input", "constant", "parameter")
        }
        for operator in (*layer.forward.operators, *layer.backward.operators):
            assert all(access.tensor in known for access in operator.reads), (layer.name, operator)
            written = {access.tensor for access in operator.writes}
            assert not written & known
            known |= written


def test_encoder_and_decoder_are_a_graph() -> None:
    model = trace_model(small("t5-large"))
    names = [call.module for call in model.calls]
    edges = {(names[edge.source], names[edge.target]) for edge in model.edges}
    encoded = next(name for name in names if name.startswith("between"))
    assert {(encoded, f"decoder.block.{i}") for i in range(2)} <= edges
    assert ("encoder.block.0", "encoder.block.1") in edges
    assert all(edge.gradient_bytes == edge.bytes for edge in model.edges)


def test_a_chain_passes_its_hidden_state() -> None:
    model = trace_model(gpt_source(GPT), microbatch=2)
    size = 2 * 2 * GPT.sequence * GPT.hidden
    assert [(e.source, e.target, e.bytes) for e in model.edges] == [
        (i, i + 1, size) for i in range(3)
    ]
    assert [(tie.name, tie.calls) for tie in model.ties] == [("embedding.weight", (0, 3))]
    assert tuple(layer.shared_bytes for layer in model.layers)[1] == 0


def test_a_sequence_longer_than_the_positions_is_refused() -> None:
    with pytest.raises(InputError, match="has 256 positions, 300 were requested"):
        trace_model(gpt_source(GPT), sequence=300)


@pytest.mark.parametrize(
    ("scaling", "usual", "longest"),
    [
        (None, 2048, 2048),
        ({"rope_type": "dynamic", "factor": 4.0}, 2048, 8192),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}, 2048, 2048),
    ],
    ids=["none", "from its positions", "counted already"],
)
def test_rotary_positions_reach_as_far_as_their_scaling(
    scaling: Any, usual: int, longest: int
) -> None:
    sizes = {
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "intermediate_size": 32,
    }
    raw = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "max_position_embeddings": 2048,
        **sizes,
    }
    source = hf_source(
        "mine", hf_config({**raw, "vocab_size": 64, "rope_scaling": scaling}, "mine")
    )
    assert (source.sequence, source.longest) == (usual, longest)
    if longest > usual:
        assert trace_model(source, sequence=longest).sequence == longest
    if (
        scaling is not None and scaling["rope_type"] == "dynamic"
    ):  # its rates depend on the length that comes in
        with pytest.raises(InputError, match=f"has {longest} positions"):
            trace_model(source, sequence=longest + 1)
        return
    beyond = trace_model(source, sequence=longest + 1)
    assert beyond.sequence == longest + 1
    assert any("extended" in text for text in beyond.approximations)


def test_experts_are_said_to_be_balanced() -> None:
    model = trace_model(small("mixtral-8x7b"), microbatch=2, sequence=16)
    assert any("equally loaded" in text for text in model.approximations)
    grouped = [
        o
        for o in block(model).forward.operators
        if o.kind == "product" and o.size("batch") == 4 and o.module.endswith("experts")
    ]
    assert [o.size("m") for o in grouped] == [2 * 16 * 2 // 4] * 2


def test_gradients_of_what_several_blocks_read_are_summed_where_it_was_made() -> None:
    model = trace_model(small("t5-large", num_layers=4, num_decoder_layers=5), sequence=16)
    sums = {
        layer.name: [
            dict(op.sizes)["elements"] for op in layer.backward.operators if op.kind == "accumulate"
        ]
        for layer in model.layers
    }
    bias, hidden = 4 * 16 * 16, 16 * 32
    assert {name: found for name, found in sums.items() if found} == {
        "encoder.block.0": [bias] * 2,  # read by three later blocks
        "between.8": [hidden] * 4,  # the encoder's result, read by five blocks
        "decoder.block.0": [bias] * 3,
    }
    assert any(
        "encoder.block.0, between.8, decoder.block.0 is read by several" in t
        for t in model.approximations
    )

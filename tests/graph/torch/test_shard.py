"""Plans and the surgery they ask for: translation, refusals, what stays whole."""

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from phaze.errors import InputError
from phaze.graph.torch.hf import hf_config, hf_source
from phaze.graph.torch.hf_plans import translate
from phaze.graph.torch.plans import ShardingPlan, TensorSplit
from phaze.graph.torch.program import Source, TensorShape, TracedProgram
from phaze.graph.torch.shard import owned
from phaze.graph.torch.trace import trace_model
from tests.graph.torch.small import CHANGES, small


def of_type(model_type: str, architecture: str, **more: Any) -> Source:
    sizes = {**CHANGES["llama3-8b"], "head_dim": 8, **more}
    return hf_source(
        model_type,
        hf_config({"model_type": model_type, "architectures": [architecture], **sizes}, ""),
    )


def test_rank_zero_is_the_fullest_and_all_pieces_are_owned_once() -> None:
    for units in range(1, 40):
        for width in range(1, 9):
            pieces = [owned(units, width, rank) for rank in range(width)]
            assert sum(count for _, count in pieces) == units
            assert max(count for _, count in pieces) == pieces[0][1]


def test_the_plan_that_transformers_ships_is_translated() -> None:
    shipped = {
        "layers.*.self_attn.q_proj": "colwise",
        "layers.*.mlp.down_proj": "rowwise",
        "layers.*.mlp.experts.gate_up_proj": "packed_colwise",
        "layers.*.mlp.experts.down_proj": "rowwise",
        "layers.*.mlp.experts": "moe_tp_experts",
        "lm_head": "colwise_gather_output",
    }
    assert translate(shipped, "") == ShardingPlan(
        (
            TensorSplit("*layers.*.self_attn.q_proj", "column", "head_dim"),
            TensorSplit("*layers.*.mlp.down_proj", "row"),
            TensorSplit(
                "*layers.*.mlp.experts",
                "experts",
                weights=(("gate_up_proj", 1, 2), ("down_proj", 2, 1)),
            ),
        )
    )


def test_an_unknown_style_is_named_when_a_width_above_one_asks_for_it() -> None:
    source = of_type("llama", "LlamaForCausalLM")
    with pytest.raises(
        InputError, match=r"unknown style 'sideways' for layers\.\*\.up.*known: colwise, "
    ) as fault:
        translate({"layers.*.up": "sideways"}, "mine")
    late = replace(source, plan=None, plan_fault=fault.value)
    assert trace_model(late, sequence=16).tensor == 1
    with pytest.raises(InputError, match="unknown style 'sideways'"):
        trace_model(late, sequence=16, tensor=2)


def test_a_weight_that_every_rank_uses_on_its_heads_has_its_gradient_summed() -> None:
    block = trace_model(small("qwen3"), sequence=16, tensor=2).layers[1]
    sent = [dict(op.sizes)["bytes"] for op in block.backward.operators if op.kind == "all_reduce"]
    assert sorted(sent) == [2 * 8, 2 * 8, 2 * 16 * 32, 2 * 16 * 32]
    assert sum(op.kind == "all_reduce" for op in block.forward.operators) == 2


def test_experts_beside_shared_experts_know_no_sequence_parallelism() -> None:
    with pytest.raises(InputError, match=r"shared_experts.*do not support sequence parallelism"):
        trace_model(small("deepseek_v2"), sequence=16, tensor=2, sequence_parallel=True)


AS_MANY_POSITIONS = {
    "gpt": {"sequence": 48},
    "bert-large": {"max_position_embeddings": 48},
    "gpt2-xl": {"n_positions": 48},
    "opt-350m": {"max_position_embeddings": 46},
}
"""Tables of positions with as many rows as the vocabulary has (OPT's has two more than it says)."""


@pytest.mark.parametrize("name", AS_MANY_POSITIONS)
def test_a_table_of_as_many_positions_as_there_are_tokens_is_not_split(name: str) -> None:
    usual = trace_model(small(name), tensor=2, sequence=8)
    model = trace_model(small(name, **AS_MANY_POSITIONS[name]), tensor=2, sequence=8)
    kinds = [[op.kind for op in layer.forward.operators] for layer in model.layers]
    assert kinds == [[op.kind for op in layer.forward.operators] for layer in usual.layers]
    table = next(p for p in model.layers[0].parameters if "position" in p.name or "wpe" in p.name)
    assert (table.elements, table.split) == (48 * 32, False)


@pytest.mark.parametrize("name", ["gpt", "llama3-8b", "t5-large"])
def test_sizes_that_happen_to_be_equal_are_not_mistaken_for_each_other(name: str) -> None:
    """Hidden width, sequence, vocabulary and number of classes are all 32, heads and microbatch
    both 4."""
    words = {
        "gpt": {"vocabulary": 32, "sequence": 32},
        "llama3-8b": {"vocab_size": 32},
        "t5-large": {"vocab_size": 32},
    }
    odd = {
        "gpt": {"vocabulary": 34, "sequence": 30},
        "llama3-8b": {"vocab_size": 34},
        "t5-large": {"vocab_size": 34},
    }
    for spread in (False, True):
        equal, other = (
            trace_model(
                small(name, **more),
                tensor=2,
                microbatch=4,
                sequence=length,
                sequence_parallel=spread,
            )
            for more, length in ((words[name], 32), (odd[name], 30))
        )
        for left, right in zip(equal.layers, other.layers, strict=True):
            for graphs in ((left.forward, right.forward), (left.backward, right.backward)):
                kinds = [[(op.kind, len(op.reads)) for op in graph.operators] for graph in graphs]
                assert kinds[0] == kinds[1]
            assert [p.split for p in left.parameters] == [p.split for p in right.parameters]


def test_classes_as_many_as_a_rank_has_tokens_are_no_vocabulary() -> None:
    source = of_type("llama", "LlamaForSequenceClassification", num_labels=24, pad_token_id=0)
    last = trace_model(source, tensor=2, sequence=16, microbatch=1).layers[-1]
    assert not any(op.core == "network" for op in last.forward.operators)


def test_a_plan_that_fits_no_module_is_refused() -> None:
    source = small("gpt")
    wrong = Source(
        "wrong", source.build, 16, 16, False, ShardingPlan((TensorSplit("layers.*.up", "column"),))
    )
    with pytest.raises(InputError, match=r"no module of the model has a path like layers"):
        trace_model(wrong, tensor=2)


def test_an_embedding_that_scales_what_it_looks_up_is_split_too() -> None:
    model = trace_model(of_type("gemma2", "Gemma2ForCausalLM"), sequence=16, tensor=2)
    assert model.approximations == ()
    assert model.layers[0].sharded
    kinds = [op.kind for op in model.layers[0].forward.operators]
    assert kinds.count("all_reduce") == 1 and kinds.index("all_reduce") < kinds.index("multiply")


def test_an_embedding_with_a_look_up_of_its_own_is_refused() -> None:
    class Own(nn.Embedding):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return self.weight[input]

    def build(shape: TensorShape) -> TracedProgram:
        program = source.build(shape)
        program.module.embedding = Own(48, 32)
        return program

    source = small("llama")
    with pytest.raises(InputError, match="in a custom way"):
        trace_model(replace(source, build=build), tensor=2)


def test_a_sequence_that_cannot_be_sharded_is_refused() -> None:
    with pytest.raises(InputError, match="a sequence of 15 cannot be sharded over 2 ranks evenly"):
        trace_model(small("gpt"), tensor=2, sequence=15, sequence_parallel=True)


def test_parameters_that_all_ranks_hold_are_told_from_shards() -> None:
    model = trace_model(small("gpt"), tensor=2)
    block = model.layers[1]
    whole = {parameter.name for parameter in block.parameters if not parameter.split}
    assert whole == {
        "norm_attention.weight",
        "norm_attention.bias",
        "norm_mlp.weight",
        "norm_mlp.bias",
        "attention.out.bias",
        "mlp.down.bias",
    }


def test_a_parameter_that_nothing_reads_is_still_held() -> None:
    def build(shape: TensorShape) -> TracedProgram:
        program = small("gpt").build(shape)
        program.module.register_parameter("spare", nn.Parameter(torch.empty(7)))
        return program

    model = trace_model(Source("spare", build, 16, 16, False, None))
    assert [(p.name, p.elements) for p in model.layers[-1].parameters if p.tensor == -1] == [
        ("spare", 7)
    ]
    assert model.parameters == trace_model(small("gpt")).parameters + 7

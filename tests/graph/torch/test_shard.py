"""Plans and the surgery they ask for: translation, refusals, what stays whole."""

from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from phaze.errors import InputError
from phaze.graph.torch.hf import hf_config, hf_source
from phaze.graph.torch.hf_plans import translate
from phaze.graph.torch.plans import Plan, Split
from phaze.graph.torch.program import Program, Shape, Source
from phaze.graph.torch.shard import owned
from phaze.graph.torch.trace import trace_model
from tests.graph.torch.small import CHANGES, small


def of_type(model_type: str, architecture: str, **more: Any) -> Source:
    sizes = {**CHANGES["llama3-8b"], "head_dim": 8, **more}
    return hf_source(model_type, hf_config({"model_type": model_type, "architectures": [architecture], **sizes}, ""))


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
    assert translate(shipped, "") == Plan(
        (
            Split("*layers.*.self_attn.q_proj", "column", "head_dim"),
            Split("*layers.*.mlp.down_proj", "row"),
            Split("*layers.*.mlp.experts", "experts", weights=(("gate_up_proj", 1, 2), ("down_proj", 2, 1))),
        )
    )


def test_an_unknown_style_is_named_when_a_width_above_one_asks_for_it() -> None:
    source = of_type("olmo2", "Olmo2ForCausalLM")
    assert trace_model(source, sequence=16).tensor == 1
    with pytest.raises(InputError, match=r"unknown style 'colwise_gather_output' for layers\..*known: colwise"):
        trace_model(source, sequence=16, tensor=2)


def test_a_plan_that_fits_no_module_is_refused() -> None:
    source = small("gpt")
    wrong = Source("wrong", source.build, 16, 16, False, Plan((Split("layers.*.up", "column"),)))
    with pytest.raises(InputError, match=r"no module of the model has a path like layers"):
        trace_model(wrong, tensor=2)


def test_an_embedding_that_does_more_than_look_up_stays_whole() -> None:
    model = trace_model(of_type("gemma2", "Gemma2ForCausalLM"), sequence=16, tensor=2)
    assert any("vocabulary is not split" in text for text in model.approximations)
    assert not model.layers[0].sharded


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
    def build(shape: Shape) -> Program:
        program = small("gpt").build(shape)
        program.module.register_parameter("spare", nn.Parameter(torch.empty(7)))
        return program

    model = trace_model(Source("spare", build, 16, 16, False, None))
    assert [(p.name, p.elements) for p in model.layers[-1].parameters if p.tensor == -1] == [("spare", 7)]
    assert model.parameters == trace_model(small("gpt")).parameters + 7

"""Blocks folded from two traces: attention at width t, experts on a rank's own tokens."""

from functools import cache

import pytest

from phaze.errors import InputError
from phaze.graph.fold_experts import folded_layer, folded_model
from phaze.graph.ir import Layer, Model
from phaze.graph.split_experts import expert_parallel, expert_split
from phaze.graph.store import dumps, loads
from phaze.graph.summary import graph_flops
from phaze.graph.zoo import load_model

LENGTH = 1024


@cache
def _at(tensor: int, sequence: int, spread: bool = True) -> Model:
    return load_model(
        "mixtral-8x7b",
        tensor,
        1,
        sequence,
        attention="fused",
        sequence_parallel=spread and tensor > 1,
    )


def _expert_ops(layer: Layer) -> list[list[tuple[str, tuple[tuple[str, int], ...]]]]:
    return [
        [(op.kind, op.sizes) for op in graph.operators if op.module.startswith("mlp")]
        for graph in (layer.forward, layer.backward)
    ]


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_a_folded_block_has_the_experts_of_one_rank_and_the_attention_of_the_group(
    tensor: int,
) -> None:
    wide, narrow = _at(tensor, LENGTH), _at(1, LENGTH // tensor)
    folded = folded_model(wide, narrow).layers[1]
    assert _expert_ops(folded) == _expert_ops(narrow.layers[1])
    attention = [op for op in folded.forward.operators if op.module.startswith("self_attn")]
    assert attention == [
        op for op in wide.layers[1].forward.operators if op.module.startswith("self_attn")
    ]
    kinds = [op.kind for op in folded.forward.operators if op.core == "network"]
    assert kinds == ["all_gather", "reduce_scatter"]


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_folding_keeps_the_work_of_a_rank_but_for_the_router(tensor: int) -> None:
    wide, narrow = _at(tensor, LENGTH), _at(1, LENGTH // tensor)
    folded = folded_model(wide, narrow)
    for name, passes in (("forward", 1), ("backward", 2)):
        before, after = (graph_flops(getattr(m.layers[1], name)) for m in (wide, folded))
        router = passes * 2 * LENGTH * 4096 * 8  # at width t every rank routes the tokens of all
        assert before - after == router - router // tensor


def test_experts_cut_by_the_tensor_width_are_those_of_the_traced_style() -> None:
    wide, narrow = _at(4, LENGTH), _at(1, LENGTH // 4)
    cut = expert_split(folded_model(wide, narrow).layers[1], 1, 4, tokens=LENGTH // 4)
    products = [
        [
            sorted(
                op.sizes
                for op in graph.operators
                if op.kind == "product" and op.module == "mlp.experts"
            )
            for graph in (layer.forward, layer.backward)
        ]
        for layer in (cut, wide.layers[1])
    ]
    assert products[0] == products[1]
    assert cut.parameter_elements == wide.layers[1].parameter_elements


@pytest.mark.parametrize("tensor", [2, 4])
def test_a_folded_and_shared_out_model_is_a_right_graph(tensor: int) -> None:
    model = expert_parallel(folded_model(_at(tensor, LENGTH), _at(1, LENGTH // tensor)), 8)
    assert loads(dumps(model), "folded") == model


def test_width_one_stays_and_other_blocks_are_refused() -> None:
    assert folded_model(_at(1, LENGTH), _at(1, LENGTH)) is _at(1, LENGTH)
    with pytest.raises(InputError, match="tokens of its own"):
        folded_model(_at(2, LENGTH, False), _at(1, LENGTH // 2))
    dense = load_model("llama3-8b", 2, 1, LENGTH).layers[1]
    assert folded_layer(dense, dense) is dense

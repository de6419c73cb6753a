"""Pairs of queries and keys under a mask: against counting, and against each other."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.graph import store
from phaze.graph.pairs import pairs
from phaze.graph.summary import summary
from phaze.graph.zoo import ZOO, load_model

KERNELS = ("attention", "attention_backward")


def counted(keys: int, causal: bool, window: int) -> int:
    """Every pair of a head with as many queries as keys, one by one."""
    near = window or keys
    return sum(
        1 for i in range(keys) for j in range(keys) if abs(i - j) < near and (j <= i or not causal)
    )


@given(st.integers(1, 40), st.booleans(), st.integers(0, 50))
def test_pairs_of_a_head_are_those_that_its_mask_leaves(
    keys: int, causal: bool, window: int
) -> None:
    assert pairs(keys, keys, causal, window) == counted(keys, causal, window)


@given(
    st.integers(1, 4096),
    st.integers(1, 4096),
    st.booleans(),
    st.integers(1, 5000),
    st.integers(0, 5000),
)
def test_a_shorter_window_and_a_mask_never_add_pairs(
    queries: int, keys: int, causal: bool, window: int, more: int
) -> None:
    assert pairs(queries, keys, causal, window) <= pairs(queries, keys, causal, window + more)
    assert pairs(queries, keys, causal, window) <= pairs(queries, keys, causal) <= queries * keys
    assert pairs(queries, keys, True, window) <= pairs(queries, keys, False, window)


DECODERS = sorted(set(ZOO) - {"bert-large", "megatron-bert-large", "vit-large", "t5-large"})


@pytest.mark.parametrize("name", DECODERS)
def test_every_attention_of_a_decoder_says_that_it_is_causal(name: str) -> None:
    model = load_model(name, 1, 1, 512, attention="fused")
    graphs = [graph for layer in model.layers for graph in (layer.forward, layer.backward)]
    found = [op for graph in graphs for op in graph.operators if op.kind in KERNELS]
    assert found and all(op.size("causal") == 1 for op in found)


@pytest.mark.parametrize("name", ["gpt2-xl", "opt-350m", "llama2-7b", "mixtral-8x7b"])
def test_decoders_are_causal_and_skip_half_of_their_scores(name: str) -> None:
    model = load_model(name, 1, 1, 512, attention="fused")
    kinds = [
        op for layer in model.layers for op in layer.forward.operators if op.kind == "attention"
    ]
    assert kinds and all(op.size("causal") == 1 and op.size("window") == 0 for op in kinds)
    found = summary(model)
    scores = sum(
        2 * op.size("batch") * op.size("queries") * op.size("keys") * (op.size("width") + op.size("value_width"))
        * model.count(at)
        for at, layer in enumerate(model.layers)
        for op in layer.forward.operators
        if op.kind == "attention"
    )  # fmt: skip
    assert found["forward_flops"] - found["causal_forward_flops"] == scores * 511 // 1024


@pytest.mark.parametrize("name", ["bert-large", "t5-large"])
def test_models_that_see_both_ways_or_add_to_their_scores_skip_nothing(name: str) -> None:
    found = summary(load_model(name, 1, 1, 256, attention="fused"))
    assert found["causal_forward_flops"] == found["forward_flops"]


def test_a_graph_without_the_sizes_of_a_mask_is_still_read_and_skips_nothing() -> None:
    raw = json.loads(store.dumps(load_model("gpt2-xl", 1, 1, 256, attention="fused")))
    for row in (raw["summary"], *raw["summary"]["layers"]):
        del row["causal_forward_flops"], row["causal_backward_flops"]
    older = store.loads(json.dumps(raw).replace(', "causal": 1, "window": 0', ""), "older.json")
    assert summary(older)["causal_forward_flops"] == summary(older)["forward_flops"]

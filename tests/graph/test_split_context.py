"""Attention over ranks that share a sequence: work and exchanged bytes, and what is refused."""

from dataclasses import replace
from functools import cache

import pytest

from phaze.errors import InputError
from phaze.graph.ir import Model
from phaze.graph.mixture import is_grouped
from phaze.graph.opset import flops
from phaze.graph.split_context import Way, context_parallel, require_pointwise, way_named
from phaze.graph.store import dumps, loads
from phaze.graph.summary import graph_flops
from phaze.graph.zoo import load_model

WAYS: tuple[Way, ...] = ("ring", "all_gather", "ulysses")
EVERY: tuple[Way, ...] = (*WAYS, "hierarchical")
LENGTH = 512


@cache
def _whole(sequence: int = LENGTH, tensor: int = 1, name: str = "llama3-8b") -> Model:
    return load_model(name, tensor, 1, sequence, attention="fused", sequence_parallel=tensor > 1)


def _attention(model: Model) -> dict[str, dict[str, int]]:
    block = model.layers[1]
    return {
        op.kind: dict(op.sizes)
        for g in (block.forward, block.backward)
        for op in g.operators
        if "attention" in op.kind
    }


@pytest.mark.parametrize(
    ("way", "ranks"), [*((way, n) for way in WAYS for n in (2, 4, 8)), ("hierarchical", 4)]
)
def test_ranks_compute_what_the_whole_block_computes(way: Way, ranks: int) -> None:
    whole, rank = _whole(), context_parallel(_whole(LENGTH // ranks), ranks, way)
    for name in ("forward", "backward"):
        total = ranks * graph_flops(getattr(rank.layers[1], name))
        assert total == graph_flops(getattr(whole.layers[1], name))
    assert rank.sequence == whole.sequence
    assert rank.parameters == whole.parameters


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_of_a_ring_has_its_queries_and_all_keys(ranks: int) -> None:
    for sizes in _attention(context_parallel(_whole(LENGTH // ranks), ranks)).values():
        assert (sizes["queries"], sizes["keys"], sizes["batch"]) == (LENGTH // ranks, LENGTH, 32)
    for sizes in _attention(context_parallel(_whole(LENGTH // ranks), ranks, "ulysses")).values():
        assert (sizes["queries"], sizes["keys"], sizes["batch"]) == (LENGTH, LENGTH, 32 // ranks)


@pytest.mark.parametrize("tensor", [1, 4])
def test_what_is_exchanged_are_keys_and_values_before_their_heads_are_expanded(tensor: int) -> None:
    ranks, rank = 4, context_parallel(_whole(LENGTH // 4, tensor), 4)
    keys_and_values = 2 * (LENGTH // ranks) * (8 // tensor) * 128 * 2
    sent = {
        name: [dict(op.sizes) for op in graph.operators if op.kind == "ring"]
        for name, graph in (
            ("forward", rank.layers[1].forward),
            ("backward", rank.layers[1].backward),
        )
    }
    assert sent["forward"] == [
        {"bytes": keys_and_values, "group": ranks, "stride": tensor, "copies": 1}
    ]
    assert sent["backward"] == [
        {"bytes": 2 * keys_and_values, "group": ranks, "stride": tensor, "copies": 1}
    ]


def test_gathering_scatters_gradients_and_exchanging_heads_moves_queries_too() -> None:
    kinds = {}
    for way in WAYS:
        block = context_parallel(_whole(LENGTH // 4), 4, way).layers[1]
        kinds[way] = [
            [op.kind for op in graph.operators if op.core == "network"]
            for graph in (block.forward, block.backward)
        ]
    assert kinds["ring"] == [["ring"], ["ring"]]
    assert kinds["all_gather"] == [["context_gather"], ["context_gather", "context_scatter"]]
    assert kinds["ulysses"] == [["all_to_all", "all_to_all"], ["all_to_all", "all_to_all"]]


@pytest.mark.parametrize("way", EVERY)
def test_a_split_graph_is_a_right_graph_that_is_written_and_read(way: Way) -> None:
    model = context_parallel(_whole(LENGTH // 4), 4, way)
    assert loads(dumps(model), "split") == model


def test_a_ring_keeps_what_a_rank_kept_and_exchanged_heads_keep_the_result_twice() -> None:
    own = _whole(LENGTH // 4)
    ring, heads = context_parallel(own, 4), context_parallel(own, 4, "ulysses")
    assert ring.layers[1].none.saved_bytes == own.layers[1].none.saved_bytes
    result = (LENGTH // 4) * 4096 * 2
    assert heads.layers[1].none.saved_bytes == own.layers[1].none.saved_bytes + result
    assert heads.layers[1].full.saved_bytes == own.layers[1].full.saved_bytes


@pytest.mark.parametrize("way", WAYS)
def test_queries_keys_and_values_in_one_tensor_are_shared_out_as_well(way: Way) -> None:
    whole, rank = (
        _whole(name="gpt3-175b"),
        context_parallel(_whole(LENGTH // 4, name="gpt3-175b"), 4, way),
    )
    for name in ("forward", "backward"):
        assert 4 * graph_flops(getattr(rank.layers[1], name)) == graph_flops(
            getattr(whole.layers[1], name)
        )
    assert loads(dumps(rank), "split") == rank
    operators = rank.layers[1].forward.operators
    sent = [dict(op.sizes)["bytes"] for op in operators if op.core == "network"]
    own = (LENGTH // 4) * 12288 * 2  # bytes of queries, of keys and of values
    assert sent == ([3 * own, own] if way == "ulysses" else [2 * own])


@pytest.mark.parametrize("name", ["llama3-8b", "gpt3-175b"])
def test_a_hierarchy_exchanges_heads_among_the_nearest_and_keys_in_a_ring_of_groups(
    name: str,
) -> None:
    rank = context_parallel(_whole(LENGTH // 8, name=name), 8, "hierarchical")
    heads = 32 if name == "llama3-8b" else 96
    for sizes in _attention(rank).values():
        assert (sizes["queries"], sizes["keys"], sizes["batch"]) == (
            LENGTH // 2,
            LENGTH,
            heads // 4,
        )
    block = rank.layers[1]
    for graph, times in ((block.forward, 1), (block.backward, 2)):
        sent = [(op.kind, dict(op.sizes)) for op in graph.operators if op.core == "network"]
        assert [kind for kind, _ in sent] == ["all_to_all", "ring", "all_to_all"]
        assert [(sizes["group"], sizes["stride"]) for _, sizes in sent] == [(4, 1), (2, 4), (4, 1)]
        keys = 2 * (LENGTH // 8) * (8 * 128 if name == "llama3-8b" else 12288) * 2
        assert sent[1][1]["bytes"] == times * keys
    with pytest.raises(InputError, match="not a product of two degrees"):
        context_parallel(_whole(LENGTH // 2, name=name), 2, "hierarchical")


def test_one_rank_stays_as_it_is() -> None:
    assert context_parallel(_whole(), 1) is _whole()


def test_more_ranks_never_compute_more_of_attention_than_fewer() -> None:
    seen = []
    for ranks in (1, 2, 4, 8):
        model = context_parallel(_whole(LENGTH // ranks), ranks)
        seen.append(
            sum(flops(op) for op in model.layers[1].forward.operators if op.kind == "attention")
        )
    assert seen == sorted(seen, reverse=True)


def test_attention_that_writes_its_scores_is_refused() -> None:
    with pytest.raises(InputError, match="use fused attention"):
        context_parallel(load_model("llama3-8b", 1, 1, LENGTH), 2)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("convolution", {"batch": 1, "m": 8, "n": 8, "k": 8}),
        ("scan", {"elements": 4096 * LENGTH, "rows": LENGTH}),
        ("product", {"batch": 4, "m": 8, "n": 8, "k": 8}),
    ],
)
def test_operators_that_mix_positions_elsewhere_are_refused_by_name(
    kind: str, sizes: dict[str, int]
) -> None:
    model = _whole()
    block = model.layers[1]
    other = next(op for op in block.forward.operators if op.kind == "silu")
    mixes = replace(other, kind=kind, sizes=tuple(sizes.items()), module="mixer")
    operators = tuple(mixes if op is other else op for op in block.forward.operators)
    layers = (
        model.layers[0],
        replace(block, forward=replace(block.forward, operators=operators)),
        model.layers[2],
    )
    with pytest.raises(InputError, match=f"operator {kind} in mixer mixes positions"):
        context_parallel(replace(model, layers=layers), 2)


def test_experts_mix_no_positions() -> None:
    context_parallel(_whole(LENGTH // 2, 1, "mixtral-8x7b"), 2)


def test_heads_that_do_not_divide_and_unknown_ways_are_refused() -> None:
    with pytest.raises(InputError, match="do not divide by 3"):
        context_parallel(_whole(171), 3, "ulysses")
    with pytest.raises(InputError, match="ulysses"):
        way_named("ulyses")


def test_a_product_of_experts_mixes_no_positions_though_another_operator_made_its_weights() -> None:
    block = _whole(name="mixtral-8x7b").layers[1]
    tensors = {tensor.id: tensor for tensor in block.forward.tensors}
    grouped = [op for op in block.forward.operators if is_grouped(op, tensors)]
    weights = {
        access.tensor
        for op in grouped
        for access in op.reads
        if tensors[access.tensor].role == "parameter"
    }
    assert grouped and weights
    made = tuple(
        replace(t, role="intermediate") if t.id in weights else t for t in block.forward.tensors
    )
    require_pointwise(replace(block, forward=replace(block.forward, tensors=made)), LENGTH)
    # Without an offset for each expert it is a product of any two activations.
    alike = tuple(
        replace(op, reads=op.reads[:2]) if op in grouped else op for op in block.forward.operators
    )
    plain = replace(block, forward=replace(block.forward, tensors=made, operators=alike))
    with pytest.raises(InputError, match="mixes positions"):
        require_pointwise(plain, LENGTH)

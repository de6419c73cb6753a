"""Named models and families without PyTorch: what they hold, how fast they load, what is
refused."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.graph import store
from phaze.graph.depth import alternated, alternates
from phaze.graph.fuse import fuse
from phaze.graph.ir import Attention
from phaze.graph.pairs import attention_pairs
from phaze.graph.summary import graph_flops
from phaze.graph.zoo import SHIPPED_WIDTHS, ZOO, load_family, load_model

GPT = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 512}
LLAMA = {
    "hidden": 1024,
    "layers": 4,
    "heads": 16,
    "vocabulary": 32000,
    "sequence": 512,
    "mlp": 2816,
}
PARAMETERS = {
    "bert-large": 336226108,
    "gpt2-xl": 1557611200,
    "opt-350m": 331196416,
    "llama2-7b": 6738415616,
    "llama3-8b": 8030261248,
    "llama3-70b": 70553706496,
    "llama3.1-405b": 405853388800,
    "gemma-2-27b": 27227128320,
    "mixtral-8x7b": 46702792704,
    "mixtral-8x22b": 140630071296,
    "qwen3-30b-a3b": 30532122624,
    "qwen3-235b-a22b": 235093634560,
    "deepseek-v3": 671026404352,
    "kimi-k2": 1026408209408,
    "gpt-oss-120b": 116829156672,
    "t5-large": 737668096,
    "vit-large": 304326632,
}
"""What the authors' releases hold; OPT, T5 and ViT with the heads that the trace has."""


def test_the_named_models_are_those_that_others_rely_on() -> None:
    assert list(ZOO) == [
        "bert-large",
        "gpt2-xl",
        "opt-350m",
        "llama2-7b",
        "megatron-bert-large",
        "megatron-gpt2-54",
        "megatron-gpt2-72",
        "gpt3-175b",
        "llama3-8b",
        "llama3-70b",
        "llama3.1-405b",
        "nemotron-4-340b",
        "gemma-2-27b",
        "mixtral-8x7b",
        "mixtral-8x22b",
        "grok-1",
        "qwen3-30b-a3b",
        "qwen3-235b-a22b",
        "deepseek-v3",
        "kimi-k2",
        "gpt-oss-120b",
        "t5-large",
        "vit-large",
    ]


@pytest.mark.parametrize("name", ZOO)
def test_every_shipped_width_loads_round_trips_and_shares_the_work(name: str) -> None:
    entry = ZOO[name]
    assert set(entry.widths) <= set(SHIPPED_WIDTHS)
    alone = load_model(name)
    whole = store.document_of(alone)["summary"]
    assert (
        sum(alone.count(i) for i, layer in enumerate(alone.layers) if "." in layer.name)
        >= entry.layers
    )
    assert whole["parameters"] == PARAMETERS.get(name, whole["parameters"])
    for width in entry.shipped:
        model = load_model(name, width, 2)
        assert store.loads(store.dumps(model), "file") == model
        found = store.document_of(model)["summary"]
        # 384 experts do not divide the rows of a sequence: each gets the next whole number.
        least = 0.99 if name == "kimi-k2" else 1
        assert least <= width * found["forward_flops"] / (2 * whole["forward_flops"]) < 1.03
        assert found["backward_flops"] == pytest.approx(2 * found["forward_flops"], rel=0.01)
        assert width * found["parameters"] >= whole["parameters"]
        assert bool(found["collectives"]) == (width > 1)


@pytest.mark.parametrize("name", ["llama2-7b", "llama3-8b", "gpt3-175b"])
def test_a_decoder_at_width_four_has_two_all_reduces_each_way(name: str) -> None:
    model = load_model(name, 4)
    block = next(row for row in store.document_of(model)["summary"]["layers"] if row["count"] > 1)
    assert block["count"] == ZOO[name].layers
    counts = {(row["kind"], row["pass"]): row["count"] for row in block["collectives"]}
    assert counts == {("all_reduce", "forward"): 2, ("all_reduce", "backward"): 2}


@pytest.mark.parametrize("width", [1, 2, 4, 8])
@pytest.mark.parametrize("micro", [1, 4])
def test_a_gpt_block_keeps_what_the_formula_says(width: int, micro: int) -> None:
    h, a, s, b, t = 1024, 16, 512, micro, width
    plain = load_family("gpt", GPT, tensor=t, microbatch=b)
    spread = load_family("gpt", GPT, tensor=t, microbatch=b, sequence_parallel=True)
    block = plain.layers[1]
    assert block.none.saved_bytes == pytest.approx(
        s * b * h * (10 + 24 / t + 5 * a * s / (h * t)), rel=0.01
    )
    sharded = spread.layers[1].none.saved_bytes
    assert sharded == pytest.approx(s * b * h * (34 / t + 5 * a * s / (h * t)), rel=0.02)
    assert graph_flops(block.forward) * t == pytest.approx(
        24 * b * s * h**2 * (1 + s / (6 * h)), rel=0.01
    )


def test_depth_counts_layers_and_ties_the_ends() -> None:
    model = load_family("gpt", {**GPT, "layers": 7})
    assert [model.count(i) for i in range(3)] == [1, 7, 1]
    assert model.calls[7].module == "blocks.6"
    assert [(edge.source, edge.target) for edge in model.edges] == [(i, i + 1) for i in range(8)]
    assert model.ties[0].calls == (0, 8)
    assert load_family("llama", LLAMA).ties == ()
    assert load_family("llama", {**LLAMA, "tied": True}).ties[0].calls == (0, 5)


def test_a_named_gpt_is_the_family_at_its_sizes() -> None:
    sizes = {"hidden": 12288, "layers": 96, "heads": 96, "vocabulary": 51200, "sequence": 2048}
    named, family = load_model("gpt3-175b", 8, 2), load_family("gpt", sizes, tensor=8, microbatch=2)
    assert store.plain(named) == {**store.plain(family), "name": "gpt3-175b"}
    assert 174e9 < load_model("gpt3-175b").parameters < 176e9


WRONG: tuple[tuple[str, dict[str, Any]], ...] = (
    ("has 512 positions, 513 were requested", {"name": "bert-large", "sequence": 513}),
    ("always has 197 positions, not 196", {"name": "vit-large", "sequence": 196}),
    ("too short", {"name": "llama2-7b", "sequence": 1}),
    ("TP degrees 1, 2, 4, 8, not 3", {"name": "llama2-7b", "tensor": 3}),
    ("TP degrees 1, not 2", {"name": "gpt2-xl", "tensor": 2}),
    ("--microbatch: 0", {"name": "llama2-7b", "microbatch": 0}),
    ("--microbatch: -1", {"name": "gpt3-175b", "microbatch": -1}),
    (
        "cannot be sharded over 4",
        {"name": "llama2-7b", "tensor": 4, "sequence": 1001, "sequence_parallel": True},
    ),
    ("did you mean 'llama2-7b'", {"name": "lama2-7b"}),
    (
        "heads 20 of gpt does not divide by 8; TP degrees: 1, 2, 4, 5",
        {"name": "megatron-gpt2-54", "tensor": 8},
    ),
)


@pytest.mark.parametrize(("sentence", "arguments"), WRONG)
def test_what_does_not_come_along_is_said(sentence: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=sentence):
        load_model(**arguments)


WRONG_SIZES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("unknown family 'bert'", "bert", {}),
    ("did you mean 'hidden'", "gpt", {**GPT, "hiden": 3}),
    ("gpt: layers: this size is missing", "gpt", {k: v for k, v in GPT.items() if k != "layers"}),
    ("gpt: heads: 0 is not a positive", "gpt", {**GPT, "heads": 0}),
    ("gpt: heads: True is not", "gpt", {**GPT, "heads": True}),
    ("gpt: hidden: '12' is not", "gpt", {**GPT, "hidden": "12"}),
    ("1024 does not divide by 15", "gpt", {**GPT, "heads": 15}),
    ("16 heads do not divide by 3", "llama", {**LLAMA, "kv_heads": 3}),
    ("63 is odd", "llama", {**LLAMA, "head_dim": 63}),
    ("llama: tied", "llama", {**LLAMA, "tied": 1}),
)


@pytest.mark.parametrize(("sentence", "family", "sizes"), WRONG_SIZES)
def test_sizes_that_fit_no_family_are_named(
    sentence: str, family: str, sizes: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match=sentence):
        load_family(family, sizes)


@pytest.mark.parametrize("attention", ["eager", "fused"])
def test_fused_attention_keeps_less_and_does_the_same_forward_work(attention: Attention) -> None:
    model = load_model("llama2-7b", 2, 2, attention=attention)
    eager = load_model("llama2-7b", 2, 2)
    block, plain = model.layers[1], eager.layers[1]
    assert graph_flops(block.forward) == graph_flops(plain.forward)
    assert block.none.saved_bytes <= plain.none.saved_bytes
    assert (block.none.saved_bytes < plain.none.saved_bytes / 4) == (attention == "fused")


COUNTS = {
    "t5-large": (11, 43),
    "megatron-bert-large": (11, 24),
    "llama3-70b": (14, 23),
    "bert-large": (11, 23),
    "gpt2-xl": (10, 18),
    "opt-350m": (11, 23),
    "llama2-7b": (12, 21),
    "gpt3-175b": (9, 18),
    "mixtral-8x7b": (23, 33),
    "vit-large": (11, 23),
}
"""Operators of a fully fused block at width 1, microbatch 2: forward, backward."""


@pytest.mark.parametrize("name", COUNTS)
def test_a_fused_block_has_few_operators(name: str) -> None:
    block = next(
        layer
        for i, layer in enumerate(fuse(load_model(name, 1, 2), "full").layers)
        if layer.name[-1] == "0"
    )
    assert (len(block.forward.operators), len(block.backward.operators)) == COUNTS[name]


def test_no_torch_is_loaded() -> None:
    code = (
        "import sys; from phaze.graph.zoo import load_model; load_model('llama2-7b', 4); "
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_sizes_at_which_a_family_runs_other_operators_are_refused() -> None:
    sizes = {"hidden": 32, "layers": 2, "heads": 32, "vocabulary": 64, "sequence": 16}
    with pytest.raises(
        InputError, match="no graphs of heads of width 1 are bundled; trace it, with --fresh"
    ):
        load_family("gpt", sizes)
    with pytest.raises(InputError, match="no graphs of a sequence of 1 are bundled"):
        load_family("gpt", {**sizes, "heads": 4}, sequence=1)


def test_every_second_layer_of_gemma_2_sees_a_window_of_keys() -> None:
    model = load_model("gemma-2-27b", 2, 1, attention="fused")
    kernels = [
        next(op for op in layer.forward.operators if op.kind == "attention")
        if "layers" in layer.name
        else None
        for layer in model.layers
    ]
    blocks = [kernels[call.layer] for call in model.calls if kernels[call.layer] is not None]
    assert [op.size("window") for op in blocks if op is not None] == [4096, 0] * 23
    # A query sees the keys up to its own, and of those at most 4,096.
    assert [attention_pairs(op) for op in blocks[:2] if op is not None] == [
        sum(min(i, 4096) for i in range(1, 8193)),
        sum(range(1, 8193)),
    ]
    assert [call.module for call in model.calls[1:4]] == [
        "model.layers.0",
        "model.layers.1",
        "model.layers.2",
    ]
    assert [(edge.source, edge.target) for edge in model.edges] == [(i, i + 1) for i in range(47)]
    assert [tie.calls for tie in model.ties] == [(0, 47)]


def test_layers_that_take_turns_are_continued_as_they_begin() -> None:
    whole = load_model("gemma-2-27b", 1, 1, attention="fused")
    two = replace(
        whole,
        calls=(*whole.calls[:5], whole.calls[-1]),
        edges=(*whole.edges[:4], replace(whole.edges[-1], source=4, target=5)),
        ties=tuple(replace(tie, calls=(0, 5)) for tie in whole.ties),
    )
    assert alternates(two) and alternated(two, 23) == whole
    assert not alternates(load_model("llama2-7b"))
    with pytest.raises(ValueError, match="take turns"):
        alternated(load_model("llama2-7b"), 2)


def test_a_llama_without_a_gate_has_two_products_in_its_mlp_and_a_squared_relu() -> None:
    model = load_model("nemotron-4-340b", 8, 1, attention="fused", sequence_parallel=True)
    block = model.layers[1]
    assert [op.kind for op in block.forward.operators if op.module.startswith("mlp")] == [
        "all_gather", "product", "relu", "multiply", "product", "reduce_scatter"
    ]  # fmt: skip
    assert any("rotary positions on half" in note for note in model.approximations)
    whole = load_model("nemotron-4-340b")
    attention, mlp = 18432 * 192 * (2 * 96 + 2 * 8), 2 * 18432 * 73728
    assert whole.parameters == 96 * (attention + mlp + 2 * 18432) + 2 * 256000 * 18432 + 18432


@pytest.mark.parametrize("name", ZOO)
def test_every_bundled_attention_says_whether_it_is_causal(name: str) -> None:
    """A decoder's queries see the keys before them: half the work of a whole square."""
    both_ways = {"bert-large", "megatron-bert-large", "t5-large", "vit-large"}
    for width in ZOO[name].shipped:
        model = load_model(name, width, 2, attention="fused")
        graphs = [graph for layer in model.layers for graph in (layer.forward, layer.backward)]
        found = [
            op for graph in graphs for op in graph.operators if op.kind.startswith("attention")
        ]
        assert found and {op.size("causal") for op in found} == {int(name not in both_ways)}


@pytest.mark.parametrize("family", ["gpt", "llama", "moe"])
def test_every_family_is_of_causal_decoders(family: str) -> None:
    sizes: dict[str, Any] = {
        "hidden": 64,
        "layers": 2,
        "heads": 4,
        "vocabulary": 64,
        "sequence": 16,
    }
    if family != "gpt":
        sizes |= {"kv_heads": 2, "head_dim": 16, "mlp": 96}
    if family == "moe":
        sizes |= {"experts": 4, "active": 2, "expert_mlp": 32}
    model = load_family(family, sizes, attention="fused")
    found = [
        op for layer in model.layers for op in layer.forward.operators if op.kind == "attention"
    ]
    assert found and all(op.size("causal") == 1 for op in found)


def test_rotary_positions_are_extended_and_learned_ones_end() -> None:
    long = load_model("llama3-70b", 8, 1, 131072, attention="fused")
    assert "rotary positions are extended from 8,192 to 131,072" in long.approximations
    assert not any(
        "extended" in note for note in load_model("llama3-70b", 8, 1, 8192).approximations
    )
    decoder = {**LLAMA, "kv_heads": 16, "head_dim": 64}
    assert (
        "rotary positions are extended from 512 to 1,024"
        in load_family("llama", decoder, sequence=1024).approximations
    )
    with pytest.raises(InputError, match="its positions end there"):
        load_model("gpt2-xl", 1, 1, 2048)
    with pytest.raises(InputError, match="its positions end there"):
        load_family("gpt", GPT, sequence=1024)

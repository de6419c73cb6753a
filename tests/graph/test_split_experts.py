"""Experts shared out over ranks: work, routed rows and parameters are conserved, and graphs stay
right."""

from functools import cache

import pytest

from phaze.errors import InputError
from phaze.graph.ir import Layer, Model
from phaze.graph.mixture import mixture_of
from phaze.graph.split_context import context_parallel
from phaze.graph.split_experts import expert_parallel, expert_split
from phaze.graph.store import dumps, loads
from phaze.graph.summary import graph_flops
from phaze.graph.zoo import load_model

DEGREES = [(2, 1), (4, 1), (8, 1), (1, 2), (4, 2), (2, 8)]
SEQUENCE = 256
# Of Mixtral: rows of two experts a token, in 16 bits, 4096 features wide.
ROUTED_BYTES = SEQUENCE * 2 * 4096 * 2


@cache
def _model(attention: str = "fused", microbatch: int = 1) -> Model:
    return load_model("mixtral-8x7b", 1, microbatch, SEQUENCE, attention=attention)  # type: ignore[arg-type]


def _block(model: Model) -> Layer:
    return next(layer for layer in model.layers if mixture_of(layer) is not None)


def test_a_traced_layer_says_what_its_experts_are() -> None:
    mixture = mixture_of(_block(_model()))
    assert mixture is not None
    assert (mixture.experts, mixture.rows) == (8, 2 * SEQUENCE)
    names = {p.name for p in _block(_model()).parameters if p.tensor in mixture.weights}
    assert names == {"mlp.experts.gate_up_proj", "mlp.experts.down_proj"}


@pytest.mark.parametrize("attention", ["eager", "fused"])
@pytest.mark.parametrize(("ep", "etp"), DEGREES)
def test_a_rank_computes_as_much_as_before_and_holds_its_share_of_the_experts(
    ep: int, etp: int, attention: str
) -> None:
    whole = _block(_model(attention))
    rank = expert_split(whole, ep, etp, tokens=SEQUENCE)
    for before, after in ((whole.forward, rank.forward), (whole.backward, rank.backward)):
        assert graph_flops(after) == graph_flops(before)
    expert = sum(p.elements for p in whole.parameters if "experts" in p.name)
    assert whole.parameter_elements - rank.parameter_elements == expert - expert // (ep * etp)
    assert {p.experts for p in rank.parameters} == {0, 8 // ep}


@pytest.mark.parametrize(("ep", "etp"), DEGREES)
def test_every_pass_exchanges_the_routed_rows_there_and_back(ep: int, etp: int) -> None:
    rank = expert_split(_block(_model()), ep, etp, tokens=SEQUENCE)
    for graph in (rank.forward, rank.backward, rank.full.rerun):
        sent = [op for op in graph.operators if op.kind == "all_to_all"]
        assert [op.size("bytes") for op in sent] == ([ROUTED_BYTES] * 2 if ep > 1 else [])
        assert {op.size("copies") for op in sent} <= {2}
        assert {(op.size("group"), op.size("stride")) for op in sent} <= {(ep, etp)}
        gathered = [op for op in graph.operators if op.kind in ("all_gather", "reduce_scatter")]
        assert [op.size("bytes") for op in gathered] == (
            [ROUTED_BYTES * etp] * 2 if etp > 1 else []
        )


@pytest.mark.parametrize(("ep", "etp"), DEGREES)
def test_a_split_graph_is_a_right_graph_that_is_written_and_read(ep: int, etp: int) -> None:
    model = expert_parallel(_model(), ep, etp)
    assert loads(dumps(model), "split") == model


def test_balanced_exchanges_keep_as_much_as_before_and_gathered_rows_more() -> None:
    whole = _block(_model())
    assert expert_split(whole, 8, tokens=SEQUENCE).none.saved_bytes == whole.none.saved_bytes
    gathered = expert_split(whole, 4, 2, tokens=SEQUENCE)
    assert gathered.none.saved_bytes == whole.none.saved_bytes + ROUTED_BYTES
    assert gathered.full.saved_bytes == whole.full.saved_bytes


def test_imbalance_never_lessens_work_or_memory() -> None:
    whole, before = _block(_model()), (0, 0, 0)
    for imbalance in (1.0, 1.1, 1.5, 2.0):
        rank = expert_split(whole, 8, tokens=SEQUENCE, imbalance=imbalance)
        now = graph_flops(rank.forward), graph_flops(rank.backward), rank.none.saved_bytes
        assert all(new >= old for new, old in zip(now, before, strict=True))
        before = now
    assert before[0] > graph_flops(whole.forward)


def test_one_rank_and_a_layer_without_experts_stay_as_they_are() -> None:
    model = _model()
    assert expert_split(_block(model), 1, 1, tokens=SEQUENCE) is _block(model)
    dense = load_model("llama3-8b", 1, 1, SEQUENCE)
    assert all(expert_split(layer, 8, tokens=SEQUENCE) is layer for layer in dense.layers)


@pytest.mark.parametrize(
    ("ep", "etp", "words"), [(3, 1, "8 experts do not divide by 3"), (16, 1, "use 1, 2, 4, 8")]
)
def test_degrees_that_do_not_divide_the_experts_are_refused(ep: int, etp: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        expert_parallel(_model(), ep, etp)


def test_a_width_that_does_not_divide_and_a_model_without_experts_are_refused() -> None:
    with pytest.raises(InputError, match="does not divide by 3"):
        expert_parallel(_model(), 1, 3)
    with pytest.raises(InputError, match="has no experts"):
        expert_parallel(load_model("llama3-8b", 1, 1, SEQUENCE), 2)
    with pytest.raises(InputError, match="at least 1"):
        expert_parallel(_model(), 2, 1, 0.5)


@pytest.mark.parametrize(
    ("name", "ep"),
    [
        ("qwen3-30b-a3b", 16),
        ("qwen3-235b-a22b", 32),
        ("deepseek-v3", 64),
        ("kimi-k2", 64),
        ("gpt-oss-120b", 16),
        ("grok-1", 8),
        ("mixtral-8x22b", 8),
    ],
)
def test_built_in_mixtures_are_shared_out_with_two_exchanges_a_pass_beside_shared_sequences(
    name: str, ep: int
) -> None:
    # At 256 tokens what enters a layer of gpt-oss is as large as a bias of its experts.
    whole = load_model(name, 1, 1, 3 * SEQUENCE, attention="fused")
    rank = context_parallel(expert_parallel(whole, ep), 2)
    assert loads(dumps(rank), "split") == rank
    split = 0
    for before, after in zip(whole.layers, rank.layers, strict=True):
        if mixture_of(before) is not None:
            for graph in (after.forward, after.backward):
                assert sum(op.kind == "all_to_all" for op in graph.operators) == 2
            experts = sum(p.elements for p in after.parameters if p.experts)
            assert before.parameter_elements - after.parameter_elements == experts * (ep - 1)
            split += 1
    assert split

"""Softmaxes that a stack's kernel does not take: which, what they move, and what the host
launches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.run_file import job_of
from phaze.graph.ir import Layer, Operator
from phaze.graph.rewrites.unfused_softmax import KERNELS, launches, uncovered, unfused_softmaxes
from phaze.graph.sources import ModelRequest, load
from phaze.graph.supply.point import Rank
from phaze.hardware.library import load_stack


def layer_of(tensor: int, microbatch: int) -> Layer:
    """The block of a model of 16 heads."""
    model = load(ModelRequest("bert-large", rank=Rank(tensor, microbatch, 128, "eager")))
    return model.layers[max(range(len(model.layers)), key=model.count)]


@given(st.integers(1, 64), st.sampled_from([16, 128, 1000]), st.integers(1, 8))
def test_a_multiple_of_the_matrices_is_taken(matrices: int, length: int, of: int) -> None:
    sizes = (("elements", matrices * length * length), ("rows", matrices * length))
    assert uncovered(Operator(0, "softmax", "vector", sizes, (), ()), of) == (matrices % of != 0)


@pytest.mark.parametrize(
    ("tensor", "microbatch", "plain"), [(1, 1, False), (4, 1, False), (8, 2, False), (8, 1, True)]
)
def test_of_16_heads_only_two_a_rank_fall_back(tensor: int, microbatch: int, plain: bool) -> None:
    layer = layer_of(tensor, microbatch)
    found = unfused_softmaxes(layer, 4)
    assert (found is not layer) == plain
    for before, after in ((layer.forward, found.forward), (layer.backward, found.backward)):
        more = sum(map(launches, after.operators)) - sum(map(launches, before.operators))
        assert more == (KERNELS - 1 if plain else 0)
    assert unfused_softmaxes(layer, 1) is layer


def test_traffic_of_the_plain_kernels_is_what_each_reads_and_writes() -> None:
    layer, after = layer_of(8, 1), unfused_softmaxes(layer_of(8, 1), 4)
    for graph, changed, read, written in (
        (layer.forward, after.forward, 2 + 4 + 4 + 4 + 4, 4 + 4 + 4 + 4 + 2),
        (layer.backward, after.backward, 2 + 4 + 4 + 4 + 4 + 4, 4 + 4 + 4 + 4 + 2),
    ):
        ((old, new),) = [
            (a, b) for a, b in zip(graph.operators, changed.operators, strict=True) if a != b
        ]
        elements = old.size("elements")
        assert sum(access.bytes for access in new.reads) == read * elements
        assert sum(access.bytes for access in new.writes) == written * elements


def test_a_run_of_two_matrices_takes_longer_and_one_of_four_as_long() -> None:
    def seconds(microbatch: int, stack: str) -> float:
        plan = {
            "tensor": 8,
            "pipeline": 1,
            "data": 1,
            "microbatch": microbatch,
            "recompute": "full",
            "chunks": 1,
        }
        sizes = {"hidden": 1024, "layers": 12, "heads": 16, "vocabulary": 51200, "sequence": 1024}
        where = {
            "chip": "a100-80gb",
            "cluster": "vtrain-a100",
            "stack": stack,
            "devices": 8,
            "batch": 8,
        }
        return fixed_plan(
            job_of({"schema": "phaze.run/1", "gpt": sizes, **where, "plan": plan}, "run")
        )[1].batch_s

    assert load_stack("megatron-deepspeed").softmax_matrices == 4
    # 12 more launches of 55 us in each of 12 blocks and 8 microbatches, of which the device hides a
    # part.
    assert seconds(1, "megatron-deepspeed") > 2 * seconds(2, "megatron-deepspeed")

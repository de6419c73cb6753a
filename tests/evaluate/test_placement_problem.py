"""The one builder of placement problems: which blocks can be interleaved, and which families a job gets."""

import pytest

from phaze.evaluate.fixed import placed_layers
from phaze.evaluate.flow import PlacementJob, placement_problem
from phaze.evaluate.layers import Setting, layer_costs
from phaze.evaluate.serial import Machine
from phaze.graph.ir import Model
from phaze.graph.zoo import load_family, load_model
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.placement.one.problem import Problem

SIZES = {"hidden": 64, "layers": 6, "heads": 4, "vocabulary": 128, "sequence": 32}


def _problem(model: Model, chunks: tuple[int, ...] | None = None) -> Problem:
    chip, cluster, stack = load_chip("a100-80gb"), load_cluster("selene"), load_stack("megatron-core")
    placed = placed_layers(model, layer_costs(model, Setting(chip, cluster, stack)))
    job = PlacementJob(Machine(cluster, stack), 16, 8, "bf16", "adam", chunks=chunks, headroom=0.06)
    return placement_problem(job, model.microbatch, [placed], chip.hbm.size_bytes, 1e12)


def test_equal_blocks_in_a_row_are_interleaved_with_every_number_of_chunks_that_two_stages_can_have() -> None:
    problem = _problem(load_family("gpt", SIZES, tensor=1, microbatch=1))
    assert [family.chunks for family in problem.rules.families] == [1, 2, 3]
    assert sum(extra.block for extra in problem.extras[0]) == 6
    assert [
        family.chunks for family in _problem(load_family("gpt", SIZES, tensor=1, microbatch=1), (3,)).rules.families
    ] == [1, 3]


def test_a_chunk_starts_with_a_send_and_a_receive_of_the_host() -> None:
    problem = _problem(load_family("gpt", SIZES, tensor=1, microbatch=1))
    assert problem.rules.piece_start_s == pytest.approx(2 * load_stack("megatron-core").host_s)


def test_blocks_of_two_kinds_are_not_interleaved() -> None:
    problem = _problem(load_model("t5-large", tensor=1, microbatch=1))
    assert [family.chunks for family in problem.rules.families] == [1]
    assert not any(extra.block for extra in problem.extras[0])

"""The one builder of placement problems: a block from trace to answer, what can be interleaved,
which families."""

import pytest

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.flow import block_calls, placed_layers, placement_problem, rank_problem
from phaze.evaluate.layers import Setting, model_table, pass_cost
from phaze.graph.fuse import fuse_layer
from phaze.graph.ir import Model
from phaze.graph.zoo import load_family, load_model
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.placement.job import TrainingJob
from phaze.placement.machine import Machine
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import fastest_plan

SIZES = {"hidden": 64, "layers": 6, "heads": 4, "vocabulary": 128, "sequence": 32}


def _problem(model: Model, chunks: tuple[int, ...] | None = None) -> PlacementProblem:
    chip, cluster, stack = (
        load_chip("a100-80gb"),
        load_cluster("selene"),
        load_stack("megatron-core"),
    )
    placed = placed_layers(model, model_table(model, Setting(chip, cluster, stack)))
    job = TrainingJob(Machine(cluster, stack), 16, 8, "adam", chunks=chunks, headroom=0.06)
    return placement_problem(job, model.microbatch, [placed], chip.hbm.size_bytes, 1e12)


def test_equal_blocks_in_a_row_are_interleaved_with_every_number_of_chunks_that_two_stages_can_have() -> (
    None
):
    problem = _problem(load_family("gpt", SIZES, tensor=1, microbatch=1))
    assert [family.chunks for family in problem.rules.families] == [1, 2, 3]
    assert sum(layer.block for layer in problem.graphs[0].layers) == 6
    assert [
        family.chunks
        for family in _problem(
            load_family("gpt", SIZES, tensor=1, microbatch=1), (3,)
        ).rules.families
    ] == [1, 3]


def test_a_chunk_starts_with_a_send_and_a_receive_of_the_host() -> None:
    problem = _problem(load_family("gpt", SIZES, tensor=1, microbatch=1))
    assert problem.rules.piece_start_s == pytest.approx(2 * load_stack("megatron-core").host_s)


def test_blocks_of_two_kinds_are_not_interleaved() -> None:
    problem = _problem(load_model("t5-large", tensor=1, microbatch=1))
    assert [family.chunks for family in problem.rules.families] == [1]
    assert not any(layer.block for layer in problem.graphs[0].layers)


def test_a_llama_block_can_be_followed_from_its_trace_to_the_answer() -> None:
    """The walk of phaze.evaluate.flow, every number taken from the step before."""
    sizes = {
        "hidden": 1024,
        "layers": 4,
        "heads": 8,
        "kv_heads": 4,
        "mlp": 2048,
        "vocabulary": 512,
        "sequence": 512,
    }
    model = load_family("llama", sizes, tensor=2, microbatch=1)
    setting = Setting(load_chip("h100"), load_cluster("dgx-h100"), load_stack("megatron-core"))
    (kind,) = {model.calls[number].layer for number in block_calls(model)}
    fused = fuse_layer(model.layers[kind], setting.stack.fusion)
    forward_s = pass_cost(fused.forward, setting, backward=False).pass_s
    table = model_table(model, setting)
    assert table.forward_s[kind, 0] == pytest.approx(forward_s, rel=1e-12)
    job = TrainingJob(setting.machine, 2, 8, "adam", recompute="none")
    problem = rank_problem(job, model, setting)
    layers = problem.graph(2).layers
    blocks = [layer for layer in layers if layer.block]
    assert [layer.id for layer in blocks] == block_calls(model)
    assert {layer.forward_s for layer in blocks} == {table.forward_s[kind, 0]}
    assert {layer.parameter_bytes for layer in blocks} == {2.0 * table.layers[kind].parameters}
    plan = fastest_plan(problem, NetworkPrices(setting.cluster, setting.basis))
    assert plan is not None
    assert (plan.tensor, len(plan.stages), plan.data) == (2, 1, 1)
    rounds = 8
    assert plan.breakdown.forward_s == pytest.approx(
        rounds * sum(layer.forward_s for layer in layers), rel=1e-12
    )
    assert plan.breakdown.forward_s > rounds * 4 * table.forward_s[kind, 0]
    assert plan.lower_bound_s == plan.batch_s


def test_the_paper_s_setting_is_a_value_of_the_same_builder() -> None:
    chip, cluster = load_chip("tpu-v4-paper"), load_cluster("paper-flat")
    model = load_model("bert-large", 1, 4)
    setting = Setting(chip, cluster, load_stack("icml24"), "ideal")
    job = TrainingJob(setting.machine, 1024, 4096, "sgd", recompute="full")
    problem = rank_problem(job, model, setting)
    assert [family.name for family in problem.rules.families] == ["icml24"]
    assert problem.rules.link_bytes_per_s == cluster.levels[0].bandwidth_bytes_per_s
    plan = fastest_plan(problem)
    assert plan is not None
    assert plan.stages[-1].recompute == "none"

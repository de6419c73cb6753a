"""The whole flow on one chip: BERT-large on the paper's chip in the paper's setting, from graph to
proved plan."""

import pytest

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.flow import rank_problem
from phaze.evaluate.layer_table import LayerTable
from phaze.evaluate.layers import Setting, model_table, pass_schedule
from phaze.graph.fuse import fuse_layer
from phaze.graph.ir import Model
from phaze.graph.zoo import load_model
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.placement.answer import document_of
from phaze.placement.job import TrainingJob
from phaze.placement.problem import PlacementProblem, RecomputeChoice
from phaze.placement.solve import fastest_plan
from phaze.values import replace
from tests.check.documents import objections

SETTING = Setting(
    load_chip("tpu-v4-paper"), load_cluster("paper-flat"), load_stack("icml24"), "ideal"
)
LINK = SETTING.cluster.levels[0].bandwidth_bytes_per_s


@pytest.fixture(scope="module")
def bert() -> Model:
    return load_model("bert-large")


@pytest.fixture(scope="module")
def table(bert: Model) -> LayerTable:
    return model_table(bert, SETTING)


def problem_with(
    bert: Model,
    table: LayerTable,
    hbm_bytes: int,
    recompute: RecomputeChoice = "none",
    batch: int = 4096,
) -> PlacementProblem:
    chip = replace(SETTING.chip, hbm=replace(SETTING.chip.hbm, size_bytes=hbm_bytes))
    job = TrainingJob(SETTING.machine, 1024, batch, "sgd", recompute=recompute)
    return rank_problem(job, bert, replace(SETTING, chip=chip), table)


def test_every_layer_of_bert_has_a_proved_schedule_between_its_longest_operator_and_all_in_turn(
    bert: Model, table: LayerTable
) -> None:
    for kind, layer in enumerate(bert.layers):
        fused = fuse_layer(layer, SETTING.stack.fusion)
        for graph, backward, found_s in (
            (fused.forward, False, table.forward_s[kind, 0]),
            (fused.backward, True, table.backward_s[kind, 0]),
        ):
            _, problem, schedule = pass_schedule(graph, SETTING, backward)
            assert schedule.optimal
            assert schedule.makespan_s == pytest.approx(found_s, rel=1e-12)
            assert (
                max(min(one.one_core_s, one.all_cores_s) for one in problem.operators)
                <= schedule.makespan_s
            )
            assert schedule.makespan_s <= sum(one.all_cores_s for one in problem.operators) * (
                1 + 1e-12
            )


def test_the_plan_of_bert_holds_and_uses_the_devices(bert: Model, table: LayerTable) -> None:
    chip = SETTING.chip
    problem = problem_with(bert, table, chip.hbm.size_bytes)
    plan = fastest_plan(problem)
    assert plan is not None
    assert not objections(problem, document_of(plan), NetworkPrices(problem.cluster))
    assert len(plan.stages) * plan.data <= 1024
    assert plan.batch_s == plan.lower_bound_s
    # 6 parameters x tokens of arithmetic at the chip's peak, all devices busy: no plan is faster.
    least = 6 * 300e6 * 512 * 4096 / (1024 * chip.peak_flops)
    assert least < plan.batch_s < 30 * least


def test_a_batch_and_a_half_takes_more_microbatches(bert: Model, table: LayerTable) -> None:
    size = bert.microbatch
    assert problem_with(bert, table, 2**35, batch=3 * size).microbatches == 3
    assert problem_with(bert, table, 2**35, batch=3 * size + 1).microbatches == 3 + (size == 1)


def test_a_collective_runs_alone_for_its_ring_seconds() -> None:
    split = load_model("bert-large", 8)
    block = fuse_layer(split.layers[1], SETTING.stack.fusion).forward
    waits = [wait for wait in pass_schedule(block, SETTING, backward=False)[0].waits_s if wait > 0]
    activations = 512 * 1024 * 2
    assert waits == pytest.approx([2 * 7 / 8 * activations / LINK] * 2)


def test_more_memory_never_slows_a_plan(bert: Model, table: LayerTable) -> None:
    plans = [fastest_plan(problem_with(bert, table, size * 2**30)) for size in (2, 4, 8, 32)]
    times = [float("inf") if plan is None else plan.batch_s for plan in plans]
    assert times == sorted(times, reverse=True)


def test_nothing_fits_on_a_tiny_memory(bert: Model, table: LayerTable) -> None:
    assert fastest_plan(problem_with(bert, table, 2**20, "full")) is None

"""Energy under rules ``cluster``: every byte and joule of a plan, added up by hand."""

import numpy as np
import pytest

from phaze.cost.chip_set import chip_set
from phaze.evaluate.layers import model_table
from phaze.hardware.library import load_chip
from phaze.hardware.technology import load_technology
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.rules import Mode
from phaze.placement.structure import StageCut
from phaze.search.energy import HBM, LINKS, layer_floors, layer_joules, plan_joules
from phaze.search.problem import problem_of
from phaze.search.task import on_all_devices
from tests.search.made_cluster import cluster_task

CHIP = load_chip("tpu-v4-paper")
TABLE = load_technology("paper-22nm")


def test_groups_that_share_out_state_reduce_across_and_each_update_it_all() -> None:
    """Four replicas in two groups of two, ZeRO 1: a scatter and a gather in each group, an
    all-reduce of halves."""
    found = {}
    for shard in (0, 2):
        task = cluster_task("gpt", widths=(1,), microbatches=(1,), zeros=(1,), shards=(shard,))
        graph, setting, configuration = (
            task.graphs[0],
            task.setting(CHIP),
            task.configurations[0],
        )
        problem = problem_of(task, configuration, model_table(graph.model, setting), 1e12)
        cuts = [StageCut(tuple(range(len(graph.calls))), "none")]
        plan = price(problem, Shape(1, 1, 4, "data"), cuts, task.prices)
        spreads = [b""] * sum(len(layer.passes) for layer in graph.layers)
        layers = layer_joules(graph, chip_set([CHIP]), setting.constants, TABLE, spreads)
        found[shard] = plan_joules(task, configuration, problem, plan, layers, TABLE)
    tied = graph.model.ties[0]
    count = sum(graph.layers[kind].parameters for kind in graph.calls) - tied.elements
    gradient, weight = problem.rules.gradient_wire, problem.rules.weight_wire
    whole = 3 * (gradient + weight)
    grouped = (
        2 * 1 * (gradient + weight) + 2 * gradient
    )  # and across: 2 ranks of each half send half of it, twice
    more = found[2] - found[0]
    assert more[LINKS] == pytest.approx(
        (grouped - whole) * 2.0 * count * TABLE.sent_j_per_byte, rel=1e-9
    )
    updated = count * problem.optimizer_traffic_bytes
    assert more[HBM] == pytest.approx(updated * TABLE.energy.hbm_j_per_byte, rel=1e-9)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("stack", ["maxtext", "megatron-2021"])
@pytest.mark.parametrize("mode", ["none", "selective", "full"])
def test_a_plan_takes_what_its_parts_take(mode: Mode, stack: str, zero: int) -> None:
    task = cluster_task("gpt", stack=stack, widths=(2,), microbatches=(1,), zeros=(zero,), batch=6)
    graph, setting, configuration = (
        task.graphs[0],
        task.setting(CHIP),
        task.configurations[0],
    )
    problem = problem_of(task, configuration, model_table(graph.model, setting), 1e12)
    count = len(graph.calls)
    cuts = [StageCut(tuple(range(3)), mode), StageCut(tuple(range(3, count)), mode)]
    family = task.training.machine.stack.families[0]
    plan = price(problem, Shape(2, 2, 3, "pipeline", family=family), cuts, task.prices)
    spreads = [b""] * sum(len(layer.passes) for layer in graph.layers)
    layers = layer_joules(graph, chip_set([CHIP]), setting.constants, TABLE, spreads)
    found = plan_joules(task, configuration, problem, plan, layers, TABLE)

    block = max(graph.calls, key=graph.calls.count)
    expected = np.zeros_like(found)
    for kind in graph.calls:
        own = layers[kind]
        both = own.passes_j
        if kind == block and mode != "none":
            both = both + (own.again_j[mode])
        expected += 6 * 2 * both[:, 0]
    tied = graph.model.ties[0]
    weights = sum(2.0 * graph.layers[kind].parameters for kind in graph.calls)
    crossing = sum(size for tail, head, size in graph.edges if tail < 3 <= head)
    sent = 6 * 2 * crossing * (1 if problem.scatter_gather else 2)
    sent += 2 * (3 - 1) * weights * {0: 2, 1: 2, 2: 1, 3: 0}[zero]
    sent += 2 * 2 * (3 - 1) * weights * {0: 0, 1: 0, 2: 1, 3: 3}[zero]
    sent += 2 * 3 * 2 * (len(tied.calls) - 1) * 2.0 * tied.elements
    expected[LINKS] += sent * TABLE.sent_j_per_byte
    moved = weights / 2.0 * problem.optimizer_traffic_bytes
    expected[HBM] += 2 * (3 if zero == 0 else 1) * moved * TABLE.energy.hbm_j_per_byte
    assert found == pytest.approx(expected, rel=1e-12)
    floor = on_all_devices(
        task, graph, layer_floors(graph, chip_set([CHIP]), setting.constants, TABLE)
    )
    assert floor[0] <= found.sum()

"""When nothing fits: the shortage is true, and each lever is the smallest change that helps."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from phaze.placement.answer import document_of, place
from phaze.placement.layers import LayerGraph, PlacedLayer, layer_graph
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.settings import icml24_problem
from phaze.placement.shortage import Shortage, shortage_of, split_wider
from phaze.placement.solve import fastest_plan
from tests.placement.brute_force import every_plan
from tests.placement.placement_cases import (
    mixed_problem,
    published,
    random_cluster_problem,
    random_icml24_problem,
)

KINDS: tuple[tuple[Callable[[int, bool, int], PlacementProblem], int], ...] = (
    (random_icml24_problem, 100),
    (random_cluster_problem, 200),
    (mixed_problem, 110),
)
Short = list[tuple[PlacementProblem, Shortage]]


@pytest.fixture(scope="module")
def short() -> Short:
    """Random problems of each kind that no plan fits."""
    problems = (
        random_problem(seed, chain, 4)
        for random_problem, count in KINDS
        for chain in (True, False)
        for seed in range(count)
    )
    answers = ((problem, place(problem)) for problem in problems)
    return [(problem, answer) for problem, answer in answers if isinstance(answer, Shortage)]


def _plain(graph: LayerGraph, devices: int, hbm_bytes: float) -> PlacementProblem:
    return icml24_problem(
        (graph,),
        devices=devices,
        hbm_bytes=hbm_bytes,
        link_bytes_per_s=1.0,
        microbatches=4,
        optimizer="sgd",
        recompute="none",
    )


def _need(plan: Plan) -> float:
    return max(stage.memory.total_bytes for stage in plan.stages)


def test_there_are_enough_short_problems_of_each_kind_to_try(short: Short) -> None:
    assert len(short) > 60
    assert {problem.rules.name for problem, _ in short} == {"icml24", "cluster"}


def test_the_hbm_lever_is_the_least_that_any_plan_needs(short: Short) -> None:
    for problem, found in short:
        least = min((_need(plan) for plan in every_plan(problem)), default=None)
        if least is None:
            assert found.plan is None
            assert found.levers.hbm_bytes is None
        else:
            needed = found.levers.hbm_bytes
            assert needed == pytest.approx(least / (1 - problem.headroom), rel=1e-12)
            assert found.plan is not None
            assert needed is not None
            assert _need(found.plan) == pytest.approx(least, rel=1e-12)
            assert fastest_plan(replace(problem, hbm_bytes=needed)) is not None
            assert fastest_plan(replace(problem, hbm_bytes=needed * (1 - 1e-9))) is None


def test_the_devices_lever_is_the_fewest_that_help(short: Short) -> None:
    for problem, found in short:
        tried = range(problem.devices + 1, problem.cluster.devices + 1)
        helps = next(
            (n for n in tried if fastest_plan(replace(problem, devices=n)) is not None), None
        )
        assert found.levers.devices == helps


def test_recompute_zero_and_optimizer_are_named_when_they_help(short: Short) -> None:
    seen = set()
    for problem, found in short:
        best = fastest_plan(replace(problem, recompute="best")) is not None
        assert found.levers.recompute == ("best" if best else None)
        sgd = (
            problem.sgd_state is not None
            and fastest_plan(replace(problem, state=problem.sgd_state)) is not None
        )
        assert found.levers.optimizer == ("sgd" if sgd else None)
        zeros = (zero for zero in problem.rules.zeros if zero > problem.zero)
        shared = next(
            (zero for zero in zeros if fastest_plan(replace(problem, zero=zero)) is not None), None
        )
        assert found.levers.zero == shared
        seen |= {("recompute", best), ("optimizer", sgd), ("zero", shared is not None)}
    assert len(seen) == 6


def test_terms_sum_to_what_is_needed() -> None:
    for case in published():
        if case.batch_s is None:
            said = document_of(place(case.problem))["shortage"]
            assert sum(said["terms"].values()) == pytest.approx(said["needed_bytes"], rel=1e-12)
            assert said["needed_bytes"] > said["available_bytes"] == case.problem.hbm_bytes
            assert said["stage"]["memory_bytes"] == said["needed_bytes"]


def test_a_width_beyond_the_devices_is_a_shortage_of_devices() -> None:
    graph = layer_graph(8, [PlacedLayer(0, 1.0, 1.0, 1.0, 1.0, True)], [])
    found = place(_plain(graph, 4, 1e9))
    assert isinstance(found, Shortage)
    assert found.levers.devices == 8
    document = document_of(found)["shortage"]
    assert (document["short_of"], document["needed_bytes"]) == ("devices", None)
    assert "4 devices" in document["sentence"]


def test_a_smaller_microbatch_and_a_wider_split_are_estimated() -> None:
    layers = [PlacedLayer(i, 1.0, 1.0, 8.0, 64.0, True) for i in range(2)]
    problem = _plain(layer_graph(2, layers, [(0, 1, 1.0)]), 8, 20.0)
    found = place(problem)
    assert isinstance(found, Shortage)
    # Two stages: the first needs 2 * 8 + 2 * 64 / n <= 20 at n = 32; at width 8 it is 4 + 2 * 16 /
    # 2^k.
    assert found.levers.microbatch_divisor == 32
    assert found.levers.tensor is None
    roomy = place(_plain(problem.graphs[0], 64, 20.0))
    assert isinstance(roomy, Shortage)
    assert roomy.levers.tensor == 16


@pytest.mark.parametrize("hbm_bytes", [1.0, 2.0, 3.0, 5.0])
def test_the_width_that_would_do_is_the_first_power_of_two_that_fits(hbm_bytes: float) -> None:
    layers = [PlacedLayer(i, 1.0, 2.0, 4.0, 4.0, True) for i in range(3)]
    graph = layer_graph(2, layers, [(0, 1, 0.5), (1, 2, 0.5)])
    problem = _plain(graph, 64, hbm_bytes)
    assert fastest_plan(problem) is None
    wide = {
        factor: replace(problem, graphs=(split_wider(graph, factor),))
        for factor in (2, 4, 8, 16, 32)
    }
    wanted = next(
        (2 * factor for factor, other in wide.items() if fastest_plan(other) is not None), None
    )
    assert shortage_of(problem).levers.tensor == wanted
    assert (wanted is None) == (hbm_bytes == 1.0)
    few = replace(problem, devices=2)
    assert shortage_of(few).levers.tensor is None
    whole = replace(graph, layers=tuple(replace(layer, sharded=False) for layer in layers))
    assert shortage_of(replace(problem, graphs=(whole,))).levers.tensor is None

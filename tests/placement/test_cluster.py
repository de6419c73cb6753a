"""Rules cluster: the solver against every plan of small problems, the formulas by hand, the layout, and the checker."""

import copy
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.memory import State
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, Level
from phaze.hardware.library import load_cluster
from phaze.placement.answer import document_of, place
from phaze.placement.cluster_check import objections
from phaze.placement.cluster_layout import Shape, boundary_levels, copies_by_level
from phaze.placement.cluster_pipeline import ModeCut, price
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.cluster_problem import ClusterProblem, Extra, batch_seconds
from phaze.placement.cluster_solve import fastest_plan
from phaze.placement.event_kernels import events, gpipe_events
from phaze.placement.problem import Layer, layer_graph
from phaze.placement.shortage import Shortage
from tests.placement.cluster_cases import cluster_brute_force, every_cluster_plan, random_cluster_problem, random_stack
from tests.placement.test_check import _at, _corrupted, _leaves

SEEDS = st.integers(0, 10**6)
TWO = Cluster("two", "two levels", 32, (Level("node", "switch", 8, 10.0, 0.5), Level("net", "switch", 4, 2.0, 1.0)))


def batch_s(problem: ClusterProblem) -> float:
    plan = fastest_plan(problem, RingPrices(problem.cluster))
    return float("inf") if plan is None else plan.batch_s


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(6))
def test_no_plan_of_a_small_problem_is_faster(block: int, chain: bool) -> None:
    for seed in range(20 * block, 20 * block + 20):
        problem = random_cluster_problem(seed, chain, 4)
        best, found = cluster_brute_force(problem), fastest_plan(problem, RingPrices(problem.cluster))
        assert (found is None) == (best is None), seed
        if found is not None:
            assert found.batch_s == pytest.approx(best, rel=1e-9), seed
            assert found.lower_bound_s == found.batch_s
            assert objections(problem, document_of(found), RingPrices(problem.cluster)) == [], seed


@pytest.mark.slow
@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(8))
def test_no_plan_of_many_small_problems_is_faster(block: int, chain: bool) -> None:
    for seed in range(5000 + 20 * block, 5000 + 20 * block + 20):
        problem = random_cluster_problem(seed, chain, 4 if seed % 5 else 6)
        best, found = cluster_brute_force(problem), fastest_plan(problem, RingPrices(problem.cluster))
        assert (None if found is None else found.batch_s) == (None if best is None else pytest.approx(best)), seed


@given(SEEDS, st.booleans(), st.floats(1.0, 4.0))
def test_more_memory_never_slows_the_best_plan(seed: int, chain: bool, factor: float) -> None:
    problem = random_cluster_problem(seed, chain)
    assert batch_s(replace(problem, hbm_bytes=factor * problem.hbm_bytes)) <= batch_s(problem) * (1 + 1e-12)


@given(SEEDS, st.booleans(), st.floats(1.0, 10.0))
def test_faster_links_never_slow_the_best_plan(seed: int, chain: bool, factor: float) -> None:
    problem = random_cluster_problem(seed, chain)
    levels = tuple(
        replace(level, bandwidth_bytes_per_s=factor * level.bandwidth_bytes_per_s) for level in problem.cluster.levels
    )
    faster = replace(problem, cluster=replace(problem.cluster, levels=levels))
    assert batch_s(faster) <= batch_s(problem) * (1 + 1e-12)


@given(SEEDS, st.booleans(), st.integers(1, 4))
def test_more_devices_never_slow_the_best_plan(seed: int, chain: bool, more: int) -> None:
    problem = random_cluster_problem(seed, chain)
    assert batch_s(replace(problem, devices=problem.devices + more)) <= batch_s(problem) * (1 + 1e-12)


@given(SEEDS, st.booleans(), st.floats(1.0, 5.0))
def test_slower_layers_never_speed_the_best_plan(seed: int, chain: bool, factor: float) -> None:
    problem = random_cluster_problem(seed, chain)
    slower = tuple(
        replace(g, layers=tuple(replace(la, backward_s=factor * la.backward_s) for la in g.layers[:1]) + g.layers[1:])
        for g in problem.graphs
    )
    assert batch_s(replace(problem, graphs=slower)) >= batch_s(problem) * (1 - 1e-12)


@given(SEEDS, st.booleans())
def test_zero_and_a_choice_of_recompute_never_slow_when_the_optimizer_takes_no_time(seed: int, chain: bool) -> None:
    problem = replace(random_cluster_problem(seed, chain), hbm_bytes_per_s=None)
    assert batch_s(replace(problem, zero=1)) <= batch_s(replace(problem, zero=0)) * (1 + 1e-12)
    assert batch_s(replace(problem, recompute="best")) <= batch_s(problem) * (1 + 1e-12)
    assert batch_s(replace(problem, schedule="1f1b")) <= batch_s(replace(problem, schedule="gpipe")) * (1 + 1e-12)


def test_a_boundary_crosses_the_level_that_holds_both_sides_in_every_copy() -> None:
    assert boundary_levels(TWO, Shape(4, 2, 4, "pipeline")).tolist() == [0]
    # Three stages of four devices: the first copy leaves its node after two, the second after one.
    assert boundary_levels(TWO, Shape(4, 3, 1, "pipeline")).tolist() == [0, 1]
    assert boundary_levels(TWO, Shape(4, 3, 2, "pipeline")).tolist() == [1, 1]
    assert boundary_levels(TWO, Shape(1, 4, 2, "data")).tolist() == [0, 0, 0]
    assert boundary_levels(TWO, Shape(2, 2, 4, "data")).tolist() == [1]
    assert boundary_levels(TWO, Shape(1, 1, 8, "data")).tolist() == []


def test_copies_meet_where_they_lie() -> None:
    assert copies_by_level(TWO, Shape(1, 1, 32, "pipeline")) == (8, 4)
    assert copies_by_level(TWO, Shape(2, 1, 16, "pipeline")) == (4, 4)
    assert copies_by_level(TWO, Shape(2, 4, 4, "pipeline")) == (1, 4)
    assert copies_by_level(TWO, Shape(2, 4, 4, "data")) == (4, 1)
    assert copies_by_level(TWO, Shape(1, 1, 1, "pipeline")) == (1, 1)


def test_a_ring_leaves_a_node_by_as_many_ways_as_it_has_members_there() -> None:
    prices = RingPrices(TWO)
    sizes = np.array([0.0, 32.0])
    assert prices.all_reduce_s((8, 4), sizes).tolist() == [0.0, 2 * 31 * 1.0 + 2 * 31 / 32 * 32.0 / 10.0]
    assert prices.all_reduce_s((1, 4), sizes).tolist() == [0.0, 2 * 3 * 1.0 + 2 * 3 / 4 * 32.0 / 2.0]
    assert prices.all_reduce_s((4, 1), sizes).tolist() == [0.0, 2 * 3 * 0.5 + 2 * 3 / 4 * 32.0 / 10.0]
    assert prices.all_reduce_s((1, 1), sizes).tolist() == [0.0, 0.0]
    assert prices.transfer_s(1, sizes).tolist() == [0.0, 1.0 + 16.0]


def _tied_problem(zero: int = 0) -> ClusterProblem:
    layers = [
        Layer(0, 1.0, 2.0, 20.0, 8.0, False),
        Layer(1, 4.0, 5.0, 40.0, 6.0, True),
        Layer(2, 2.0, 1.0, 20.0, 4.0, True),
    ]
    graph = layer_graph(2, layers, [(0, 1, 6.0), (1, 2, 2.0), (0, 2, 8.0)])
    extras = (Extra(tied="word", tied_bytes=16.0), Extra(2.0, 0.5), Extra(tied="word", tied_bytes=16.0))
    stack = replace(
        random_stack(random.Random(0)),
        hidden_synchronisation=0.25,
        scatter_gather=True,
        optimizer_traffic_bytes=30.0,
        reserve_bytes=7.0,
    )
    return ClusterProblem(
        32, 1000.0, 10, "best", "1f1b", zero, State(2.0, 4.0, 12.0), 2.0, 100.0, TWO, stack, (graph,), (extras,)
    )


def test_the_formulas_by_hand() -> None:
    problem = _tied_problem()
    shape = Shape(2, 2, 4, "pipeline")
    plan = price(problem, shape, [ModeCut((0,), "none"), ModeCut((1, 2), "selective")], RingPrices(TWO))
    first, second = plan.stages
    # 14 bytes cross the boundary, half of them on each of two devices, inside a node.
    move = 0.5 + 7.0 / 10.0
    assert (first.forward_s, first.backward_s) == (1.0, 2.0 + move)
    assert (second.forward_s, second.backward_s) == (6.0 + move, 0.5 + 6.0)
    # Two copies in each of two nodes; the second stage has 60 bytes of parameters, 30 parameters.
    sync = 0.75 * (2 * 3 * 1.0 + 2 * 3 / 4 * 60.0 / 4.0)
    step = 30 * 30.0 / 100.0
    tied = 2 * 0.5 + 16.0 / 10.0
    t1, t2 = 3.0 + move, 12.5 + move
    assert plan.batch_s == pytest.approx(2 * t2 + t1 + t2 + sync + step + tied, rel=1e-12)
    assert second.memory.total_bytes == pytest.approx(30 * 18 + 7 + (2 + 4) + (6 - 2))
    assert first.memory.total_bytes == pytest.approx(10 * 18 + 7 + 2 * 8)
    assert plan.breakdown.tied_s == pytest.approx(tied)


def test_tied_layers_of_one_stage_are_held_once() -> None:
    plan = price(_tied_problem(1), Shape(2, 1, 2, "pipeline"), [ModeCut((0, 1, 2), "full")], RingPrices(TWO))
    memory = plan.stages[0].memory
    assert memory.parameters == 2 * (80 - 16) / 2
    assert memory.optimizer == 12 * (80 - 16) / 2 / 2
    # Each layer's inputs are kept, and the layer that is run again in full.
    assert memory.activations == (0 + 6 + 10) + 8
    assert plan.breakdown.tied_s == 0


def test_events_meet_the_formula_when_stages_take_equal_time() -> None:
    layers = [Layer(i, 1.0, 2.0, 2.0, 2.0, False) for i in range(4)]
    graph = layer_graph(1, layers, [(i, i + 1, 0.0) for i in range(3)])
    problem = replace(_tied_problem(), graphs=(graph,), extras=((Extra(),) * 4,))
    plan = price(problem, Shape(1, 4, 3, "data"), [ModeCut((i,), "none") for i in range(4)], RingPrices(TWO))
    assert plan.simulated_s == pytest.approx(plan.batch_s, rel=1e-12)


def test_zero_2_scatters_gradients_after_every_microbatch_and_gathers_weights_once() -> None:
    plan = price(_tied_problem(2), Shape(2, 1, 2, "pipeline"), [ModeCut((0, 1, 2), "none")], RingPrices(TWO))
    memory, (stage,) = plan.stages[0].memory, plan.stages
    # 64 bytes are 32 parameters, the largest layer has 20 of them; two copies.
    assert memory.parameters == 2 * 32
    assert memory.gradients == 4 * (20 + (32 - 20) / 2)
    assert memory.optimizer == 12 * 32 / 2
    # A ring of two inside a node: one step of 0.5 s, half of the bytes at 10 a second, for each of three layers.
    scattered = 3 * 0.5 + (20 + 40 + 20) / 2 / 10
    assert stage.forward_s == 7.0
    assert stage.backward_s == pytest.approx(8 + 0.75 * scattered)
    gathered, step = 0.75 * (0.5 + 64 / 2 / 10), 32 * 30.0 / 2 / 100.0
    assert plan.batch_s == pytest.approx(5 * stage.time_s + gathered + step)
    assert plan.breakdown.synchronisation_s == pytest.approx(5 * 0.75 * scattered + gathered)


def test_zero_3_gathers_weights_for_each_pass_and_cannot_hide_more_than_there_is_to_do() -> None:
    problem = _tied_problem(3)
    cut, shape = [ModeCut((0, 1, 2), "full")], Shape(2, 1, 2, "pipeline")
    plan = price(problem, shape, cut, RingPrices(TWO))
    memory, (stage,) = plan.stages[0].memory, plan.stages
    assert memory.parameters == 2 * (20 + (32 - 20) / 2)
    gathered = 3 * 0.5 + (20 + 40 + 20) / 2 / 10
    assert stage.forward_s == pytest.approx(7 + 0.75 * gathered)
    assert stage.backward_s == pytest.approx(7 + 8 + 0.75 * 2 * gathered)
    assert plan.batch_s == pytest.approx(5 * stage.time_s + 32 * 30.0 / 2 / 100.0)
    eager = replace(problem, stack=replace(problem.stack, hidden_synchronisation=1.0))
    slow = Cluster("slow", "one level", 32, (Level("all", "switch", 32, 0.1, 0.0),))
    plan = price(replace(eager, cluster=slow), shape, cut, RingPrices(slow))
    assert plan.stages[0].forward_s == pytest.approx(400.0)
    assert plan.stages[0].backward_s == pytest.approx(800.0)


@given(SEEDS, st.booleans(), st.integers(1, 3))
def test_every_stage_of_zero_needs_less_memory(seed: int, chain: bool, zero: int) -> None:
    problem = replace(random_cluster_problem(seed, chain, 3), zero=zero)
    less = replace(problem, zero=zero - 1)
    for count, (lean, full) in enumerate(zip(every_cluster_plan(problem), every_cluster_plan(less), strict=True)):
        for one, other in zip(lean.stages, full.stages, strict=True):
            assert one.memory.total_bytes <= other.memory.total_bytes * (1 + 1e-12)
        if count > 20:
            break


PASSES = st.lists(st.tuples(st.floats(0.0, 9.0), st.floats(0.0, 9.0)), min_size=1, max_size=7)


@given(PASSES, st.integers(1, 30))
def test_events_of_gpipe_are_the_formula(passes: list[tuple[float, float]], rounds: int) -> None:
    forward, backward = np.array(passes).T.copy()
    starts = np.empty((2, len(passes), rounds))
    end_s = gpipe_events(forward, backward, rounds, starts)
    assert end_s == pytest.approx(batch_seconds(passes, rounds, "gpipe", 0.0), rel=1e-12, abs=1e-12)
    assert end_s == pytest.approx((starts[1] + backward[:, None]).max(), abs=1e-12)


@given(PASSES, st.integers(1, 30))
def test_events_of_1f1b_end_between_what_is_proved(passes: list[tuple[float, float]], rounds: int) -> None:
    forward, backward = np.array(passes).T.copy()
    end_s, times = events(forward, backward, rounds, np.empty((2, 0, 0))), forward + backward
    assert end_s <= (times[0] + (rounds + len(passes) - 2) * times.max()) * (1 + 1e-12)
    slowest = int(times.argmax())
    assert end_s >= (rounds * times.max() + times[:slowest].sum()) * (1 - 1e-12)
    assert end_s >= times.sum() * (1 - 1e-12)


@given(SEEDS)
def test_the_breakdown_sums_to_the_batch_time(seed: int) -> None:
    problem = random_cluster_problem(seed, seed % 2 == 0, 3)
    for count, plan in enumerate(every_cluster_plan(problem)):
        terms = plan.breakdown
        total = sum(getattr(terms, name) for name in type(terms).__slots__)
        assert total == pytest.approx(plan.batch_s, rel=1e-9)
        if count > 20:
            break


def _good() -> tuple[ClusterProblem, dict[str, Any], RingPrices]:
    problem = replace(_tied_problem(), hbm_bytes=560.0, microbatches=40)
    found = place(problem)
    document = dict(document_of(found))
    assert document["feasible"]
    return problem, document, RingPrices(problem.cluster)


def test_the_checker_objects_to_every_corrupted_field() -> None:
    problem, good, prices = _good()
    assert good["pipeline"] > 1
    assert objections(problem, good, prices) == []
    for path in set(_leaves(good)):
        for wrong in _corrupted(_at(good, path)):
            document = copy.deepcopy(good)
            _at(document, path[:-1])[path[-1]] = wrong
            assert objections(problem, document, prices), (path, wrong)


def test_the_checker_objects_to_a_plan_for_another_machine() -> None:
    problem, good, prices = _good()
    for change in ({"hbm_bytes": 100.0}, {"devices": 3}, {"microbatches": 7}, {"zero": 1}, {"recompute": "full"}):
        assert objections(replace(problem, **change), good, prices)


def test_a_shortage_names_the_least_memory_and_the_fewest_devices() -> None:
    seen = 0
    for seed in range(60):
        problem = random_cluster_problem(seed, seed % 2 == 0, 4)
        found = place(problem)
        if not isinstance(found, Shortage):
            continue
        seen += 1
        least = min((max(s.memory.total_bytes for s in p.stages) for p in every_cluster_plan(problem)), default=None)
        assert found.levers.hbm_bytes == (None if least is None else pytest.approx(least, rel=1e-9))
        helps = (
            n for n in range(problem.devices + 1, 13) if fastest_plan(replace(problem, devices=n), prices(problem))
        )
        assert found.levers.devices == next(helps, None)
        stages = range(problem.zero + 1, 4)
        assert found.levers.zero == next(
            (z for z in stages if fastest_plan(replace(problem, zero=z), prices(problem))), None
        )
        assert document_of(found)["rules"] == "cluster"
    assert seen > 5


def prices(problem: ClusterProblem) -> RingPrices:
    return RingPrices(problem.cluster)


def test_a_problem_beyond_the_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="devices: the cluster has 32 and 33 are asked for"):
        replace(_tied_problem(), devices=33)
    with pytest.raises(InputError, match="zero: 4 is out of range"):
        replace(_tied_problem(), zero=4)


def test_a_named_cluster_serves_its_devices() -> None:
    levels = load_cluster("selene")
    assert copies_by_level(levels, Shape(8, 2, 16, "pipeline")) == (1, 16)
    assert boundary_levels(levels, Shape(8, 2, 16, "pipeline")).tolist() == [1]

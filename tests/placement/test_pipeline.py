"""What a given plan costs: the formulas by hand under both settings, and plans that are no
plans."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.memory import ParameterState
from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.hardware.cluster import cluster_of, switch_level
from phaze.hardware.stack import Optimizer
from phaze.pipeline.families import GPIPE, ONE_F_ONE_B
from phaze.placement.layers import PlacedLayer, layer_graph
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem, RecomputeChoice
from phaze.placement.rules import Mode, Rules
from phaze.placement.settings import icml24_problem
from phaze.placement.simulate import timeline
from phaze.placement.solve import fastest_plan
from phaze.placement.structure import StageCut
from tests.placement.brute_force import every_plan
from tests.placement.placement_cases import (
    interleaving_problem,
    mixed_problem,
    published,
    random_icml24_problem,
)
from tests.placement.test_layout import TWO

SEEDS = st.integers(0, 10**6)
Cuts = Sequence[tuple[tuple[int, ...], Mode]]


def priced(problem: PlacementProblem, tensor: int, data: int, cuts: Cuts) -> Plan:
    shape = Shape(tensor, len(cuts), data, problem.rules.orders[0])
    return price(problem, shape, [StageCut(*cut) for cut in cuts], NetworkPrices(problem.cluster))


def flat(
    recompute: RecomputeChoice = "none", optimizer: Optimizer = "sgd", hbm_bytes: float = 1000.0
) -> PlacementProblem:
    layers = [
        PlacedLayer(0, 1.0, 2.0, 10.0, 3.0, False),
        PlacedLayer(1, 4.0, 5.0, 20.0, 7.0, True),
        PlacedLayer(2, 2.0, 1.0, 30.0, 4.0, True),
    ]
    graph = layer_graph(2, layers, [(0, 1, 6.0), (1, 2, 2.0), (0, 2, 40.0)])
    return icml24_problem(
        (graph,),
        devices=12,
        hbm_bytes=hbm_bytes,
        link_bytes_per_s=2.0,
        microbatches=7,
        optimizer=optimizer,
        recompute=recompute,
    )


def test_a_stage_waits_for_what_enters_and_leaves_it_under_icml24() -> None:
    plan = priced(flat(), 2, 2, [((0,), "none"), ((1, 2), "none")])
    first, second = plan.stages
    # Layer 0 ends its backward after the 20 s of the edge to layer 2; layer 2 starts after them.
    assert (first.forward_s, first.backward_s, first.devices) == (1.0, 22.0, 1)
    assert (second.forward_s, second.backward_s, second.devices) == (22.0, 6.0, 2)
    assert plan.batch_s == 28.0 * (4 + 1) + 4 * 0.5 * 10.0 / 2.0


def test_a_stage_that_recomputes_runs_its_forward_pass_again_while_it_waits() -> None:
    plan = priced(flat("full"), 2, 1, [((0, 1), "full"), ((2,), "none")])
    # Recomputed in 5 s, during which the 20 s edge to layer 0 and the 1 s edge to layer 1 travel.
    assert plan.stages[0].backward_s == max(5.0 + 7.0, 20.0 + 2.0, 1.0 + 7.0)
    assert plan.stages[0].memory.in_flight == 0.0
    assert plan.stages[0].recompute == "full"


@pytest.mark.parametrize(("optimizer", "state"), [("sgd", 2), ("adam", 3)])
def test_memory_holds_state_and_what_is_in_flight(optimizer: Optimizer, state: int) -> None:
    plan = priced(flat(optimizer=optimizer), 2, 1, [((0,), "none"), ((1,), "none"), ((2,), "none")])
    assert [stage.memory.total_bytes for stage in plan.stages] == [
        state * 10 + 3 + 2 * 3,
        state * 20 + 7 + 7,
        state * 30 + 4,
    ]


def test_a_recomputing_stage_keeps_what_enters_it() -> None:
    plan = priced(flat("full"), 2, 1, [((0,), "full"), ((1,), "full"), ((2,), "none")])
    assert [stage.memory.in_flight for stage in plan.stages] == [0.0, 6.0, 0.0]


def test_a_plan_that_does_not_fit_is_priced() -> None:
    problem = flat(hbm_bytes=5.0)
    plan = priced(problem, 2, 1, [((0, 1, 2), "none")])
    assert plan.batch_s == 15.0 * 7
    assert not fits(problem, plan)


@pytest.mark.parametrize(
    ("tensor", "data", "cuts", "said"),
    [
        (4, 1, [((0, 1, 2), "none")], "width 4 is missing"),
        (2, 0, [((0, 1, 2), "none")], "0 replicas are out of range"),
        (2, 8, [((0, 1, 2), "none")], "8 replicas are out of range"),
        (2, 7, [((0, 1, 2), "none")], "7 replicas are out of range"),
        (2, 1, [], "0 stages are stated and 0 given"),
        (2, 1, [((0, 1), "none")], "every layer once"),
        (2, 1, [((0, 1, 2), "none"), ((2,), "none")], "every layer once"),
        (2, 1, [((0, 1, 2), "none"), ((), "none")], "stage is empty"),
        (2, 1, [((1, 2), "none"), ((0,), "none")], "runs backwards"),
        (2, 1, [((0, 1, 2), "full")], "the last stage recomputes"),
    ],
)
def test_what_is_no_plan_is_refused(tensor: int, data: int, cuts: Cuts, said: str) -> None:
    with pytest.raises(InputError, match=said):
        priced(flat(), tensor, data, cuts)


def test_chunks_that_no_family_has_are_refused() -> None:
    problem = replace(interleaving_problem(0), rules=Rules("cluster", (GPIPE,)))
    with pytest.raises(InputError, match="2 under gpipe"):
        price(
            problem,
            Shape(1, 1, 1, "pipeline", 2),
            [StageCut(tuple(range(4)), "none")],
            NetworkPrices(problem.cluster),
        )


def levelled(zero: int = 0) -> PlacementProblem:
    """Three layers on two levels, the outer two of which share parameters."""
    layers = [
        PlacedLayer(0, 1.0, 2.0, 20.0, 8.0, False, tied="word", tied_bytes=16.0),
        PlacedLayer(1, 4.0, 5.0, 40.0, 6.0, True, selective_bytes=2.0, selective_s=0.5),
        PlacedLayer(2, 2.0, 1.0, 20.0, 4.0, True, tied="word", tied_bytes=16.0),
    ]
    graph = layer_graph(2, layers, [(0, 1, 6.0), (1, 2, 2.0), (0, 2, 8.0)])
    return PlacementProblem(
        rules=Rules(
            "cluster", (ONE_F_ONE_B,), reduction_cost=1.0, gather_cost=1.0, sharded_cost=0.75
        ),
        devices=32,
        hbm_bytes=1000.0,
        microbatches=10,
        recompute="best",
        state=ParameterState(2.0, 4.0, 12.0),
        cluster=TWO,
        graphs=(graph,),
        zero=zero,
        hbm_bytes_per_s=100.0,
        optimizer_traffic_bytes=30.0,
        reserve_bytes=7.0,
        scatter_gather=True,
    )


def test_the_formulas_of_a_network_of_levels_by_hand() -> None:
    plan = priced(levelled(), 2, 4, [((0,), "none"), ((1, 2), "selective")])
    first, second = plan.stages
    # 14 bytes cross the boundary, half of them on each of two devices, inside a node.
    move = 0.5 + 7.0 / 10.0
    assert (first.forward_s, first.backward_s) == (1.0, 2.0 + move)
    assert (second.forward_s, second.backward_s) == (6.0 + move, 0.5 + 6.0)
    # Two replicas in each of two nodes; the second stage has 60 bytes of parameters, 30 parameters.
    sync = 2 * 3 * 1.0 + 2 * 3 / 4 * 60.0 / 4.0
    step = 30 * 30.0 / 100.0
    tied = 2 * 0.5 + 16.0 / 10.0
    t1, t2 = 3.0 + move, 12.5 + move
    assert plan.batch_s == pytest.approx(2 * t2 + t1 + t2 + sync + step + tied, rel=1e-12)
    assert second.memory.total_bytes == pytest.approx(30 * 18 + 7 + (2 + 4) + (6 - 2))
    assert first.memory.total_bytes == pytest.approx(10 * 18 + 7 + 2 * 8)
    assert plan.breakdown.tied_s == pytest.approx(tied)


def test_all_forwards_ahead_hold_all_microbatches_and_wait_for_both_passes() -> None:
    problem = replace(levelled(), rules=Rules("cluster", (GPIPE,)), hbm_bytes_per_s=None)
    plan = priced(problem, 2, 1, [((0,), "none"), ((1, 2), "none")])
    move = 0.5 + 7.0 / 10.0
    tied = 2 * 0.5 + 16.0 / 10.0
    assert plan.batch_s == pytest.approx(
        9 * (6.0 + move + 6.0) + 3.0 + 12.0 + 2 * move + tied, rel=1e-12
    )
    assert [stage.memory.in_flight for stage in plan.stages] == [9 * 8.0, 9 * 10.0]


def test_tied_layers_of_one_stage_are_held_once() -> None:
    plan = priced(levelled(1), 2, 2, [((0, 1, 2), "full")])
    memory = plan.stages[0].memory
    assert memory.parameters == 2 * (80 - 16) / 2
    assert memory.optimizer == 12 * (80 - 16) / 2 / 2
    # Each layer's inputs are kept, and the layer that is recomputed in full.
    assert memory.activations == (0 + 6 + 10) + 8
    assert plan.breakdown.tied_s == 0


def test_zero_2_scatters_gradients_after_every_microbatch_and_gathers_weights_once() -> None:
    plan = priced(levelled(2), 2, 2, [((0, 1, 2), "none")])
    memory, (stage,) = plan.stages[0].memory, plan.stages
    # 64 bytes are 32 parameters, the largest layer has 20 of them; two replicas.
    assert memory.parameters == 2 * 32
    assert memory.gradients == 4 * (20 + (32 - 20) / 2)
    assert memory.optimizer == 12 * 32 / 2
    # A ring of two inside a node: one step of 0.5 s, half of the bytes at 10 a second, for each of
    # three layers.
    scattered = 3 * 0.5 + (20 + 40 + 20) / 2 / 10
    assert stage.forward_s == 7.0
    assert stage.backward_s == pytest.approx(8 + 0.75 * scattered)
    gathered, step = 0.5 + 64 / 2 / 10 + 0.25 * (0.5 + 80 / 3 / 2 / 10), 32 * 30.0 / 2 / 100.0
    assert plan.batch_s == pytest.approx(5 * stage.time_s + gathered + step)
    assert plan.breakdown.synchronisation_s == pytest.approx(5 * 0.75 * scattered + gathered)


def test_zero_3_gathers_weights_for_each_pass_and_cannot_hide_more_than_there_is_to_do() -> None:
    problem, cuts = levelled(3), [((0, 1, 2), "full")]
    plan = priced(problem, 2, 2, cuts)
    memory, (stage,) = plan.stages[0].memory, plan.stages
    assert memory.parameters == 2 * (20 + (32 - 20) / 2)
    gathered = 3 * 0.5 + (20 + 40 + 20) / 2 / 10
    assert stage.forward_s == pytest.approx(7 + 0.75 * gathered)
    assert stage.backward_s == pytest.approx(7 + 8 + 0.75 * 2 * gathered)
    # Once a step a gather and a scatter of a layer, here of mean size, have nothing beside them.
    alone = 2 * 0.25 * (0.5 + 80 / 3 / 2 / 10)
    assert plan.batch_s == pytest.approx(5 * stage.time_s + 32 * 30.0 / 2 / 100.0 + alone)
    slow = cluster_of("slow", "one level", (switch_level("all", 32, 0.1, 0.0),))
    eager = replace(problem, rules=replace(problem.rules, sharded_cost=0.0), cluster=slow)
    plan = priced(eager, 2, 2, cuts)
    assert plan.stages[0].forward_s == pytest.approx(400.0)
    assert plan.stages[0].backward_s == pytest.approx(800.0)


@given(SEEDS, st.booleans(), st.integers(1, 3))
def test_every_stage_of_zero_needs_less_memory(seed: int, chain: bool, zero: int) -> None:
    problem = replace(mixed_problem(seed, chain, 3), zero=zero)
    plans = zip(every_plan(problem), every_plan(replace(problem, zero=zero - 1)), strict=True)
    for lean, full in islice(plans, 20):
        for one, other in zip(lean.stages, full.stages, strict=True):
            assert one.memory.total_bytes <= other.memory.total_bytes * (1 + 1e-12)


@given(SEEDS, st.booleans())
def test_the_breakdown_sums_to_the_batch_time(seed: int, chain: bool) -> None:
    for problem in (mixed_problem(seed, chain, 3), random_icml24_problem(seed, chain, 4)):
        for plan in islice(every_plan(problem), 20):
            terms = [getattr(plan.breakdown, name) for name in plan.breakdown.__slots__]
            assert sum(terms) == pytest.approx(plan.batch_s, rel=1e-9)
            assert min(terms) >= -1e-9 * plan.batch_s


@given(SEEDS, st.booleans())
def test_the_simulation_never_takes_longer_than_the_formula_of_icml24(
    seed: int, chain: bool
) -> None:
    for plan in islice(every_plan(random_icml24_problem(seed, chain, 4), simulated=True), 60):
        assert plan.simulated_s <= plan.batch_s


def test_events_meet_the_formula_when_stages_take_equal_time() -> None:
    layers = [PlacedLayer(i, 1.0, 2.0, 2.0, 2.0, False) for i in range(4)]
    graph = layer_graph(1, layers, [(i, i + 1, 0.0) for i in range(3)])
    problem = replace(levelled(), graphs=(graph,))
    plan = priced(problem, 1, 3, [((i,), "none") for i in range(4)])
    assert plan.simulated_s == pytest.approx(plan.batch_s, rel=1e-12)


def test_a_timeline_runs_every_event_once_and_in_order() -> None:
    problem = replace(published()[9].problem, microbatches=640)
    plan = fastest_plan(problem)
    assert plan is not None
    rounds = problem.rounds(plan.data)
    line = timeline(plan, rounds)
    assert line.forward_s.shape == line.backward_s.shape == (len(plan.stages), rounds)
    ahead = np.array([stage.forward_s for stage in plan.stages])[:, None]
    behind = np.array([stage.backward_s for stage in plan.stages])[:, None]
    assert (line.forward_s[1:] >= (line.forward_s + ahead)[:-1] - 1e-9).all()
    assert (line.backward_s[:-1] >= (line.backward_s + behind)[1:] - 1e-9).all()
    for i in range(len(plan.stages)):
        starts = np.concatenate([line.forward_s[i], line.backward_s[i]])
        ends = np.concatenate([line.forward_s[i] + ahead[i], line.backward_s[i] + behind[i]])
        order = np.argsort(starts, kind="stable")
        assert (starts[order][1:] >= ends[order][:-1] - 1e-9).all()
    assert line.end_s == pytest.approx((line.backward_s + behind).max())


def test_very_many_microbatches_are_continued_at_the_steady_pace() -> None:
    plan = fastest_plan(replace(published()[9].problem, microbatches=10**9))
    assert plan is not None
    assert 0.99 * plan.batch_s < plan.simulated_s <= plan.batch_s


def test_a_problem_beyond_the_cluster_is_refused() -> None:
    with pytest.raises(InputError, match="devices: the cluster has 32 and 33 are requested"):
        replace(levelled(), devices=33)
    with pytest.raises(InputError, match="zero: 4 is out of range"):
        replace(levelled(), zero=4)
    with pytest.raises(InputError, match="one level"):
        replace(levelled(), rules=replace(levelled().rules, unsplit_stages=True))

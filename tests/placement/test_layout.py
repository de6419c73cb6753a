"""Where groups lie in a network of levels, and what a ring or a message between them takes."""

from dataclasses import replace

import numpy as np
import pytest

from phaze.cost.network_prices import NetworkPrices
from phaze.hardware.cluster import cluster_of, switch_level
from phaze.hardware.library import load_cluster
from phaze.placement.answer import document_of
from phaze.placement.layout import Shape, boundary_levels, boundary_levels_of
from phaze.placement.rules import Order
from phaze.placement.sharing import REPLICAS, Sharing
from phaze.placement.solve import fastest_plan
from tests.check.documents import objections
from tests.placement.placement_cases import interleaving_problem

TWO = cluster_of(
    "two", "two levels", (switch_level("node", 8, 10.0, 0.5), switch_level("net", 4, 2.0, 1.0))
)


def test_a_boundary_crosses_the_level_that_holds_both_sides_in_every_replica() -> None:
    assert boundary_levels(TWO, Shape(4, 2, 4, "pipeline")).tolist() == [0]
    # Three stages of four devices: the first replica leaves its node after two, the second after
    # one.
    assert boundary_levels(TWO, Shape(4, 3, 1, "pipeline")).tolist() == [0, 1]
    assert boundary_levels(TWO, Shape(4, 3, 2, "pipeline")).tolist() == [1, 1]
    assert boundary_levels(TWO, Shape(1, 4, 2, "data")).tolist() == [0, 0, 0]
    assert boundary_levels(TWO, Shape(2, 2, 4, "data")).tolist() == [1]
    assert boundary_levels(TWO, Shape(1, 1, 8, "data")).tolist() == []


@pytest.mark.parametrize("order", ["pipeline", "data"])
@pytest.mark.parametrize("stages", [1, 2, 3, 5, 8])
def test_all_numbers_of_replicas_at_once_cross_what_each_crosses(stages: int, order: Order) -> None:
    for tensor in (1, 2, 4):
        most = 32 // (tensor * stages)
        every = boundary_levels_of(TWO, Shape(tensor, stages, most, order)) if most else ()
        for data, levels in enumerate(every, 1):
            assert (
                levels.tolist() == boundary_levels(TWO, Shape(tensor, stages, data, order)).tolist()
            )


def test_replicas_meet_where_they_lie() -> None:
    assert REPLICAS.dense_by_level(TWO, Shape(1, 1, 32, "pipeline")) == (8, 4)
    assert REPLICAS.dense_by_level(TWO, Shape(2, 1, 16, "pipeline")) == (4, 4)
    assert REPLICAS.dense_by_level(TWO, Shape(2, 4, 4, "pipeline")) == (1, 4)
    assert REPLICAS.dense_by_level(TWO, Shape(2, 4, 4, "data")) == (4, 1)
    assert REPLICAS.dense_by_level(TWO, Shape(1, 1, 1, "pipeline")) == (1, 1)


def test_ranks_that_share_a_sequence_or_experts_meet_where_they_lie() -> None:
    wide = Sharing(context=2, expert=8)
    assert wide.dense_by_level(TWO, Shape(4, 1, 8, "data")) == (4, 4)
    assert wide.experts_by_level(TWO, Shape(4, 1, 8, "data")) == (1, 4)
    assert wide.dense_by_level(TWO, Shape(4, 2, 4, "data")) == (4, 2)
    assert wide.dense_by_level(TWO, Shape(4, 2, 4, "pipeline")) == (2, 4)
    assert Sharing(expert=2).experts_by_level(TWO, Shape(4, 2, 4, "pipeline")) == (2, 4)


def test_experts_of_other_replicas_are_reached_where_these_are_neighbours() -> None:
    wide = Sharing(expert=4, expert_tensor=2)
    assert wide.allows(Shape(2, 2, 4, "data"))
    assert not wide.allows(Shape(2, 2, 4, "pipeline"))
    assert wide.allows(Shape(8, 2, 2, "pipeline"))
    assert not wide.allows(Shape(2, 2, 3, "data"))
    assert wide.allows(Shape(2, 1, 4, "pipeline"))


def test_a_named_cluster_serves_its_devices() -> None:
    levels = load_cluster("selene")
    assert REPLICAS.dense_by_level(levels, Shape(8, 2, 16, "pipeline")) == (1, 16)
    assert boundary_levels(levels, Shape(8, 2, 16, "pipeline")).tolist() == [1]


def test_levels_may_join_more_devices_than_64_bits_count() -> None:
    levels = tuple(switch_level(f"l{i}", 2**40, 8.0, 0.0) for i in range(3))
    problem = replace(interleaving_problem(0), cluster=cluster_of("vast", "vast", levels))
    plan = fastest_plan(problem)
    assert plan is not None
    assert boundary_levels(problem.cluster, Shape(1, 3, 2, "pipeline")).tolist() == [0, 0]
    assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == []


def test_a_ring_leaves_a_node_by_as_many_ways_as_it_has_members_there() -> None:
    prices = NetworkPrices(TWO)
    sizes = np.array([0.0, 32.0])
    assert prices.all_reduce_s((8, 4), sizes).tolist() == [
        0.0,
        2 * 31 * 1.0 + 2 * 31 / 32 * 32.0 / 10.0,
    ]
    assert prices.all_reduce_s((1, 4), sizes).tolist() == [
        0.0,
        2 * 3 * 1.0 + 2 * 3 / 4 * 32.0 / 2.0,
    ]
    assert prices.all_reduce_s((4, 1), sizes).tolist() == [
        0.0,
        2 * 3 * 0.5 + 2 * 3 / 4 * 32.0 / 10.0,
    ]
    assert prices.all_reduce_s((1, 1), sizes).tolist() == [0.0, 0.0]
    assert prices.transfer_s(1, sizes).tolist() == [0.0, 1.0 + 16.0]

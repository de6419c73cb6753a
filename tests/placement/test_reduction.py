"""The end of a batch: what of reductions and gathers is exposed, and what it grows with."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.hardware.cluster import cluster_of, switch_level
from phaze.placement.batch_end import norm_s, piece_bytes, step_s, synchronisation_s
from phaze.placement.layers import PlacedLayer
from phaze.placement.layout import Shape
from phaze.placement.problem import PlacementProblem
from phaze.placement.sharing import Sharing
from tests.cost.test_synchronisation import walked_s
from tests.placement.placement_cases import mixed_problem, with_layers

SEEDS, SHARE = st.integers(0, 10**6), st.floats(0.0, 1.0)
ZEROS = st.integers(0, 3)
SIZES = np.linspace(1.0, 200.0, 40)


def _blocks(seed: int, forward_s: float, backward_s: float, **rules: Any) -> PlacementProblem:
    """A problem whose layers are equal blocks, each a piece, or as its ``rules`` say."""
    problem = mixed_problem(seed, chain=True)
    changed: dict[str, Any] = {
        "link_bytes_per_s": None,
        "stage": "layers",
        "norm": False,
        "host_s": 0.0,
        "bucket": 0.0,
        "unsplit_stages": False,
    }
    changed = {**changed, **rules}
    problem = replace(problem, rules=replace(problem.rules, **changed), zero=0)

    def block(layer: PlacedLayer, _: int) -> PlacedLayer:
        layer = replace(
            layer, parameter_bytes=8.0, forward_s=forward_s, backward_s=backward_s,
            selective_bytes=None, selective_s=0.0, full_s=None, more=(),
        )  # fmt: skip
        return replace(layer, block=True, tied=None, tied_bytes=0.0)

    return with_layers(problem, block)


def _shape(problem: PlacementProblem, data: int = 2, chunks: int = 1, stages: int = 1) -> Shape:
    return Shape(problem.graphs[0].width, stages, data, problem.rules.orders[0], chunks)


@pytest.mark.parametrize("backward_s", [0.0, 0.5, 3.0, 100.0])
def test_what_a_reduction_of_blocks_shows_is_that_of_the_walk_block_by_block(
    backward_s: float,
) -> None:
    for seed in range(8):
        problem = _blocks(seed, 1.0, backward_s, reduction_cost=0.0)
        prices, shape = NetworkPrices(problem.cluster), _shape(problem)
        members = problem.sharing.dense_by_level(problem.cluster, shape)
        once_s = float(prices.all_reduce_s(members, np.array([8.0]))[0])
        for count in (1, 2, 5):
            size = np.array([8.0 * count])
            left_s = walked_s([once_s] * count, [backward_s] * count)
            # One reduction of all of it never shows more.
            least_s = min(left_s, float(prices.all_reduce_s(members, size)[0]))
            exposed_s = synchronisation_s(problem, shape, prices, size)[0]
            assert exposed_s == pytest.approx(least_s, rel=1e-12)
            bound_s = synchronisation_s(problem, shape, prices, size, least=True)[0]
            assert bound_s <= least_s * (1 + 1e-12)


@given(SEEDS, ZEROS, SHARE, st.floats(0.0, 5.0), st.sampled_from([None, 0.0, 3.0, 20.0]))
def test_the_end_never_falls_with_parameters_or_wires_and_never_rises_with_passes(
    seed: int, zero: int, cost: float, work_s: float, bucket: float | None
) -> None:
    def ends(passes_s: float, wire: float, chunks: int = 1) -> np.ndarray:
        costs = {"reduction_cost": cost, "gather_cost": cost, "bucket": bucket}
        problem = _blocks(seed, passes_s, 2 * passes_s, **costs, gradient_wire=wire)
        problem = replace(problem, zero=zero, sharing=Sharing(shard=2) if seed % 2 else Sharing())
        shape = _shape(problem, 4, chunks, 2 if chunks > 1 else 1)
        return synchronisation_s(problem, shape, NetworkPrices(problem.cluster), SIZES)

    plain = ends(work_s, 1.0)
    assert np.all(np.diff(plain) >= -1e-12)
    assert np.all(ends(work_s, 2.0) >= plain - 1e-12)
    assert np.all(ends(work_s + 1.0, 1.0) <= plain + 1e-12)
    assert np.all(np.diff(ends(work_s, 1.0, 3)) >= -1e-12)


@given(SEEDS, st.integers(0, 1), SHARE)
def test_a_slower_level_is_never_hidden_whole_and_costs_without_bound(
    seed: int, zero: int, cost: float
) -> None:
    """Properties P1 and P2: what crosses a level takes longer the slower it is, and once that level
    binds all of it but one pass of the others' work."""
    before = 0.0
    for bandwidth in (10.0, 1.0, 0.1, 1e-3):
        problem = _blocks(seed, 1.0, 2.0, reduction_cost=cost, gather_cost=cost)
        levels = (switch_level("in", 2, 100.0, 0.0), switch_level("out", 4, bandwidth, 0.0))
        problem = replace(problem, cluster=cluster_of("two", "", levels), zero=zero)
        shape = _shape(replace(problem, graphs=problem.graphs[:1]), 8)._replace(tensor=1)
        problem = replace(problem, graphs=(replace(problem.graphs[0], width=1),))
        prices = NetworkPrices(problem.cluster)
        exposed_s = float(synchronisation_s(problem, shape, prices, np.array([80.0]))[0])
        whole_s = float(prices.all_reduce_s((2, 4), np.array([80.0]))[0])
        assert before < exposed_s <= whole_s * (1 + 1e-12)
        assert exposed_s >= whole_s - 10 * (1.0 + 2.0)
        before = exposed_s


def test_pieces_are_of_a_bucket_at_most_a_chunk_and_at_least_a_block() -> None:
    problem = replace(_blocks(0, 1.0, 2.0), sent_bytes=2.0)
    blocks = len(problem.graphs[0].layers)

    def piece(bucket: float | None, chunks: int = 1) -> float:
        changed = replace(problem, rules=replace(problem.rules, bucket=bucket))
        shape = _shape(changed, 2, chunks)
        return piece_bytes(changed, shape, changed.piece(shape.tensor))

    assert piece(0.0) == 8.0
    assert piece(6.0) == min(12.0, 8.0 * blocks)
    assert piece(None) == 8.0 * blocks
    assert piece(None, blocks) == 8.0


def test_zeroing_norm_and_host_by_hand() -> None:
    problem = _blocks(0, 1.0, 2.0, host_s=0.25, norm=True)
    problem = replace(
        problem, hbm_bytes_per_s=10.0, optimizer_traffic_bytes=30.0, zeroed_bytes=4.0, zero=1
    )
    shape, size = _shape(problem, 2), np.array([16.0])
    assert step_s(problem, shape, size)[0] == pytest.approx(0.25 + 8 * (30 / 2 + 4) / 10)
    at_2 = replace(problem, zero=2)
    assert step_s(at_2, shape, size)[0] == pytest.approx(0.25 + 8 * (30 / 2 + 4 / 2) / 10)
    prices = NetworkPrices(problem.cluster)
    alone = replace(problem, rules=replace(problem.rules, norm=False))
    assert norm_s(alone, shape, prices) == 0.0
    # Later levels are farther, and the more devices agree the longer it takes.
    assert 0 < norm_s(problem, shape, prices) <= norm_s(problem, _shape(problem, 4), prices)

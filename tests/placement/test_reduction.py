"""Gradients that are reduced layer by layer: what of it is exposed at the end of a batch."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from phaze.cost.network_prices import NetworkPrices
from phaze.placement.batch_end import least_synchronisation_s, synchronisation_s
from phaze.placement.layers import PlacedLayer
from phaze.placement.layout import Shape
from phaze.placement.problem import PlacementProblem
from phaze.placement.sharing import REPLICAS
from tests.cost.test_synchronisation import walked_s
from tests.placement.placement_cases import mixed_problem, with_layers


def _blocks(seed: int, backward_s: float) -> PlacementProblem:
    """A problem whose layers are equal blocks, reduced layer by layer."""
    problem = mixed_problem(seed, chain=True)
    rules = replace(problem.rules, reduction="layers", link_bytes_per_s=None, stage="layers")
    problem = replace(problem, rules=rules, zero=0)

    def block(layer: PlacedLayer, _: int) -> PlacedLayer:
        layer = replace(layer, parameter_bytes=8.0, backward_s=backward_s)
        return replace(layer, block=True, tied=None, tied_bytes=0.0)

    return with_layers(problem, block)


@pytest.mark.parametrize("backward_s", [0.0, 0.5, 3.0, 100.0])
def test_the_exposed_reduction_of_equal_blocks_is_that_of_the_walk_layer_by_layer(
    backward_s: float,
) -> None:
    for seed in range(8):
        problem = _blocks(seed, backward_s)
        prices, shape = (
            NetworkPrices(problem.cluster),
            Shape(problem.graphs[0].width, 1, 2, problem.rules.orders[0]),
        )
        members = REPLICAS.dense_by_level(problem.cluster, shape)
        once_s = float(prices.all_reduce_s(members, np.array([8.0]))[0])
        for count in (1, 2, 5):
            size = np.array([8.0 * count])
            left_s = walked_s([once_s] * count, [backward_s] * count)
            # One reduction of all of it never shows more.
            least_s = min(left_s, float(prices.all_reduce_s(members, size)[0]))
            assert synchronisation_s(problem, shape, prices, size)[0] == pytest.approx(
                least_s, rel=1e-12
            )
            assert least_synchronisation_s(problem, shape, prices, size)[0] <= least_s * (1 + 1e-12)


def test_the_exposed_reduction_never_falls_with_the_parameters_nor_rises_with_longer_backward_passes() -> (
    None
):
    sizes = np.linspace(1.0, 200.0, 50)
    for seed in range(8):
        found = []
        for backward_s in (0.0, 0.3, 2.0, 50.0):
            problem = _blocks(seed, backward_s)
            prices, shape = (
                NetworkPrices(problem.cluster),
                Shape(problem.graphs[0].width, 1, 2, problem.rules.orders[0]),
            )
            found.append(synchronisation_s(problem, shape, prices, sizes))
            assert np.all(np.diff(found[-1]) >= -1e-12)
        assert all(np.all(later <= sooner + 1e-12) for sooner, later in pairwise(found))

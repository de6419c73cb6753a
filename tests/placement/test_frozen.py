"""Weights that are not trained are held and gathered, and neither reduced nor stepped: by brute
force, and by lies."""

import copy
import random
from collections.abc import Callable
from functools import partial
from math import inf

import pytest

from phaze.cost.network_prices import NetworkPrices
from phaze.placement.answer import document_of
from phaze.placement.frozen import Frozen
from phaze.placement.layers import PlacedLayer
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import fastest_plan
from phaze.values import replace
from tests.check.documents import objections
from tests.check.test_plan_lies import CHAIN, CLUSTER
from tests.placement.placement_cases import (
    hybrid_problem,
    mixed_problem,
    random_icml24_problem,
    sharing_problem,
    with_layers,
)
from tests.placement.test_solve import require_fastest

MADE: dict[str, Callable[[int, bool], PlacementProblem]] = {
    "mixed rules": mixed_problem,
    "experts and sequences shared": sharing_problem,
    "state shared by some ranks": hybrid_problem,
    "the paper's rules": random_icml24_problem,
}


def with_frozen_weights(problem: PlacementProblem, seed: int) -> PlacementProblem:
    """The problem with weights that are not trained in some layers, experts among them, and shared
    ones."""
    rng = random.Random(seed)
    ids = sorted(layer.id for layer in problem.graphs[0].layers)
    sizes = {i: (rng.choice([0.0, 3.0, 9.0]), rng.choice([0.0, 0.0, 2.0])) for i in ids}
    tied = set(rng.sample(ids, 2)) if len(ids) > 1 and rng.random() < 0.6 else set()

    def frozen_at(layer: PlacedLayer, width: int) -> PlacedLayer:
        dense, experts = (size / width for size in sizes[layer.id])
        shared = 4.0 / width if layer.id in tied else 0.0
        return replace(
            layer,
            frozen=Frozen(dense + experts + shared, experts, "word" if shared else None, shared),
        )

    return with_layers(problem, frozen_at)


@pytest.mark.parametrize("kind", MADE)
def test_no_plan_of_a_small_problem_with_frozen_weights_is_faster(kind: str) -> None:
    feasible = 0
    for seed in range(24):
        problem = with_frozen_weights(MADE[kind](seed, seed % 3 > 0), seed)
        require_fastest(problem)
        feasible += fastest_plan(problem) is not None
    assert feasible > 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", MADE)
def test_no_plan_of_many_small_problems_with_frozen_weights_is_faster(kind: str) -> None:
    for seed in range(1000, 1300):
        require_fastest(with_frozen_weights(MADE[kind](seed, seed % 3 > 0), seed))


@pytest.mark.parametrize("kind", MADE)
def test_freezing_a_share_of_every_layer_never_needs_more_memory_or_time(kind: str) -> None:
    differ = 0
    for seed in range(24):
        trained = MADE[kind](seed, seed % 3 > 0)
        share = random.Random(seed).choice([0.3, 0.9, 0.99])
        frozen = with_layers(trained, partial(_frozen_part, share=share))
        before, after = fastest_plan(trained), fastest_plan(frozen)
        assert before is None or after is not None
        times = [inf if plan is None else plan.batch_s for plan in (before, after)]
        assert times[1] <= times[0] * (1 + 1e-9)
        differ += times[1] < times[0]
    assert differ > 3


def _frozen_part(layer: PlacedLayer, width: int, share: float) -> PlacedLayer:
    return replace(
        layer,
        parameter_bytes=(1 - share) * layer.parameter_bytes,
        expert_bytes=(1 - share) * layer.expert_bytes,
        tied_bytes=(1 - share) * layer.tied_bytes,
        frozen=Frozen(
            share * layer.parameter_bytes,
            share * layer.expert_bytes,
            layer.tied,
            share * layer.tied_bytes,
        ),
    )


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_a_plan_that_forgets_frozen_weights_is_refused_by_its_memory(zero: int) -> None:
    shared = Frozen(6.0, 0.0, "word", 2.0)
    far = replace(CHAIN, edges=tuple(replace(edge, size_bytes=1e6) for edge in CHAIN.edges))
    levels = tuple(replace(level, bandwidth_bytes_per_s=1e3) for level in CLUSTER.cluster.levels)
    cluster = replace(CLUSTER.cluster, levels=levels)
    bare = replace(CLUSTER, graphs=(far,), cluster=cluster, devices=2, zero=zero, hbm_bytes=1e6)
    problem = with_layers(
        bare, lambda layer, _: replace(layer, frozen=shared) if layer.id in (0, 3) else layer
    )
    plan = fastest_plan(problem)
    assert plan is not None and plan.data == 2
    true, prices = document_of(plan), NetworkPrices(problem.cluster)
    assert objections(problem, true, prices) == []
    found = objections(bare, true, prices)
    assert any("memory.parameters should be" in one for one in found)
    assert not any("memory.gradients" in one or "memory.optimizer" in one for one in found)
    assert any("batch_s should be" in one for one in found) == (zero == 3), (
        "they are gathered, and never reduced"
    )
    lie = copy.deepcopy(true)
    for stage in lie["stages"]:
        stage["memory"]["gradients"] += 6.0
    assert any("memory.gradients should be" in one for one in objections(problem, lie, prices))

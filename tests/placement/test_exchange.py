"""Exchanges of experts behind another microbatch: what is hidden, and where there is none."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.pipeline.families import DUALPIPE_V, GPIPE, ONE_F_ONE_B, ZB_H1, interleaved
from phaze.pipeline.family import Family
from phaze.placement.layers import PlacedLayer
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import Rules
from phaze.placement.sharing import Sharing
from phaze.placement.structure import StageCut
from tests.placement.placement_cases import random_cluster_problem, with_layers

SECONDS = st.floats(0.0, 10.0)


def _problem(family: Family, added_s: float, microbatches: int, beside: bool) -> PlacementProblem:
    """Four equal layers, their experts over two ranks; what exchanges add where nothing hides them
    is in the passes or beside them."""
    problem = random_cluster_problem(3, chain=True)
    layer = replace(
        problem.graphs[0].layers[0], forward_s=2.0, weight_s=1.0, block=True, tied=None,
        backward_s=4.0 + (0.0 if beside else added_s), beside_s=added_s if beside else 0.0,
        selective_bytes=None, selective_s=0.0, full_s=None, tied_bytes=0.0, more=(),
    )  # fmt: skip
    layers = tuple(replace(layer, id=place) for place in range(4))
    rules = Rules("cluster", (family,), exchange_beside=beside)
    return replace(
        problem, rules=rules, sharing=Sharing(expert=2), microbatches=microbatches, zero=0,
        graphs=(replace(problem.graphs[0], width=2, layers=layers, edges=()),), recompute="none",
        hbm_bytes=1e9, hbm_bytes_per_s=None, devices=8,
    )  # fmt: skip


def _plan(problem: PlacementProblem, stages: int, mode: str = "none") -> Plan:
    family, each = problem.rules.families[0], 4 // stages
    cuts = [StageCut(tuple(range(at, at + each)), mode) for at in range(0, 4, each)]
    shape = Shape(2, stages, 1, "pipeline", family.chunks, family.name)
    return price(problem, shape, cuts, NetworkPrices(problem.cluster))


@pytest.mark.parametrize(
    ("family", "stages"), [(ONE_F_ONE_B, 1), (ONE_F_ONE_B, 2), (interleaved(2), 2), (GPIPE, 2),
                           (ZB_H1, 2), (DUALPIPE_V, 2)],
)  # fmt: skip
@given(SECONDS, st.integers(1, 16))
def test_an_exchange_behind_others_takes_no_more_than_one_that_is_waited_for(
    family: Family, stages: int, added_s: float, times: int
) -> None:
    microbatches = 4 * times
    hidden, waited, free = (
        _plan(_problem(family, own_s, microbatches, beside), stages)
        for own_s, beside in ((added_s, True), (added_s, False), (0.0, True))
    )
    assert free.batch_s - 1e-9 <= hidden.batch_s <= waited.batch_s + 1e-9
    if (stages > 1 and family.chunks == 1) or family.split:
        assert hidden.batch_s == pytest.approx(waited.batch_s, rel=1e-12)


@given(SECONDS)
def test_with_one_microbatch_nothing_is_hidden(added_s: float) -> None:
    hidden, waited = (
        _plan(_problem(ONE_F_ONE_B, added_s, 1, beside), 1) for beside in (True, False)
    )
    assert hidden.batch_s == pytest.approx(waited.batch_s, rel=1e-12)


@given(st.floats(0.1, 10.0), st.integers(1, 30))
def test_a_single_stage_waits_once_and_the_exposed_share_falls_with_microbatches(
    added_s: float, microbatches: int
) -> None:
    def exposed(count: int) -> float:
        hidden, free, waited = (
            _plan(_problem(ONE_F_ONE_B, own_s, count, beside), 1).batch_s
            for own_s, beside in ((added_s, True), (0.0, True), (added_s, False))
        )
        return (hidden - free) / (waited - free)

    assert exposed(microbatches) == pytest.approx(1 / microbatches, rel=1e-9)
    assert exposed(microbatches + 1) < exposed(microbatches)


def test_what_runs_an_exchange_again_is_refused_beside_another_microbatch() -> None:
    problem = _problem(ONE_F_ONE_B, 1.0, 4, True)
    with pytest.raises(InputError, match="exchanges again"):
        _plan(problem, 1, "full")
    assert "full" not in replace(problem, recompute="best").modes()
    dense = with_layers(problem, lambda layer, _: layer)
    dense = replace(dense, sharing=Sharing(), recompute="best")
    assert "full" in dense.modes()


def test_a_layer_of_no_experts_adds_nothing() -> None:
    layer = PlacedLayer(0, 1.0, 2.0, 1.0, 1.0, True)
    assert layer.beside_s == 0.0

"""Bounds of the search: below the truth on every chip, and for chains of equal blocks the general solver's answer."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.evaluate.flow import LayerSeconds, Training, graph_of, layer_schedules, placement_of
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Recompute
from phaze.search.bound import CHEAP, DUAL, LayerTimes, batch_bounds, layer_bounds
from phaze.search.chips import open_space
from phaze.search.layouts import chain_of
from tests.search.made import MIB, made_model, small_space


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_undercuts_a_layers_bound(seed: int) -> None:
    opened = open_space(small_space())
    model = made_model(seed, width=1 + seed % 2, operators=7)
    cheap, dual = (layer_bounds(model, opened.arrays(), use) for use in (CHEAP, DUAL))
    for chip in random.Random(seed).sample(range(len(opened)), 8):
        found = layer_schedules(model, opened.chip(chip, 2**35))
        for at, schedule in enumerate(found):
            arrays = [(b.forward_s, b.backward_s)[at % 2][at // 2, chip] for b in (cheap, dual)]
            assert arrays[0] <= arrays[1] * (1 + 1e-12)
            assert arrays[1] <= schedule.makespan_s * (1 + 1e-9)


@settings(max_examples=150)
@given(seed=st.integers(0, 10**6), recompute=st.sampled_from(["none", "full", "best"]))
def test_the_structures_of_a_chain_hold_the_fastest_plan(seed: int, recompute: Recompute) -> None:
    rng = random.Random(seed)
    model = made_model(seed, rng.choice((1, 2, 4)), rng.choice((1, 2)), rng.randint(1, 9), 1)
    training = Training(rng.choice((1, 3, 8, 64)), rng.choice((1, 7, 64)), 10.0 ** rng.uniform(7, 11))
    hbm = rng.choice((60, 150, 400, 4000)) * MIB
    forward, backward = (np.array([[10.0 ** rng.uniform(-4, -1)] for _ in range(3)]) for _ in range(2))
    bound = batch_bounds(model, LayerTimes(forward, backward), recompute, hbm, training)[0]
    for cut in (bound * (1 + 1e-6), bound * 3):  # a cut above it changes nothing
        again = batch_bounds(model, LayerTimes(forward, backward), recompute, hbm, training, cut)[0]
        assert again == pytest.approx(bound, rel=3e-9)
    seconds = [LayerSeconds(float(f), float(b)) for f, b in zip(forward[:, 0], backward[:, 0], strict=True)]
    plan = fastest_plan(placement_of([graph_of(model, seconds)], model.microbatch, recompute, hbm, training))
    if plan is None:
        assert recompute == "best" or np.isinf(bound)
    elif recompute == "best":
        assert bound <= plan.batch_s
    else:
        assert bound == pytest.approx(plan.batch_s, rel=3e-9)


def test_a_cut_hides_nothing_below_it() -> None:
    model = made_model(3, blocks=8)
    training = Training(64, 256, 2.0**32)
    rng = np.random.default_rng(1)
    times = LayerTimes(rng.uniform(1e-4, 1e-2, (3, 200)), rng.uniform(1e-4, 1e-2, (3, 200)))
    whole = batch_bounds(model, times, "none", 1e10, training)
    cut = float(np.median(whole))
    assert np.allclose(batch_bounds(model, times, "none", 1e10, training, cut), np.minimum(whole, cut), rtol=2e-9)


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10**6), recompute=st.sampled_from(["none", "full", "best"]))
def test_layer_graphs_of_any_shape_get_floors_and_then_the_general_solver(seed: int, recompute: Recompute) -> None:
    rng = random.Random(seed)
    chain = made_model(seed, rng.choice((1, 2)), 1, rng.randint(2, 6), 1)
    skip = (0, rng.randint(2, len(chain.calls) - 1), 1.0 * MIB)
    odd = replace(chain, calls=tuple(rng.choice((0, 1, 2)) for _ in chain.calls))
    branching = replace(chain, edges=(*tuple(e for e in chain.edges if e[0] != 1 or rng.random() < 0.5), skip))
    model = rng.choice((odd, branching, replace(chain, edges=(*chain.edges, skip))))
    if chain_of(model) is not None:
        return
    training = Training(rng.choice((1, 3, 8, 64)), rng.choice((1, 7, 64)), 10.0 ** rng.uniform(7, 11))
    hbm = rng.choice((60, 150, 400, 4000)) * MIB
    forward, backward = (np.array([[10.0 ** rng.uniform(-4, -1)] for _ in range(3)]) for _ in range(2))
    times = LayerTimes(forward, backward)
    seconds = [LayerSeconds(float(f), float(b)) for f, b in zip(forward[:, 0], backward[:, 0], strict=True)]
    plan = fastest_plan(placement_of([graph_of(model, seconds)], model.microbatch, recompute, hbm, training))
    truth = np.inf if plan is None else plan.batch_s
    assert batch_bounds(model, times, recompute, hbm, training)[0] <= truth
    cut = (1.0 if plan is None else plan.batch_s) * rng.choice((0.5, 1.01, 3.0))
    for limit in (cut, np.inf):
        solved = batch_bounds(model, times, recompute, hbm, training, limit, general=True)[0]
        assert solved == pytest.approx(min(limit, truth), rel=3e-9)


def test_a_model_whose_layers_differ_gets_a_looser_bound() -> None:
    chain = made_model(5, blocks=5)
    odd = replace(chain, calls=(0, 1, 2, 1, 2, 1, 0))
    assert chain_of(odd) is None and chain_of(chain) is not None
    skips = replace(chain, edges=(*chain.edges, (0, 3, 1.0)))
    assert chain_of(skips) is None
    rng = np.random.default_rng(2)
    for model in (odd, skips):
        forward, backward = rng.uniform(1e-4, 1e-2, (2, 3, 5))
        training = Training(16, 64, 2.0**32)
        bounds = batch_bounds(model, LayerTimes(forward, backward), "none", 1e10, training)
        for chip in range(5):
            seconds = [
                LayerSeconds(float(f), float(b)) for f, b in zip(forward[:, chip], backward[:, chip], strict=True)
            ]
            plan = fastest_plan(placement_of([graph_of(model, seconds)], 1, "none", 1e10, training))
            assert plan is not None and bounds[chip] <= plan.batch_s

"""Bounds of the search: below the truth on every chip, and where the bottleneck table decides the
truth itself."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phaze.evaluate.layer_table import LayerTable
from phaze.hardware.calibration import IDEAL
from phaze.placement.job import TrainingJob
from phaze.placement.problem import RecomputeChoice
from phaze.placement.solve import fastest_plan
from phaze.search.bounds.model_bounds import CHEAP, DUAL, batch_bounds, layer_bounds, model_bounds
from phaze.search.chips import enumerate_space
from phaze.search.problem import problem_of
from phaze.search.rank_graph import RankGraph
from phaze.search.reference import layers_on
from phaze.search.task import Configuration, ModelTask, task_of
from tests.search.made import MIB, chained, made_model, made_training, small_space

Floats = NDArray[np.float64]


def _task(model: RankGraph, recompute: RecomputeChoice, training: TrainingJob) -> ModelTask:
    return task_of("made", 1.0, training, IDEAL, [model], [recompute])


def _times(graph: RankGraph, forward_s: Floats, backward_s: Floats) -> LayerTable:
    """Layer times without selective recompute; a full one runs the forward pass again."""
    again_s = np.stack([np.zeros_like(forward_s), forward_s])
    return LayerTable(graph.layers, forward_s, backward_s, again_s, np.ones(forward_s.shape[1]))


def _truth(
    task: ModelTask,
    times: LayerTable,
    hbm: int,
    chip: int = 0,
    configuration: Configuration | None = None,
) -> float:
    chosen = configuration or task.configurations[0]
    problem = problem_of(task, chosen, times.column(chip), hbm)
    plan = fastest_plan(problem)
    return np.inf if plan is None else plan.batch_s


@pytest.mark.parametrize("seed", range(6))
def test_no_schedule_undercuts_a_layers_bound(seed: int) -> None:
    opened = enumerate_space(small_space())
    model = made_model(seed, width=1 + seed % 2, operators=7)
    task = _task(model, "none", made_training(16, 64))
    cheap, dual = (layer_bounds(task, model, opened.arrays(), use) for use in (CHEAP, DUAL))
    for chip in random.Random(seed).sample(range(len(opened)), 8):
        exact = layers_on(task, 0, opened.chip(chip, 2**35), None).exact.times
        for low, high, truth in (
            (cheap.forward_s, dual.forward_s, exact.forward_s),
            (cheap.backward_s, dual.backward_s, exact.backward_s),
        ):
            assert (low[:, chip] <= high[:, chip] * (1 + 1e-12)).all()
            assert (high[:, chip] <= truth[:, 0] * (1 + 1e-9)).all()


def test_a_cut_hides_nothing_below_it() -> None:
    task = _task(made_model(3, blocks=8), "none", made_training(64, 256))
    rng = np.random.default_rng(1)
    times = _times(
        task.graphs[0], rng.uniform(1e-4, 1e-2, (3, 200)), rng.uniform(1e-4, 1e-2, (3, 200))
    )
    for finer in (False, True):
        whole = batch_bounds(task, task.configurations[0], times, 10**10, finer=finer)
        cut = float(np.median(whole))
        below = batch_bounds(task, task.configurations[0], times, 10**10, cut, finer)
        assert np.allclose(np.minimum(below, cut), np.minimum(whole, cut), rtol=2e-9)
        assert (below <= whole * (1 + 2e-9)).all()


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_configurations_left_out_by_device_seconds_change_no_chips_bound_for_the_worse(
    seed: int,
) -> None:
    rng, rows = random.Random(seed), np.random.default_rng(seed)
    graphs = [
        made_model(seed, width, microbatch, 4, 1) for width in (1, 2, 4) for microbatch in (1, 2)
    ]
    task = task_of(
        "made",
        1.0,
        made_training(rng.choice((4, 16)), rng.choice((8, 64))),
        IDEAL,
        graphs,
        ["none", "full"],
    )
    times = [
        _times(graph, *rows.uniform(1e-4, 10.0 ** rng.uniform(-4, -2), (2, 3, 4)))
        for graph in graphs
    ]
    sizes = [rng.choice((60, 150)) * MIB, 4000 * MIB]
    for memory, size in enumerate(sizes):
        truth = np.array(
            [
                min(_truth(task, times[c.graph], size, chip, c) for c in task.configurations)
                for chip in range(4)
            ]
        )
        for cut, finer in ((np.inf, False), (np.inf, True), (float(np.median(truth)), True)):
            found = model_bounds(task, times, sizes, cut, finer)[:, memory].min(axis=0)
            alone = [
                batch_bounds(task, c, times[c.graph], size, cut, finer) for c in task.configurations
            ]
            assert (
                np.minimum(found, cut) >= np.minimum(np.min(alone, axis=0), cut) * (1 - 3e-9)
            ).all()
            assert (found <= truth).all()


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), recompute=st.sampled_from(["none", "full", "best"]))
def test_layer_graphs_of_any_shape_get_floors_and_then_the_bottleneck_table(
    seed: int, recompute: RecomputeChoice
) -> None:
    rng = random.Random(seed)
    chain = made_model(seed, rng.choice((1, 2, 4)), rng.choice((1, 2)), rng.randint(2, 8), 1)
    joined = [(tail, head, int(size)) for tail, head, size in chain.edges]
    skip = (0, rng.randint(2, len(chain.calls) - 1), MIB)
    some = [*(e for e in joined if e[0] != 1 or rng.random() < 0.5), skip]
    calls, edges = rng.choice(
        (
            (chain.calls, joined),
            (tuple(rng.choice((0, 1, 2)) for _ in chain.calls), joined),
            (chain.calls, some),
            (chain.calls, [*joined, skip]),
        )
    )
    model = chained(chain.layers, calls, chain.width, chain.microbatch, edges)
    training = made_training(
        rng.choice((1, 3, 8, 64)), rng.choice((1, 7, 64)), 10.0 ** rng.uniform(7, 11)
    )
    task, hbm = _task(model, recompute, training), rng.choice((60, 150, 400, 4000)) * MIB
    times = _times(
        model, *(np.array([[10.0 ** rng.uniform(-4, -1)] for _ in range(3)]) for _ in range(2))
    )
    truth = _truth(task, times, hbm)
    assert batch_bounds(task, task.configurations[0], times, hbm)[0] <= truth
    cut = (1.0 if np.isinf(truth) else truth) * rng.choice((0.5, 1.01, 3.0))
    for limit in (cut, np.inf):
        solved = batch_bounds(task, task.configurations[0], times, hbm, limit, finer=True)[0]
        assert min(solved, limit) == pytest.approx(min(limit, truth), rel=3e-9)
        assert solved <= truth * (1 + 3e-9)

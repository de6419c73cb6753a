"""Searches under rules ``cluster``: the answer of exhaustive evaluation, honest bounds, the same
whatever the configuration."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.evaluate.layer_table import LayerTable
from phaze.evaluate.layers import model_table
from phaze.hardware.stack import ScheduleRule
from phaze.pipeline.names import PipelineFamily
from phaze.placement.settings import job_rules
from phaze.placement.solve import fastest_at, fastest_plan
from phaze.search import run
from phaze.search.bounds.model_bounds import CHEAP, layer_bounds
from phaze.search.bounds.shape_bounds import SLACK, cheap_floors, cut_bounds
from phaze.search.bounds.shape_tables import tables_of
from phaze.search.chips import enumerate_space
from phaze.search.folder import JOURNAL, RESULT, run_in
from phaze.search.journal import read_closed
from phaze.search.objective import KINDS, Objective
from phaze.search.problem import problem_of
from phaze.search.question_files import Papers
from phaze.search.task import ModelTask, SearchJob
from tests.search.made import MIB, stopping_after_one
from tests.search.made_cluster import cluster_job, cluster_task
from tests.search.test_run import _check_against_exhaustive

STACKS = ("ideal", "megatron-2021", "megatron-core", "maxtext", "torchtitan", "torchtitan-eager")
CLUSTERS = ("slow", "paper-flat", "selene", "tpu-v4-pod")
DRAWN_TASKS = st.builds(
    cluster_task,
    st.sampled_from(["gpt", "llama", "deep"]),
    st.sampled_from(CLUSTERS),
    st.sampled_from(STACKS),
    widths=st.sampled_from([(1,), (2,), (1, 2)]),
    microbatches=st.sampled_from([(1,), (2,)]),
    recompute=st.sampled_from([("best",), ("none", "full")]),
    zeros=st.sampled_from([(0,), (1,), (2,), (3,), (0, 1, 2, 3), (0, 1, 2, 3)]),
    chunks=st.sampled_from([None, None, (1,), (2,)]),
    devices=st.sampled_from([3, 8, 16]),
    batch=st.sampled_from([4, 16, 30]),
    bucket=st.sampled_from([None, 0.0]),
)


def _random_times(task: ModelTask, graph: int, seed: int, chips: int) -> LayerTable:
    """Any seconds, from those where work counts to those where only the network does."""
    rng, shape = np.random.default_rng(seed), (len(task.graphs[graph].layers), chips)
    scale = 10.0 ** rng.uniform(-6, -1, chips)
    forward, backward, selective, full = (scale * rng.uniform(0.0, 1.0, shape) for _ in range(4))
    rates = 10.0 ** rng.uniform(8, 12, chips)
    more = forward * rng.uniform(0.0, 1.0, (len(task.graphs[graph].layers[0].modes) - 2, *shape))
    weight = (
        None
        if task.graphs[graph].layers[0].halves is None
        else backward * rng.uniform(0.0, 1.0, shape)
    )
    again = np.stack([forward * selective / scale, *more, forward * full / scale])
    return LayerTable(task.graphs[graph].layers, forward, backward, again, rates, weight_s=weight)


def _check_bounds(task: ModelTask, hbm_bytes: int, seed: int) -> None:
    for configuration in task.configurations:
        times = _random_times(task, configuration.graph, seed, 4)
        tables = tables_of(task, configuration, hbm_bytes)
        cheap, cut = (
            cheap_floors(tables, times, configuration.recompute),
            cut_bounds(tables, times, np.inf),
        )
        middle = float(np.median(cheap))
        clipped = cheap_floors(tables, times, configuration.recompute, middle / (1 - SLACK))
        np.testing.assert_allclose(clipped, np.minimum(cheap, middle), rtol=1e-12)
        limits = np.where(np.isfinite(cheap), cheap, 1.0) * np.array([0.5, 1.5, 0.9, 3.0])
        each, below = (
            cheap_floors(tables, times, configuration.recompute, limits),
            cut_bounds(tables, times, limits),
        )
        np.testing.assert_allclose(
            each, np.where(np.isfinite(cheap), np.minimum(cheap, limits), np.inf), rtol=1e-8
        )
        for chip in range(4):
            problem = problem_of(task, configuration, times.column(chip), hbm_bytes)
            alone = [
                fastest_plan(replace(problem, zero=zero), task.prices)
                for zero in configuration.zeros
            ]
            best_s = min((plan.batch_s for plan in alone if plan is not None), default=None)
            if best_s is None:
                assert np.isinf(cheap[chip]) and np.isinf(cut[chip])
                continue
            assert cheap[chip] <= best_s
            assert cut[chip] <= best_s
            assert below[chip] <= min(best_s, limits[chip])
            # A depth is bounded with what those before it left, and the limit changes their order.
            assert 0.98 * min(cut[chip], limits[chip]) <= below[chip]
            assert (
                fastest_at(problem, configuration.zeros, task.prices, best_s * (1 - 1e-9)) is None
            )
            found = fastest_at(problem, configuration.zeros, task.prices)
            assert found is not None and found[1].batch_s == pytest.approx(best_s, rel=1e-9)


MEMORIES = st.sampled_from([MIB // 4, MIB, 2 * MIB, 64 * MIB])


@settings(max_examples=25, deadline=None)
@given(DRAWN_TASKS, MEMORIES, st.integers(0, 2**32))
def test_no_plan_undercuts_a_bound_on_any_chip(task: ModelTask, hbm_bytes: int, seed: int) -> None:
    _check_bounds(task, hbm_bytes, seed)


def test_where_nothing_fits_at_any_stage_of_zero_no_bound_is_finite() -> None:
    """Copies share state out, and bounds round their number up: that must not make a plan of what
    is none."""
    for devices in (16, 13):
        _check_bounds(
            cluster_task(
                "deep",
                stack="megatron-2021",
                widths=(1,),
                microbatches=(1,),
                zeros=(3,),
                devices=devices,
                batch=16,
            ),
            MIB // 4,
            0,
        )


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(DRAWN_TASKS, MEMORIES, st.integers(0, 2**32))
def test_no_plan_undercuts_a_bound_on_many_chips(
    task: ModelTask, hbm_bytes: int, seed: int
) -> None:
    _check_bounds(task, hbm_bytes, seed)


def test_layer_times_over_arrays_are_those_of_one_chip() -> None:
    task, opened = (
        cluster_task(stack="maxtext"),
        enumerate_space(cluster_job((cluster_task(),)).space),
    )
    for graph in range(len(task.graphs)):
        times = layer_bounds(task, task.graphs[graph], opened.arrays(), CHEAP)
        for chip in range(0, len(opened), 3):
            alone = model_table(task.graphs[graph].model, task.setting(opened.chip(chip, MIB)))
            np.testing.assert_allclose(times.forward_s[:, chip], alone.forward_s[:, 0], rtol=1e-12)
            np.testing.assert_allclose(
                times.backward_s[:, chip], alone.backward_s[:, 0], rtol=1e-12
            )
            np.testing.assert_allclose(times.again_s[..., chip], alone.again_s[..., 0], rtol=1e-12)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([("zb-v",), ("zb-h1", "zb-interleaved"), ("1f1b", "dualpipe-v")]),
    MEMORIES,
    st.integers(0, 99),
)
def test_no_plan_of_a_split_family_undercuts_a_bound(
    families: tuple[PipelineFamily, ...], hbm_bytes: int, seed: int
) -> None:
    kinds = {
        "widths": (1,),
        "microbatches": (1,),
        "zeros": (0, 3),
        "devices": 8,
        "families": families,
    }
    _check_bounds(cluster_task("deep", "selene", "torchtitan-eager", **kinds), hbm_bytes, seed)  # type: ignore[arg-type]


def test_the_answer_is_that_of_exhaustive_evaluation_where_backward_passes_are_split() -> None:
    task = cluster_task(
        "deep",
        "slow",
        "torchtitan-eager",
        widths=(1,),
        microbatches=(1,),
        batch=8,
        recompute=("none",),
    )
    state = _check_against_exhaustive(cluster_job((task,), hbm=(MIB, 2 * MIB)))
    assert "zb-v" in state.job.models[0].training.machine.stack.families


@pytest.mark.parametrize("stack", ["ideal", "maxtext"])
def test_the_answer_is_that_of_exhaustive_evaluation(stack: str) -> None:
    state = _check_against_exhaustive(cluster_job((cluster_task(stack=stack),)))
    assert job_rules(state.job.models[0].training).stage == "layers"


@pytest.mark.parametrize("schedule", ["links", pytest.param("overlap", marks=pytest.mark.slow)])
def test_the_answer_is_that_of_exhaustive_evaluation_where_layers_are_scheduled(
    schedule: ScheduleRule,
) -> None:
    """Bounds on schedules stand for layers until a chip is opened; then its schedules are
    solved."""
    task = cluster_task(stack="maxtext", widths=(2,), microbatches=(1,), schedule=schedule)
    state = _check_against_exhaustive(cluster_job((task,), rows=[16], lanes=[16, 64]))
    assert job_rules(state.job.models[0].training).stage == "layers"


def test_several_models_and_memories_too() -> None:
    tasks = tuple(cluster_task(model, widths=(1,), microbatches=(1,)) for model in ("gpt", "llama"))
    job = cluster_job(tasks, rows=[16])
    for mean in ("geometric", "arithmetic", "regret"):
        _check_against_exhaustive(replace(job, objective=Objective("throughput", mean)))


@st.composite
def _jobs(draw: st.DrawFn) -> SearchJob:
    """Any search: some axes, one or two models, any stack, cluster, ZeRO, recompute, objective and
    memories."""
    few: dict[str, list[Any]] = {
        "tensor_cores": [1, 8],
        "rows": [16, 128],
        "columns": [32, 128],
        "lanes": [8, 64],
    }
    more: dict[str, list[Any]] = {"hbm_bandwidth": [3e11, 1.2e12], "clock": [7e8, 1.05e9]}
    axes = {
        name: sorted(draw(st.sets(st.sampled_from(v), min_size=1, max_size=2)))
        for name, v in few.items()
    }
    axes |= {"vector_cores": [1], "global_buffer": [2 * MIB]}
    for name in draw(st.sets(st.sampled_from(sorted(more)), max_size=1)):
        axes[name] = more[name]
    tasks = draw(st.lists(DRAWN_TASKS, min_size=1, max_size=2, unique_by=lambda task: task.name))
    tasks = [replace(task, training=replace(task.training, devices=8)) for task in tasks]
    memories = draw(st.sampled_from([(MIB, 64 * MIB), (2 * MIB,), (64 * MIB, 128 * MIB)]))
    job = cluster_job(
        tuple(tasks),
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from([0.0, 0.01])),
        memories,
        **axes,
    )
    return replace(job, round_size=draw(st.integers(1, 6)))


@settings(max_examples=4, deadline=None)
@given(_jobs())
def test_any_answer_is_that_of_exhaustive_evaluation(job: SearchJob) -> None:
    _check_against_exhaustive(job)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(_jobs())
def test_many_answers_are_those_of_exhaustive_evaluation(job: SearchJob) -> None:
    _check_against_exhaustive(job)


def _few() -> SearchJob:
    task = cluster_task(widths=(1, 2), microbatches=(1,))
    return cluster_job((task,), gap=0.0, columns=[32, 64], lanes=[16, 64])


def test_workers_and_interruptions_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_in(tmp_path / "whole", Papers(""), _few())
    run_in(tmp_path / "two", Papers(""), _few(), 2)
    plain = run.evaluate_one
    monkeypatch.setattr(run, "evaluate_one", stopping_after_one(plain))
    with pytest.raises(KeyboardInterrupt):
        run_in(tmp_path / "stopped", Papers(""), _few())
    monkeypatch.setattr(run, "evaluate_one", plain)
    run_in(tmp_path / "stopped", Papers(""), _few())
    assert len(whole.state.evaluated) > 1
    first = (tmp_path / "whole" / RESULT).read_bytes()
    for name in ("two", "stopped"):
        assert (tmp_path / name / RESULT).read_bytes() == first
        assert read_closed(tmp_path / name / JOURNAL) == read_closed(tmp_path / "whole" / JOURNAL)

"""Any search, whatever its settings: its answer is that of exhaustive evaluation, and no layer
undercuts its bound."""

from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.errors import InfeasibleError
from phaze.hardware.stack import ScheduleRule
from phaze.options.values import Mean
from phaze.search.bounds.model_bounds import CHEAP, DUAL, layer_bounds
from phaze.search.chips import enumerate_space
from phaze.search.objective import KINDS, Objective
from phaze.search.reference import layers_on
from phaze.search.task import ModelTask, SearchJob, on_cluster
from phaze.values import replace
from tests.search.made import GIB, MIB, small_space, traced_task
from tests.search.made_cluster import cluster_task
from tests.search.test_run import _check_against_exhaustive

MEANS: tuple[Mean, ...] = ("geometric", "arithmetic", "regret")
RULES: tuple[ScheduleRule, ...] = ("serial", "companions", "links", "overlap", "icml24")


@cache
def _task(model: str, rule: ScheduleRule, width: int) -> ModelTask:
    """A small decoder under a schedule rule; under icml24 in the paper's whole setting."""
    if rule == "icml24":
        return traced_task(len(model), (width,), (1,))
    return cluster_task(model, widths=(width,), microbatches=(1,), schedule=rule)


@st.composite
def _tasks(draw: st.DrawFn) -> tuple[ModelTask, ...]:
    """One or two models of one setting, on levels or on a flat link."""
    if draw(st.booleans()):
        return (traced_task(draw(st.integers(0, 3)), draw(st.sampled_from([(1,), (1, 2)])), (1,)),)
    names = draw(
        st.lists(st.sampled_from(["gpt", "llama", "deep"]), min_size=1, max_size=2, unique=True)
    )
    common: dict[str, Any] = {
        "cluster": draw(st.sampled_from(["slow", "paper-flat", "selene"])),
        "stack": draw(st.sampled_from(["ideal", "megatron-core", "maxtext"])),
        "schedule": draw(
            st.sampled_from([None, "serial", "companions", "links", "links", "overlap"])
        ),
        "zeros": draw(st.sampled_from([(0, 1, 2, 3), (0, 1, 2, 3), (0,), (1,), (2,), (3,)])),
        "chunks": draw(st.sampled_from([None, None, (1,), (2,)])),
        "recompute": draw(st.sampled_from([("best",), ("none", "full")])),
        "devices": 8,
        "batch": draw(st.sampled_from([8, 30])),
        "pipeline": draw(st.sampled_from(["1f1b", "1f1b", "icml24"])),
        "synchronisation": draw(st.sampled_from(["pieces", "pieces", "first"])),
        "bucket": draw(st.sampled_from([None, 0.0, 1e4])),
        "headroom": draw(st.sampled_from([0.0, 0.4])),
    }
    # The paper's stages lie on one level.
    if common["cluster"] == "paper-flat":
        common["stages"] = draw(st.sampled_from(["layers", "icml24"]))
    widths = draw(st.sampled_from([(1,), (2,)]))
    tasks = (cluster_task(name, widths=widths, microbatches=(1,), **common) for name in names)
    changed = draw(
        st.sampled_from([None, {"size": 2}, {"bandwidth_bytes_per_s": 3e8}, {"latency_s": 1e-4}])
    )
    return tuple(task if changed is None else _changed(task, changed) for task in tasks)


def _changed(task: ModelTask, changed: dict[str, Any]) -> ModelTask:
    """The task with another innermost level, as an axis or a sweep over levels gives it."""
    first, *rest = task.training.machine.cluster.levels
    levels = (replace(first, **changed) if rest or "size" not in changed else first, *rest)
    return on_cluster(
        task,
        replace(
            task.training.machine.cluster, devices=prod(one.size for one in levels), levels=levels
        ),
    )


@st.composite
def _jobs(draw: st.DrawFn) -> SearchJob:
    """Any search: models, axes (links too), objective, mean, memories, gap."""
    axes: dict[str, list[Any]] = {"tensor_cores": [1, 8], "rows": [16, 128], "lanes": [8, 64]}
    axes = {
        name: sorted(draw(st.sets(st.sampled_from(v), min_size=1, max_size=2)))
        for name, v in axes.items()
    }
    axes |= {"columns": [32], "vector_cores": [1], "global_buffer": [2 * MIB]}
    if draw(st.booleans()):
        axes["links"] = [1e9, 1e11]
    memories = draw(st.sampled_from([(2 * MIB, 64 * MIB), (64 * MIB,)]))
    objective = Objective(draw(st.sampled_from(KINDS)), draw(st.sampled_from(MEANS)))
    gap = draw(st.sampled_from([0.0, 0.01]))
    return SearchJob(
        "any", draw(_tasks()), small_space(**axes), memories, objective, gap, "any", round_size=3
    )


def _check(job: SearchJob) -> None:
    try:
        _check_against_exhaustive(job)
    except InfeasibleError:  # the best of a model alone, where it fits on no chip
        assert job.objective.mean == "regret" and len(job.models) > 1


@settings(max_examples=3, deadline=None)
@given(_jobs())
def test_any_answer_is_that_of_exhaustive_evaluation(job: SearchJob) -> None:
    _check(job)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(_jobs())
def test_many_answers_are_those_of_exhaustive_evaluation(job: SearchJob) -> None:
    _check(job)


def test_links_as_an_axis_decide_where_the_network_does() -> None:
    """Two chips that differ in their links alone: on levels the faster inner level wins, if a
    tensor group uses it."""
    task = cluster_task(widths=(2,), microbatches=(1,), devices=8)
    few: dict[str, Any] = {"tensor_cores": [4], "rows": [64], "vector_cores": [1], "lanes": [64]}
    space = small_space(**few, global_buffer=[2 * MIB], links=[1e8, 1e11])
    state = _check_against_exhaustive(
        SearchJob("links", (task,), space, (GIB,), Objective(), 0.0, "links")
    )
    best = min(state.evaluated.values(), key=lambda one: one.score)
    assert state.chips.link_bytes_per_s[best.chip] == 1e11


def _check_bounds(model: str, rule: ScheduleRule, width: int, seed: int) -> None:
    task = _task(model, rule, width)
    opened = enumerate_space(small_space(rows=[16, 128], lanes=[16, 256]))
    chip = int(np.random.default_rng(seed).integers(len(opened)))
    arrays = opened.arrays().taken(np.array([chip]))
    cheap, dual = (layer_bounds(task, task.graphs[0], arrays, use) for use in (CHEAP, DUAL))
    exact = layers_on(task, 0, opened.chip(chip, GIB), None).exact.times
    for name in ("forward_s", "backward_s", "again_s"):
        low, high, truth = (getattr(times, name) for times in (cheap, dual, exact))
        assert (low <= high * (1 + 1e-12)).all()
        assert (high <= truth * (1 + 1e-9)).all()


TRIPLES = (
    st.sampled_from(["gpt", "llama"]),
    st.sampled_from(RULES),
    st.sampled_from([1, 2]),
    st.integers(0, 2**32),
)


@settings(max_examples=10, deadline=None)
@given(*TRIPLES)
def test_no_layer_undercuts_its_bound(
    model: str, rule: ScheduleRule, width: int, seed: int
) -> None:
    _check_bounds(model, rule, width, seed)


@pytest.mark.slow
@settings(max_examples=3334, deadline=None)
@given(*TRIPLES)
def test_no_layer_of_many_undercuts_its_bound(
    model: str, rule: ScheduleRule, width: int, seed: int
) -> None:
    """Three layers each: 10,000 (chip, layer, rule)."""
    _check_bounds(model, rule, width, seed)

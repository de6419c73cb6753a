"""Loads of a chip's parts are below all bounds on its layers, and leave nothing out that may
matter."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.table import cost_table
from phaze.schedule.problem import ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import OVERLAP
from phaze.schedule.solve import solve
from phaze.schedule.solved import MOST, SolvedSchedules
from phaze.search.baseline import scale_for
from phaze.search.bounds.chip_times import layer_times_on, open_times_on
from phaze.search.bounds.model_bounds import CHEAP, device_floors
from phaze.search.bounds.part_loads import PartLoads, counts_parts, part_floors, peak_floors
from phaze.search.chips import enumerate_space
from phaze.search.deadline import NEVER
from phaze.search.dual_bounds import bounds_on, raise_open
from phaze.search.rank_graph import RankGraph
from phaze.search.run import begin
from phaze.search.task import ModelTask, networks_of
from tests.search.made import exact_score, made_job, made_task, traced_task


def _overlapping(graph: RankGraph) -> RankGraph:
    """The graph under the rule by which kinds of cores and the network work at once."""
    layers = []
    for layer in graph.layers:
        forward, backward = (replace(run, rule=OVERLAP) for run in (layer.forward, layer.backward))
        modes = tuple(
            replace(mode, rerun=None if mode.rerun is None else replace(mode.rerun, rule=OVERLAP))
            for mode in layer.modes
        )
        layers.append(replace(layer, forward=forward, backward=backward, modes=modes))
    return replace(graph, layers=tuple(layers))


def _task(seed: int, overlap: bool) -> ModelTask:
    task = traced_task(seed) if seed % 5 == 0 else made_task(seed, (1, 2))
    return replace(task, graphs=tuple(map(_overlapping, task.graphs))) if overlap else task


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), overlap=st.booleans())
def test_what_parts_take_is_below_the_cheap_bounds_of_every_chip(seed: int, overlap: bool) -> None:
    job = made_job((_task(seed, overlap),))
    opened, task = enumerate_space(job.space), job.models[0]
    chips, index = opened.arrays(), np.arange(len(opened))
    networks = networks_of(job.models, job.space, opened.link_bytes_per_s)
    times = layer_times_on(job, opened, networks, chips, index, CHEAP)[0]
    whole = device_floors(task, times)
    for graph, own in enumerate(task.graphs):
        assert counts_parts(own)
        works = [work for layer in own.layers for one in layer.passes for work in one.works]
        floors = part_floors(task, own, PartLoads(cost_table(works, chips, task.constants), chips))
        assert (floors <= whole[graph] * (1 + 1e-12)).all()
        peaks = peak_floors(task, own, chips)
        assert (peaks <= floors * (1 + 1e-9)).all()
        assert (peaks > 0).all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_pairs_that_are_left_out_are_above_the_cut_and_others_are_as_before(seed: int) -> None:
    job = made_job((_task(seed, False),))
    opened = enumerate_space(job.space)
    chips, index = opened.arrays(), np.arange(len(opened))
    state = begin(job, opened, scale_for(job))
    full = bounds_on(state, index, state.times, [np.inf])[0]
    cut = float(np.quantile(full.min(axis=(0, 1)), random.Random(seed).random()))
    before = bounds_on(state, index, state.times, [cut])[0]
    times, floors = open_times_on(job, state.networks, chips, index, [cut], NEVER)
    after = bounds_on(state, index, times, [cut], floors=floors)[0]
    assert (np.isinf(after) == np.isinf(before)).all()
    near = before.min(axis=(0, 1)) <= cut
    assert (after.min(axis=(0, 1))[near] == before.min(axis=(0, 1))[near]).all()
    assert (after.min(axis=(0, 1))[~near] > cut).all()
    assert (after <= full * (1 + 1e-9)).all()


@pytest.mark.parametrize("seed", range(4))
def test_finer_bounds_are_those_of_pairs_within_reach_alone_and_hold(seed: int) -> None:
    job = made_job((_task(seed, False),))
    opened, scale = enumerate_space(job.space), scale_for(job)
    state, index = begin(job, opened, scale), np.arange(len(opened))
    state.set_bounds(bounds_on(state, index, state.times, [np.inf]))
    cheap, graphs = state.bounds[0].copy(), [one.graph for one in job.models[0].configurations]
    limit = float(np.quantile(cheap.min(axis=(0, 1)), 0.7))
    raise_open(state, index, [np.full(len(opened), limit)])
    near = np.asarray(np.any(cheap <= limit, axis=1))
    wanted = np.array([near[np.equal(graphs, graph)].any(axis=0) for graph in graphs])[:, None, :]
    finer = state.bounds[0]
    assert (finer >= cheap).all() and (finer > cheap).any()
    assert ((finer == cheap) | wanted).all() and not wanted.all()
    for chip in random.Random(seed).sample(range(len(opened)), 6):
        least = finer[:, :, chip].min()
        assert least <= min(exact_score(job, scale, opened, chip, hbm) for hbm in range(2)) * (
            1 + 1e-9
        )


def test_the_same_schedule_is_found_once_and_the_oldest_are_forgotten() -> None:
    def problem(seconds: float) -> ScheduleProblem:
        operators = tuple(
            ScheduledOperator(str(i), "tensor", seconds * (i + 1), seconds) for i in range(3)
        )
        return ScheduleProblem("icml24", 2, 1, operators, ((0, 2),))

    known = SolvedSchedules()
    first = known.solve(problem(1.0))
    assert first == solve(problem(1.0))
    assert known.solve(problem(1.0)) is first
    assert known.solve(problem(1.0), "list") is not first
    other = SolvedSchedules()
    other.update(((problem(1.0 + i), "exact", None), first) for i in range(MOST + 5))
    assert len(other.schedules) == MOST
    assert (problem(1.0), "exact", None) not in other.schedules

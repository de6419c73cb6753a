"""No chip of a box is below the box's bounds: seconds of works, joules, rates and scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phaze.evaluate.layer_times import layer_works
from phaze.hardware.stack import ScheduleRule
from phaze.search.baseline import scale_for
from phaze.search.boxes.box_bounds import BoxQuestion, box_scores, box_times
from phaze.search.boxes.box_grid import Boxes, BoxGrid, box_grid, halves, trimmed
from phaze.search.boxes.box_works import box_joules, box_layer_works
from phaze.search.energy import layer_floors
from phaze.search.finer_bounds import bounds_on, finer_times
from phaze.search.objective import KINDS, Kind, Objective
from phaze.search.run import begin
from phaze.search.space import Space
from phaze.search.task import ModelTask, SearchJob
from tests.search.made import GIB, exact_score, small_space, traced_task
from tests.search.made_cluster import cluster_task

RULES: tuple[ScheduleRule, ...] = ("icml24", "serial", "companions", "links", "overlap")
Integers = NDArray[np.int64]
POWERS = [1, 2, 3, 8, 24, 64, 256]


def _space() -> Space:
    """Millions of combinations, within the paper's area."""
    return small_space(
        tensor_cores=POWERS, rows=[8, 16, 32, 128], columns=[8, 32, 64, 256], vector_cores=POWERS,
        lanes=[4, 16, 128, 512], global_buffer=["2 MiB", "8 MiB", "32 MiB", "64 MiB"], hbm_bandwidth=[3e11, 9e11, 2e12],
        clock=[7e8, 1.05e9], global_bandwidth=[2e12, 4e12],
    )  # fmt: skip


def _boxes(view: BoxGrid, seed: int, count: int) -> tuple[Boxes, Integers]:
    """Random boxes that hold a random chip of the space, and the chips' places."""
    rng, sizes = np.random.default_rng(seed), np.array(view.shape)
    places = (rng.random((count * 8, len(sizes))) * sizes).astype(np.int64)
    places = places[view.least_areas(places, places) <= view.budget_mm2][:count]
    reach = rng.integers(0, sizes, size=places.shape) * (rng.random(places.shape) < 0.5)
    low = np.maximum(places - reach, 0)
    high = np.minimum(places + rng.integers(0, sizes, size=places.shape) * (rng.random(places.shape) < 0.5), sizes - 1)
    return trimmed(view, Boxes(low, high)), places


def _tasks(rule: ScheduleRule) -> ModelTask:
    if rule == "icml24":
        return traced_task(1, (1, 2), (1, 2))
    return cluster_task("gpt", widths=(2,), microbatches=(1,), schedule=rule, devices=8)


def _check(rule: ScheduleRule, kind: Kind, seed: int, count: int) -> int:
    space, task = _space(), _tasks(rule)
    job = SearchJob("boxes", (task,), space, (GIB,), Objective(kind), 0.0, "boxes")
    scale, view = scale_for(job), box_grid(space)
    boxes, places = _boxes(view, seed, count)
    assert (boxes.low <= places).all() and (places <= boxes.high).all()
    corners, chips = view.corners(boxes), view.opened(view.chips(places), view.least_areas(places, places))
    arrays, virtual = chips.arrays(), corners.boxes()
    assert corners.kept().all()
    slack = 1 + 1e-12
    assert (corners.area_mm2 <= chips.area_mm2 * slack).all() and (corners.least_w <= chips.design_w() * slack).all()
    for making in ("making_usd", "making_kgco2e"):
        assert (getattr(corners.rated(), making)(GIB) <= getattr(chips, making)(GIB) * slack).all()
    for graph in task.graphs:
        constants = task.training.constants
        low, true = box_layer_works(graph, virtual, constants), layer_works(graph.layers, arrays, constants)
        for name in ("one_core_s", "spread_s", "hbm_s"):
            assert (getattr(low, name) <= getattr(true, name) * (1 + 1e-12)).all(), name
        least_j = box_joules(graph, virtual, constants, chips.energy)
        assert (least_j <= layer_floors(graph, arrays, constants, chips.energy) * (1 + 1e-12)).all()
    question = BoxQuestion(job, scale, view, (0,))
    everything = np.ones(len(boxes), np.bool_)
    state = begin(job, chips, scale)
    index = np.arange(len(chips))
    state.set_bounds(bounds_on(state, index, finer_times(state, index), [1e9], general=True))
    truth = state.scores()
    for finer in (False, True):
        found = box_scores(question, box_times(question, boxes), 0.0, 1e12, everything, finer)
        # The antichain dual is greedy: a box may have a better one than a chip in it, but no better than its schedule.
        for at in np.flatnonzero(found > truth * (1 + 1e-9)).tolist():
            assert found[at] <= exact_score(job, scale, chips, at, 0) * (1 + 1e-9)
        assert (found > 0).all()
    return len(boxes)


@settings(max_examples=4, deadline=None)
@given(st.sampled_from(RULES), st.sampled_from(KINDS), st.integers(0, 2**32))
def test_no_chip_undercuts_its_box(rule: ScheduleRule, kind: Kind, seed: int) -> None:
    assert _check(rule, kind, seed, 20) > 5


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_no_chip_of_many_undercuts_its_box(rule: ScheduleRule) -> None:
    """Together 10,000 boxes."""
    assert sum(_check(rule, kind, seed, 100) for kind in KINDS for seed in range(4)) >= 1_900


def test_halves_cover_their_box() -> None:
    view = box_grid(_space())
    boxes, _ = _boxes(view, 3, 50)
    split = boxes.taken(~boxes.alone)
    cut = halves(view, split)
    assert cut.sizes.sum() == split.sizes.sum()
    first, second = cut.taken(slice(0, len(split))), cut.taken(slice(len(split), None))
    apart = (first.high < second.low).any(axis=1)
    assert apart.all() and (first.low == split.low).all() and (second.high == split.high).all()


def test_what_is_trimmed_is_too_large() -> None:
    view = box_grid(_space())
    rng = np.random.default_rng(1)
    low = (rng.random((40, len(view.shape))) * np.array(view.shape) * 0.5).astype(np.int64)
    boxes = Boxes(low, np.broadcast_to(np.array(view.shape) - 1, low.shape).copy())
    boxes = boxes.taken(view.corners(boxes).kept())
    cut = trimmed(view, boxes)
    for _ in range(20):
        inside = (boxes.low + rng.random(boxes.low.shape) * (boxes.high - boxes.low + 1)).astype(np.int64)
        lost = (inside > cut.high).any(axis=1)
        assert (view.least_areas(inside, inside)[lost] > view.budget_mm2).all()

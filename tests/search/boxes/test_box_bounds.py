"""No chip of a box is below the box's bounds: seconds of works, joules, rates and scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phaze.hardware.stack import ScheduleRule
from phaze.options.values import Kind
from phaze.search.boxes.corners import corners_of
from phaze.search.boxes.grid import Boxes, BoxGrid, box_grid, halves, trimmed
from phaze.search.chips import as_chips
from phaze.search.objective import KINDS, Objective
from phaze.search.space import Space
from phaze.search.task import ModelTask, SearchJob
from tests.search.boxes.bounded import check_bounds
from tests.search.made import GIB, small_space, traced_task
from tests.search.made_cluster import cluster_task

RULES: tuple[ScheduleRule, ...] = ("icml24", "serial", "companions", "links", "overlap")
Integers = NDArray[np.int64]
POWERS = [1, 2, 3, 8, 24, 64, 256]


def _space() -> Space:
    """Millions of combinations, within the paper's area."""
    return small_space(
        tensor_cores=POWERS, rows=[8, 16, 32, 128], columns=[8, 32, 64, 256], vector_cores=POWERS,
        lanes=[4, 16, 128, 512], global_buffer=["2 MiB", "8 MiB", "32 MiB", "64 MiB"],
        hbm_bandwidth=[3e11, 9e11, 2e12],
        clock=[7e8, 1.05e9], global_bandwidth=[2e12, 4e12],
    )  # fmt: skip


def _boxes(grid: BoxGrid, seed: int, count: int) -> tuple[Boxes, Integers]:
    """Random boxes that hold a random chip of the space, and the chips' places."""
    rng, sizes = np.random.default_rng(seed), np.array(grid.shape)
    places = (rng.random((count * 8, len(sizes))) * sizes).astype(np.int64)
    places = places[grid.least_dies(Boxes(places, places)) <= grid.budget_mm2][:count]
    reach = rng.integers(0, sizes, size=places.shape) * (rng.random(places.shape) < 0.5)
    low = np.maximum(places - reach, 0)
    high = np.minimum(
        places + rng.integers(0, sizes, size=places.shape) * (rng.random(places.shape) < 0.5),
        sizes - 1,
    )
    return trimmed(grid, Boxes(low, high)), places


def _tasks(rule: ScheduleRule) -> ModelTask:
    if rule == "icml24":
        return traced_task(1, (1, 2), (1, 2))
    return cluster_task("gpt", widths=(2,), microbatches=(1,), schedule=rule, devices=8)


def _check(rule: ScheduleRule, kind: Kind, seed: int, count: int) -> int:
    grid = box_grid(_space())
    job = SearchJob("boxes", (_tasks(rule),), grid.space, (GIB,), Objective(kind), 0.0, "boxes")
    boxes, places = _boxes(grid, seed, count)
    assert (boxes.low <= places).all() and (places <= boxes.high).all()
    check_bounds(job, grid, boxes, as_chips(grid.space, grid.chips(places)))
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
    grid = box_grid(_space())
    boxes, _ = _boxes(grid, 3, 50)
    split = boxes.taken(~boxes.alone)
    cut = halves(grid, split)
    assert cut.sizes.sum() == split.sizes.sum()
    first, second = cut.taken(slice(0, len(split))), cut.taken(slice(len(split), None))
    apart = (first.high < second.low).any(axis=1)
    assert apart.all() and (first.low == split.low).all() and (second.high == split.high).all()


def test_what_is_trimmed_is_too_large() -> None:
    grid = box_grid(_space())
    rng = np.random.default_rng(1)
    low = (rng.random((40, len(grid.shape))) * np.array(grid.shape) * 0.5).astype(np.int64)
    boxes = Boxes(low, np.broadcast_to(np.array(grid.shape) - 1, low.shape).copy())
    boxes = boxes.taken(corners_of(grid, boxes).feasible())
    cut = trimmed(grid, boxes)
    for _ in range(20):
        inside = (boxes.low + rng.random(boxes.low.shape) * (boxes.high - boxes.low + 1)).astype(
            np.int64
        )
        lost = (inside > cut.high).any(axis=1)
        assert (grid.least_dies(Boxes(inside, inside))[lost] > grid.budget_mm2).all()

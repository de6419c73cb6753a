"""No chip of clusters is below the bounds of its box: area, clock, seconds of works, joules, rates
and scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from phaze.hardware.power import power_at
from phaze.hardware.stack import ScheduleRule
from phaze.options.values import Kind
from phaze.search.boxes.counts import count_left_out
from phaze.search.boxes.grid import Boxes, BoxGrid, box_grid, numbers_of, trimmed
from phaze.search.boxes.walk import first_boxes, inside
from phaze.search.chips import SpaceChips, chips_at, enumerate_space
from phaze.search.factors import AS_THEY_ARE, ConstantFactors
from phaze.search.feasibility import clock_powers
from phaze.search.objective import KINDS
from phaze.search.space import Space
from tests.search.boxes.bounded import check_bounds
from tests.search.made_cluster import cluster_task
from tests.search.made_silicon import silicon_job, silicon_space

RULES: tuple[ScheduleRule, ...] = ("companions", "serial", "links", "overlap", "icml24")
FASTER = ConstantFactors(clock=1.3, hbm=0.7, shared=1.6, links=0.5)
Integers = NDArray[np.int64]


def _space() -> Space:
    """Some hundred thousand combinations, of which area, edge, power and price leave some out."""
    return silicon_space(
        keep={"most_area": "600 mm2", "least_share": 0.2, "sustained_power": "250 W",
        "most_usd": 1500.0,
              "most_w_per_mm2": 1.0},
        clusters=[1, 2, 3, 4, 6, 12, 13, 32], arrays=[1, 2, 3, 4, 6, 8], rows=[8, 16, 32, 128],
        columns=[16, 64, 128], lanes=[64, 128, 512], operand_buffer=["16 KiB", "128 KiB"],
        registers=["256 KiB", "1 MiB", "4 MiB"], global_buffer=["8 MiB", "25 MiB", "60 MiB"],
        global_width=[1000, 2048, 5120], hbm_stacks=[2, 3, 6],
        links=["100 GB/s", "225 GB/s", "900 GB/s"],
    )  # fmt: skip


def _boxes(grid: BoxGrid, seed: int, count: int) -> tuple[Boxes, SpaceChips]:
    """Random boxes that hold a random chip of the space, and the chips."""
    rng, sizes = np.random.default_rng(seed), np.array(grid.shape)
    kept = chips_at(grid.space, np.unique(rng.integers(0, sizes.prod(), count * 40)))
    chosen = np.sort(rng.permutation(len(kept))[:count])
    assert kept.numbers is not None
    numbers = kept.numbers[chosen]
    places = np.stack(np.unravel_index(numbers, grid.shape), axis=1).astype(np.int64)
    reach = [
        rng.integers(0, sizes, size=places.shape) * (rng.random(places.shape) < 0.4)
        for _ in range(2)
    ]
    low, high = np.maximum(places - reach[0], 0), np.minimum(places + reach[1], sizes - 1)
    boxes = trimmed(grid, Boxes(low, high))
    assert (boxes.low <= places).all() and (places <= boxes.high).all()
    return boxes, kept.taken(chosen)


def _check(
    rule: ScheduleRule, kind: Kind, seed: int, count: int, factors: ConstantFactors = AS_THEY_ARE
) -> int:
    task = cluster_task("gpt", widths=(2,), microbatches=(1,), schedule=rule, devices=8)
    grid = box_grid(_space(), factors)
    boxes, chips = _boxes(grid, seed, count)
    check_bounds(silicon_job((task,), grid.space, kind), grid, boxes, chips)
    return len(boxes)


@settings(max_examples=2, deadline=None)
@given(
    st.sampled_from(RULES),
    st.sampled_from(KINDS),
    st.integers(0, 2**32),
    st.sampled_from([AS_THEY_ARE, FASTER]),
)
def test_no_chip_of_clusters_undercuts_its_box(
    rule: ScheduleRule, kind: Kind, seed: int, factors: ConstantFactors
) -> None:
    assert _check(rule, kind, seed, 20, factors) > 5


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_no_chip_of_many_clusters_undercuts_its_box(rule: ScheduleRule) -> None:
    """Together 10,000 boxes."""
    assert sum(_check(rule, kind, seed, 100) for kind in KINDS for seed in range(4)) >= 1_900


def test_boxes_of_clusters_lose_no_chip_of_their_space() -> None:
    grid = box_grid(
        silicon_space(
            clusters=[2, 3, 5, 8, 16], arrays=[1, 2, 3], lanes=[128, 512], rows=[16, 32, 64]
        )
    )
    boxes = first_boxes(grid)
    found = np.concatenate(
        [
            numbers_of(grid, np.stack(np.meshgrid(*(np.arange(a, b + 1) for a,
            b in zip(low, high, strict=True))), -1)
                       .reshape(-1, len(low)))
            for low, high in zip(boxes.low, boxes.high, strict=True)
        ]
    )  # fmt: skip
    opened = enumerate_space(grid.space)
    kept = chips_at(grid.space, np.unique(found))
    assert len(found) == len(set(found.tolist())) and len(kept) == len(opened) > 20
    assert len(inside(grid, boxes)) == len(boxes)


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from([90.0, 180.0, 400.0]), st.sampled_from([200.0, 320.0, 600.0]),
    st.sampled_from([0.3, 0.6, 2.0]),
    st.sampled_from([None, 900.0, 1400.0]), st.sampled_from([0.0, 0.4]),
)  # fmt: skip
def test_chips_of_clusters_are_counted_without_their_clocks(
    watts: float, area: float, dense: float, usd: float | None, least: float
) -> None:
    keep = {
        "sustained_power": watts,
        "most_area": area,
        "most_w_per_mm2": dense,
        "most_usd": usd,
        "least_share": least,
    }
    space = silicon_space(keep=keep, clusters=[1, 2, 8, 13], rows=[16, 64], hbm_stacks=[2, 4, 6])
    opened, counts = enumerate_space(space), count_left_out(space)
    assert len(space) - sum(counts.values()) == len(opened) and counts == opened.rules
    held = power_at(clock_powers(space, opened.chips), space.technology, opened.held_hz)
    assert (held <= watts).all() and (held <= dense * opened.area_mm2).all()

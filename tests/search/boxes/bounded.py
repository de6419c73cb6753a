"""Boxes against chips in them: no chip is below the bounds of its box, whatever it is made of."""

import numpy as np

from phaze.evaluate.layer_table import layer_works
from phaze.search.baseline import scale_for
from phaze.search.boxes.box_bounds import BoxQuestion, box_scores, box_times
from phaze.search.boxes.box_works import box_joules, box_layer_works
from phaze.search.boxes.corners import Corners, corners_of
from phaze.search.boxes.grid import Boxes, BoxGrid
from phaze.search.chips import SpaceChips
from phaze.search.dual_bounds import bounds_on, finer_times
from phaze.search.energy import layer_floors
from phaze.search.run import begin
from phaze.search.task import SearchJob
from tests.search.made import exact_score

ROUNDED = 1 + 1e-12


def check_bounds(job: SearchJob, grid: BoxGrid, boxes: Boxes, chips: SpaceChips) -> None:
    """Area, clock, power, prices, seconds and joules of works, and scores of a chip in each box;
    ``chips`` are without the grid's factors."""
    corners = corners_of(grid, boxes)
    assert corners.feasible().all()
    _check_figures(job, corners, chips)
    scaled = chips.scaled(grid.factors)
    _check_works(job, corners, scaled)
    _check_scores(job, grid, boxes, scaled)


def _check_figures(job: SearchJob, corners: Corners, chips: SpaceChips) -> None:
    clusters, held_hz = chips.chips, chips.held_hz
    assert (corners.area_mm2 <= chips.area_mm2 * ROUNDED).all()
    assert (chips.area_mm2 <= corners.most_mm2 * ROUNDED).all()
    assert (corners.die_mm2 <= chips.die_mm2 * ROUNDED).all()
    assert (corners.rated_w <= chips.design_w() * ROUNDED).all()
    assert (corners.static_w() <= chips.static_w() * ROUNDED).all()
    assert (corners.slowest_hz <= held_hz * ROUNDED).all()
    assert (held_hz <= corners.fastest_hz * ROUNDED).all()
    units, lanes = clusters.clusters * clusters.macs, clusters.vectors * clusters.lanes
    assert (held_hz * units <= corners.fastest_hz * corners.units * ROUNDED).all()
    assert (held_hz * lanes <= corners.fastest_hz * corners.lanes * ROUNDED).all()
    assert (clusters.clusters * clusters.port <= corners.ports).all()
    assert (clusters.port <= corners.widest_port).all()
    for hbm_bytes in job.hbm_bytes:
        assert (corners.making_usd(hbm_bytes) <= chips.making_usd(hbm_bytes) * ROUNDED).all()
        assert (corners.making_kgco2e(hbm_bytes) <= chips.making_kgco2e(hbm_bytes) * ROUNDED).all()


def _check_works(job: SearchJob, corners: Corners, chips: SpaceChips) -> None:
    arrays, virtual = chips.arrays(), corners.boxes()
    for task in job.models:
        constants = task.constants
        for graph in task.graphs:
            low, true = (
                box_layer_works(graph, virtual, constants),
                layer_works(graph.layers, arrays, constants),
            )
            for name in ("one_core_s", "spread_s", "hbm_s"):
                assert (getattr(low, name) <= getattr(true, name) * ROUNDED).all(), name
            least_j = box_joules(graph, virtual, constants, chips.space.technology)
            assert (
                least_j <= layer_floors(graph, arrays, constants, chips.space.technology) * ROUNDED
            ).all()


def _check_scores(job: SearchJob, grid: BoxGrid, boxes: Boxes, chips: SpaceChips) -> None:
    scale, memories = scale_for(job), tuple(range(len(job.hbm_bytes)))
    question, every = BoxQuestion(job, scale, grid, memories), np.ones(len(boxes), np.bool_)
    state, index = begin(job, chips, scale), np.arange(len(chips))
    state.set_bounds(bounds_on(state, index, finer_times(state, index), [1e9], general=True))
    truth = state.scores()
    for finer in (False, True):
        scores = box_scores(question, box_times(question, boxes), 0.0, 1e12, every, finer)
        # The antichain dual is greedy: a box may have a better one than a chip in it, but no better
        # than its schedule.
        for chip in np.flatnonzero(scores > truth * (1 + 1e-9)).tolist():
            least = min(exact_score(job, scale, chips, chip, memory) for memory in memories)
            assert scores[chip] <= least * (1 + 1e-9)
        assert (scores > 0).all()

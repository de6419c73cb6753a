"""Boxes of chips of clusters: no bound of one is above what a chip of it has, they cover a space,
false claims fall."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.check.boxes import boxes_of, least_chips, walk
from phaze.check.chips import Boxes, Chips
from phaze.check.layer_costs import works_of
from phaze.check.means import mean_of
from phaze.check.model import Model, model_of
from phaze.check.operators import Costs
from phaze.check.silicon import drawn_of, edges_of, power_of
from phaze.check.space import Grid, grid_of, space_of
from phaze.check.verdict import check
from tests.check.bounds import box_claim
from tests.check.forge import Papers


def _model(papers: Papers) -> Model:
    parts = (
        papers.graphs["models"][0],
        papers.certificate["fusion"][0],
        papers.certificate["multipliers"][0],
    )
    return model_of(papers.problem["models"][0], *parts, True, papers.problem["hbm_bytes"], 16)


@pytest.fixture(scope="module")
def fine(clustered: Path) -> dict[str, Any]:
    """A space of some hundred thousand combinations around that of the run."""
    space: dict[str, Any] = Papers(clustered).problem["space"]
    space["axes"] = {
        **space["axes"], "clusters": [2, 3, 4, 5, 8, 12, 13, 24], "arrays": [1, 2, 3, 4, 8],
        "rows": [16, 24, 32, 64],
        "columns": [32, 64, 128], "lanes": [64, 128, 256, 512], "registers": [2**18, 2**20, 2**21],
        "global_buffer": [2**23, 25 * 2**20, 50 * 2**20], "global_width": [1000.0, 2048.0, 5120.0],
        "operand_buffer": [2**15, 2**16],
    }  # fmt: skip
    space["keep"]["most_usd"] = 2_000.0
    return space


def _around(grid: Grid, seed: int, count: int) -> tuple[Chips, Any, Any]:
    """Random chips of a space and boxes around them."""
    rng, tops = (
        np.random.default_rng(seed),
        np.array([len(values) - 1 for values in grid.axes.values()]),
    )
    at = rng.integers(0, tops + 1, (count, len(tops)))
    every, stays = grid.limits.kept(grid.corner(at))
    at = at[stays]
    assert len(at) == len(every) > 20
    arrays = list(grid.axes).index("arrays")
    low, high = (
        np.maximum(0, at - rng.integers(0, 4, at.shape)),
        np.minimum(tops, at + rng.integers(0, 4, at.shape)),
    )
    low[:, arrays] = high[:, arrays] = at[:, arrays]
    return every, low, high


@pytest.mark.parametrize("count", [800, pytest.param(8_000, marks=pytest.mark.slow)])
def test_no_chip_of_clusters_is_better_than_a_box_around_it(
    clustered: Path, fine: dict[str, Any], count: int
) -> None:
    papers = Papers(clustered)
    grid, model = grid_of(fine, papers.problem["ownership"]), _model(papers)
    chips, low, high = _around(grid, 7, count)
    bottom, top = least_chips(grid, low, high), grid.corner(high)
    least, true = drawn_of(bottom, top, grid.made).power(), power_of(chips, grid.made)
    assert (least.product_w <= true.product_w).all() and (least.product_j <= true.product_j).all()
    assert (least.vector_w <= true.vector_w).all() and (least.vector_j <= true.vector_j).all()
    boxes, beyond = boxes_of(grid, bottom, top)
    assert not any(out.any() for out in beyond.values())
    units = chips.clusters * chips.arrays * chips.rows * chips.columns
    assert (boxes.area <= chips.area).all() and (boxes.clock >= chips.clock).all()
    assert (boxes.unit_rate >= units * chips.clock).all() and (
        boxes.all_ports >= chips.clusters * chips.port
    ).all()
    assert (boxes.lane_rate >= chips.clusters * chips.lanes * chips.clock).all()
    assert (edges_of(chips, grid.made) > 0).all() and isinstance(boxes.taken(np.array([0])), Boxes)
    for graph in model.graphs:
        works = list(works_of(graph))
        fastest = Costs(boxes, model.constants, False, "all", 16)
        for mapped in (False, True):
            some = chips.taken(np.arange(min(40, len(chips)))) if mapped else chips
            exact = Costs(some, model.constants, mapped, "all", 16)
            for work in works:
                assert (
                    fastest.seconds(work)[: len(some)] <= exact.seconds(work) * (1 + 1e-12)
                ).all()


def test_boxes_of_clusters_cover_a_space_and_leave_what_is_below_the_goal(clustered: Path) -> None:
    papers = Papers(clustered)
    problem, best = papers.problem, papers.certificate["best"]
    grid = grid_of(problem["space"], problem["ownership"])
    every = space_of(grid, problem["hbm_bytes"])
    chips = every.chips
    for goal, least in ((best * 1.0001, 1), (1e9, len(chips))):
        model, mean = _model(papers), mean_of(problem)
        found = walk(box_claim([model], mean, grid, problem["hbm_bytes"], goal), None)
        assert sum(found.closed.values()) + found.open == grid.combinations == every.combinations
        kept = found.chips(grid)[0].area
        assert len(kept) >= least
        if goal == 1e9:
            assert sorted(kept.tolist()) == sorted(chips.area.tolist())


@pytest.fixture
def many(clustered: Path, monkeypatch: pytest.MonkeyPatch) -> Papers:
    """The run, its space taken to be too large to look at every chip."""
    monkeypatch.setattr("phaze.check.boxes.MOST_CHIPS", 1)
    return Papers(clustered)


def test_a_large_space_of_clusters_is_proved_by_boxes(many: Papers, tmp_path: Path) -> None:
    held = check(many.write(tmp_path))
    assert held.holds and held.counted is not None and held.counted.boxes > 0, held.sentence()
    assert held.chips == grid_of(many.problem["space"], many.problem["ownership"]).combinations
    assert not check(many.write(tmp_path), quick=True).holds
    many.claim(many.certificate["best"] * 0.5)
    assert check(many.write(tmp_path)).wrong.startswith("best:")


@pytest.mark.slow
def test_an_answer_that_is_not_the_best_of_a_large_space_falls(
    clustered: Path, fine: dict[str, Any], tmp_path: Path
) -> None:
    assert "nothing shows" in check(clustered, larger=fine).wrong
    held = check(clustered, wider=0.95, larger=fine)
    assert held.holds and held.counted is not None and held.counted.boxes > 0, held.sentence()


@pytest.mark.parametrize(
    ("key", "value"), [("rows", 100), ("rows", "32"), ("clusters", 0), ("links", 1.0)]
)
def test_a_chip_that_a_large_space_of_clusters_has_not_is_no_answer(
    many: Papers, tmp_path: Path, key: str, value: Any
) -> None:
    many.certificate["answer"]["chip"][key] = value
    assert check(many.write(tmp_path)).wrong


def test_another_space_brings_the_memories_of_its_own_stacks(clustered: Path) -> None:
    larger = Papers(clustered).problem["space"]
    larger["axes"]["hbm_stacks"] = [2.0, 3.0, 4.0]
    verdict = check(clustered, wider=0.5, larger=larger)
    assert verdict.holds and verdict.words[2] == "memories    32, 48, 64 GiB", verdict.words
    assert verdict.words[-1].endswith("by more than 50 %")

"""Boxes: no bound of one is above what a chip of it takes, together they cover a space, and false
claims fall."""

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.check.boxes import Walk, boxes_of, least_chips, walk
from phaze.check.layer_costs import works_of
from phaze.check.limits import making_usd
from phaze.check.means import mean_of
from phaze.check.model import ChipCosts, Model, model_of
from phaze.check.silicon import power_of
from phaze.check.space import Grid, grid_of, space_of
from phaze.check.verdict import check
from tests.check.bounds import box_claim
from tests.check.cluster_forgeries import CLUSTERS
from tests.check.forge import Chooser, Papers
from tests.conftest import Ran
from tests.search.test_study import SPACE


def _model(papers: Papers) -> Model:
    parts = (
        papers.graphs["models"][0],
        papers.certificate["fusion"][0],
        papers.certificate["multipliers"][0],
    )
    return model_of(papers.problem["models"][0], *parts, True, papers.problem["hbm_bytes"])


def _walked(papers: Papers, model: Model, grid: Grid, goal: float) -> Walk:
    """A walk with the largest memory, whatever it costs."""
    mean, memories = mean_of(papers.problem), papers.problem["hbm_bytes"]
    return walk(box_claim([model], mean, grid, memories, goal), len(memories) - 1)


def _columns(chips: Any) -> list[Any]:
    return [getattr(chips, field.name) for field in fields(chips)]


@pytest.fixture(scope="module")
def fine(good: Path) -> dict[str, Any]:
    """A space of some hundred thousand combinations around that of the run."""
    space: dict[str, Any] = Papers(good).problem["space"]
    powers = [2**at for at in range(10)]
    space["axes"] = {
        "tensor_cores": powers, "rows": [8, 12, 16, 24, 32, 48, 64, 96, 128],
        "columns": [16, 32, 64, 128, 256],
        "vector_cores": powers, "lanes": [16, 32, 64, 128, 256],
        "global_buffer": [2**20 * size for size in (1, 2, 4, 8, 12, 16, 24, 32)],
    }  # fmt: skip
    space["tied"] = {}
    return space


def test_no_operator_takes_less_on_a_chip_than_on_a_box_around_it(
    good: Path, fine: dict[str, Any]
) -> None:
    model, grid, rng = (
        _model(Papers(good)),
        grid_of(fine, Papers(good).problem["ownership"]),
        np.random.default_rng(7),
    )
    tops = np.array([len(values) - 1 for values in grid.axes.values()])
    at = rng.integers(0, tops + 1, (2_000, len(tops)))
    chips, stays = grid.limits.kept(grid.corner(at))
    at = at[stays]
    assert len(at) > 100
    low = np.maximum(0, at - rng.integers(0, 4, at.shape))
    high = np.minimum(tops, at + rng.integers(0, 4, at.shape))
    boxes, beyond = boxes_of(grid, least_chips(grid, low, high), grid.corner(high))
    assert not any(out.any() for out in beyond.values())
    assert (boxes.area <= chips.area).all() and (boxes.clock >= chips.clock).all()
    assert (boxes.unit_rate >= chips.clusters * chips.macs * chips.clock).all()
    assert (boxes.lane_rate >= chips.vector_units * chips.lanes * chips.clock).all()
    for graph in model.graphs:
        works = works_of(graph)
        box, chip = (ChipCosts(model, some, False).seconds(works, False) for some in (boxes, chips))
        assert set(box.one) == set(box.spread) == set(works)
        for work in works:
            assert (box.spread[work] <= chip.spread[work] * (1 + 1e-12)).all()
            assert (box.one[work] <= chip.one[work] * (1 + 1e-12)).all()


def test_boxes_cover_a_space_and_leave_what_is_below_the_goal(good: Path) -> None:
    papers = Papers(good)
    model, grid = _model(papers), grid_of(papers.problem["space"], papers.problem["ownership"])
    scores = sorted(Chooser(good).scores())
    for goal, least in (
        (scores[0] * 0.5, 0),
        (scores[0] * 1.0001, 1),
        (scores[-1] * 1.01, len(scores)),
    ):
        found = _walked(papers, model, grid, goal)
        assert sum(found.closed.values()) + found.open == grid.combinations
        assert found.open >= least


def test_an_answer_holds_against_a_larger_space_to_the_gap_that_it_needs(
    good: Path, fine: dict[str, Any], tmp_path: Path
) -> None:
    held = check(good, wider=0.9, larger=fine)
    assert held.holds and held.counted is not None and held.counted.boxes > 0, held.sentence()
    assert held.chips == 10 * 9 * 5 * 10 * 5 * 8 and "against" in held.words[1]
    assert "nothing shows" in check(good, wider=0.0, larger=fine).wrong
    papers = Papers(good)
    papers.claim(papers.certificate["best"] * 0.5)
    assert check(papers.write(tmp_path), wider=0.9, larger=fine).wrong.startswith("best:")


@pytest.mark.parametrize("key", ["most_power", "most_usd"])
def test_boxes_leave_the_chips_that_the_rules_of_a_space_keep(good: Path, key: str) -> None:
    """Against a goal that nothing reaches every chip is left, whatever the rules, and no other."""
    papers = Papers(good)
    space, terms, memories = (
        papers.problem["space"],
        papers.problem["ownership"],
        papers.problem["hbm_bytes"],
    )
    whole = grid_of(space, terms)
    every = space_of(whole, memories)
    made, chips = whole.made, every.chips
    watts = power_of(chips, made).watts(chips.clock)
    figures = {"most_power": watts, "most_usd": making_usd(chips, made, terms, 0.0)}
    space["keep"][key] = float(np.median(figures[key]))
    grid = grid_of(space, terms)
    found = _walked(papers, _model(papers), grid, 1e9)
    left, _ = found.chips(grid)
    known = space_of(grid, memories)
    assert sum(found.closed.values()) + found.open == grid.combinations
    assert 0 < len(known.chips) < len(every.chips)
    same = np.lexsort(_columns(left)), np.lexsort(_columns(known.chips))
    assert len(left) == len(known.chips)
    for mine, theirs in zip(_columns(left), _columns(known.chips), strict=True):
        assert (mine[same[0]] == theirs[same[1]]).all()


def test_axes_must_ascend(good: Path, fine: dict[str, Any]) -> None:
    falling = {**fine, "axes": {**fine["axes"], "rows": [64, 32]}}
    assert "do not ascend" in check(good, wider=0.9, larger=falling).wrong


@pytest.fixture
def many(good: Path, fine: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Papers:
    """The run with a larger space as its own, to a gap that it has there."""
    monkeypatch.setattr("phaze.check.boxes.MOST_CHIPS", 1_000)
    papers = Papers(good)
    papers.problem["space"] = fine
    papers.certificate["gap"] = papers.problem["gap"] = 0.9
    papers.claim(papers.certificate["best"])
    return papers


def test_the_space_of_a_run_may_be_too_large_to_look_at_every_chip(
    many: Papers, tmp_path: Path
) -> None:
    held = check(many.write(tmp_path))
    assert held.holds and held.counted is not None and held.counted.boxes > 0, held.sentence()
    assert held.chips == 180_000 and "180,000 combinations" in held.words[0]
    assert not check(many.write(tmp_path), quick=True).holds
    many.claim(many.certificate["best"] * 0.5)
    assert check(many.write(tmp_path)).wrong.startswith("best:")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rows", 100),
        ("rows", "32"),
        ("vector_buffer", 1),
        ("clock", 2e9),
        ("tensor_cores", 0),
        ("lanes", True),
    ],
)
def test_a_chip_that_a_large_space_has_not_is_no_answer(
    many: Papers, tmp_path: Path, key: str, value: Any
) -> None:
    many.certificate["answer"]["chip"][key] = value
    assert check(many.write(tmp_path)).wrong


def test_a_chip_that_a_large_space_does_not_keep_is_no_answer(many: Papers, tmp_path: Path) -> None:
    many.problem["space"]["keep"]["most_power"] = 1.0
    assert "no such chip" in check(many.write(tmp_path)).wrong
    many.problem["space"]["keep"]["most_power"] = None
    many.problem["hbm_bytes"] = many.problem["hbm_bytes"][::-1]
    if len(many.problem["hbm_bytes"]) > 1:
        assert "ascend" in check(many.write(tmp_path)).wrong


def test_the_command_takes_a_space_file(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    ran = phaze("verify", good, "--space", tmp_path / "space.toml", "--gap", "0.1", "--json")
    found = json.loads(ran.out)
    assert (
        ran.code == 0 and found["holds"] and found["boxes"] > 0 and found["combinations"] == 16
    ), found
    assert phaze("verify", good, "--gap", "0.1").code == 2
    assert phaze("verify", good, "--space", tmp_path / "space.toml", "--gap", "2").code == 2


def test_a_space_of_clusters_is_no_question_for_an_answer_of_cores(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    (tmp_path / "space.toml").write_text(CLUSTERS)
    ran = phaze("verify", good, "--space", tmp_path / "space.toml")
    assert ran.code == 2 and "give a space of chips of cores" in " ".join(ran.err.split())

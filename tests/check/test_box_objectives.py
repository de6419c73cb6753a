"""Large spaces are proved by boxes whatever counts: joules, dollars, kilograms, several models,
fronts; nothing that a box shows is above what a chip of it takes, and false claims fall."""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.check.boxes import boxes_of, least_chips
from phaze.check.chips import Boxes, Chips
from phaze.check.fronts import figures_of
from phaze.check.kernels import Kernel, Kernels
from phaze.check.layer_costs import works_of
from phaze.check.model import Model, model_of
from phaze.check.operators import Costs
from phaze.check.silicon import edge_share, joules_of, prices_of, volts_of
from phaze.check.space import Grid, grid_of
from phaze.check.verdict import check
from phaze.check.works import Work
from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS
from tests.check.conftest import front_run
from tests.check.forge import Papers
from tests.check.test_kinds import ONE, TWO
from tests.conftest import Ran
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY, finished

SLOW = pytest.mark.slow
FINE: dict[str, dict[str, Any]] = {
    "clusters": {
        "clusters": [2, 3, 4, 5, 8, 12, 13, 24],
        "arrays": [1, 2, 3, 4, 8],
        "rows": [16, 24, 32, 64, 256],
        "columns": [16, 32, 64, 128],
        "lanes": [64, 128, 256, 512],
        "registers": [2**18, 2**20, 2**21],
        "global_buffer": [2**23, 25 * 2**20, 50 * 2**20],
        "global_width": [1000.0, 2048.0, 5120.0],
        "operand_buffer": [2**15, 2**16],
    },
    "cores": {
        "tensor_cores": [1, 2, 4, 8, 16, 32],
        "rows": [8, 16, 32, 48, 64, 128],
        "columns": [16, 32, 64, 128],
        "global_buffer": [2**20, 2**22, 2**24, 2**25],
        "clock": [8e8, 1.05e9, 1.4e9],
    },
}
MEASURED = Kernels(((64, (0.0, 200.0, 0.5, 0.6)),), ((64, (0.0, 200.0, 0.4, 0.5)),))
ATTENTION = Work("tensor", kernel=Kernel(False, 64, 1e12, 1e9))
QUESTIONS = {"clusters": (CLUSTER_STUDY, CLUSTERS), "cores": (STUDY, SPACE)}


@pytest.fixture(autouse=True)
def _every_space_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phaze.check.boxes.MOST_CHIPS", 1)


def _around(grid: Grid, seed: int) -> tuple[Chips, Boxes]:
    """Random chips of a space, and boxes around them."""
    rng = np.random.default_rng(seed)
    tops = np.array([len(values) - 1 for values in grid.axes.values()])
    places = rng.integers(0, tops + 1, (1_500, len(tops)))
    chips, stays = grid.limits.kept(grid.corner(places))
    places = places[stays]
    low = np.maximum(0, places - rng.integers(0, 4, places.shape))
    high = np.minimum(tops, places + rng.integers(0, 4, places.shape))
    if "arrays" in grid.axes:
        arrays = list(grid.axes).index("arrays")
        low[:, arrays] = high[:, arrays] = places[:, arrays]
    boxes, _ = boxes_of(grid, least_chips(grid, low, high), grid.corner(high))
    return chips, boxes


def _model(papers: Papers) -> Model:
    """The first model of a run."""
    fusion = papers.certificate["fusion"][0], papers.certificate["multipliers"][0]
    problem = papers.problem
    return model_of(
        problem["models"][0], papers.graphs["models"][0], *fusion, True, problem["hbm_bytes"]
    )


@pytest.mark.parametrize("kind", ["clusters", "cores"])
def test_no_chip_takes_less_than_a_box_around_it(kind: str, good: Path, clustered: Path) -> None:
    papers = Papers(clustered if kind == "clusters" else good)
    space = papers.problem["space"]
    space["axes"] |= FINE[kind]
    if kind == "clusters":
        space["base"]["clusters"]["accelerator"]["clusters"]["broadcast"] = True
    grid = grid_of(space, papers.problem["ownership"])
    chips, boxes = _around(grid, 7)
    assert len(chips) > 100
    assert (boxes.least.clock <= chips.clock).all() and (boxes.least.area <= chips.area).all()
    least, true = prices_of(boxes, grid.made), prices_of(chips, grid.made)
    for field in fields(true):
        assert (getattr(least, field.name) <= getattr(true, field.name) * (1 + 1e-9)).all(), field
    at_edges = joules_of(boxes.least, grid.made).edge * volts_of(boxes.least.clock, grid.made) ** 2
    assert (least.edge / at_edges <= edge_share(chips, grid.made) * (1 + 1e-9)).all()
    known, figures = (figures_of(grid, some, 2.0**35) for some in (boxes, chips))
    for name, values in figures.items():
        assert (known[name] <= values * (1 + 1e-9)).all(), name
    model = _model(papers)
    constants = replace(model.constants, kernels=MEASURED)
    of_boxes = Costs(boxes, constants, False, "all", grid.made.fan_out, least)
    of_chips = Costs(chips, constants, False, "all", grid.made.fan_out, true)
    for work in (*works_of(model.graphs[0]), ATTENTION):
        assert (of_boxes.joules(work) <= of_chips.joules(work) * (1 + 1e-9)).all()
        assert (of_boxes.seconds(work) <= of_chips.seconds(work) * (1 + 1e-9)).all()


def _proved(run: Path, phaze: Callable[..., Ran]) -> None:
    """A claim holds by boxes; on chips of few cores by the caller's solver too."""
    ran = phaze("verify", run)
    said = " ".join(ran.out.split())
    assert ran.code == 0 and re.search(r"combinations in [\d,]+ boxes", said), ran.out


KINDS = {
    "joules of clusters": ("clusters", ONE, 'kind = "throughput_per_watt"'),
    "dollars of cores": ("cores", ONE, 'kind = "throughput_per_usd"'),
    "dollars of clusters": ("clusters", ONE, 'kind = "throughput_per_usd"'),
    "carbon of clusters": ("clusters", ONE, 'kind = "throughput_per_kgco2e"'),
    "delay of cores": ("cores", ONE, 'kind = "energy_delay"'),
    "carbon of cores": ("cores", ONE, 'kind = "throughput_per_kgco2e"'),
    "several models on cores": ("cores", TWO, ""),
    "regret in dollars": ("clusters", TWO, 'kind = "throughput_per_usd"\nmean = "regret"'),
    "arithmetic in joules": ("cores", TWO, 'kind = "throughput_per_watt"\nmean = "arithmetic"'),
}
EVERYDAY = {"joules of clusters", "dollars of cores"}


@pytest.mark.parametrize(
    "name", [name if name in EVERYDAY else pytest.param(name, marks=SLOW) for name in KINDS]
)
def test_an_answer_of_a_large_space_is_proved_by_boxes(
    name: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    kind, models, objective = KINDS[name]
    study, space = QUESTIONS[kind]
    line = next(row for row in study.splitlines() if row.startswith("models"))
    text = study.replace(line, models) + f"[objective]\n{objective}\n"
    run = finished(tmp_path, text, space)
    _proved(run, phaze)
    papers = Papers(run)
    papers.claim(papers.certificate["best"] * 0.9)
    assert check(papers.write(tmp_path)).wrong.startswith("best:")


@pytest.mark.parametrize(
    ("kind", "of"),
    [
        ("clusters", "throughput,power"),
        pytest.param("clusters", "energy,price", marks=SLOW),
        pytest.param("clusters", "cost,throughput,area", marks=SLOW),
        pytest.param("cores", "carbon,area", marks=SLOW),
        pytest.param("cores", "throughput,energy,embodied", marks=SLOW),
    ],
)
def test_a_front_of_a_large_space_is_proved_by_boxes(
    kind: str, of: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    study, space = QUESTIONS[kind]
    run = front_run(tmp_path, study, space, "--of", of)
    _proved(run, phaze)
    papers = Papers(run)
    if len(papers.certificate["front"]) > 1:
        papers.certificate["front"].pop()
        assert "nothing shows" in check(papers.write(tmp_path)).wrong


def test_the_best_of_half_a_space_is_not_that_of_the_whole(tmp_path: Path) -> None:
    study, space = QUESTIONS["clusters"]
    text = study + '[objective]\nkind = "throughput_per_watt"\n'
    folders = tmp_path / "whole", tmp_path / "half"
    for folder in folders:
        folder.mkdir()
    whole = Papers(finished(folders[0], text, space))
    other = 12 - whole.certificate["answer"]["chip"]["clusters"]
    axis = "clusters = [4, 8]"
    half = Papers(finished(folders[1], text, space.replace(axis, f"clusters = [{other:g}]")))
    half.problem["space"]["axes"]["clusters"] = [4.0, 8.0]
    assert "nothing shows" in check(half.write(tmp_path)).wrong

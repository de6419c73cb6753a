"""On random chips of the paper's space no bound of the checker is above the score that phaze works
out by schedules and placements, whichever step gave it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phaze.check.means import mean_of
from phaze.check.run_documents import model_at
from phaze.check.space import grid_of, space_of
from phaze.check.space_proof import one_goal, start
from tests.check.forge import Chooser, Papers
from tests.search.test_verify import STUDY

FEW = "microbatches = [1, 2]"


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run over all chips of the paper."""
    from phaze.cli.answer import exit_code_of
    from phaze.cli.main import app

    folder = tmp_path_factory.mktemp("paper")
    study = STUDY.replace("{folder}/space.toml", "paper").replace(FEW, "microbatches = [1]")
    (folder / "study.toml").write_text(study.format(folder=folder))
    arguments = [
        "search",
        str(folder / "study.toml"),
        "--out",
        str(folder / "run"),
        "--workers",
        "1",
    ]
    assert exit_code_of(app, arguments) == 0
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize("count", [2_000])
def test_no_bound_is_above_the_score_of_a_random_chip(count: int, paper: Path) -> None:
    papers, plain = Papers(paper), Chooser(paper).plain
    problem, memories = papers.problem, papers.problem["hbm_bytes"]
    space = space_of(grid_of(problem["space"], problem["ownership"]), memories)
    model = model_at(problem, papers.graphs, papers.certificate, 0)
    chosen = np.sort(np.random.default_rng(13).choice(len(space.chips), count, replace=False))
    exact = np.array([min(plain.exact(int(chip), plain.memories)) for chip in chosen])
    some = replace(space, chips=space.chips.taken(chosen), memory=space.memory[chosen])
    goals = one_goal(np.full(count, 1e6))
    state = start([model], [mean_of(problem)], some, goals)
    for step in model.steps[:3]:
        state.run(step)
        least = state.lows()[0, 0]
        assert (least <= exact * (1 + 1e-9)).all(), step
    met = int((least >= exact * (1 - 1e-9)).sum())
    assert met > count / 4 and (least >= 0.5 * exact).all()

"""Every kind of search that the checker covers holds, the others are named; no bound is above a
chip's score."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phaze.check.means import mean_of
from phaze.check.model import model_of
from phaze.check.reading import NotCoveredError
from phaze.check.space import grid_of, space_of
from phaze.check.space_proof import one_goal, start
from phaze.check.verdict import check
from tests.check.forge import Chooser, Papers
from tests.conftest import Ran
from tests.search.test_verify import STUDY, finished

ONE = 'models = [{{name = "bert-large", sequence = 64}}]'
TWO = (
    'models = [{{name = "bert-large", sequence = 64}}, {{name = "gpt2-xl", sequence = 64, '
    "weight = 2}}]"
)
COVERED = {
    "several models": (ONE, TWO, ""),
    "raw throughput of several models": (ONE, TWO, '[objective]\nmean = "arithmetic"\n'),
    "a power limit": ("", "", "[budget]\npower = 100\n"),
    "a price limit": ("", "", "[budget]\nusd = 650\n"),
    "recompute stage by stage": (
        "microbatches = [1, 2]",
        'microbatches = [1, 2]\nrecompute = ["best"]',
        "",
    ),
    "no residency": ("", "", "[cost]\nresidency = false\n"),
    "another synchronisation": ("", "", '[stack]\nsynchronisation = "share"\n'),
    "another pipeline": ("", "", '[stack]\npipeline = "1f1b"\nhost_time = "2 us"\n'),
    "stages of their own": ("", "", '[stack]\nstages = "layers"\nsaves = "kernels"\n'),
    "operators beside each other": ("", "", '[stack]\nschedule = "overlap"\n'),
    "operators in turn": ("", "", '[stack]\nschedule = "serial"\n'),
}
EVERYDAY = {"several models", "no residency", "another pipeline", "operators beside each other"}


def _some(names: Iterable[str], everyday: set[str]) -> list[Any]:
    """All of them, those that are not for every day marked slow."""
    return [
        name if name in everyday else pytest.param(name, marks=pytest.mark.slow) for name in names
    ]


@pytest.mark.parametrize("name", _some(COVERED, EVERYDAY))
def test_a_kind_that_is_covered_holds(name: str, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    """Where schedules are packings that no bound of the checker meets, ``verify`` names the
    solver."""
    old, new, more = COVERED[name]
    run = finished(tmp_path, STUDY.replace(old, new) + more if old else STUDY + more)
    found = check(run)
    beyond = name == "no residency" and not found.holds
    assert found.holds is not beyond and ("nothing shows" in found.wrong) is beyond, (
        found.sentence()
    )
    ran = phaze("verify", run)
    said = " ".join(ran.out.split())
    assert (ran.code == 0 and "16 chips proved" in said) or "limit" in name, ran.out
    assert found.run_id in said and ("the caller's own solver" in said) is beyond
    bound = Papers(run)
    bound.claim(bound.certificate["best"] * 0.9)
    assert check(bound.write(tmp_path)).wrong.startswith("best:")


def test_no_bound_of_any_step_is_above_a_chip_s_own_score(good: Path) -> None:
    papers, scores = Papers(good), Chooser(good).scores()
    problem, memories = papers.problem, papers.problem["hbm_bytes"]
    space = space_of(grid_of(problem["space"], problem["ownership"]), memories)
    parts = (
        papers.graphs["models"][0],
        papers.certificate["fusion"][0],
        papers.certificate["multipliers"][0],
    )
    model = model_of(problem["models"][0], *parts, True, memories)
    goals = one_goal(np.full(len(space.chips), 1e6))
    state = start([model], [mean_of(problem)], space, goals)
    for step in model.steps:
        state.run(step)
        least = state.lows()[0, 0]
        assert (least <= np.array(scores) * (1 + 1e-9)).all(), step
    assert (least >= 0.9 * np.array(scores)).all()


def test_a_study_binds_a_run_to_its_question(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    assert phaze("verify", good, "--study", good.parent / "study.toml").code == 0
    text = (good.parent / "study.toml").read_text()
    (tmp_path / "other.toml").write_text(text.replace("batch = 16", "batch = 32"))
    ran = phaze("verify", good, "--study", tmp_path / "other.toml")
    assert ran.code == 1 and "models[0].training.batch is 16, and 32 was requested" in " ".join(
        ran.out.split()
    )


def test_a_quick_check_says_that_it_is_no_proof(good: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("verify", good, "--quick")
    assert ran.code == 0 and "not checked (quick)" in " ".join(ran.out.split())
    assert not check(good, quick=True).holds


def test_what_the_checker_does_not_know_is_not_covered(good: Path, tmp_path: Path) -> None:
    papers = Papers(good)
    papers.training["machine"]["stack"]["hides_everything"] = True
    assert "hides_everything" in check(papers.write(tmp_path)).missing
    with pytest.raises(NotCoveredError):
        problem = Papers(good).problem
        problem["space"]["keep"]["most_pins"] = 4
        space_of(grid_of(problem["space"], problem["ownership"]), problem["hbm_bytes"])

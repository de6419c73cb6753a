"""Runs under rules cluster on chips of clusters: good ones hold, forged ones do not, no unknown key
is passed over."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phaze.check.means import mean_of
from phaze.check.run_documents import model_at
from phaze.check.space import grid_of, space_of
from phaze.check.space_proof import one_goal, start
from phaze.check.verdict import check
from tests.check.cluster_forgeries import CLUSTER_REFUSED, CLUSTER_STUDY, CLUSTERS, NOT_KNOWN
from tests.check.forge import Chooser, Papers
from tests.conftest import Ran
from tests.search.test_verify import finished


@pytest.fixture(scope="module")
def chooser(clustered: Path) -> Chooser:
    return Chooser(clustered)


@pytest.fixture(scope="module")
def scores(chooser: Chooser) -> list[float]:
    return chooser.scores()


def test_a_good_run_holds_without_any_solver(
    clustered: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    found = check(clustered)
    assert found.holds, found.sentence()
    assert check(Papers(clustered).write(tmp_path)).holds
    ran = phaze("verify", clustered)
    assert ran.code == 0 and "holds" in ran.out and "solver" not in ran.out, ran.out
    written = (
        phaze("report", clustered, "--out", tmp_path / "page.html"),
        phaze("export", clustered, "--to", "csv", "--out", tmp_path / "chips.csv"),
    )
    assert all(found.run_id in one.out for one in (ran, *written))


@pytest.mark.parametrize("name", CLUSTER_REFUSED)
def test_a_forged_certificate_is_refused(name: str, clustered: Path, tmp_path: Path) -> None:
    papers = Papers(clustered)
    CLUSTER_REFUSED[name](papers)
    found = check(papers.write(tmp_path))
    assert not found.holds and found.wrong, found.sentence()


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_what_is_not_known_is_not_passed_over(name: str, clustered: Path, tmp_path: Path) -> None:
    papers = Papers(clustered)
    NOT_KNOWN[name](papers)
    found = check(papers.write(tmp_path))
    assert found.missing and not found.holds, found.sentence()


@pytest.mark.parametrize("rank", [1, 3, -1])
def test_no_chip_but_the_best_is_proved_best(
    rank: int, clustered: Path, tmp_path: Path, chooser: Chooser, scores: list[float]
) -> None:
    """All of it is true but that nothing is better."""
    order = sorted((at for at, own in enumerate(scores) if own < np.inf), key=scores.__getitem__)
    papers = Papers(clustered)
    chooser.name(papers, order[rank])
    found = check(papers.write(tmp_path))
    better = scores[order[0]] < papers.certificate["bound"] * (1 - 1e-9)
    assert found.holds is not better and ("nothing shows" in found.wrong) is better, (
        found.sentence()
    )


def test_no_bound_of_any_step_is_above_a_chip_s_own_score(
    clustered: Path, scores: list[float]
) -> None:
    papers = Papers(clustered)
    problem = papers.problem
    space = space_of(grid_of(problem["space"], problem["ownership"]), problem["hbm_bytes"])
    model = model_at(problem, papers.graphs, papers.certificate, 0)
    exact = np.array(scores)
    for goal in (1.001 * float(exact.min()), 1.1 * float(exact.min())):
        state = start([model], [mean_of(problem)], space, one_goal(np.full(len(exact), goal)))
        below = exact < goal
        for step in model.steps:
            state.run(step)
            least = state.lows()[0, 0]
            assert (least <= exact * (1 + 1e-9)).all(), step
        assert np.allclose(least[below], exact[below], rtol=1e-9, atol=0)


KINDS = {
    "a stack that trims, cuts and compiles": ("", 'stack = "maxtext"\n'),
    "a stack that runs all in turn": ("", 'stack = "megatron-2021"\n'),
    "a stack that hides behind weight gradients": ("", 'stack = "megatron-2022"\n'),
    "selective by operators, every second block": (
        "",
        'stack = "torchtitan-eager"\n[stack]\nprefetch = "stage"\n',
    ),
    "one mode of recompute": ("microbatches", 'recompute = ["full"]\nmicrobatches'),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_other_stacks_hold_too(name: str, tmp_path: Path) -> None:
    old, more = KINDS[name]
    study = CLUSTER_STUDY.replace(old, more, 1) if old else CLUSTER_STUDY + more
    found = check(finished(tmp_path, study, CLUSTERS))
    assert found.holds, found.sentence()

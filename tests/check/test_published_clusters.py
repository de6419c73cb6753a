"""Rules icml24 on chips of clusters: every cluster is a tensor and a vector core, behind its
port."""

from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.check.verdict import check
from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS, MODEL, TRAINING
from tests.check.forge import Chooser, Papers
from tests.check.forgeries import put, times
from tests.search.test_verify import finished

STUDY = CLUSTER_STUDY.replace('rules = "cluster"', 'rules = "icml24"') + 'cluster = "paper-flat"\n'


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run under the published rules over chips of clusters."""
    return finished(tmp_path_factory.mktemp("published"), STUDY, CLUSTERS)


def test_the_answer_is_proved(published: Path) -> None:
    found = check(published)
    assert found.holds, found.sentence()


def test_no_other_chip_is_taken_for_the_best(published: Path, tmp_path: Path) -> None:
    papers, chooser = Papers(published), Chooser(published)
    best, scores = papers.certificate["best"], chooser.scores()
    chip = next(chip for chip, score in enumerate(scores) if best * 1.01 < score < float("inf"))
    chooser.name(papers, chip)
    found = check(papers.write(tmp_path))
    assert found.wrong and not found.missing, found.sentence()


def _less(papers: Papers) -> None:
    papers.claim(papers.certificate["best"] * 0.999)


FORGERIES: dict[str, Callable[[Papers], None]] = {
    "a lesser time": _less,
    "another fan-out": put(
        "problem", "space", "base", "clusters", "accelerator", "global_buffer", "fan_out", value=1
    ),
    "a software share": put(*TRAINING, "constants", "software_share", value=0.5),
    "an operator that starts sooner": put(*MODEL, "schedules", 1, 0, -1, 0, value=0.0),
    "more memory bandwidth": times(
        "problem",
        "space",
        "base",
        "clusters",
        "accelerator",
        "hbm",
        "bandwidth_bytes_per_s",
        by=2.0,
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(name: str, published: Path, tmp_path: Path) -> None:
    papers = Papers(published)
    FORGERIES[name](papers)
    found = check(papers.write(tmp_path))
    assert found.wrong and not found.missing, found.sentence()

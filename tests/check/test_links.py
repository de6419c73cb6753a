"""Links of chips of cores as an axis: a chip's links are the innermost level of its network, under
either rules."""

from pathlib import Path

import pytest

from phaze.check.verdict import check
from tests.check.forge import Chooser, Papers
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY, finished

LINKED = SPACE.replace("[core_buffers]", "links = [1e9, 4e9, 16e9]\n[core_buffers]")


@pytest.fixture(scope="module", params=["icml24", "cluster"])
def linked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over chips whose links differ."""
    return finished(
        tmp_path_factory.mktemp("linked"), STUDY.replace("icml24", request.param), LINKED
    )


def test_the_fastest_links_are_proved_to_be_best(linked: Path) -> None:
    papers = Papers(linked)
    assert papers.answer["chip"]["links"] == 16e9
    found = check(linked)
    assert found.holds, found.sentence()


def test_an_honest_answer_with_slower_links_is_refused(linked: Path, tmp_path: Path) -> None:
    papers, chooser = Papers(linked), Chooser(linked)
    same = {name: value for name, value in papers.answer["chip"].items() if name != "links"}
    for chip in range(len(chooser.plain.chips)):
        chooser.name(papers, chip)
        rest = {name: value for name, value in papers.answer["chip"].items() if name != "links"}
        if rest == same and papers.answer["chip"]["links"] == 4e9:
            break
    found = check(papers.write(tmp_path))
    assert found.wrong and not found.missing, found.sentence()


def test_slower_links_do_not_take_what_faster_ones_do(linked: Path, tmp_path: Path) -> None:
    papers = Papers(linked)
    papers.answer["chip"]["links"] = 1e9
    found = check(papers.write(tmp_path))
    assert "best:" in found.wrong or "schedule" in found.wrong, found.sentence()


def test_faster_links_that_were_left_out_are_seen(linked: Path, tmp_path: Path) -> None:
    papers = Papers(linked)
    papers.problem["space"]["axes"]["links"].append(64e9)
    found = check(papers.write(tmp_path))
    assert found.wrong and not found.missing, found.sentence()

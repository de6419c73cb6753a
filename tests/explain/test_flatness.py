"""Flatness is counted, not estimated; constants decide where a search of the changed space finds
another chip."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.explain.changed_space import best_of_changed, candidates
from phaze.explain.flatness import flatness
from phaze.explain.neighbours import near_misses, neighbours
from phaze.explain.question import ExplainedRun, best_with, question_of, score_on, with_budget
from phaze.explain.sensitivity import CONSTANTS, changed_answer
from phaze.report.explain_sheet import explanation_sections
from phaze.search.chips import enumerate_space
from phaze.values import replace
from tests.conftest import Ran
from tests.search.made_silicon import SMALL
from tests.search.test_silicon_search import STUDY


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished search of a few chips of clusters."""
    where = tmp_path_factory.mktemp("flat")
    (where / "space.json").write_text(json.dumps(SMALL))
    (where / "study.toml").write_text(STUDY)
    assert (
        exit_code_of(
            app,
            ["search", str(where / "study.toml"), "--out", str(where / "run"), "--workers", "1"],
        )
        == 0
    )
    return where / "run"


@pytest.fixture(scope="module")
def question(folder: Path) -> ExplainedRun:
    return question_of(str(folder))


def _tell(what: str) -> None:
    assert what


@pytest.fixture(scope="module")
def scores(question: ExplainedRun) -> np.ndarray:
    """Every chip of the space by the plain path."""
    opened, most = question.chips, question.job.hbm_bytes[-1]
    return np.array(
        [score_on(question.job, question.scale, opened.chip(at, most)) for at in range(len(opened))]
    )


@pytest.mark.parametrize("within", [0.01, 0.05, 0.25])
def test_the_chips_within_a_share_are_those_that_the_plain_path_finds(
    within: float, question: ExplainedRun, scores: np.ndarray
) -> None:
    found, near = (
        flatness(question, within, 1, _tell),
        np.flatnonzero(scores <= question.score * (1 + within)),
    )
    assert found.count == len(near) >= 1 and found.failed == 0 and found.chips == len(scores)
    own = question.chips.axis_values()
    for axis in found.axes:
        assert sum(chips for _, chips in axis.values) == found.count
        assert {value for value, _ in axis.values} == set(
            own[axis.axis][near].astype(float).tolist()
        )
    assert found.smallest.area_mm2 == pytest.approx(question.chips.area_mm2[near].min(), abs=1e-6)
    assert found.coolest.power_w == pytest.approx(question.chips.design_w()[near].min(), abs=1e-6)
    assert (
        found.nearest[0].loss == pytest.approx(0.0, abs=1e-9) and found.nearest[-1].loss <= within
    )


@pytest.mark.parametrize("change", [-0.25, 0.25])
@pytest.mark.parametrize("constant", CONSTANTS, ids=lambda own: own.name)
def test_a_changed_constant_has_the_answer_of_a_whole_search_of_the_changed_space(
    constant: object, change: float, question: ExplainedRun
) -> None:
    (own,) = (one for one in CONSTANTS if one is constant)
    found = changed_answer(question, own, 1 + change, 1)
    space = question.job.space
    changed = replace(space, technology=own.changed(space.technology, 1 + change))
    assert changed != space
    job = replace(question.job, space=changed)
    whole = best_with(job, question.scale, 1)
    assert found is not None
    assert found.score <= whole.score * (1 + question.job.gap)
    assert whole.score <= found.score * (1 + question.job.gap)


def test_a_chip_that_is_not_looked_at_again_cannot_win(question: ExplainedRun) -> None:
    job = with_budget(question.job, "power", 800.0)
    opened = enumerate_space(job.space)
    kept = candidates(question, opened, job)
    left = np.setdiff1d(np.arange(len(opened)), kept)
    best = best_of_changed(question, job, 1)
    assert best is not None and len(kept)
    assert all(
        score_on(job, question.scale, opened.chip(int(at))) >= best.score * (1 - 1e-9)
        for at in left
    )


def test_explain_names_what_decides_and_keeps_it_as_a_view(
    folder: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("explain", folder, "--flatness", "3%", "--constants", "--workers", "1", "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert (
        json.loads((folder / "explanation.json").read_text()) == said and "verify" in said["view"]
    )
    assert said["flatness"]["within"] == 0.03 and len(said["deciding"]) == len(CONSTANTS)
    for one in said["deciding"]:
        for side, sign in (("less", -1), ("more", 1)):
            assert one[side]["keeps"] * sign >= 0 and one["basis"]
            assert (one[side]["changes"] is None) == (one[side]["chip"] is None)
    least = [
        min(abs(one[side]["changes"] or np.inf) for side in ("less", "more"))
        for one in said["deciding"]
    ]
    assert least == sorted(least)
    titles = [section.title for section in explanation_sections(said)]
    assert "How flat the optimum is" in titles and "Sensitivity to constants" in titles
    assert phaze("verify", folder).code == 0


@pytest.mark.parametrize("text", ["x", "0", "-1%", "40%", "nan"])
def test_a_share_that_is_none_is_refused(
    text: str, folder: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("explain", folder, f"--flatness={text}")
    assert ran.code == 2 and "--flatness" in ran.err


def test_lesser_shares_are_counted_too_and_near_chips_are_summed_up(
    question: ExplainedRun, scores: np.ndarray
) -> None:
    found = flatness(question, 0.25, 1, _tell).document()
    for one in found["counts"]:
        assert one["count"] == int((scores <= question.score * (1 + one["within"])).sum())
    assert [one["within"] for one in found["counts"]] == [0.001, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25]
    assert found["words"].startswith(f"{found['count']} chips are within 25 %: ")
    own = question.chips.axis_values()
    near = np.flatnonzero(scores <= question.score * 1.25)
    for span in found["spans"]:
        if span["name"] == "MACs":
            macs = own["clusters"] * own["arrays"] * own["rows"] * own["columns"]
            assert (span["low"], span["high"]) == (macs[near].min(), macs[near].max())


def test_a_near_miss_gains_and_exceeds_a_limit_by_little(question: ExplainedRun) -> None:
    rows = neighbours(question)
    for row in near_misses(rows):
        assert row.refused is not None and 0 < row.over <= 0.1 and row.gain >= 0.005
    limits = question.job.space.limits
    for row in rows:
        if row.refused is not None and " of " in row.refused and row.refused.endswith("mm2"):
            assert row.over >= row.area_mm2 / (limits["area"] or np.inf) - 1 - 1e-9
    better = [row for row in rows if row.refused and row.gain >= 0.005 and 0 < row.over <= 0.1]
    assert sorted(better, key=lambda row: -row.gain) == near_misses(rows)

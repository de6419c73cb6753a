"""A finished run whose answer was exchanged, every file and digest made consistent: what each
command makes of it."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.api.studies import ENDED
from phaze.search.certificate import Certificate, Near
from phaze.search.code import code_digest
from phaze.search.finished import digests_of
from phaze.search.result import result_view, written
from tests.check.forge import Chooser, Papers
from tests.conftest import Ran

NONE = Certificate(0.0, 0.0, 0.0, {}, 0, Near(0, 0))
FILES = ("problem.json", "graphs.json", "result.json", "certificate.json")


def sealed(run: Path) -> Path:
    """The digests of the journal as they would be had the search written these files."""
    with sqlite3.connect(run / "journal.sqlite") as base:
        for name in FILES:
            (digest,) = digests_of({name: (run / name).read_text()}).values()
            base.execute("UPDATE about SET value = ? WHERE key = ?", (digest, name))
    return run


@pytest.fixture(scope="module")
def worse(good: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The worst chip as the answer: all that is said of it is true, but that nothing is better."""
    run = tmp_path_factory.mktemp("worse") / "run"
    shutil.copytree(good, run)
    chooser, papers = Chooser(run), Papers(run)
    scores = chooser.scores()
    chip = max(range(len(scores)), key=scores.__getitem__)
    chooser.name(papers, chip)
    papers.write(run)
    task = chooser.plain.job.models[0]
    ways = [
        one
        for one in task.configurations
        if chooser.plain.fits(task, one, papers.answer["hbm_bytes"])
    ]
    score, _, document, _ = min(
        (chooser._answer(chip, way) for way in ways), key=lambda one: one[0]
    )
    view = result_view(chooser.plain.job, document, NONE, code_digest())
    proof = json.loads((good / "result.json").read_text())["certificate"]
    view["certificate"] = {**proof, "lower_bound": score, "gap": 0.0}
    (run / "result.json").write_text(written(view))
    return sealed(run)


def test_an_exchanged_answer_does_not_hold(worse: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("verify", worse)
    assert ran.code == 1 and "does not hold" in ran.out


def test_an_exchanged_answer_is_not_explained_as_the_best(
    worse: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("explain", worse, "--workers", "1", "--flatness", "25%")
    assert (
        ran.code == 2
        and "of its space is better than its answer by" in ran.err
        and "phaze verify" in ran.err
    )
    assert not (worse / "explanation.json").exists()


def test_a_search_that_answers_from_a_folder_says_who_checks_it(
    worse: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copy(worse / "study.toml", worse.parent / "study.toml")
    ran = phaze("search", worse.parent / "study.toml", "--out", worse, "--workers", "1")
    assert (
        ran.code == 0 and ENDED in " ".join(ran.out.split()) and "phaze verify checks it" in ENDED
    )


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("throughput_per_s", "let throughput_per_s, "),
        ("tokens_per_s", "let tokens_per_s, "),
        ("batch_s", "let tokens_per_s, "),
    ],
)
def test_figures_that_contradict_each_other_are_shown_nowhere(
    key: str, said: str, good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(good, tmp_path / "run")
    result = json.loads((good / "result.json").read_text())
    result["models"][0][key] *= 2
    (tmp_path / "run" / "result.json").write_text(written(result))
    run = sealed(tmp_path / "run")
    for command in (("report",), ("export", "--to", "csv"), ("explain",)):
        ran = phaze(command[0], run, *command[1:])
        assert ran.code == 2 and said in ran.err, ran.err

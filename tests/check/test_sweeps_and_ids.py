"""Sweeps are verified point by point, and every command that answers prints an id: same input, same id."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS
from tests.check.forge import Papers
from tests.conftest import Ran

ID = re.compile(r"Run id: ([0-9a-f]{64})")
JOB = ("--chip", "a100-80gb", "--devices", "8", "--batch", "32", "--microbatch", "1", "--tensor", "1")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep of two points."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "space.toml").write_text(CLUSTERS)
    (folder / "study.toml").write_text(CLUSTER_STUDY.format(folder=folder))
    over = ["--over", "training.devices=4,8", "--out", str(folder / "run"), "--workers", "1"]
    assert exit_code_of(app, ["sweep", str(folder / "study.toml"), *over]) == 0
    return folder / "run"


def _id(text: str) -> str:
    (found,) = ID.findall(text)
    return str(found)


def test_a_sweep_holds_point_by_point(sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("verify", sweep, "--json")
    found = json.loads(ran.out)
    assert ran.code == 0 and found["holds"] and len(found["points"]) == 2
    shown = phaze("report", sweep, "--out", tmp_path / "page.html").out
    assert _id(shown) == found["run_id"] != found["points"][0]["run_id"]


def _forged(sweep: Path, tmp_path: Path) -> Path:
    shutil.copytree(sweep, tmp_path / "run")
    return tmp_path / "run"


def test_a_forged_point_is_refused(sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    run = _forged(sweep, tmp_path)
    papers = Papers(run / "points" / "001")
    papers.claim(papers.certificate["best"] * 0.99)
    papers.write(run / "points" / "001")
    ran = phaze("verify", run)
    assert ran.code == 1 and "point 2: best:" in " ".join(ran.out.split())


def test_a_view_that_is_not_that_of_its_points_is_refused(
    sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _forged(sweep, tmp_path)
    document = json.loads((run / "sweep.json").read_text())
    document["points"][0]["score"] *= 0.5
    (run / "sweep.json").write_text(json.dumps(document, indent=2) + "\n")
    ran = phaze("verify", run)
    assert ran.code == 1 and "not what its points say" in " ".join(ran.out.split())


def test_points_that_are_exchanged_are_refused(sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    run = _forged(sweep, tmp_path)
    shutil.rmtree(run / "points" / "001")
    shutil.copytree(run / "points" / "000", run / "points" / "001")
    ran = phaze("verify", run)
    assert ran.code == 1 and "points[1].value" in " ".join(ran.out.split())


def test_a_point_of_another_study_is_refused(sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    run = _forged(sweep, tmp_path)
    study = tmp_path / "other.toml"
    study.write_text((sweep.parent / "study.toml").read_text().replace("batch = 16", "batch = 32"))
    shutil.rmtree(run / "points" / "001")
    again = phaze("search", study, "--set", "training.devices=8", "--out", run / "points" / "001", "--workers", "1")
    assert again.code == 0
    ran = phaze("verify", run)
    assert ran.code == 1 and "differs from the first one in more than" in " ".join(ran.out.split())


def test_answers_without_a_folder_have_an_id_that_is_their_document_s(phaze: Callable[..., Ran]) -> None:
    job = ("plan", "--model", "bert-large", "--sequence", "128", *JOB)
    first = _id(phaze(*job).out)
    assert first == _id(phaze(*job).out) != _id(phaze(*job[:-1], "2").out)
    from hashlib import sha256

    assert sha256(phaze(*job, "--json").out.strip().encode()).hexdigest() == first


def test_searches_and_comparisons_print_their_id(good: Path, phaze: Callable[..., Ran]) -> None:
    told = (
        phaze("search", good.parent / "study.toml", "--out", good, "--workers", "1"),
        phaze("report", good),
    )
    assert len({_id(ran.out) for ran in told}) == 1
    assert len({_id(phaze("compare", "--run", good).out) for _ in range(2)}) == 1

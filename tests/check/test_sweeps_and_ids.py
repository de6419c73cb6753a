"""Sweeps are verified point by point, and every command that answers prints an id: same input, same
id."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.check.infeasible import require_nothing_fits
from phaze.check.reading import RefusedError
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.documents import dumps
from phaze.report.run_id import id_in
from phaze.search.deadline import nothing_in_time
from phaze.sweep.over import shown_value
from phaze.sweep.run import Best, SweptModel, document_of
from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS
from tests.check.forge import Papers
from tests.conftest import Ran

ID = re.compile(r"Run id: ([0-9a-f]{64})")
JOB = (
    "--chip",
    "a100-80gb",
    "--devices",
    "8",
    "--batch",
    "32",
    "--microbatch",
    "1",
    "--tensor",
    "1",
)


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


def test_a_sweep_holds_point_by_point(
    sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("verify", sweep, "--json")
    found = json.loads(ran.out)
    assert ran.code == 0 and found["holds"] and len(found["points"]) == 2
    shown = phaze("report", sweep, "--out", tmp_path / "page.html").out
    assert _id(shown) == found["run_id"] != found["points"][0]["run_id"]


def best_in(point: dict[str, Any]) -> Best:
    """A point of sweep.json as the value that it was written from."""
    return Best(**{**point, "models": tuple(SweptModel(**model) for model in point["models"])})


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


def _relabelled(document: dict[str, Any]) -> None:
    document["points"][1]["shown"] = "800"


def _other_axis(document: dict[str, Any]) -> None:
    document["over"] = "training.microbatchez"


def _renamed(document: dict[str, Any]) -> None:
    document["name"] = "another study"


def _infeasible(document: dict[str, Any]) -> None:
    point = document["points"][1]
    point.update(dict.fromkeys(("chip", "area_mm2", "hbm_bytes", "score", "gap", "cluster")))
    point.update(models=[], problem="nothing fits")


def _dropped(document: dict[str, Any]) -> None:
    del document["points"][1]


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (_relabelled, "points[1].shown: '800', and its study has '8'"),
        (_other_axis, "its study states no value of training.microbatchez"),
        (_renamed, "name: 'another study'"),
        (_infeasible, "it is called infeasible, and its folder holds an answer"),
        (_dropped, "points/001: it holds an answer, and sweep.json has no such point"),
    ],
)
def test_what_a_sweep_shows_follows_from_its_points_and_is_in_its_id(
    forge: Callable[[dict[str, Any]], None],
    said: str,
    sweep: Path,
    tmp_path: Path,
    phaze: Callable[..., Ran],
) -> None:
    run = _forged(sweep, tmp_path)
    document = json.loads((run / "sweep.json").read_text())
    forge(document)
    true = document_of(
        document["name"], document["over"], [best_in(point) for point in document["points"]]
    )
    (run / "sweep.json").write_text(dumps(true, pretty=True) + "\n")
    ran = phaze("verify", run)
    assert ran.code == 1 and said in " ".join(ran.out.split()), ran.out
    assert id_in(run) != id_in(sweep), "the forgery does not carry the genuine id"


def _called_infeasible(sweep: Path, tmp_path: Path, problem: str) -> Path:
    """A sweep whose second point has lost its answer, and says why it has none."""
    run = _forged(sweep, tmp_path)
    document = json.loads((run / "sweep.json").read_text())
    _infeasible(document)
    document["points"][1]["problem"] = problem
    true = document_of(
        document["name"], document["over"], [best_in(point) for point in document["points"]]
    )
    (run / "sweep.json").write_text(dumps(true, pretty=True) + "\n")
    (run / "points" / "001" / "result.json").unlink()
    return run


@pytest.mark.parametrize("problem", ["nothing fits", str(nothing_in_time("phaze.result/1"))])
def test_a_point_that_is_called_infeasible_and_is_not_is_refused(
    problem: str, sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("verify", _called_infeasible(sweep, tmp_path, problem), "--json")
    found = json.loads(ran.out)
    assert ran.code == 1 and not found["holds"]
    assert found["objections"] == ["point 2: nothing shows that no plan fits"]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep at whose first point nothing fits."""
    folder = tmp_path_factory.mktemp("narrow")
    (folder / "space.toml").write_text(CLUSTERS)
    study = CLUSTER_STUDY.replace('"bert-large"', '"llama3-8b", widths = [1]')
    (folder / "study.toml").write_text(study.format(folder=folder))
    over = ["--over", "training.devices=1,8", "--out", str(folder / "run")]
    assert exit_code_of(app, ["sweep", str(folder / "study.toml"), *over, "--workers", "1"]) == 0
    return folder / "run"


def test_that_nothing_fits_is_proved(narrow: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("verify", narrow, "--json")
    found = json.loads(ran.out)
    assert ran.code == 0 and found["holds"] and all(point["holds"] for point in found["points"])
    quick = json.loads(phaze("verify", narrow, "--quick", "--json").out)
    assert not quick["holds"] and not quick["objections"]
    assert require_nothing_fits(narrow / "points" / "000").startswith("llama3-8b fits into no")
    with pytest.raises(RefusedError, match="nothing shows that no plan fits"):
        require_nothing_fits(narrow / "points" / "001")


def test_that_no_combination_is_a_chip_is_proved(tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    (tmp_path / "space.toml").write_text(CLUSTERS)
    (tmp_path / "study.toml").write_text(CLUSTER_STUDY.format(folder=tmp_path))
    over = ["--over", "budget.power=60,180", "--out", tmp_path / "run", "--workers", 1]
    assert phaze("sweep", tmp_path / "study.toml", *over).code == 0
    ran = phaze("verify", tmp_path / "run")
    said = " ".join(ran.out.split())
    assert ran.code == 0 and "none of 32 combinations is a chip with a memory" in said, said
    path = tmp_path / "run" / "points" / "000" / "problem.json"
    problem = json.loads(path.read_text())
    problem["space"]["keep"]["sustained_power"] = 180.0
    path.write_text(json.dumps(problem))
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 1 and "nothing shows that no plan fits" in ran.out, ran.out


def _no_less(problem: str) -> str:
    """The sentence with another figure."""
    return re.sub(r"needs [0-9.]+", "needs 1.0", problem)


def _other_question(folder: Path) -> None:
    problem = json.loads((folder / "problem.json").read_text())
    problem["hbm_bytes"] = [1 << 20]
    (folder / "problem.json").write_text(json.dumps(problem))


def test_another_reason_or_question_of_an_infeasible_point_is_refused(
    narrow: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _forged(narrow, tmp_path)
    document = json.loads((run / "sweep.json").read_text())
    document["points"][0]["problem"] = _no_less(document["points"][0]["problem"])
    true = document_of(
        document["name"], document["over"], [best_in(point) for point in document["points"]]
    )
    (run / "sweep.json").write_text(dumps(true, pretty=True) + "\n")
    ran = phaze("verify", run)
    assert ran.code == 1 and "and a search says" in " ".join(ran.out.split())
    shutil.rmtree(run)
    shutil.copytree(narrow, run)
    _other_question(run / "points" / "000")
    ran = phaze("verify", run)
    assert ran.code == 1 and "point 1: problem" in " ".join(ran.out.split())


def test_the_label_of_a_value_follows_from_the_study() -> None:
    assert shown_value(64) == (64.0, "64") and shown_value(["16 GiB"]) == (16 * 2.0**30, "16 GiB")
    assert shown_value(1234567.5) == (1234567.5, "1.23457e+06") and shown_value("1.5 GB/s") == (
        1.5e9,
        "1.5 GB/s",
    )
    others: tuple[Any, ...] = (None, True, [1, 2], {}, "many")
    assert [shown_value(value) for value in others] == [None] * 5


def test_points_that_are_exchanged_are_refused(
    sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _forged(sweep, tmp_path)
    shutil.rmtree(run / "points" / "001")
    shutil.copytree(run / "points" / "000", run / "points" / "001")
    ran = phaze("verify", run)
    assert ran.code == 1 and "points[1].value" in " ".join(ran.out.split())


def test_a_point_of_another_study_is_refused(
    sweep: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _forged(sweep, tmp_path)
    study = tmp_path / "other.toml"
    study.write_text((sweep.parent / "study.toml").read_text().replace("batch = 16", "batch = 32"))
    shutil.rmtree(run / "points" / "001")
    again = phaze(
        "search",
        study,
        "--set",
        "training.devices=8",
        "--out",
        run / "points" / "001",
        "--workers",
        "1",
    )
    assert again.code == 0
    ran = phaze("verify", run)
    assert ran.code == 1 and "differs from the first one in more than" in " ".join(ran.out.split())


def test_answers_without_a_folder_have_an_id_that_is_their_document_s(
    phaze: Callable[..., Ran],
) -> None:
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

"""Fronts by the independent checker: good ones hold without phaze, forged ones do not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.check import boxes as checked_boxes
from phaze.check.verdict import check
from tests.check.forge import Forgery, Papers, every_day
from tests.check.front_forgeries import EITHER, OF_CLUSTERS, OF_CORES
from tests.conftest import Ran


def test_good_fronts_hold_without_any_solver(cores: Path, clusters: Path) -> None:
    for folder, gap in ((cores, 0.1), (clusters, 1e-9)):
        found = check(folder)
        assert found.holds and found.proved == found.chips, found.sentence()
        assert (
            found.proved_gap == gap
            and found.designs == len(Papers(folder).certificate["front"]) > 2
        )
        assert "designs" in found.words[-2] and "claim" in found.words[-1]


def test_phaze_verifies_them_and_binds_them_to_their_study(
    clusters: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    found = json.loads(
        phaze("verify", clusters, "--json", "--study", clusters.parent / "study.toml").out
    )
    assert (
        found["holds"]
        and found["checker"] == "independent"
        and found["run_id"] == check(clusters).run_id
    )
    text = (clusters.parent / "study.toml").read_text()
    (tmp_path / "other.toml").write_text(text.replace("batch = 16", "batch = 32"))
    ran = phaze("verify", clusters, "--study", tmp_path / "other.toml")
    assert ran.code == 1 and "32 was requested" in " ".join(ran.out.split())
    shutil.copytree(clusters, tmp_path / "run")
    (tmp_path / "run" / "journal.sqlite").unlink()
    document = json.loads((clusters / "front.json").read_text())
    for change in (
        ("points", 0, "metrics", "throughput"),
        ("points", 1, "models", 0, "data"),
        ("within", "power"),
    ):
        bad = place = json.loads(json.dumps(document))
        for step in change[:-1]:
            place = place[step]
        place[change[-1]] *= 2
        (tmp_path / "run" / "front.json").write_text(json.dumps(bad, indent=2) + "\n")
        assert phaze("verify", tmp_path / "run").code in (1, 2), change


@pytest.mark.parametrize("name", every_day([*EITHER, *OF_CORES], 6))
def test_a_forged_front_of_cores_does_not_hold(name: str, cores: Path, tmp_path: Path) -> None:
    _refused({**EITHER, **OF_CORES}[name], cores, tmp_path)


@pytest.mark.parametrize("name", every_day([*EITHER, *OF_CLUSTERS], 7))
def test_a_forged_front_of_clusters_does_not_hold(
    name: str, clusters: Path, tmp_path: Path
) -> None:
    _refused({**EITHER, **OF_CLUSTERS}[name], clusters, tmp_path)


@pytest.fixture
def by_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every front of chips of cores is proved by boxes."""
    monkeypatch.setattr(checked_boxes, "MOST_CHIPS", 0)


def test_a_good_front_holds_by_boxes(cores: Path, by_boxes: None) -> None:
    found = check(cores)
    assert found.holds and found.counted is not None and found.counted.boxes > 0, found.sentence()
    assert found.proved == found.chips == found.counted.combinations
    assert found.designs == len(Papers(cores).certificate["front"]) and "boxes" in found.sentence()
    assert check(cores, quick=True).designs == found.designs


@pytest.mark.parametrize("name", every_day([*EITHER, *OF_CORES], 5))
def test_a_forged_front_of_cores_does_not_hold_by_boxes(
    name: str, cores: Path, by_boxes: None, tmp_path: Path
) -> None:
    _refused({**EITHER, **OF_CORES}[name], cores, tmp_path)


def _refused(forgery: Forgery, good: Path, folder: Path) -> None:
    papers = Papers(good)
    forgery(papers)
    found = check(papers.write(folder))
    assert found.wrong and not found.holds, found.sentence()


def test_another_question_that_holds_is_seen_in_the_claim(clusters: Path, tmp_path: Path) -> None:
    papers, good = Papers(clusters), check(clusters)
    papers.problem["space"]["axes"]["lanes"].pop()
    found = check(papers.write(tmp_path))
    assert found.holds and found.words[0] != good.words[0] and "10 chips" in found.words[0]


def test_what_no_design_covers_must_not_fit(clusters: Path, tmp_path: Path) -> None:
    """Chips cheaper than every design of a front that are shown to be too small close it; others do
    not."""
    papers = Papers(clusters)
    kept = sorted(papers.certificate["front"], key=lambda row: row["values"][1])[1:]
    papers.certificate["front"] = kept
    assert "nothing shows" in check(papers.write(tmp_path)).wrong


def test_a_front_of_what_is_known_holds_where_every_design_must_be_fast_enough(
    clusters: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    study, run = clusters.parent / "study.toml", tmp_path / "run"
    asked = ("--of", "power,price", "--within", "throughput=1000", "--workers", "1")
    assert phaze("front", study, *asked, "--out", run).code == 0
    assert phaze("verify", run).code == 0
    papers = Papers(run)
    papers.problem["front"]["within"]["throughput"] = 500.0
    assert "nothing shows" in check(papers.write(tmp_path)).wrong


def test_a_front_of_joules_holds_and_one_that_betters_them_does_not(
    clusters: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    study, run = clusters.parent / "study.toml", tmp_path / "run"
    assert phaze("front", study, "--of", "energy,price", "--workers", "1", "--out", run).code == 0
    assert phaze("verify", run).code == 0
    for change in (
        lambda rows: rows[1:],
        lambda rows: [{**rows[0], "values": [0.99 * rows[0]["values"][0], 1.0]}],
    ):
        papers = Papers(run)
        papers.certificate["front"] = change(papers.certificate["front"])
        assert check(papers.write(tmp_path)).wrong


def test_a_front_whose_time_was_up_claims_its_designs_and_no_more(
    cores: Path, tmp_path: Path
) -> None:
    papers = Papers(cores)
    papers.certificate["gap"] = 1.0
    papers.certificate["front"].pop(0)
    verdict = check(papers.write(tmp_path))
    assert verdict.holds and "of other chips nothing is claimed" in verdict.sentence()
    assert verdict.words[-1].endswith("of others nothing is claimed")
    papers.certificate["gap"] = 0.999
    assert "nothing shows" in check(papers.write(tmp_path)).wrong
    papers.certificate["gap"] = 1.0
    papers.certificate["front"][0]["values"][0] *= 0.99
    assert "its throughput is" in check(papers.write(tmp_path)).wrong


def test_a_front_that_was_stopped_has_what_shows_its_designs(
    cores: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    """Schedules are solved again within the time that is left, whatever there is."""
    for seconds in (2, 4, 8, 16):
        out = tmp_path / str(seconds)
        of = ("--of", "throughput,area", "--time", seconds, "--workers", 1)
        ran = phaze("front", cores.parent / "study.toml", "--out", out, *of)
        if ran.code == 0:
            break
    assert ran.code == 0 and Papers(out).certificate["front"], ran.err
    assert phaze("verify", out).code == 0

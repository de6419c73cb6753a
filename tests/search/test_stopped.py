"""The answer of a search whose time was up before a chip was evaluated: feasible, checked, and no
more than it says."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.search.test_study import SPACE
from tests.search.test_verify import STUDY


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stopped") / "study.toml"
    (path.parent / "space.toml").write_text(SPACE)
    path.write_text(STUDY.format(folder=path.parent))
    return path


@pytest.fixture
def run(study: Path, tmp_path: Path, phaze: Callable[..., Ran]) -> Path:
    """A run that had no time at all."""
    folder = tmp_path / "run"
    ran = phaze("search", str(study), "--time", "0", "--out", str(folder), "--workers", "1")
    assert ran.code == 0, ran.err
    said = " ".join(ran.out.split())
    assert "Loading the models alone took" in said
    assert "this design is feasible, the first that fits, not optimised" in said
    assert "No chip is better by more than 100 %" in said
    return folder


def test_an_answer_without_time_holds_and_claims_nothing(
    run: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("verify", str(run), "--all")
    assert ran.code == 0, ran.out
    assert "more than 100 %" in " ".join(ran.out.split()) and "gap 1" in ran.out


@pytest.mark.parametrize("change", ["exact", "faster", "false"])
def test_a_provisional_answer_that_says_more_of_itself_is_refused(
    run: Path, phaze: Callable[..., Ran], change: str
) -> None:
    path = run / "result.json"
    result = json.loads(path.read_text())
    if change == "exact":
        del result["provisional"]
    elif change == "false":
        result["provisional"] = False
    else:
        result["models"][0]["batch_s"] *= 0.5
    path.write_text(json.dumps(result, indent=2) + "\n")
    ran = phaze("verify", str(run))
    assert ran.code in (1, 2), ran.out


def test_the_page_and_the_trace_of_a_provisional_answer_show_its_list_schedules(
    run: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    assert phaze("report", str(run)).code == 0
    assert (
        "this design is feasible, the first that fits, not optimised"
        in (run / "report.html").read_text()
    )
    ran = phaze("export", str(run), "--to", "perfetto", "--out", str(tmp_path / "trace.json"))
    assert ran.code == 0, ran.err


def test_a_provisional_answer_is_not_explained(run: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("explain", str(run))
    assert ran.code == 2
    assert "stopped before a chip was evaluated" in ran.err and ran.err.count("\n") == 1


def test_a_model_given_where_a_study_belongs_is_that_model(
    tmp_path: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named, given = (
        phaze("compare", *said, "--json") for said in (("bert-large",), ("--model", "bert-large"))
    )
    assert named.code == 0 and named.out == given.out


@pytest.mark.parametrize(
    "command", [("search",), ("front", "--of", "throughput,area"), ("compare",)]
)
def test_a_name_that_is_neither_study_nor_model_is_one_sentence(
    tmp_path: Path,
    phaze: Callable[..., Ran],
    command: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = phaze(*command, "bert-larg")
    assert ran.code == 2 and "bert-large" in ran.err and ran.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("limit_s", [3, 20])
def test_the_limit_of_a_search_that_takes_minutes_holds(limit_s: int, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "phaze",
        "search",
        "--model",
        "t5-large",
        "--rules",
        "icml24",
        "--time",
        str(limit_s),
    ]
    began = time.monotonic()
    ran = subprocess.run(
        [*command, "--out", str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    took = time.monotonic() - began
    assert ran.returncode == 0, ran.stderr
    # Whoever shares the machine takes a part of every second.
    assert took < limit_s + 2.0 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert 0 < json.loads((tmp_path / "run" / "result.json").read_text())["certificate"]["gap"] <= 1

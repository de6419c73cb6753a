"""``phaze verify``: a good run holds, and every kind of tampering is seen."""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phaze.check.question import PROBLEM
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.search.baseline import scale_for
from phaze.search.chips import enumerate_space
from phaze.search.reference_path import reference_path_of
from phaze.search.view_check import check_text, regenerated
from phaze.study.load import question_in
from tests.conftest import Ran
from tests.search.test_study import SPACE

STUDY = """schema = "phaze.study/1"
rules = "icml24"
name = "tiny"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 64}}]
[training]
devices = 8
batch = 16
microbatches = [1, 2]
"""


def finished(folder: Path, study: str, space: str = SPACE) -> Path:
    """The run of a study over a small space."""
    (folder / "space.toml").write_text(space)
    (folder / "study.toml").write_text(study.format(folder=folder))
    arguments = [
        "search",
        str(folder / "study.toml"),
        "--out",
        str(folder / "run"),
        "--workers",
        "1",
    ]
    assert exit_code_of(app, arguments) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return finished(tmp_path_factory.mktemp("tiny"), STUDY)


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(run, tmp_path / "run")
    return tmp_path / "run"


def test_a_good_run_holds(run: Path, phaze: Callable[..., Ran]) -> None:
    for option in ([], ["--all"]):
        ran = phaze("verify", run, "--json", *option)
        assert ran.code == 0, ran.out
        assert json.loads(ran.out)["holds"]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every value of a document with its path."""
    yield path, value
    rows = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in rows:
        yield from _places(inner, (*path, key))


def _others(value: Any) -> Iterator[Any]:
    """What a value may be changed to: slightly other, of another kind, with more or less in it."""
    if isinstance(value, dict):
        yield {**value, "more": 1}
        yield from ({k: v for k, v in value.items() if k != key} for key in value)
    elif isinstance(value, list):
        yield [*value, value[-1] if value else 0]
        yield value[:-1] if value else None
    elif isinstance(value, bool):
        yield from (not value, int(value), str(value))
    elif isinstance(value, int):
        yield from (value + 1, float(value), str(value), value == 1)
    elif isinstance(value, float):
        yield from (math.nextafter(value, math.inf), math.nextafter(value, -math.inf), str(value))
        yield from [int(value)] if value.is_integer() else []
    else:
        yield from ("x", f"{value}x", 0)


def changed_documents(good: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The document with each of its values changed in each configuration."""
    for path, value in _places(good):
        for other in _others(value):
            bad = copied = json.loads(json.dumps(good))
            if not path:
                yield path, other
                continue
            for step in path[:-1]:
                copied = copied[step]
            copied[path[-1]] = other
            yield path, bad


def _name(path: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(step for step in path if not isinstance(step, int))


# What an answer is made anew from.
CHOICES = {("chip",), ("chip", "number"), ("chip", "hbm_bytes"), ("models",), ()} | {
    ("models", key) for key in ("name", "microbatch", "tensor", "recompute")
}


def test_any_change_of_any_value_of_the_result_is_seen(run: Path) -> None:
    """Every value slightly other, of another kind, added to or taken from: the file is not the view
    of its answer."""
    good, job = json.loads((run / "result.json").read_text()), question_in(run).job
    true = regenerated(reference_path_of(job, scale_for(job), enumerate_space(job.space)), good)
    assert isinstance(true, dict)
    whole = {**{key: good[key] for key in good}, **true}
    assert check_text((run / "result.json").read_text(), good, whole, "result.json") == []
    count, missed = 0, []
    for path, bad in changed_documents(good):
        if _name(path) in CHOICES:
            continue
        count += 1
        if not check_text(json.dumps(bad, indent=2) + "\n", bad, whole, "result.json"):
            missed.append(path)
    assert missed == [] and count > 900
    assert check_text(json.dumps(good) + "\n", good, whole, "result.json")


def test_another_choice_than_the_answers_is_seen(copy: Path, phaze: Callable[..., Ran]) -> None:
    good = json.loads((copy / "result.json").read_text())
    chosen = [
        (path, bad) for path, bad in changed_documents(good) if _name(path) in CHOICES and path
    ]
    missed, count = [], 0
    for path, bad in chosen[:: max(1, len(chosen) // 12)]:
        count += 1
        (copy / "result.json").write_text(json.dumps(bad, indent=2) + "\n")
        if phaze("verify", copy, "--quick").code == 0:
            missed.append(path)
    assert missed == [] and count >= 12


def test_a_change_of_the_certificate_is_seen(copy: Path, phaze: Callable[..., Ran]) -> None:
    good = json.loads((copy / "result.json").read_text())
    lower = good["certificate"]["lower_bound"]
    for key, value in (
        ("asked_gap", 1e-3),
        ("lower_bound", math.nextafter(lower, 1.0)),
        ("chips", 16.0),
    ):
        bad = {**good, "certificate": {**good["certificate"], key: value}}
        (copy / "result.json").write_text(json.dumps(bad, indent=2) + "\n")
        ran = phaze("verify", copy, "--all")
        assert ran.code == 1 and "hold: certificate." in " ".join(ran.out.split()), ran.out


def test_a_journal_is_never_believed(copy: Path, phaze: Callable[..., Ran]) -> None:
    """It resumes a search, and says nothing about its answer."""
    (copy / "journal.sqlite").unlink()
    ran = phaze("verify", copy)
    assert ran.code == 0 and "holds" in ran.out, ran.out


def test_counts_that_do_not_add_up_are_seen(copy: Path, phaze: Callable[..., Ran]) -> None:
    good = json.loads((copy / "result.json").read_text())
    for key in ("area", "bound", "evaluated", "failed"):
        bad = json.loads(json.dumps(good))
        bad["certificate"]["closed"][key] += 1
        (copy / "result.json").write_text(json.dumps(bad, indent=2) + "\n")
        ran = phaze("verify", copy)
        assert ran.code == 1 and "certificate.closed" in ran.out, ran.out


def test_a_kind_that_is_not_covered_has_a_code_of_its_own_and_never_holds(
    copy: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Ran]
) -> None:
    run = copy
    monkeypatch.setattr("phaze.check.question.PROBLEM", PROBLEM - {"round_size"})
    ran = phaze("verify", run, "--json")
    said = json.loads(ran.out)
    assert (
        ran.code == 3
        and not said["holds"]
        and said["answer_holds"]
        and "problem.round_size" in said["not_covered"]
    )
    shown = " ".join(phaze("verify", run).out.split())
    assert "is not checkable yet" in shown and "was not checked" in shown and " holds" not in shown
    text = (run / "result.json").read_text()
    (run / "result.json").write_text(text.replace('"data": ', '"data": 1'))
    assert phaze("verify", run).code == 1


def test_a_front_and_a_result_in_one_folder_are_refused(
    copy: Path, phaze: Callable[..., Ran]
) -> None:
    (copy / "front.json").write_text("{}")
    ran = phaze("verify", copy)
    assert ran.code == 2 and "front.json" in ran.err


def test_all_and_quick_contradict_each_other(run: Path, phaze: Callable[..., Ran]) -> None:
    assert phaze("verify", run, "--all", "--quick").code == 2


def test_a_changed_study_is_seen(copy: Path, phaze: Callable[..., Ran]) -> None:
    text = (copy / "study.toml").read_text()
    (copy / "study.toml").write_text(text.replace("batch = 16", "batch = 32"))
    ran = phaze("verify", copy, "--all")
    said = " ".join(ran.out.split())
    assert ran.code == 1 and "models[0].training.batch is 16, and 32 by study.toml" in said


def test_a_folder_without_a_run_is_refused(tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    assert phaze("verify", tmp_path).code == 2
    (tmp_path / "result.json").write_text("{}")
    assert phaze("verify", tmp_path).code == 2

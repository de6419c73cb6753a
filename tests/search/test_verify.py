"""``phaze verify``: a good run holds, and every kind of tampering is seen."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from tests.conftest import Ran
from tests.search.test_study import SPACE

STUDY = """schema = "phaze.study/1"
name = "tiny"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 64}}]
[training]
devices = 8
batch = 16
microbatches = [1, 2]
"""


def finished(folder: Path, study: str) -> Path:
    """The run of a study over the small space."""
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(study.format(folder=folder))
    arguments = ["search", str(folder / "study.toml"), "--out", str(folder / "run"), "--workers", "1"]
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


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every plain value; of the entries of a list only the first."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, key))
    elif isinstance(value, list):
        yield from _leaves(value[0], (*path, 0)) if value else ()
    else:
        yield path


def _spoiled(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 1.01 + (0.001 if isinstance(value, float) else 1)
    return "x" if value is None else f"{value}x"


def test_every_field_of_the_result_is_checked(copy: Path, phaze: Callable[..., Ran]) -> None:
    good = json.loads((copy / "result.json").read_text())
    missed = []
    for path in _leaves(good):
        bad = json.loads(json.dumps(good))
        place = bad
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = _spoiled(place[path[-1]])
        (copy / "result.json").write_text(json.dumps(bad))
        if phaze("verify", copy, "--sample", 1).code == 0:
            missed.append(path)
    assert missed == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE closed SET bound = bound * 1.5 WHERE chip = (SELECT chip FROM closed WHERE reason = 'bound' LIMIT 1)",
        "UPDATE closed SET bound = bound * 0.5",
        "UPDATE closed SET reason = 'memory', bound = NULL WHERE chip = 3",
        "DELETE FROM closed WHERE chip = 0",
        "DELETE FROM closed",
        "DROP TABLE closed",
        "DELETE FROM evaluated",
        'UPDATE evaluated SET document = replace(document, \'"error":""\', \'"error":"x"\')',
        "UPDATE evaluated SET document = replace(document, '\"score\":', '\"score\":1')",
        "UPDATE evaluated SET document = replace(document, '\"ran\":[[', '\"ran\":[[1')",
        "UPDATE evaluated SET document = 'x'",
    ],
)
def test_a_changed_list_of_closed_chips_is_seen(copy: Path, phaze: Callable[..., Ran], change: str) -> None:
    base = sqlite3.connect(copy / "journal.sqlite")
    base.execute(change)
    base.commit()
    base.close()
    assert phaze("verify", copy).code in (1, 2)


def test_a_list_made_to_fit_is_seen_by_computing_bounds_anew(run: Path, copy: Path, phaze: Callable[..., Ran]) -> None:
    """The winner struck from the list and the second best made the answer: digests right, the proof wrong."""
    from phaze.search.certificate import certificate_of
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.search.keep import kept_of
    from phaze.search.space import load_space

    good = json.loads((copy / "result.json").read_text())
    raised = good["objective"]["score"] * 1.5
    base = sqlite3.connect(copy / "journal.sqlite")
    base.execute("UPDATE closed SET bound = ? WHERE bound < ?", (raised, raised))
    base.execute(
        "UPDATE closed SET reason = 'bound' WHERE reason = 'evaluated' AND chip != ?", (good["chip"]["number"],)
    )
    base.commit()
    base.close()
    closed, opened = read_closed(copy / "journal.sqlite"), read_evaluated(copy / "journal.sqlite")
    kept = kept_of(load_space(str(run.parent / "space.toml")))
    good["certificate"] = certificate_of(closed, opened, good["objective"]["score"], 1e-4, kept).document()
    (copy / "result.json").write_text(json.dumps(good))
    ran = phaze("verify", copy, "--all", "--json")
    assert ran.code == 1 and "chip" in json.loads(ran.out)["objections"][0]


def test_a_changed_study_is_seen(copy: Path, phaze: Callable[..., Ran]) -> None:
    text = (copy / "study.toml").read_text()
    (copy / "study.toml").write_text(text.replace("batch = 16", "batch = 32"))
    ran = phaze("verify", copy)
    assert ran.code == 1 and "not the study" in ran.out


def test_a_folder_without_a_run_is_refused(tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    assert phaze("verify", tmp_path).code == 2
    (tmp_path / "result.json").write_text("{}")
    assert phaze("verify", tmp_path).code == 2

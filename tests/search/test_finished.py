"""A run that has ended answers from its folder, and only where question, answer and code are those
of the run."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.api.studies import ENDED, search
from phaze.check.verdict import check
from phaze.errors import InputError
from phaze.hardware.write import toml_text
from phaze.search.finished import digests_of, finished_as, names_files, run_id_in
from phaze.search.result_file import read_result

STUDY = {
    "schema": "phaze.study/1",
    "name": "small",
    "rules": "icml24",
    "models": ["bert-large"],
    "training": {"devices": 64, "batch": 512, "microbatches": [2]},
    "search": {"gap": 0.05},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "small"
    search(STUDY, out=folder)
    return folder


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "small"))


def test_the_same_study_is_answered_from_the_folder(run: Path) -> None:
    again = search(STUDY, out=run)
    assert ENDED.split(":")[0] in str(again)
    assert again.document == json.loads((run / "result.json").read_text())


def test_another_study_or_setting_is_not_answered_from_it(run: Path) -> None:
    text = toml_text(STUDY)
    assert finished_as(run, text) is not None
    assert finished_as(run, text.replace("512", "1024")) is None
    with pytest.raises(InputError, match="another study"):
        search(STUDY, out=run, settings=["training.batch=1024"])


def _edited(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return edit


def _forgot(key: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        with sqlite3.connect(folder / "journal.sqlite") as base:
            base.execute("DELETE FROM about WHERE key = ?", (key,))

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        _edited("result.json", '"score"', '"scores"'),
        _edited("certificate.json", "{", "{ "),
        _edited("problem.json", "512", "513"),
        _edited("graphs.json", "{", "{ "),
        _edited("study.toml", "512", "513"),
        _forgot("code"),
        *(
            _forgot(name)
            for name in ("result.json", "certificate.json", "problem.json", "graphs.json")
        ),
        lambda folder: (folder / "certificate.json").unlink(),
        lambda folder: (folder / "journal.sqlite").write_bytes(b"not a database"),
    ],
)
def test_an_edited_folder_is_not_believed(copy: Path, edit: Callable[[Path], None]) -> None:
    assert finished_as(copy, toml_text(STUDY)) is not None
    edit(copy)
    assert finished_as(copy, toml_text(STUDY)) is None


def _sealed(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change result.json and let the journal say that the search wrote it so."""
    found = json.loads((folder / "result.json").read_text())
    change(found)
    text = json.dumps(found)
    (folder / "result.json").write_text(text)
    with sqlite3.connect(folder / "journal.sqlite") as base:
        base.executemany(
            "UPDATE about SET value = ? WHERE key = ?",
            [(digests_of({"a": text})["a"], "result.json")],
        )


def _faster(found: dict[str, Any]) -> None:
    """Ten times as fast, consistently."""
    (model,) = found["models"]
    model["plan"]["batch_s"] = model["batch_s"] = model["batch_s"] / 10
    for key in ("throughput_per_s", "tokens_per_s", "tokens_per_s_per_device", "mfu", "hfu"):
        model[key] *= 10
    found["objective"]["score"] /= 10


@pytest.mark.parametrize(
    "change",
    [
        _faster,
        lambda found: found["chip"].update(tensor_cores=found["chip"]["tensor_cores"] * 2),
        lambda found: found["chip"].update(hbm_bytes=1),
        lambda found: found["certificate"].update(asked_gap=0.0),
        lambda found: found["models"][0]["plan"].update(data=1),
        lambda found: found["models"][0]["plan"]["stages"][0].update(recompute="full"),
    ],
)
def test_an_answer_that_its_certificate_does_not_prove_is_shown_nowhere(
    copy: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    _sealed(copy, change)
    assert finished_as(copy, toml_text(STUDY)) is None
    with pytest.raises(InputError, match=r"not what certificate.json proves|let "):
        read_result(copy)


def test_no_changed_answer_carries_the_genuine_id(run: Path, copy: Path) -> None:
    genuine = run_id_in(run)
    _sealed(copy, lambda found: None)
    assert run_id_in(copy) == genuine == check(copy, quick=True).run_id, (
        "the id is of what is said, however written"
    )
    _sealed(copy, lambda found: found["chip"].update(area_mm2=found["chip"]["area_mm2"] / 2))
    assert run_id_in(copy) != genuine and run_id_in(copy) == check(copy, quick=True).run_id
    _sealed(copy, lambda found: found["chip"].update(area_mm2=found["chip"]["area_mm2"] * 2))
    _sealed(copy, lambda found: found.update(code_digest="0" * 64, version="9"))
    assert run_id_in(copy) == genuine, "which version of phaze found it is no part of the answer"


def test_a_search_that_was_stopped_is_no_answer(copy: Path) -> None:
    found = json.loads((copy / "result.json").read_text())
    found["certificate"]["closed"]["open"] = 1
    text = json.dumps(found)
    (copy / "result.json").write_text(text)
    with sqlite3.connect(copy / "journal.sqlite") as base:
        base.executemany(
            "UPDATE about SET value = ? WHERE key = ?",
            [(digests_of({"a": text})["a"], "result.json")],
        )
    assert finished_as(copy, toml_text(STUDY)) is None


@pytest.mark.parametrize(
    ("value", "led"),
    [
        (STUDY, False),
        ({**STUDY, "models": ["./graph.json"]}, True),
        ({**STUDY, "models": ["own.py:build"]}, True),
        ({**STUDY, "models": [{"graph": "g.json"}]}, True),
        ({**STUDY, "space": "space.toml"}, True),
        ({**STUDY, "files": {"a.toml": "text"}}, True),
        ({**STUDY, "models": [object()]}, True),
        ({**STUDY, "training": {"terms": "-"}}, True),
    ],
)
def test_what_may_lead_to_a_file_or_to_code_is_seen(value: object, led: bool) -> None:
    assert names_files(value) is led


def test_the_question_is_not_loaded_for_it(run: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.toml"
    study.write_text(toml_text(STUDY))
    (run / "report.html").write_text("<p>a page</p>")
    code = (
        "import sys; sys.modules['phaze.study.load'] = None; from phaze.cli.main import "
        "main; main()"
    )
    command = [sys.executable, "-c", code, "search", str(study), "--out", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing was searched again" in " ".join(done.stdout.split())

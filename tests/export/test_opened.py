"""Runs and plans that were cut off, edited or mixed up: one sentence and exit code 2, never a fault
of ours."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import HOSTILE, PLAN, small_run

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished search."""
    return small_run(tmp_path_factory.mktemp("run"))


def stage(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["models"][0]["plan"]["stages"][0]
    return found


RESULTS: dict[str, Change] = {
    "a chip outside the space": lambda d: d["chip"].update(number=10**9),
    "a negative chip": lambda d: d["chip"].update(number=-1),
    "a chip that is text": lambda d: d["chip"].update(number="first"),
    "no chip": lambda d: d.update(chip={}),
    "no models": lambda d: d.update(models=[]),
    "models that are no list": lambda d: d.update(models={}),
    "another model": lambda d: d["models"][0].update(name="gpt2-xl"),
    "no plan": lambda d: d["models"][0].pop("plan"),
    "no stages": lambda d: d["models"][0]["plan"].update(stages=[]),
    "a stage of no layers": lambda d: stage(d).update(layers=[]),
    "a layer that is not there": lambda d: stage(d).update(layers=[99]),
    "a time that is text": lambda d: stage(d).update(forward_s="long"),
    "a negative time": lambda d: stage(d).update(forward_s=-1.0),
    "no certificate": lambda d: d.update(certificate={}),
    "another schema": lambda d: d.update(schema="phaze.result/2"),
}
FILES: dict[str, Callable[[Path], Any]] = {
    "a run that was stopped": lambda p: (p / "result.json").unlink(),
    "a result that was cut off": lambda p: (p / "result.json").write_text(
        (p / "result.json").read_text()[:300]
    ),
    "a result that is not text": lambda p: (p / "result.json").write_bytes(b"\x80\x81\x00"),
    "a result that is a list": lambda p: (p / "result.json").write_text("[]"),
    "no journal": lambda p: (p / "journal.sqlite").unlink(),
    "a journal that was cut off": lambda p: (p / "journal.sqlite").write_bytes(
        (p / "journal.sqlite").read_bytes()[:5000]
    ),
    "a journal that is none": lambda p: (p / "journal.sqlite").write_bytes(b"no database" * 1000),
    "no study": lambda p: (p / "study.toml").unlink(),
    "a study that is none": lambda p: (p / "study.toml").write_text("[[["),
}


def refused(ran: Any) -> None:
    assert ran.code == 2, ran.out + ran.err
    assert ran.err.startswith("phaze: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_was_changed_is_refused(
    name: str, run: Path, tmp_path: Path, phaze: Callable[..., Any]
) -> None:
    shutil.copytree(run, tmp_path / "run")
    document = json.loads((run / "result.json").read_text())
    RESULTS[name](document)
    (tmp_path / "run" / "result.json").write_text(json.dumps(document))
    refused(phaze("report", tmp_path / "run"))
    refused(phaze("export", tmp_path / "run", "--to", "perfetto"))


@pytest.mark.parametrize("name", FILES)
def test_a_folder_that_is_no_whole_run_is_refused(
    name: str, run: Path, tmp_path: Path, phaze: Callable[..., Any]
) -> None:
    shutil.copytree(run, tmp_path / "run")
    FILES[name](tmp_path / "run")
    refused(phaze("report", tmp_path / "run"))
    refused(phaze("export", tmp_path / "run", "--to", "csv"))


def test_a_hostile_name_in_a_result_stays_text(
    run: Path, tmp_path: Path, phaze: Callable[..., Any]
) -> None:
    shutil.copytree(run, tmp_path / "run")
    document = json.loads((run / "result.json").read_text())
    document["name"] = document["chip"]["name"] = HOSTILE
    (tmp_path / "run" / "result.json").write_text(json.dumps(document))
    assert phaze("report", tmp_path / "run").code == 0
    assert HOSTILE not in (tmp_path / "run" / "report.html").read_text()


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    """A plan's document."""
    import contextlib
    import io

    from phaze.cli.answer import exit_code_of
    from phaze.cli.main import app

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert exit_code_of(app, [*PLAN.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


NEEDED = (
    "stages",
    "breakdown",
    "batch_s",
    "tensor",
    "data",
    "pipeline",
    "microbatch",
    "simulated_s",
    "constants",
    "job",
)
JUNK: tuple[Any, ...] = (None, "text", -1, [], {}, 1e300)


@pytest.mark.parametrize("key", NEEDED)
def test_a_plan_without_a_key_or_with_junk_in_it_is_refused(
    key: str, plan: dict[str, Any], tmp_path: Path, phaze: Callable[..., Any]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({name: value for name, value in plan.items() if name != key}))
    refused(phaze("report", path))
    for junk in JUNK:
        path.write_text(json.dumps({**plan, key: junk}))
        if (key, junk) == ("breakdown", {}):
            continue
        refused(phaze("export", path, "--to", "megatron"))

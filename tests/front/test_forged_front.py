"""Forged fronts: a front cut short is refused, whatever its list says, by one who made every digest
and count fit."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.search.result import written
from phaze.search.view_check import check_text
from tests.conftest import Ran
from tests.front.test_front_command import made_study
from tests.search.test_verify import changed_documents


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished front."""
    where = tmp_path_factory.mktemp("front")
    arguments = [
        "front",
        str(made_study(where)),
        "--of",
        "throughput,area",
        "--out",
        str(where / "one"),
        "--workers",
        "1",
    ]
    assert exit_code_of(app, arguments) == 0
    return where / "one"


def test_any_change_of_any_value_of_the_front_is_seen(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    document = json.loads((good / "front.json").read_text())
    document["points"] = document["points"][:2]  # all others have the same keys
    count = 0
    for path, bad in changed_documents(document):
        count += 1
        assert check_text(json.dumps(bad, indent=2) + "\n", bad, document, "front.json"), path
    assert count > 500
    shutil.copytree(good, tmp_path / "run")
    for change in (
        ("points", 0, "certificate", "gap"),
        ("points", 0, "models", 0, "data"),
        ("certificate", "units"),
    ):
        bad = place = json.loads((good / "front.json").read_text())
        for step in change[:-1]:
            place = place[step]
        place[change[-1]] += 1
        (tmp_path / "run" / "front.json").write_text(written(bad))
        assert phaze("verify", tmp_path / "run", "--quick").code == 1, change
    (tmp_path / "run" / "front.json").write_text((good / "front.json").read_text())
    (tmp_path / "run" / "front.csv").write_text("x\n")
    assert phaze("verify", tmp_path / "run").code == 1


def test_a_changed_result_beside_a_front_is_not_passed_over(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(good, tmp_path / "run")
    (tmp_path / "run" / "result.json").write_text("{}")
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 2 and "result.json" in ran.err

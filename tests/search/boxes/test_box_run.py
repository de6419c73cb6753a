"""The folder of a run whose space was looked at in boxes: it holds, and every command that reads it
finds its chip."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from phaze.search.boxes import opening
from phaze.search.chips import enumerate_space
from phaze.search.journal import read_closed
from phaze.study.load import question_in
from tests.conftest import Ran
from tests.search.test_verify import STUDY, finished


@pytest.fixture
def every_space_boxed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BOXED", 0)
        yield


def test_commands_read_the_run_of_a_space_in_boxes(
    every_space_boxed: None, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = finished(tmp_path, STUDY)
    result, space = json.loads((run / "result.json").read_text()), question_in(run).job.space
    every, proof = enumerate_space(space), result["certificate"]
    assert proof["chips"] == len(every) and sum(proof["closed"].values()) == len(space)
    listed = [one.chip for one in read_closed(run / "journal.sqlite")]
    assert result["chip"]["number"] in listed and listed == sorted(set(listed))
    verified = phaze("verify", run, "--json")
    assert verified.code == 0 and json.loads(verified.out)["holds"], verified.out
    assert phaze("report", run).code == 0
    table = phaze("export", run, "--to", "csv").out.splitlines()
    assert len(table) == 1 + len(listed)
    compared = phaze("compare", tmp_path / "study.toml", "--run", run, "--json")
    assert compared.code == 0 and result["chip"]["name"] in compared.out, compared.err
    again = phaze("search", tmp_path / "study.toml", "--out", run, "--workers", "1")
    assert again.code == 0 and "This run had ended" in again.out


@pytest.mark.slow
def test_an_explanation_of_a_space_in_boxes_is_that_of_its_chips(
    tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    told, asked = (
        [],
        ("--instead", "rows=32", "--error", "0.1", "--flatness", "3%", "--workers", "1", "--json"),
    )
    for boxed in (1 << 20, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(opening, "BOXED", boxed)
            folder = tmp_path / f"{boxed}"
            folder.mkdir()
            found = phaze("explain", finished(folder, STUDY), *asked)
        assert found.code == 0, found.err
        told.append(json.loads(found.out))
    for own in told:
        own["flatness"].pop("evaluated")  # boxes leave others than bounds of single chips do
    assert told[0] == told[1]

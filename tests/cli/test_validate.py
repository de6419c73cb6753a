"""``phaze validate`` on a person's own runs."""

import json
from pathlib import Path

import pytest

from tests.cli.test_commands import Phaze
from tests.validate.test_rows import changed


def test_own_runs_are_shown_row_by_row_and_scored(phaze: Phaze, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(changed(microbatch=""))
    ran = phaze("validate", str(path), "--json")
    assert ran.code == 0
    (one,) = json.loads(ran.out)["sets"]
    (row,) = one["rows"]
    assert row["free"] == ["microbatch", "chunks"]
    assert row["error"] == pytest.approx(row["predicted_s"] / 0.5 - 1)
    shown = phaze("validate", str(path))
    assert "line 2" in shown.out
    assert "the best of what the rows leave open" in shown.out


def test_the_data_sheet_gives_other_times(phaze: Phaze, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(changed())
    times = [
        json.loads(phaze("validate", str(path), "--json", *more).out)["sets"][0]["rows"][0][
            "predicted_s"
        ]
        for more in ((), ("--datasheet",))
    ]
    assert times[0] != times[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed(microbatch="three"), "microbatch: 'three' is not a whole number"),
        (changed(chip="a100-8gb"), "did you mean 'a100-80gb'"),
        (changed(heads="7"), "does not divide"),
        (changed(recompute="some"), "recompute"),
        (changed(devices="4"), "be at most the 4 devices"),
    ],
)
def test_a_bad_line_is_one_sentence_with_its_number(
    phaze: Phaze, tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(text)
    ran = phaze("validate", str(path))
    assert ran.code == 2
    assert said in ran.err
    assert "line 2" in ran.err

"""Chips and plans of others beside a study's baseline: ``phaze compare --chips``."""

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phaze import api
from phaze.errors import InputError
from phaze.study.chip_rows import chip_rows
from tests.report.runs import SPACE, STUDY

PRESETS = Path(__file__).parents[2] / "src" / "phaze" / "hardware" / "presets" / "chips"
ROWS = """name,chip,tensor_cores.count,clock,model,tensor,pipeline,microbatch
,tpu-v4-paper,,,,,,
half,tpu-v4-paper,4,,,,,
slow,tpu-v4-paper,,0.5 GHz,,,,
theirs,tpu-v4-paper,,,bert-large,1,2,
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    (folder / "space.toml").write_text(SPACE)
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    (folder / "rows.csv").write_text(ROWS)
    preset = (PRESETS / "tpu-v4-paper.toml").read_text()
    (folder / "half.toml").write_text(preset.replace("count = 8", "count = 4", 1))
    return folder / "study.toml"


def test_a_row_is_the_chip_of_a_file_with_that_change(study: Path) -> None:
    rows = api.compare(study, rows=study.parent / "rows.csv").rows
    alone = api.compare(study, chips=[str(study.parent / "half.toml")]).rows
    best = {row["chip"]: row["throughput_per_s"] for row in rows if row["placement"] == "searched"}
    written = [row["throughput_per_s"] for row in alone if row["placement"] == "searched"][-1]
    assert best["half"] == written < best["tpu-v4-paper"]
    assert best["slow"] < best["tpu-v4-paper"] == best["theirs"]
    (given_row,) = [row for row in rows if row["placement"] == "given"]
    assert (given_row["chip"], given_row["tensor"], given_row["pipeline"]) == ("theirs", 1, 2)
    assert given_row["throughput_per_s"] <= best["theirs"]
    assert given_row["ratio"] == pytest.approx(given_row["throughput_per_s"] / best["tpu-v4-paper"])


@pytest.mark.slow
def test_the_command_answers_the_same(study: Path, phaze: Callable[..., Any]) -> None:
    ran = phaze("compare", study, "--chips", study.parent / "rows.csv", "--json")
    assert json.loads(ran.out) == json.loads(
        json.dumps(api.compare(study, rows=study.parent / "rows.csv").document)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name\nx\n", "the column 'chip' is missing"),
        ("chip\n", "0 rows"),
        ("chip,tensor\nh100,two\n", "line 2: tensor: 'two' is not a whole number"),
        ("chip,tensor\nh100,2\n", "line 2: pipeline: it is not there"),
        ("chip,microbatch\nh100,2\n", "there is no plan"),
        ("chip,tensor,pipeline,model\nh100,1,1,gpt9\n", "unknown model of the study 'gpt9'"),
        ("chip,name\n,x\n", "line 2: chip: it is empty"),
        ("chip\nh100,3\n", "more cells"),
    ],
)
def test_a_bad_row_is_a_sentence_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InputError) as fault:
        chip_rows(str(tmp_path / "rows.csv"), ["bert-large"])
    assert said in str(fault.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ("wings,2", "wings"),
        ("tensor_cores.wings,2", "wings"),
        ("clock,fast", "clock"),
        ("wings.count,2", "has no table 'wings'"),
        ("tensor_cores.count,-4", "count"),
    ],
)
def test_a_chip_that_cannot_be_is_a_sentence_with_its_line(
    study: Path, tmp_path: Path, changes: str, said: str
) -> None:
    key, value = changes.split(",")
    (tmp_path / "rows.csv").write_text(f"chip,{key}\ntpu-v4-paper,{value}\n")
    with pytest.raises(InputError) as fault:
        api.compare(study, rows=tmp_path / "rows.csv")
    assert said in str(fault.value) and "line 2" in str(fault.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=80))
def test_any_text_is_rows_or_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("chip,clock\n" + text, encoding="utf-8", errors="ignore")
    with contextlib.suppress(InputError):
        chip_rows(str(tmp_path / "rows.csv"), ["bert-large"])

"""Tables and traces: every chip once, the same numbers as the run, and what others read."""

import csv
import io
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow.parquet
import pytest

from phaze.export.frame import csv_text
from phaze.export.parquet import parquet_bytes
from phaze.export.perfetto import trace
from phaze.report.view_model import searched
from phaze.search.chips import enumerate_space
from tests.report.runs import PLAN, made_run, named, small_run
from tests.search.made import traced_task


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished search."""
    return small_run(tmp_path_factory.mktemp("run"))


def test_a_csv_has_every_chip_of_the_certificate(run: Path, phaze: Callable[..., Any]) -> None:
    rows = list(csv.DictReader(io.StringIO(phaze("export", run, "--to", "csv").out)))
    result = json.loads((run / "result.json").read_text())
    assert len(rows) == result["certificate"]["chips"]
    for reason in ("bound", "evaluated", "memory"):
        assert (
            sum(row["closed_by"] == reason for row in rows)
            == result["certificate"]["closed"][reason]
        )
    (answer,) = [row for row in rows if row["is_answer"] == "True"]
    assert float(answer["area_mm2"]) == result["chip"]["area_mm2"]
    assert float(answer["score"]) == result["objective"]["score"]
    bounds = [float(row["score_bound"]) for row in rows if row["score_bound"]]
    assert min(bounds) >= result["certificate"]["lower_bound"]


def test_parquet_and_csv_hold_the_same(
    run: Path, phaze: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "chips.parquet"
    assert phaze("export", run, "--to", "parquet", "--out", out).code == 0
    columns = pyarrow.parquet.read_table(out).to_pandas()
    text = pandas.read_csv(io.StringIO(phaze("export", run, "--to", "csv").out))
    assert list(columns.columns) == list(text.columns)
    for name in columns.columns:
        assert columns[name].dropna().tolist() == text[name].dropna().tolist()
    assert phaze("export", run, "--to", "parquet").code == 2, "a terminal is not a place for it"


def test_without_pyarrow_there_is_one_sentence(
    run: Path, monkeypatch: pytest.MonkeyPatch, phaze: Callable[..., Any]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = phaze("export", run, "--to", "parquet", "--out", run / "chips.parquet")
    assert ran.code == 2
    assert "pip install -e '.[parquet]' in phaze's folder" in ran.err


def test_frames_give_the_same_bytes_twice() -> None:
    frame = {"a": np.array([1, 2]), "b": np.array([0.5, np.nan]), "c": np.array(['x"', "y,"])}
    assert csv_text(frame) == 'a,b,c\n1,0.5,"x"""\n2,,"y,"\n'
    assert parquet_bytes(frame) == parquet_bytes(frame)


def test_stages_of_a_plan_are_rows(phaze: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(phaze(*PLAN.split(), "--json").out)
    rows = list(
        csv.DictReader(io.StringIO(phaze("export", tmp_path / "plan.json", "--to", "csv").out))
    )
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert [float(row["memory_bytes"]) for row in rows] == [
        stage["memory_bytes"] for stage in plan["stages"]
    ]


def test_a_trace_has_every_microbatch_and_no_overlap_on_a_row(tmp_path: Path) -> None:
    run = made_run(tmp_path, (traced_task(3),))
    wanted = run.result["chip"]
    chip = enumerate_space(run.job.space).chip(wanted["number"], wanted["hbm_bytes"])
    story = searched(run.job.models[0], run.result["models"][0], chip, "made")
    document = trace([story])
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    stages, rounds = len(story.plan["stages"]), story.split.rounds
    assert sum(event["pid"] == 1 for event in events) == 2 * stages * rounds
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        rows.setdefault((event["pid"], event["tid"]), []).append(
            (event["ts"], event["ts"] + event["dur"])
        )
    for own in rows.values():
        own.sort()
        assert all(a[1] <= b[0] + 1e-6 * max(1.0, b[0]) for a, b in pairwise(own))


def test_a_trace_by_the_command_is_json(run: Path, phaze: Callable[..., Any]) -> None:
    assert json.loads(phaze("export", run, "--to", "perfetto").out)["traceEvents"]


def test_a_trace_of_several_models_names_each_and_one_can_be_chosen(
    run: Path, phaze: Callable[..., Any], tmp_path: Path
) -> None:
    made = made_run(tmp_path, (named(3, "first"), named(4, "second")))
    wanted = made.result["chip"]
    chip = enumerate_space(made.job.space).chip(wanted["number"], wanted["hbm_bytes"])
    pairs = zip(made.job.models, made.result["models"], strict=True)
    events = trace([searched(task, found, chip, "made") for task, found in pairs])["traceEvents"]
    called = {
        event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"
    }
    assert {name.partition(":")[0] for name in called.values()} == {"first", "second"}
    assert {event["pid"] for event in events} == set(called), (
        "every event is of a model that is named"
    )
    alone = phaze("export", run, "--to", "perfetto", "--model", "bert-large")
    assert alone.code == 0 and alone.out == phaze("export", run, "--to", "perfetto").out
    assert phaze("export", run, "--to", "perfetto", "--model", "nothing").code == 2

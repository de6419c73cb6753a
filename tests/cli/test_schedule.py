"""``phaze schedule`` as a person and as a program meet it."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from phaze.evaluate.layers import pass_cost
from phaze.evaluate.pass_schedule import setting_of
from phaze.graph.fuse import fuse_layer
from phaze.graph.zoo import load_model

ROOT = Path(__file__).parent.parent
OPTIMA = json.loads((ROOT / "schedule" / "optima.json").read_text())


class Ran(Protocol):
    """What a command did; the fixture gives it."""

    code: int
    out: str
    err: str


Phaze = Callable[..., Ran]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Three problems, the last one bad."""
    paths = [tmp_path / name for name in ("one.json", "two.json", "bad.json")]
    paths[0].write_text(json.dumps(OPTIMA[0]["operators"]))
    paths[1].write_text(json.dumps(OPTIMA[-1]["operators"]))
    paths[2].write_text(json.dumps({**OPTIMA[0]["operators"], "edges": [["0", "1"], ["1", "0"]]}))
    return paths


def test_one_line_a_file_and_the_error_of_a_bad_one(phaze: Phaze, files: list[Path]) -> None:
    ran = phaze("schedule", files[0], files[2], files[1], "--json")
    assert ran.code == 2
    first, bad, last = (json.loads(line) for line in ran.out.splitlines())
    assert first["makespan_s"] == pytest.approx(OPTIMA[0]["makespan_s"])
    assert last["makespan_s"] == pytest.approx(OPTIMA[-1]["makespan_s"])
    assert bad["error"] == (
        f"{files[2]}: edges: operators wait for each other in a cycle: '0' -> '1' -> "
        "'0'; remove one of its edges."
    )
    assert bad["error"] in ran.err
    assert ran.err.count("\n") == 1
    assert phaze("schedule", *files[:2], "--json").code == 0


def test_a_document_has_what_its_format_says(phaze: Phaze, files: list[Path]) -> None:
    document = json.loads(phaze("schedule", files[1], "--json").out)
    assert document["schema"] == "phaze.schedule/1"
    assert document["optimal"] is True
    assert document["status"] == "optimal"
    assert 0 <= document["gap"] < 1e-9
    assert document["lower_bound_s"] <= document["makespan_s"]
    ids = [operator["id"] for operator in OPTIMA[-1]["operators"]["operators"]]
    assert [slot["id"] for slot in document["slots"]] == ids
    assert set(document["slots"][0]) == {
        "id",
        "spread",
        "start_s",
        "end_s",
        "tensor_core",
        "vector_core",
    }


@pytest.mark.parametrize("scheduler", ["list", "cpsat", "ilp"])
def test_other_schedulers_answer_too(phaze: Phaze, files: list[Path], scheduler: str) -> None:
    document = json.loads(phaze("schedule", files[0], "--scheduler", scheduler, "--json").out)
    assert document["makespan_s"] == pytest.approx(OPTIMA[0]["makespan_s"])


def test_an_unknown_scheduler_and_an_unwritable_trace_are_bad_input(
    phaze: Phaze, files: list[Path]
) -> None:
    assert "did you mean 'exact'?" in phaze("schedule", files[0], "--scheduler", "exactly").err
    ran = phaze("schedule", files[0], "--perfetto", files[0].parent / "no" / "trace.json")
    assert ran.code == 2
    assert "cannot be written" in ran.err


def test_the_chart_fits_eighty_columns_and_names_every_operator(
    phaze: Phaze, files: list[Path]
) -> None:
    ran = phaze("schedule", *files[:2])
    assert ran.code == 0
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "proved: no schedule is shorter" in ran.out
    assert "tensor 0" in ran.out
    assert "spread" in ran.out


def test_names_that_look_like_markup_stay_text(phaze: Phaze, tmp_path: Path) -> None:
    document = json.loads(json.dumps(OPTIMA[0]["operators"]).replace('"5"', '"[bold]5[/]"'))
    path = tmp_path / "markup.json"
    path.write_text(json.dumps(document))
    assert "[bold]5[/]" in phaze("schedule", path).out


def test_a_trace_has_every_slot_on_its_cores(
    phaze: Phaze, files: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "trace.json"
    document = json.loads(phaze("schedule", files[1], "--perfetto", out, "--json").out)
    events = json.loads(out.read_text())["traceEvents"]
    drawn = [event for event in events if event["ph"] == "X"]
    names = {
        event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"
    }
    assert {event["name"] for event in drawn} == {
        s["id"] for s in document["slots"] if s["end_s"] > s["start_s"]
    }
    for slot in document["slots"]:
        own = [event for event in drawn if event["name"] == slot["id"]]
        for event in own:
            assert event["ts"] / 1e6 == pytest.approx(slot["start_s"])
            assert event["dur"] / 1e6 == pytest.approx(slot["end_s"] - slot["start_s"])
        if slot["tensor_core"] is not None and own:
            assert f"tensor {slot['tensor_core']}" in {names[event["tid"]] for event in own}


def _wide(count: int, edge_share: float) -> dict[str, Any]:
    dice = random.Random(count)
    operators = [
        {
            "id": f"o{i}",
            "core": dice.choice(["tensor", "vector", "both"]),
            "one_core_s": 1e-3 * dice.random(),
            "all_cores_s": 4e-4 * dice.random(),
        }
        for i in range(count)
    ]
    edges = [
        [f"o{i}", f"o{j}"]
        for j in range(count)
        for i in range(max(0, j - 9), j)
        if dice.random() < edge_share
    ]
    shape = {"rules": "icml24", "tensor_cores": 8, "vector_cores": 2}
    return {"schema": "phaze.operators/1", **shape, "operators": operators, "edges": edges}


def test_five_hundred_operators_get_an_answer_with_a_bound(phaze: Phaze, tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_text(json.dumps(_wide(500, 0.15)))
    ran = phaze("schedule", path, "--json", "--scheduler", "list")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert 0 < document["lower_bound_s"] <= document["makespan_s"]
    assert 0 <= document["gap"] < 0.6


@pytest.mark.slow
def test_five_hundred_operators_get_an_exact_try(phaze: Phaze, tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_text(json.dumps(_wide(500, 0.15)))
    ran = phaze("schedule", path, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["gap"] < 0.6


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = []
    for at, case in enumerate(OPTIMA[2:6]):
        paths.append(tmp_path / f"{at}.json")
        paths[-1].write_text(json.dumps(case["operators"]))
    command = [sys.executable, "-m", "phaze", "schedule", *map(str, paths), "--json"]
    outs = [
        subprocess.run(
            command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert outs[0] == outs[1]
    assert outs[0].count(b"\n") == len(paths)


def test_a_layer_of_a_model_is_scheduled_pass_by_pass_as_a_plan_counts_it(
    phaze: Phaze, tmp_path: Path
) -> None:
    asked = (
        "schedule",
        "--model",
        "bert-large",
        "--chip",
        "h100",
        "--tensor",
        2,
        "--microbatch",
        4,
    )
    ran = phaze(*asked, "--json", "--perfetto", tmp_path / "trace.json")
    assert ran.code == 0, ran.err
    forward, backward = (json.loads(line) for line in ran.out.splitlines())
    assert (forward["of"]["pass"], backward["of"]["pass"]) == ("forward", "backward")
    assert forward["of"]["calls"] == 24 and forward["of"]["tensor"] == 2, "the most repeated layer"
    assert forward["of"]["attention"] == "fused" and forward["rules"] == "companions", (
        "as the cluster's stack runs it"
    )
    setting = setting_of("h100", None, None, "calibrated", None)
    layer = load_model("bert-large", 2, 4, attention="fused").layers[1]
    costs = pass_cost(fuse_layer(layer, setting.stack.fusion).forward, setting, False)
    assert forward["makespan_s"] == pytest.approx(costs.device_s)
    assert {
        event["ph"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    } >= {"X"}

    overlapped = json.loads(phaze(*asked, "--rules", "overlap", "--pass", "backward", "--json").out)
    assert overlapped["makespan_s"] < backward["makespan_s"] and overlapped["rules"] == "overlap"
    last = json.loads(phaze(*asked, "--layer", "epilogue", "--pass", "forward", "--json").out)
    assert last["of"]["calls"] == 1 and any("product" in slot["id"] for slot in last["slots"])


def test_a_graphs_file_is_scheduled_as_it_was_traced_and_bad_requests_are_one_sentence(
    phaze: Phaze, tmp_path: Path
) -> None:
    path = tmp_path / "graph.json"
    path.write_text(
        phaze("graph", "--model", "bert-large", "--tensor", 2, "--sequence", 64, "--json").out
    )
    found = json.loads(
        phaze("schedule", "--model", path, "--chip", "a100-80gb", "--pass", "forward", "--json").out
    )
    assert (found["of"]["tensor"], found["of"]["sequence"], found["of"]["attention"]) == (
        2,
        64,
        "eager",
    )
    job = ("schedule", "--model", "bert-large", "--chip", "h100")
    for arguments, said in (
        (("schedule",), "give either files of operators or --model"),
        (("schedule", "--model", "bert-large"), "there is no chip"),
        ((*job, path), "give either files of operators or --model"),
        ((*job, "--layer", "heed"), "layer of bert-large"),
        ((*job, "--rules", "overlapp"), "did you mean 'overlap'"),
        (("schedule", "--model", path, "--chip", "h100", "--tensor", 4), "this graph is of"),
        ((*job, "--tensor", 0), "at least 1"),
    ):
        ran = phaze(*arguments)
        assert ran.code == 2 and said in ran.err and ran.err.count("\n") == 1, (arguments, ran.err)

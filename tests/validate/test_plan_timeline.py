"""A plan's own timeline, exported, is read back: constants that it was made with, and what it does
not determine."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from phaze.cli.main import app
from phaze.errors import InputError
from phaze.validate.plan_timeline import is_timeline, read_timeline

SIZES = {
    "hidden": 4096,
    "layers": 8,
    "heads": 32,
    "mlp": 11008,
    "vocabulary": 32000,
    "sequence": 4096,
}
WHERE = {"chip": "h100", "cluster": "dgx-h100", "devices": 16, "batch": 32}
SHARE, HIDDEN = 0.61, 0.3


def run_of(stack: str, pipeline: int) -> dict[str, Any]:
    plan = {
        "tensor": 1,
        "pipeline": pipeline,
        "data": 16 // pipeline,
        "microbatch": 1,
        "recompute": "full",
        "zero": 1,
    }
    return {"schema": "phaze.run/1", "llama": SIZES, **WHERE, "stack": stack, "plan": plan}


def asked(*words: str) -> dict[str, Any]:
    found = CliRunner().invoke(app, [*words, "--json"])
    assert found.exit_code == 0, found.output
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def exported(folder: Path, pipeline: int) -> tuple[Path, Path]:
    """The timeline of a run on constants of choice, and the run with the bundled ones."""
    stack, own, run, trace = (
        folder / name for name in ("stack.toml", "own.json", "run.json", "trace.json")
    )
    stack.write_text(
        'schema = "phaze.stack/1"\nbase = "megatron-core"\nname = "mine"\ntitle = "mine"\n'
        f"software_share = {{ n5 = {SHARE} }}\nhidden_synchronisation = {HIDDEN}\n"
    )
    own.write_text(json.dumps(run_of(str(stack), pipeline)))
    run.write_text(json.dumps(run_of("megatron-core", pipeline)))
    asked("plan", "--fixed", str(own), "--perfetto", str(trace))
    return trace, run


@pytest.mark.parametrize("pipeline", [1, 4])
def test_constants_of_an_exported_plan_are_found_again(pipeline: int, tmp_path: Path) -> None:
    trace, run = exported(tmp_path, pipeline)
    document = asked(
        "calibrate", "--trace", str(trace), "--run", str(run), "--out", str(tmp_path / "mine")
    )
    found = {one["key"]: one["value"] for one in document["fitted"]}
    assert found["software_share"] == pytest.approx(SHARE, rel=1e-3)
    assert found["hidden_synchronisation"] == pytest.approx(HIDDEN, abs=0.01)
    assert document["step_s"]["fitted"] == pytest.approx(
        document["step_s"]["measured"], rel=0.01 if pipeline > 1 else 1e-3
    )
    assert {one["key"] for one in document["undetermined"]} == {
        "vector_hbm_share",
        "host_time",
        "levels",
    }


def test_another_number_of_stages_fits_nothing(tmp_path: Path) -> None:
    trace, _ = exported(tmp_path, 4)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(run_of("megatron-core", 2)))
    document = asked(
        "calibrate", "--trace", str(trace), "--run", str(other), "--out", str(tmp_path / "mine")
    )
    assert document["fitted"] == []
    assert {"key": "software_share", "reason": "the trace has 4 stages and the run 2"} in document[
        "undetermined"
    ]


def event(name: str, pid: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": name,
        "cat": name.split(maxsplit=1)[0],
        "pid": pid,
        "tid": 1,
        "ts": 0,
        "dur": 5,
        **more,
    }


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([event("forward 0"), event("forward 0", pid=2)], "several plans"),
        ([event("backward 0")], "no forward pass"),
        ([event("forward 0", dur=-1)], "no time"),
        ([event("forward 0", ts=None)], "no time"),
        (
            [
                event("forward 0"),
                {
                    "ph": "M",
                    "name": "process_name",
                    "pid": 1,
                    "args": {"name": "x, 9 microbatches in the middle left out"},
                },
            ],
            "microbatches are left out",
        ),
    ],
)
def test_what_is_no_whole_plan_is_refused(events: list[dict[str, Any]], said: str) -> None:
    text = json.dumps({"traceEvents": events})
    assert is_timeline(text)
    with pytest.raises(InputError, match=said):
        read_timeline(text, "trace.json")


@pytest.mark.parametrize(
    "text", ["", "{", '{"traceEvents": 3}', json.dumps({"traceEvents": [event("gemm")]})]
)
def test_other_texts_are_no_timeline(text: str) -> None:
    assert not is_timeline(text)


@pytest.mark.parametrize("pipeline", [1, 4])
def test_the_export_of_a_plan_is_read_back_and_said_to_be_no_measurement(
    pipeline: int, tmp_path: Path
) -> None:
    """``phaze export --to perfetto`` draws the passes alone, beside the operators of a layer."""
    _, run = exported(tmp_path, pipeline)
    plan, trace, out = tmp_path / "plan.json", tmp_path / "export.json", tmp_path / "mine"
    plan.write_text(json.dumps(asked("plan", "--fixed", str(tmp_path / "own.json"))))
    asked("export", str(plan), "--to", "perfetto", "--out", str(trace))
    command = ["calibrate", "--trace", str(trace), "--run", str(run), "--out", str(out)]
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 0, said.output
    assert (
        " drawn" in said.stdout
        and " measured" not in said.stdout
        and "no measurement" in said.stdout
    )
    assert "hidden_synchronisation: nothing after the passes is drawn" in said.stdout
    stack = tomllib.loads((out / "stack.toml").read_text())
    assert stack["software_share"]["h100"] == pytest.approx(SHARE, rel=1e-3)
    assert "the timeline of a plan, no profile" in stack["sources"]["software_share.h100"]


def test_the_schedule_of_a_layer_is_no_step(tmp_path: Path) -> None:
    trace, run = tmp_path / "layer.json", tmp_path / "run.json"
    run.write_text(json.dumps(run_of("megatron-core", 1)))
    operators = Path(__file__).parents[1] / "api" / "operators.json"
    asked("schedule", str(operators), "--perfetto", str(trace))
    found = CliRunner().invoke(app, ["calibrate", "--trace", str(trace), "--run", str(run)])
    assert isinstance(found.exception, InputError)
    assert "operators of a schedule as phaze drew it" in str(found.exception)
    assert "phaze plan --perfetto" in str(found.exception)

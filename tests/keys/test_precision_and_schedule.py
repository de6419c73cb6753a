"""Precision and the schedule of a stack: what is not priced or not built is refused, never priced
as something else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.hardware.bundled import preset_names
from phaze.hardware.library import load_built_stack, load_stack
from tests.conftest import Ran
from tests.keys.small import preset, run, written
from tests.search.test_study import SPACE

Phaze = Callable[..., Ran]
HEADER = "model,hidden,layers,heads,vocabulary,sequence,chip,devices,batch,tensor,pipeline,data,microbatch,seconds"
LINE = "gpt,64,4,4,512,32,a100-80gb,16,64,2,1,8,1,0.5"
STUDY = """schema = "phaze.study/1"
name = "tiny"
rules = "cluster"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 64, widths = [1]}}]
[training]
cluster = "selene"
devices = 16
batch = 32
microbatches = [1]
"""


def stack(folder: Path, **changes: Any) -> str:
    return written(
        folder, "stack.json", preset("stacks", "megatron-2021") | {"name": "mine"} | changes
    )


@pytest.mark.parametrize("precision", ["fp8", "mxfp8"])
def test_a_run_of_another_precision_is_not_priced_as_16_bit(
    phaze: Phaze, tmp_path: Path, precision: str
) -> None:
    ran = phaze("plan", "--fixed", written(tmp_path, "run.json", run(precision=precision)))
    assert ran.code == 2
    assert f"run.json: precision: '{precision}' " in ran.err and "allowed: bf16, fp32" in ran.err
    assert phaze("plan", "--fixed", written(tmp_path, "run.json", run(precision="bf16"))).code == 0


def test_a_stack_of_another_precision_is_not_priced_as_16_bit(phaze: Phaze, tmp_path: Path) -> None:
    own = stack(tmp_path, precision="fp8")
    ran = phaze("plan", "--fixed", written(tmp_path, "run.json", run(stack=own)))
    assert (
        ran.code == 2 and "stack: precision: 'fp8' and the stack mine has no such recipe" in ran.err
    )
    job = ("--model", "bert-large", "--chip", "a100-80gb", "--devices", "16", "--batch", "32")
    ran = phaze("plan", *job, "--stack", own)
    assert ran.code == 2 and "precision: 'fp8' and the stack mine has no such recipe" in ran.err


def test_a_study_of_another_precision_is_not_priced_as_16_bit(phaze: Phaze, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(SPACE)
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path))
    check = ("study", "check", tmp_path / "study.toml")
    assert phaze(*check, "--set", "training.precision=bf16").code == 0
    ran = phaze(*check, "--set", "training.precision=fp8")
    assert (
        ran.code == 2
        and "training.precision: 'fp8' and the stack megatron-2021 has no such recipe" in ran.err
    )
    ran = phaze(*check, "--set", f"training.stack={stack(tmp_path, precision='fp32')}")
    assert ran.code == 2 and "precision: 'fp32' needs arrays of fp32" in ran.err


def test_measured_runs_of_another_precision_are_left_out_and_counted(
    phaze: Phaze, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEADER},precision\n{LINE},bf16\n{LINE},fp8\n{LINE},fp8\n")
    ran = phaze("validate", path, "--json")
    assert ran.code == 0
    (one,) = json.loads(ran.out)["sets"]
    assert len(one["rows"]) == one["scores"][0]["rows"] == 1
    assert [row["id"] for row in one["left_out"]] == ["line 3", "line 4"]
    assert (
        "mine.csv: 2 of 3 rows left out, precision 'fp8' and the stack megatron-2021 has "
        "no such recipe"
    ) in " ".join(phaze("validate", path).out.split())


def test_a_profile_has_its_own_times_and_precision_changes_what_it_holds(
    phaze: Phaze, tmp_path: Path
) -> None:
    layers = [
        {
            "id": i,
            "forward_s": 1,
            "backward_s": 2,
            "parameter_bytes": 1e9,
            "activation_bytes": 1e6,
            "sharded": False,
        }
        for i in range(2)
    ]
    profile = {
        "schema": "phaze.profile/1", "rules": "cluster", "devices": 2, "hbm_bytes": 8e10,
        "microbatches": 4,
        "optimizer": "adam", "recompute": False, "cluster": "selene",
        "widths": {"1": {"layers": layers, "edges": [{"from": 0, "to": 1, "bytes": 1e6}]}},
    }  # fmt: skip
    held = [
        json.loads(
            phaze(
                "place", written(tmp_path, "p.json", profile | {"precision": precision}), "--json"
            ).out
        )
        for precision in ("bf16", "fp8")
    ]
    assert held[0]["stages"][0]["memory_bytes"] != held[1]["stages"][0]["memory_bytes"]


@pytest.mark.parametrize("name", preset_names("stacks"))
def test_a_bundled_stack_names_the_schedule_that_its_layers_are_run_by(name: str) -> None:
    bundled = load_built_stack(name)
    plain = "icml24" if name == "icml24" else "serial"
    assert bundled.schedule == ("companions" if bundled.hides_tensor_collectives else plain)


def test_a_schedule_that_contradicts_its_stack_is_refused(phaze: Phaze, tmp_path: Path) -> None:
    own = stack(tmp_path, schedule="companions")
    ran = phaze("plan", "--fixed", written(tmp_path, "run.json", run(stack=own)))
    assert ran.code == 2 and "stack.json: schedule: 'companions'" in ran.err
    assert load_stack(own).schedule == "companions"


def test_every_schedule_rule_of_a_stack_changes_the_answer(phaze: Phaze, tmp_path: Path) -> None:
    """What may overlap more takes less: serial, companions, links, overlap; the paper's rule stands
    by itself."""
    times = []
    for schedule in ("serial", "companions", "links", "overlap", "icml24"):
        own = stack(
            tmp_path,
            schedule=schedule,
            hides_tensor_collectives=schedule != "serial",
            host_time=0.0,
        )
        plan = {"tensor": 4, "pipeline": 1, "data": 1, "microbatch": 1, "recompute": "none"}
        ran = phaze(
            "plan",
            "--fixed",
            written(tmp_path, "run.json", run(stack=own, devices=4, plan=plan)),
            "--json",
        )
        assert ran.code == 0, ran.err
        times.append(json.loads(ran.out)["batch_s"])
    assert times[:4] == sorted(times[:4], reverse=True)
    assert len(set(times)) == 5


def test_a_stack_on_a_base_changes_single_keys(phaze: Phaze, tmp_path: Path) -> None:
    own = written(
        tmp_path,
        "own.json",
        {"schema": "phaze.stack/1", "base": "megatron-core", "schedule": "links"},
    )
    found, base = load_stack(own), load_stack("megatron-core")
    assert found.as_read() == {**base.as_read(), "schedule": "links"}
    wrong = written(tmp_path, "own.json", {"schema": "phaze.stack/1", "base": "megatron-cor"})
    ran = phaze("stacks", wrong)
    assert ran.code == 2 and "base" in ran.err and "megatron-core" in ran.err


def test_an_older_stack_file_that_says_serial_and_hides_collectives_keeps_its_times(
    phaze: Phaze, tmp_path: Path
) -> None:
    answers = []
    for schedule in ("serial", "companions"):
        own = stack(tmp_path, schedule=schedule, hides_tensor_collectives=True)
        ran = phaze("plan", "--fixed", written(tmp_path, "run.json", run(stack=own)), "--json")
        assert ran.code == 0, ran.err
        answers.append(ran.out)
    assert answers[0] == answers[1]

"""What a plan takes for granted: attention as the stack runs it, memory left free, experts that are
not spread."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from phaze.cli.main import app
from phaze.errors import InputError
from phaze.evaluate.answer import planned_document, shortage_document
from phaze.evaluate.bands import memory_band_of
from phaze.evaluate.job_file import planned_job
from phaze.evaluate.levers import sought_levers
from phaze.evaluate.plan_order import planned as order_of_plans
from phaze.evaluate.request import Job, request_of
from phaze.evaluate.run_file import job_of
from phaze.graph.experts import NO_EXPERT_PARALLELISM, notes_of
from phaze.graph.zoo import load_model
from phaze.hardware.library import load_stack
from phaze.options.arguments import share as share_of

DOCS = Path(__file__).parents[2] / "docs"
EAGER = {"ideal", "megatron-2021", "megatron-2022", "megatron-deepspeed"}
GPT = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 2048}
JOB = Job("gpt", GPT, "h100", 4, 8, microbatch=(1,), tensor=(1,), zero=0, chunks=(1,), headroom=0.0)

# On one device its weights, gradients and optimizer state take about half of the memory.
LARGE = replace(
    JOB, sizes={**GPT, "hidden": 4096, "layers": 10}, devices=1, batch=8, microbatch=(4,)
)


def planned(asked: Job) -> dict[str, Any]:
    request = request_of(asked)
    found = order_of_plans(request)
    if found.best.plan is None:
        return shortage_document(sought_levers(request, found.candidates), request.setting)
    return {
        **planned_document(request, found, None),
        "job": planned_job(asked, request, found.best),
    }


@pytest.mark.parametrize(
    "name", [*sorted(EAGER), "maxtext", "megatron-core", "nanotron", "torchtitan"]
)
def test_only_the_stacks_before_flash_attention_run_it_eagerly(name: str) -> None:
    assert load_stack(name).attention == ("eager" if name in EAGER else "fused")


def test_a_plan_runs_attention_as_its_stack_does_and_names_it() -> None:
    fused, eager = planned(JOB), planned(replace(JOB, stack="megatron-2022"))
    assert (fused["attention"], fused["job"]["attention"]) == ("fused", "fused")
    assert (eager["attention"], eager["job"]["attention"]) == ("eager", "eager")


def test_the_best_of_both_kinds_of_attention_is_as_fast_as_the_faster() -> None:
    times = {
        kind: planned(replace(JOB, attention=kind))["batch_s"]
        for kind in ("eager", "fused", "best")
    }
    assert times["best"] == min(times["eager"], times["fused"])
    assert times["fused"] < times["eager"]


def test_an_unknown_attention_is_refused() -> None:
    with pytest.raises(InputError, match="allowed: best, eager, fused"):
        request_of(replace(JOB, attention="flash"))  # type: ignore[arg-type]


def test_a_run_that_does_not_state_its_attention_has_that_of_its_stack() -> None:
    plan = {"tensor": 1, "pipeline": 1, "data": 4, "microbatch": 1}
    run = {
        "schema": "phaze.run/1",
        "gpt": GPT,
        "chip": "h100",
        "cluster": "dgx-h100",
        "devices": 4,
        "batch": 8,
    }
    assert job_of({**run, "plan": plan}, "run").model.attention == "fused"
    assert job_of({**run, "plan": plan, "stack": "megatron-2021"}, "run").model.attention == "eager"
    assert job_of({**run, "plan": plan, "attention": "eager"}, "run").model.attention == "eager"


def test_a_plan_that_is_chosen_leaves_the_headroom_free() -> None:
    whole = planned(LARGE)
    left = whole["memory_left"]
    assert left["left_bytes"] == left["available_bytes"] - whole["stages"][0]["memory_bytes"]
    tight = planned(replace(LARGE, headroom=left["left_share"] + 0.01))
    assert tight["memory_left"]["left_share"] >= left["left_share"] + 0.01
    assert tight["batch_s"] > whole["batch_s"]


def test_a_shortage_says_what_is_kept_free_and_that_none_would_do() -> None:
    said = planned(replace(LARGE, headroom=0.5))["shortage"]
    assert "of which 50 % are kept free" in said["sentence"]
    assert said["sentence"].endswith("which fits with headroom 0")
    assert said["levers"]["hbm_bytes"] == pytest.approx(said["needed_bytes"] / 0.5)


@pytest.mark.parametrize(
    ("text", "share"), [("6%", 0.06), ("0.06", 0.06), ("0", 0.0), (" 12.5 % ".strip(), 0.125)]
)
def test_a_headroom_is_a_share_or_a_percentage(text: str, share: float) -> None:
    assert share_of("--headroom", text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["6 percent", "-1%", "95%", "nan", ""])
def test_other_headrooms_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--headroom"):
        share_of("--headroom", text)


def test_a_fixed_plan_is_judged_by_the_whole_memory() -> None:
    found = CliRunner().invoke(
        app, ["plan", "--fixed", str(DOCS.parent / "examples" / "run.json"), "--json"]
    )
    document = json.loads(found.stdout)
    assert document["memory_left"]["headroom"] == 0
    assert document["attention"] == document["job"]["attention"]


def test_the_band_of_memory_is_that_of_the_runs_that_the_accuracy_page_shows() -> None:
    band = memory_band_of(None)
    shown = (DOCS / "accuracy.md").read_text(encoding="utf-8").split("keeps  runs  sources")[1]
    row = next(line.split() for line in shown.splitlines() if line.startswith("any "))
    assert (row[1], row[4]) == (str(band.rows), f"{band.band:.0%}")


def test_a_mixture_of_experts_says_that_expert_parallelism_is_not_planned() -> None:
    assert NO_EXPERT_PARALLELISM in notes_of(load_model("mixtral-8x7b", 8, 1))
    assert NO_EXPERT_PARALLELISM not in notes_of(load_model("llama3-8b", 8, 1))

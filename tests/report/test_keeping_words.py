"""Precision, sharded state and offload in an answer's words: in the terminal and on the page."""

import json
from pathlib import Path
from typing import Any

from phaze.report.answer_text import job_words
from phaze.search.plan_words import plan_words, precision_words, state_words
from tests.cli.test_commands import Phaze

JOB = (
    "--llama",
    "hidden=1024,layers=4,heads=16,mlp=4096,vocabulary=32000,sequence=2048",
    "--chip",
    "h100",
)
FLAT = ("--devices", "16", "--batch", "32", "--tensor", "1", "--microbatch", "1")


def _words(phaze: Phaze, page: Path, *options: str) -> tuple[str, str, dict[str, Any]]:
    """What terminal, page and document say of a plan; line breaks are blanks."""
    document = page.with_suffix(".json")
    ran = phaze("plan", *JOB, *FLAT, *options, "--json")
    assert ran.code == 0, ran.err
    document.write_text(ran.out)
    assert phaze("report", document, "--out", page).code == 0
    return (
        " ".join(phaze("plan", *JOB, *FLAT, *options).out.split()),
        page.read_text(),
        json.loads(ran.out),
    )


def test_a_plan_says_its_recipe_and_what_the_host_holds(phaze: Phaze, tmp_path: Path) -> None:
    said, page, document = _words(
        phaze,
        tmp_path / "plan.html",
        "--recompute",
        "full,offload",
        "--precision",
        "fp8",
        "--zero",
        "1",
    )
    held = document["offloaded_bytes"]
    # The input of each of four blocks, 2 bytes a feature, of the one microbatch in flight.
    assert held == 4 * 2048 * 1024 * 2
    words = f"activations offloaded to host: {held / 1e9:.3g} GB a device"
    for text in (said, page):
        assert "FP8 (current scaling, one scale a tensor)" in text and words in text
    assert "optimizer state sharded over 16 replicas (ZeRO 1)" in said


def test_a_plan_says_who_shares_out_its_state(phaze: Phaze, tmp_path: Path) -> None:
    said, page, document = _words(phaze, tmp_path / "plan.html", "--zero", "3", "--shard", "8")
    assert document["shard"] == 8 and document["precision"] == "bf16"
    whole = (
        "hybrid sharding: optimizer state, gradients and weights sharded over 8 of 16 "
        "replicas (ZeRO 3)"
    )
    assert whole in said and "precision BF16" in said
    assert "hybrid sharding over 8 of 16 replicas" in page


def test_every_precision_and_every_stage_of_zero_has_its_words() -> None:
    assert precision_words("mxfp8").startswith("MXFP8 (") and precision_words("nvfp4").startswith(
        "NVFP4 ("
    )
    assert state_words({"zero": 0, "data": 8}) == ""
    assert state_words({"zero": 2, "data": 8, "context": 2}) == (
        "optimizer state and gradients sharded over 16 ranks with the same weights (ZeRO 2)"
    )
    model = {
        "tensor": 1,
        "microbatch": 1,
        "recompute": "full",
        "zero": 3,
        "shard": 4,
        "attention": "fused",
    }
    assert "hybrid sharding over 4 of 8 replicas" in plan_words(
        model, {"pipeline": 1, "data": 8, "stages": []}
    )
    setting = {"optimizer": "adam", "stack": "megatron-core", "precision": "fp8-block"}
    assert "FP8 (blockwise scaling" in job_words({"setting": setting, "models": [model]})

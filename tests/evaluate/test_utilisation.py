"""MFU and HFU: one numerator, one denominator, for every model, chip and precision; nothing exceeds
the peak."""

from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze import api
from phaze.api.values import Planned
from phaze.errors import PhazeError
from phaze.graph.zoo import ZOO
from phaze.hardware.bundled import preset_names
from phaze.hardware.chip import Chip
from phaze.hardware.library import load_chip
from phaze.report.page.plan_page import plan_page
from phaze.report.plan_text import flops_text

CHIPS = sorted({*preset_names("chips"), *preset_names("silicon/chips")})
PRECISIONS = ("bf16", "fp32", "fp8", "mxfp8", "nvfp4")
SMALL = {
    "hidden": 1024,
    "layers": 4,
    "heads": 8,
    "kv_heads": 8,
    "head_dim": 128,
    "mlp": 4096,
    "vocabulary": 32000,
}


def _plan(chip: str, precision: str, sequence: int, **more: Any) -> Planned | None:
    job: dict[str, Any] = {
        "devices": 8,
        "batch": 16,
        "tensor": [1, 2],
        "microbatch": [1],
        "context": [1],
    }
    cluster = None if load_chip(chip).cluster else "paper-flat"
    try:
        return phaze.plan(
            chip=chip, precision=precision, cluster=cluster,
            stack="torchtitan" if cluster else None,
            **{**job, **({} if "model" in more else {"llama": {**SMALL, "sequence": sequence}}),
            **more},
        )  # fmt: skip
    except PhazeError:  # a format that the chip or its stack does not have, or too little memory
        return None


def _require_shares(plan: Planned, chip: Chip, ratio: float) -> None:
    assert 0 < plan["mfu"] <= plan["hfu"] <= 1
    assert plan["device_peak_flops"] == pytest.approx(ratio * chip.peak_flops, rel=1e-12)
    reached = (
        plan["tokens_per_s"]
        * plan["flops_per_token"]
        / (plan["devices"] * plan["device_peak_flops"])
    )
    assert plan["mfu"] == pytest.approx(reached, rel=1e-9)


@pytest.mark.parametrize("chip", CHIPS)
def test_no_chip_exceeds_the_peak_of_the_precision_that_runs(chip: str) -> None:
    known, tried = load_chip(chip), 0
    ratios = {"bf16": 1.0, "fp32": None, "fp8": None, "mxfp8": None, "nvfp4": None}
    formats = dict(known.formats)
    ratios |= {
        "fp32": formats.get("fp32"),
        "fp8": formats.get("fp8"),
        "mxfp8": formats.get("mxfp8"),
    }
    ratios["nvfp4"] = formats.get("fp4")
    for precision in PRECISIONS:
        for datasheet in (False, True):
            plan = _plan(chip, precision, 2048, datasheet=datasheet)
            if plan is not None:
                tried += 1
                _require_shares(plan, known, ratios[precision] or 0.0)
    assert tried


EVERY_DAY = ("bert-large", "llama3-8b", "mixtral-8x7b")


@pytest.mark.parametrize(
    "name",
    [
        name if name in EVERY_DAY else pytest.param(name, marks=pytest.mark.slow)
        for name in sorted(ZOO)
    ],
)
def test_no_bundled_model_exceeds_the_peak(name: str) -> None:
    job: dict[str, Any] = {
        "devices": 512,
        "batch": 512,
        "context": None,
        "microbatch": [1],
        "tensor": None,
    }
    found = [_plan("b200", precision, 0, model=name, **job) for precision in ("bf16", "fp8")]
    for plan, ratio in zip(found, (1.0, 2.0), strict=True):
        if plan is not None:
            _require_shares(plan, load_chip("b200"), ratio)
    assert any(plan is not None for plan in found)


def test_a_long_causal_sequence_is_not_counted_twice() -> None:
    """With all s x s pairs in the numerator a causal kernel would seem to exceed the peak at
    length."""
    plan = _plan(
        "h100", "bf16", 262_144, batch=8, zero=3, tensor=[8], attention="fused", datasheet=True
    )
    assert plan is not None and plan["hfu"] <= 1
    assert plan["full_flops_per_token"] > 1.9 * plan["flops_per_token"]


def test_fp8_is_a_share_of_the_fp8_peak_and_the_note_says_so(tmp_path: Path) -> None:
    plain, low = (_plan("h100", precision, 4096) for precision in ("bf16", "fp8"))
    assert plain is not None and low is not None
    ratio = low["mfu"] * low["batch_s"] / (plain["mfu"] * plain["batch_s"])
    assert ratio == pytest.approx(0.5)  # the same FLOP of twice the peak
    assert "FP8 peak at the rated clock, 1.979 PFLOP/s" in flops_text(
        low.document, low["precision"]
    )
    page = plan_page(low.document, "plan")
    assert "FP8 peak at the rated clock, 1.979 PFLOP/s a device" in page and "BF16 peak" not in page


def test_a_searched_chip_has_the_peak_of_its_rated_clock_as_a_shipped_one_has(
    tmp_path: Path,
) -> None:
    space = """schema = "phaze.space/2"
name = "one"
title = "one chip"
base = "n5-reticle-base"
[axes]
clusters = [12, 14]
arrays = [8]
rows = [64]
columns = [64]
lanes = [512]
operand_buffer = ["512 KiB"]
registers = ["1 MiB"]
global_buffer = ["25 MiB"]
global_width = [5120]
hbm_stacks = [5]
links = ["450 GB/s"]
[keep]
most_area = "800 mm2"
sustained_power = "500 W"
"""
    (tmp_path / "one.toml").write_text(space)
    found = api.search(
        model="bert-large",
        out=tmp_path / "run",
        settings=[f"space={tmp_path / 'one.toml'}"],
        devices=16,
        batch=64,
    )
    chip, (model,) = found.document["chip"], found.document["models"]
    rated_hz = chip["clusters"]["clock_hz"]
    assert chip["clock_hz"] < rated_hz
    macs = chip["tensor_cores"] * chip["rows"] * chip["columns"]
    assert chip["peak_flops"] == model["device_peak_flops"] == pytest.approx(2 * macs * rated_hz)
    shipped = load_chip("h100")
    assert (
        shipped.peak_flops
        == 2.0 * shipped.macs * shipped.rated_clock_hz
        > 2.0 * shipped.macs * shipped.clock_hz
    )

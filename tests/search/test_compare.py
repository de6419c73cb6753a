"""Comparing chips, and the page of a run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran
from tests.search.test_verify import run

__all__ = ["run"]
SMALL = ("--rules", "icml24", "--set", "training.microbatches=[8]")


def test_the_searched_placement_is_never_slower_than_the_experts(phaze: Callable[..., Ran]) -> None:
    ran = phaze("compare", "--model", "bert-large", "--chip", "tpu-v4", *SMALL, "--json")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [(row["chip"], row["placement"]) for row in rows] == [
        (chip, kind)
        for kind in ("experts", "rule of thumb", "searched")
        for chip in ("tpu-v4-paper", "tpu-v4")
    ]
    rates = [row["throughput_per_s"] for row in rows]
    assert rates[4] >= max(rates[0], rates[2]) and rates[5] >= max(rates[1], rates[3])
    assert rows[0]["ratio"] == rows[2]["ratio"] == rows[4]["ratio"] == 1.0
    assert rows[5]["ratio"] == pytest.approx(rates[5] / rates[4])


@pytest.mark.parametrize(("devices", "copies"), [(64, 8), (1000, 125), (4, None)])
def test_the_experts_have_as_many_copies_as_there_are_devices_for(
    devices: int, copies: int | None, phaze: Callable[..., Ran]
) -> None:
    ran = phaze(
        "compare", "--model", "bert-large", *SMALL, "--set", f"training.devices={devices}", "--json"
    )
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["rows"][0]["data"] == copies


def test_the_chip_of_a_run_joins_the_table(run: Path, phaze: Callable[..., Ran]) -> None:
    ran = phaze("compare", run / "study.toml", "--run", run)
    assert ran.code == 0 and "searched" in ran.out
    result = json.loads((run / "result.json").read_text())
    again = json.loads(phaze("compare", run / "study.toml", "--run", run, "--json").out)["rows"][-1]
    assert again["chip"] == result["chip"]["name"]
    assert again["throughput_per_s"] == pytest.approx(result["models"][0]["throughput_per_s"])

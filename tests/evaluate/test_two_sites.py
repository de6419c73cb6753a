"""Replicas at two sites far from each other: a slow link between them is never hidden away."""

from pathlib import Path
from typing import Any

import pytest

import phaze

LEVELS = """schema = "phaze.cluster/1"
name = "sites"
title = "two sites"
devices = 512
chip = "h100"
stack = "megatron-core"
[[levels]]
name = "node"
kind = "switch"
size = 8
bandwidth = "450 GB/s"
latency = "1 us"
[[levels]]
name = "fabric"
kind = "switch"
size = 32
bandwidth = "50 GB/s"
latency = "5 us"
[[levels]]
name = "sites"
kind = "switch"
size = 2
bandwidth = "{bandwidth}"
latency = "{latency}"
"""


def _step(folder: Path, zero: int, bandwidth: str, latency: str) -> dict[str, Any]:
    """The priced plan of 512 replicas over both sites."""
    path = folder / "sites.toml"
    path.write_text(LEVELS.format(bandwidth=bandwidth, latency=latency), encoding="utf-8")
    plan = {"tensor": 1, "pipeline": 1, "data": 512, "microbatch": 1, "zero": zero}
    run = {
        "schema": "phaze.run/1", "model": "llama3-8b", "sequence": 8192, "chip": "h100",
        "cluster": str(path), "devices": 512, "batch": 512, "plan": plan,
    }  # fmt: skip
    return dict(phaze.price(run).document)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_a_latency_of_ten_seconds_between_sites_is_not_hidden_behind_one_pass(
    tmp_path: Path, zero: int
) -> None:
    """A small message takes a quarter of it at the least, and two seconds of work are there to hide
    one of several pieces."""
    far, near = (_step(tmp_path, zero, "50 GB/s", latency) for latency in ("10 s", "5 us"))
    work_s = far["breakdown"]["forward_s"] + far["breakdown"]["backward_s"]
    assert work_s < 2.0
    assert far["batch_s"] > near["batch_s"] + 2.5


@pytest.mark.parametrize("zero", [0, 1])
def test_a_link_of_a_megabyte_a_second_takes_what_crosses_it(tmp_path: Path, zero: int) -> None:
    """Each device hands on its share of the gradients at least once: 8 billion in 16 bits, of which
    256 ranks of a site have 1/256 each."""
    slow = _step(tmp_path, zero, "1 MB/s", "5 us")
    assert slow["batch_s"] > 8.0e9 * 2 / 256 / 1e6
    slower = _step(tmp_path, zero, "0.1 MB/s", "5 us")
    assert slower["batch_s"] > 9 * slow["batch_s"]

"""Plans as MaxText's configuration: every key is one of the release's, every refusal says what to
plan instead."""

import json
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.export.maxtext_mesh import axes, inside
from phaze.export.notation import flat_yaml
from tests.export.launching import written
from tests.export.maxtext_splits import MAXTEXT, SIZES
from tests.export.splits import ALONE, EVEN, ONE, experts, split

# Names and types of all keys, recorded by tests/export/against_maxtext.py, which has the release
# itself read them.
KNOWN: dict[str, str] = json.loads(
    (Path(__file__).parent / "recorded" / "maxtext-0.2.5.json").read_text()
)


@pytest.mark.parametrize("name", MAXTEXT)
def test_maxtext_knows_every_key_and_its_type(name: str) -> None:
    text = written("maxtext", MAXTEXT[name])
    for key, value in flat_yaml(text, "job.yml").items():
        if key == "base_config":
            continue
        kind = KNOWN[key]
        if kind == "<class 'bool'>":
            assert isinstance(value, bool)
        elif kind == "<class 'int'>" or "PositiveInt" in kind:
            assert isinstance(value, int)
    rows = [line for line in text.splitlines() if not line.startswith("#")]
    assert all("  # " in line for line in rows)


@pytest.mark.parametrize("name", MAXTEXT)
def test_the_mesh_has_every_device_once_and_fills_whole_slices(name: str) -> None:
    wanted = MAXTEXT[name]
    degrees, within = axes(wanted), inside(wanted)
    assert prod(degrees.values()) == wanted.processes
    assert all(degree % within[axis] == 0 for axis, degree in degrees.items())
    if 0 < wanted.node < wanted.processes:
        assert prod(within.values()) == wanted.node


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"stages": EVEN, "model": "llama", "sizes": SIZES}, "--family gpipe"),
        ({"family": "gpipe", "model": "llama", "sizes": SIZES}, "uneven"),
        (
            {"family": "gpipe", "model": "llama", "sizes": SIZES, "stages": EVEN, "batch": 32},
            "needs a multiple",
        ),
        ({**ALONE, "zero": 2}, "--zero 1 or 3"),
        ({**ALONE, "context": 2, "attention": "fused"}, "--zero 3"),
        ({**ALONE, "context": 2, "zero": 3}, "--attention fused"),
        (
            {**ALONE, "context": 2, "zero": 3, "attention": "fused", "context_way": "ulysses"},
            "--context-way all_gather",
        ),
        ({**ALONE, "precision": "fp8-block"}, "fp8-delayed"),
        ({**ALONE, "precision": "fp8-delayed"}, "a larger microbatch"),
        ({**ALONE, "recompute": ("selective",)}, "--recompute none or full"),
        ({**ALONE, "model": "bert-large"}, "no such model"),
        ({**ALONE, "chip": "trainium2"}, "TPUs and GPUs"),
        ({**ALONE, "shard": 4}, "without --shard"),
        ({**ONE, "node": 8, "data": 6, "batch": 96}, "whole nodes"),
    ],
)
def test_maxtext_refuses_what_it_cannot_run(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        written("maxtext", split(**changes))


def test_experts_are_split_as_all_else() -> None:
    with pytest.raises(InputError, match="--tensor 1"):
        written("maxtext", experts(32, model="mixtral-8x7b", zero=3))


def test_a_plan_that_was_priced_for_another_stack_says_so_in_every_file() -> None:
    mine = split(**ALONE, zero=3, data=16)
    for key, stack in (
        ("megatron", "megatron-core"),
        ("torchtitan", "torchtitan"),
        ("maxtext", "maxtext"),
    ):
        assert "priced for the stack nanotron" in written(key, replace(mine, stack="nanotron"))
        assert "priced for the stack" not in written(key, replace(mine, stack=stack))
        assert "priced for the stack" not in written(key, mine)
    assert "priced for the stack torchtitan" in written(
        "deepspeed", replace(mine, stack="torchtitan")
    )


def test_a_plan_is_exported_to_maxtext_and_held_against_the_best(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    job = (
        "--llama hidden=1024,layers=8,heads=16,mlp=2816,vocabulary=32000,sequence=512 --chip "
        "tpu-v5p --devices 8"
    )
    plan = phaze(
        "plan",
        *job.split(),
        "--batch",
        "32",
        "--microbatch",
        "2",
        "--zero",
        "3",
        "--tensor",
        "1",
        "--json",
    )
    (tmp_path / "plan.json").write_text(plan.out)
    found = json.loads(plan.out)
    assert found["launch"]["maxtext"]["refused"] is None
    assert (
        phaze(
            "export", tmp_path / "plan.json", "--to", "maxtext", "--out", tmp_path / "job.yml"
        ).code
        == 0
    )
    back = phaze(
        "plan",
        "--against",
        tmp_path / "job.yml",
        "--chip",
        "tpu-v5p",
        "--zero",
        "3",
        "--tensor",
        "1",
        "--json",
    )
    against = json.loads(back.out)["against"]
    assert against["plan"]["batch_s"] == found["batch_s"]
    assert against["flags"]["framework"] == "maxtext"

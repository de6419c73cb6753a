"""Plans as DeepSpeed's configuration: every key is one of the release's, every refusal says what to
plan instead."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from tests.export.launching import written
from tests.export.splits import ALONE, DEEPSPEED, ONE, split

KNOWN: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "recorded" / "deepspeed-0.19.8.json").read_text()
)


@pytest.mark.parametrize("name", DEEPSPEED)
def test_deepspeed_knows_every_key(name: str) -> None:
    wanted = DEEPSPEED[name]
    read = json.loads(written("deepspeed", wanted))
    for table, keys in KNOWN.items():
        assert set(read.get(table, {})) <= set(keys)
    steps = (
        read["gradient_accumulation_steps"] * read["train_micro_batch_size_per_gpu"] * wanted.data
    )
    assert steps == read["train_batch_size"] == wanted.batch
    assert read["zero_optimization"]["stage"] == wanted.zero
    # Every key has its reason.
    said = set(read["reasons"])
    for key, value in read.items():
        named = {f"{key}.{inner}" for inner in value} if isinstance(value, dict) else {key}
        assert key == "reasons" or named <= said or key in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "a pipeline"),
        ({**ALONE, "context": 2, "context_way": "ring"}, "--context-way ulysses"),
        ({**ONE, "zero": 3}, "--zero 2"),
        ({**ALONE, "expert": 8}, "experts distributed"),
        ({**ALONE, "precision": "fp8-delayed"}, "bf16 and fp32"),
        ({**ALONE, "recompute": ("layernorm+mlp",)}, "--recompute full"),
        ({**ALONE, "zero": 3, "shard": 4}, "without --shard"),
    ],
)
def test_deepspeed_refuses_what_a_file_cannot_say(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        written("deepspeed", split(**changes))


def test_a_plan_is_exported_to_deepspeed_by_the_command(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    job = (
        "plan --gpt hidden=1024,layers=8,heads=16,vocabulary=51200,sequence=512 --chip "
        "a100-80gb --devices 8 --batch 32"
    )
    plan = phaze(
        *job.split(),
        "--microbatch",
        "2",
        "--tensor",
        "1",
        "--zero",
        "2",
        "--recompute",
        "full",
        "--json",
    )
    (tmp_path / "plan.json").write_text(plan.out)
    read = json.loads(phaze("export", tmp_path / "plan.json", "--to", "deepspeed").out)
    assert read["zero_optimization"]["stage"] == 2
    assert any("gradient_checkpointing_enable" in note for note in read["reasons"]["notes"])

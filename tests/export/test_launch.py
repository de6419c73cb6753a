"""Launch files: every choice of the plan is in them, by an independent reading, and what cannot be told is refused."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.export.megatron import layout, megatron
from phaze.export.source import Split, cut
from phaze.export.torchtitan import torchtitan
from tests.report.runs import PLAN, small_run

# The keys of the tables that torchtitan 0.2.2's job_config.py has, of those that are written.
KEYS = {
    "model": {"name", "flavor"},
    "training": {"local_batch_size", "global_batch_size", "seq_len"},
    "parallelism": {
        "tensor_parallel_degree", "data_parallel_replicate_degree", "data_parallel_shard_degree",
        "fsdp_reshard_after_forward", "pipeline_parallel_degree", "pipeline_parallel_schedule",
        "pipeline_parallel_microbatch_size", "module_fqns_per_model_part",
    },
    "activation_checkpoint": {"mode", "selective_ac_option"},
    "optimizer": {"name"},
}  # fmt: skip


def split(**changes: Any) -> Split:
    """A llama of 16 blocks on 2 x 4 x 8 devices, its stages uneven."""
    plain = Split(
        model="llama3-8b", chip="h100", tensor=2, pipeline=4, data=8, chunks=1, microbatch=2, batch=256, sequence=8192,
        sequence_parallel=True, optimizer="adam", precision="bf16", zero=1, order="data", attention="eager",
        hides_synchronisation=True, recompute=("full",) * 4, devices=(2,) * 4,
        stages=((3, True, False), (5, False, False), (5, False, False), (3, False, True)),
        sizes={"layers": 16, "hidden": 4096, "heads": 32},
    )  # fmt: skip
    return replace(plain, **changes)


def flags_of(text: str) -> dict[str, list[str]]:
    """The flags of a shell array, comments left out, as a shell reads them."""
    inside = text[text.index("(\n") + 2 : text.index("\n)\n")]
    words = shlex.split(inside, comments=True)
    found: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            found[word] = []
            last = word
        else:
            found[last].append(word)
    return found


def unrolled(text: str) -> list[str]:
    """A layout string without its multiplications, stage by stage."""
    text = re.sub(r"\(([^)]+)\)\*(\d+)", lambda m: m[1] * int(m[2]), text.replace(",", ""))
    return re.sub(r"(.)\*(\d+)", lambda m: m[1] * int(m[2]), text).split("|")


def test_megatron_gets_every_choice_with_a_reason() -> None:
    text = megatron(split())
    flags = flags_of(text)
    assert flags["--tensor-model-parallel-size"] == ["2"]
    assert flags["--pipeline-model-parallel-size"] == ["4"]
    assert unrolled(flags["--pipeline-model-parallel-layout"][0]) == ["Ettt", "ttttt", "ttttt", "tttL"]
    assert flags["--micro-batch-size"] == ["2"]
    assert flags["--global-batch-size"] == ["256"]
    assert flags["--recompute-granularity"] == ["full"]
    assert {"--use-distributed-optimizer", "--sequence-parallel", "--bf16", "--overlap-grad-reduce"} <= set(flags)
    assert "--use-tp-pp-dp-mapping" not in flags
    inside = text[text.index("(\n") + 2 : text.index("\n)\n")].splitlines()
    assert all("#" in line or line.strip().startswith("--pipeline-model-parallel-layout") for line in inside)
    assert "Megatron Core 0.19" in text


def test_megatron_needs_no_layout_where_stages_are_even() -> None:
    even = ((4, True, False), (4, False, False), (4, False, False), (4, False, True))
    assert "--pipeline-model-parallel-layout" not in megatron(split(stages=even))


@given(pipeline=st.integers(2, 6), chunks=st.integers(1, 4), each=st.integers(1, 4))
def test_a_layout_holds_every_block_once_in_order(pipeline: int, chunks: int, each: int) -> None:
    blocks = each * chunks
    stages = tuple((blocks, rank == 0, rank == pipeline - 1) for rank in range(pipeline))
    text = layout(split(pipeline=pipeline, chunks=chunks, stages=stages, devices=(2,) * pipeline))
    found = unrolled(text)
    assert len(found) == pipeline * chunks
    assert "".join(found) == "E" + "t" * blocks * pipeline + "L"
    for rank in range(pipeline):
        assert sum(found[chunk * pipeline + rank].count("t") for chunk in range(chunks)) == blocks


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"devices": (1, 2, 2, 2)}, "1 to 2 devices"),
        ({"batch": 250}, "not a multiple"),
        ({"recompute": ("full", "full", "full", "none")}, "recompute differently"),
        ({"model": "t5-large"}, "encoders"),
        ({"model": "mixtral-8x7b"}, "experts"),
        ({"model": "bert-large"}, "uneven"),
        ({"chunks": 2}, "3 blocks in 2 chunks"),
    ],
)
def test_megatron_refuses_what_it_cannot_run(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        megatron(split(**changes))


def test_torchtitan_gets_every_choice() -> None:
    text = torchtitan(split())
    job = tomllib.loads(text)
    for name, table in job.items():
        assert set(table) <= KEYS[name], name
    ways = job["parallelism"]
    assert (ways["tensor_parallel_degree"], ways["pipeline_parallel_degree"]) == (2, 4)
    assert (ways["data_parallel_shard_degree"], ways["data_parallel_replicate_degree"]) == (8, 1)
    parts = ways["module_fqns_per_model_part"]
    assert [len(part) for part in parts] == [4, 5, 5, 5]
    assert parts[0][0] == "tok_embeddings"
    assert parts[-1][-2:] == ["norm", "output"]
    assert [name for part in parts for name in part if name.startswith("layers")] == [f"layers.{i}" for i in range(16)]
    assert job["training"] == {"local_batch_size": 32, "global_batch_size": 256, "seq_len": 8192}
    assert job["activation_checkpoint"]["mode"] == "full"
    assert "torchtitan 0.2.2" in text


def test_torchtitan_interleaves_chunks() -> None:
    stages = ((4, True, False), (4, False, True))
    job = tomllib.loads(
        torchtitan(split(pipeline=2, chunks=2, stages=stages, devices=(2, 2), recompute=("none", "none")))
    )
    parts = job["parallelism"]["module_fqns_per_model_part"]
    assert parts[0] == ["tok_embeddings", "layers.0", "layers.1"]
    assert parts[3] == ["layers.6", "layers.7", "norm", "output"]
    assert job["parallelism"]["pipeline_parallel_schedule"] == "Interleaved1F1B"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "gpt3-175b"}, "no such model"),
        ({"zero": 0}, "replication stands alone"),
        ({"sequence_parallel": False}, "without sequence parallelism"),
        ({"optimizer": "sgd"}, "no optimizer sgd"),
        ({"recompute": ("none", "full", "full", "full")}, "recompute differently"),
    ],
)
def test_torchtitan_refuses_what_it_cannot_run(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        torchtitan(split(**changes))


def test_layers_that_are_no_chain_are_refused() -> None:
    with pytest.raises(InputError, match="no chain"):
        cut([0, 1, 1, 2, 1, 3], [{"layers": [0, 1, 2, 3, 4, 5]}], "made")


def test_what_lies_before_the_blocks_stays_in_one_stage() -> None:
    with pytest.raises(InputError, match="spread over the stages 0, 1"):
        cut([0, 3, 1, 1, 2], [{"layers": [0]}, {"layers": [1, 2]}, {"layers": [3, 4]}], "made")


def test_a_plan_is_exported_by_the_command(phaze: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(phaze(*PLAN.split(), "--json").out)
    ran = phaze("export", tmp_path / "plan.json", "--to", "megatron")
    assert ran.code == 0, ran.err
    plan = json.loads((tmp_path / "plan.json").read_text())
    flags = flags_of(ran.out)
    assert flags["--tensor-model-parallel-size"] == [str(plan["tensor"])]
    assert flags["--num-layers"] == ["8"]
    refused = phaze("export", tmp_path / "plan.json", "--to", "torchtitan", "--json")
    assert refused.code == 2
    assert "has no such model" in json.loads(refused.out)["error"]
    assert phaze("export", tmp_path / "plan.json", "--to", "nonsense").code == 2


def test_a_search_is_exported_by_the_command(phaze: Callable[..., Any], tmp_path: Path) -> None:
    run = small_run(tmp_path)
    ran = phaze("export", run, "--to", "megatron")
    result = json.loads((run / "result.json").read_text())
    stages = result["models"][0]["plan"]["stages"]
    uneven = len({len(stage["layers"]) for stage in stages}) > 1 and len(stages) > 1
    assert ran.code == (2 if uneven else 0), ran.err

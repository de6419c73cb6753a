"""Launch files: every choice of the plan is in them, by an independent reading, and what cannot be
told is refused."""

import argparse
import ast
import csv
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.export.megatron_pipeline import layout
from phaze.export.source import cut
from phaze.graph.zoo import load_model
from tests.export.against_releases import words_of
from tests.export.launching import not_as_planned, written
from tests.export.splits import ALONE, EVEN, MEGATRON, ONE, TORCHTITAN, split
from tests.report.runs import PLAN, small_run

RECORDED = Path(__file__).parent / "recorded"


def parser_of(path: Path) -> argparse.ArgumentParser:
    """A parser with the flags, forms, types and choices that a release was seen to have."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    with path.open(newline="") as rows:
        for row in csv.DictReader(rows):
            if row["flag"] == "--help":
                continue
            if row["takes"] == "switch":
                parser.add_argument(row["flag"], action="store_true")
                continue
            kind: Any = {"int": int, "float": float, "": str}[row["type"]]
            count: Any = (
                None
                if row["takes"] == "1"
                else row["takes"]
                if row["takes"] in "*+?"
                else int(row["takes"])
            )
            parser.add_argument(
                row["flag"], nargs=count, type=kind, choices=row["choices"].split() or None
            )
    return parser


def tables_of(job: dict[str, Any], above: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of a job file by dotted names, each with its own keys."""
    for name, table in job.items():
        yield (
            above + name,
            {key: value for key, value in table.items() if not isinstance(value, dict)},
        )
        inner = {key: value for key, value in table.items() if isinstance(value, dict)}
        yield from tables_of(inner, f"{above}{name}.")


@pytest.fixture(scope="module")
def release() -> argparse.ArgumentParser:
    """The flags of Megatron Core 0.19.2, recorded by ``tests/export/against_releases.py``."""
    return parser_of(RECORDED / "megatron-core-0.19.2.csv")


def flags_of(text: str) -> dict[str, list[str]]:
    """Every flag of a launch file with its values."""
    found: dict[str, list[str]] = {}
    for word in words_of(text):
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
    text = written("megatron", split())
    flags = flags_of(text)
    assert flags["--tensor-model-parallel-size"] == ["2"]
    assert flags["--pipeline-model-parallel-size"] == ["4"]
    assert unrolled(flags["--pipeline-model-parallel-layout"][0]) == [
        "Ettt",
        "ttttt",
        "ttttt",
        "tttL",
    ]
    assert flags["--micro-batch-size"] == ["2"]
    assert flags["--global-batch-size"] == ["256"]
    assert flags["--recompute-granularity"] == ["full"]
    assert {
        "--use-distributed-optimizer",
        "--sequence-parallel",
        "--bf16",
        "--overlap-grad-reduce",
    } <= set(flags)
    assert "--use-tp-pp-dp-mapping" not in flags
    inside = text[text.index("(\n") + 2 : text.index("\n)\n")].splitlines()
    assert all(
        "#" in line or line.strip().startswith("--pipeline-model-parallel-layout")
        for line in inside
    )
    assert "Megatron Core 0.19.2" in text


@pytest.mark.parametrize("name", MEGATRON)
def test_megatron_knows_every_flag_and_value(name: str, release: argparse.ArgumentParser) -> None:
    read = release.parse_args(words_of(written("megatron", MEGATRON[name])))
    assert read.tensor_model_parallel_size == MEGATRON[name].tensor
    assert read.global_batch_size == MEGATRON[name].batch
    assert bool(read.bf16) == (MEGATRON[name].precision != "fp32")


def test_a_flag_that_megatron_does_not_have_is_seen(release: argparse.ArgumentParser) -> None:
    for wrong in (
        ["--zero-stage", "1"],
        ["--recompute-granularity", "some"],
        ["--micro-batch-size", "two"],
    ):
        with pytest.raises((argparse.ArgumentError, SystemExit)):
            release.parse_args(wrong)


def test_megatron_fsdp_gets_all_that_it_insists_on() -> None:
    for stage, kind in ((2, "optim_grads"), (3, "optim_grads_params")):
        text = written("megatron", split(**ALONE, zero=stage))
        flags = flags_of(text)
        assert flags["--data-parallel-sharding-strategy"] == [kind]
        assert flags["--ckpt-format"] == ["fsdp_dtensor"]
        assert {"--use-megatron-fsdp", "--use-distributed-optimizer"} <= set(flags)
        assert "unset CUDA_DEVICE_MAX_CONNECTIONS" in text


def test_tensor_parallelism_sets_the_environment_it_needs() -> None:
    assert "export CUDA_DEVICE_MAX_CONNECTIONS=1" in written("megatron", split(**ONE))
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in written("megatron", split(**ALONE))


def test_megatron_needs_no_layout_where_stages_are_even() -> None:
    assert "--pipeline-model-parallel-layout" not in written("megatron", split(stages=EVEN))


def test_torchtitan_folds_a_v_and_names_pytorchs_schedules() -> None:
    names = {"gpipe": "GPipe", "zb-interleaved": "InterleavedZeroBubble", "zb-v": "ZBVZeroBubble"}
    stages = ((4, True, False), (2, False, True))
    for family, schedule in {**names, "dualpipe-v": "DualPipeV"}.items():
        chunks = 1 if family == "gpipe" else 2
        own = split(
            pipeline=2,
            chunks=chunks,
            stages=stages,
            devices=(2, 2),
            recompute=("none",) * 2,
            family=family,
        )
        job = tomllib.loads(written("torchtitan", own))["parallelism"]
        assert job["pipeline_parallel_schedule"] == schedule
        parts = job["module_fqns_per_model_part"]
        assert (parts[0][0], parts[-1][-1]) == ("tok_embeddings", "output")
        counts = [sum(name.startswith("layers.") for name in part) for part in parts]
        folded = family in ("zb-v", "dualpipe-v")
        assert counts == ([4, 2] if family == "gpipe" else [2, 1, 1, 2] if folded else [2, 1, 2, 1])
        if family != "gpipe":
            assert (
                "what follows the blocks" in " ".join(not_as_planned("torchtitan", own))
                or not folded
            )
    with pytest.raises(
        InputError, match="two stages a rank or more; plan with --family zb-interleaved"
    ):
        written("torchtitan", split(stages=EVEN, family="zb-h1"))
    with pytest.raises(
        InputError,
        match=r"the pipeline schedule zb-v; Megatron-LM .* runs 1F1B, interleaved or not",
    ):
        written("megatron", split(stages=EVEN, chunks=2, family="zb-v"))


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
        (
            {"chunks": 2, "stages": EVEN, "batch": 240},
            "15 microbatches of a replica are not a multiple",
        ),
        ({"zero": 2}, "ZeRO 2 with a pipeline"),
        ({"zero": 3}, "plan with --zero 1"),
    ],
)
def test_megatron_refuses_what_it_cannot_run(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        written("megatron", split(**changes))


KINDS = {
    "<class 'bool'>": bool,
    "list[str]": list,
    "list[str] | str": list,
    "<class 'int'>": int,
    "<class 'str'>": str,
    "list[list[str]] | None": list,
}


@pytest.mark.parametrize("name", TORCHTITAN)
def test_torchtitan_knows_every_key_and_value(name: str) -> None:
    known = json.loads((RECORDED / "torchtitan-0.2.2.json").read_text())
    for table, keys in tables_of(tomllib.loads(written("torchtitan", TORCHTITAN[name]))):
        for key, value in keys.items():
            kind = known[table][key]
            if kind.startswith("Literal"):
                assert repr(value) in kind
            else:
                assert isinstance(value, KINDS[kind]), key


def test_torchtitan_gets_every_choice() -> None:
    text = written("torchtitan", split())
    job = tomllib.loads(text)
    ways = job["parallelism"]
    assert (ways["tensor_parallel_degree"], ways["pipeline_parallel_degree"]) == (2, 4)
    assert (ways["data_parallel_shard_degree"], ways["data_parallel_replicate_degree"]) == (8, 1)
    parts = ways["module_fqns_per_model_part"]
    assert [len(part) for part in parts] == [4, 5, 5, 5]
    assert parts[0][0] == "tok_embeddings"
    assert parts[-1][-2:] == ["norm", "output"]
    assert [name for part in parts for name in part if name.startswith("layers")] == [
        f"layers.{i}" for i in range(16)
    ]
    assert job["training"] == {"local_batch_size": 32, "global_batch_size": 256, "seq_len": 8192}
    assert job["activation_checkpoint"]["mode"] == "full"
    assert "torchtitan 0.2.2" in text


def test_sizes_without_a_flavour_come_with_a_module_that_adds_it(
    phaze: Callable[..., Any], tmp_path: Path
) -> None:
    text = written("torchtitan", TORCHTITAN["llama2-7b"])
    assert 'flavor = "phaze"' in text
    assert 'custom_import = "phaze_flavor"' in text
    assert "#         ffn_dim_multiplier=" in text
    for changes, said in (
        ({"tied": 1}, "ties none"),
        ({"head_dim": 96}, "head_dim = hidden / heads"),
    ):
        sizes = {**TORCHTITAN["llama by sizes"].sizes, **changes}
        with pytest.raises(InputError, match=said):
            written("torchtitan", replace(TORCHTITAN["llama by sizes"], sizes=sizes))
    job = (
        "plan --model llama2-7b --chip h100 --devices 8 --batch 32 --microbatch 1 --tensor 1 "
        "--zero 2"
    )
    (tmp_path / "plan.json").write_text(phaze(*job.split(), "--json").out)
    ran = phaze(
        "export", tmp_path / "plan.json", "--to", "torchtitan", "--out", tmp_path / "job.toml"
    )
    assert "phaze_flavor.py" in ran.out.replace("\n", "")
    module = ast.parse((tmp_path / "phaze_flavor.py").read_text())
    (call,) = [node for node in ast.walk(module) if isinstance(node, ast.Call)]
    scope = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg}
    base = int(2 * (4 * scope["dim"]) / 3)
    assert int(scope["ffn_dim_multiplier"] * base) == 11008
    assert (scope["n_layers"], scope["n_kv_heads"], scope["vocab_size"]) == (32, 32, 32000)


def test_torchtitan_interleaves_chunks() -> None:
    stages = ((4, True, False), (4, False, True))
    job = tomllib.loads(
        written(
            "torchtitan",
            split(pipeline=2, chunks=2, stages=stages, devices=(2, 2), recompute=("none", "none")),
        )
    )
    parts = job["parallelism"]["module_fqns_per_model_part"]
    assert parts[0] == ["tok_embeddings", "layers.0", "layers.1"]
    assert parts[3] == ["layers.6", "layers.7", "norm", "output"]
    assert job["parallelism"]["pipeline_parallel_schedule"] == "Interleaved1F1B"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "gpt3-175b"}, "no such model"),
        ({"zero": 0}, "replication cannot be combined with it"),
        ({"sequence_parallel": False}, "without sequence parallelism"),
        ({"optimizer": "sgd"}, "no optimizer sgd"),
        ({"recompute": ("none", "full", "full", "full")}, "recompute differently"),
        ({"data": 1}, "mixed precision with sharding only"),
        ({"precision": "fp8-block"}, "fp8-tensorwise and mxfp8 alone"),
        ({"precision": "nvfp4"}, "products in nvfp4"),
        ({"chunks": 2}, "chunks that do not divide"),
        (
            {"chunks": 2, "stages": EVEN, "batch": 144},
            "9 microbatches of a replica do not divide into 2 rounds",
        ),
    ],
)
def test_torchtitan_refuses_what_it_cannot_run(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        written("torchtitan", split(**changes))


def test_torchtitan_says_what_runs_otherwise_than_planned() -> None:
    assert written("torchtitan", split(order="pipeline")).count("Not as planned") == 3
    assert "Not as planned" not in written("torchtitan", split(zero=3, attention="fused"))


def test_layers_that_are_no_chain_are_refused_in_a_pipeline() -> None:
    gemma = load_model("gemma-2-27b", attention="fused")
    halves = [{"layers": list(range(24))}, {"layers": list(range(24, len(gemma.calls)))}]
    with pytest.raises(InputError, match="not a chain"):
        cut(gemma, halves, "gemma-2-27b")
    assert cut(gemma, [{"layers": list(range(len(gemma.calls)))}], "gemma-2-27b") == (
        (46, True, True),
    )


def test_dense_blocks_before_a_mixture_of_experts_are_blocks() -> None:
    model = load_model("deepseek-v3", attention="fused")
    assert cut(
        model,
        [{"layers": list(range(5))}, {"layers": list(range(5, len(model.calls)))}],
        "deepseek-v3",
    ) == (
        (4, True, False),
        (57, False, True),
    )


def test_what_lies_after_the_blocks_stays_in_one_stage() -> None:
    gpt = load_model("gpt3-175b")
    last = len(gpt.calls) - 1
    with pytest.raises(InputError, match="what lies after its blocks is spread over the stages 0"):
        cut(gpt, [{"layers": [*range(50), last]}, {"layers": list(range(50, last))}], "gpt3-175b")


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

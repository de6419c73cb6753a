"""Launch files read back, and a given plan beside the best one."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.export.against import against_document
from phaze.export.launch_run import Launched, LaunchOptions, read_launch
from phaze.export.shell import flags_of, words_of
from tests.cli.test_commands import Phaze
from tests.export.launching import read_back

GPT = {"hidden": 512, "layers": 8, "heads": 8, "vocabulary": 8192, "sequence": 512}


@pytest.mark.parametrize(
    ("lines", "seen"),
    [
        ("ici_fsdp_parallelism: -1", "left to the number of devices"),
        ("ici_fsdp_parallelism: two", "out of range"),
        ("ici_sequence_parallelism: 2\nici_fsdp_parallelism: 1", "not priced"),
        ("ici_fsdp_parallelism: 1\nremat_policy: custom", "priced policy"),
        ("ici_fsdp_parallelism: 1\nquantization: int8", "priced scheme"),
        ("ici_fsdp_parallelism: 8\nper_device_batch_size: 0.3", "not whole microbatches"),
        ("ici_fsdp_parallelism: 1\nici_fsdp_parallelism: 1", "twice"),
        ("logical_axis_rules:\n  - a", "line 1"),
        (
            "ici_fsdp_parallelism: 1\nici_pipeline_parallelism: 2\nnum_pipeline_repeats: 4",
            "circles",
        ),
        ("ici_fsdp_parallelism: 1\nper_device_batch_size: .nan", "out of range"),
    ],
)
def test_what_cannot_be_read_of_maxtext_is_said(lines: str, seen: str) -> None:
    with pytest.raises(InputError, match=seen):
        read_back("maxtext", lines)


@given(st.text(alphabet=st.sampled_from("ab: \n#-[]{}'\"0_.1e"), max_size=60))
def test_any_yaml_is_a_launch_or_a_sentence(text: str) -> None:
    with contextlib.suppress(InputError):
        read_back("maxtext", text, 8)


def test_a_shell_file_is_read_and_never_run(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    text = f"""
    N=8; TP=4   # a comment with 'a quote
    ARGS="--micro-batch-size 2 --global-batch-size ${{GBS:-64}}"
    X=$(touch {touched}) `touch {touched}`
    torchrun --nproc_per_node $N --nnodes=2 train.py $ARGS --tensor-model-parallel-size ${{TP}} --lr $LR
    """.replace("; ", "\n")
    launch = read_back("megatron", text.replace("'a quote", "a quote"))
    assert not touched.exists()
    assert (launch.devices, launch.batch) == (16, 64)
    assert (launch.plan["tensor"], launch.plan["microbatch"]) == (4, 2)
    assert "--lr" in launch.not_read


@pytest.mark.parametrize(
    ("flags", "seen"),
    [
        ("--micro-batch-size $MBS", "set outside this file"),
        ("--micro-batch-size two", "out of range"),
        ("--micro-batch-size", "no value"),
        (
            "--micro-batch-size 1 --context-parallel-size 2 --cp-comm-type a2a+p2p",
            "product of two degrees",
        ),
        (
            "--micro-batch-size 1 --context-parallel-size 8 --cp-comm-type a2a+p2p",
            "phaze prices 4 2",
        ),
        (
            "--micro-batch-size 1 --context-parallel-size 8 --cp-comm-type ring",
            "priced context way",
        ),
        ("--micro-batch-size 1 --num-experts 8 --num-layers 4 --moe-layer-freq 2", "dense layers"),
        ("--micro-batch-size 1 --recompute-granularity some", "granularity"),
        ("--micro-batch-size 1 --recompute-granularity full --recompute-method block", "block"),
        (
            (
                "--micro-batch-size 1 --pipeline-model-parallel-size 2 "
                "--pipeline-model-parallel-layout 'Et|mL'"
            ),
            "layout",
        ),
        (
            (
                "--micro-batch-size 1 --pipeline-model-parallel-size 2 "
                "--pipeline-model-parallel-layout 'Et|t|tL'"
            ),
            "parts",
        ),
        ("--micro-batch-size '1", "shell file"),
    ],
)
def test_what_cannot_be_read_is_said(flags: str, seen: str) -> None:
    with pytest.raises(InputError, match=seen):
        read_back("megatron", flags)


@given(st.text(max_size=60))
def test_any_text_is_flags_or_a_sentence(text: str) -> None:
    with contextlib.suppress(InputError):
        dict(flags_of(words_of(text, "launch.sh")))
        read_back("megatron", f"--micro-batch-size 1 {text}")


def _toml(raw: Mapping[str, Any]) -> str:
    tables = [(name, table) for name, table in raw.items() if isinstance(table, Mapping)]
    text = "".join(
        f"{name} = {json.dumps(value)}\n"
        for name, value in raw.items()
        if not isinstance(value, Mapping)
    )
    for name, table in tables:
        text += f"[{name}]\n" + "".join(
            f"{key} = {json.dumps(value)}\n" for key, value in table.items()
        )
    return text


@given(
    st.dictionaries(
        st.sampled_from(["training", "parallelism", "model", "activation_checkpoint"]),
        st.dictionaries(
            st.sampled_from(
                ["seq_len", "tensor_parallel_degree", "mode", "flavor", "pipeline_parallel_degree"]
            ),
            st.one_of(
                st.integers(-3, 9),
                st.text(max_size=4),
                st.booleans(),
                st.lists(st.integers(), max_size=2),
            ),
        )
        | st.integers(),
    )
)
def test_any_toml_is_a_job_or_a_sentence(raw: Mapping[str, Any]) -> None:
    with contextlib.suppress(InputError):
        read_back("torchtitan", _toml(raw), 8)


def run(**plan: Any) -> dict[str, Any]:
    split = {"tensor": 4, "pipeline": 2, "data": 1, "microbatch": 1, "recompute": "full"}
    return {
        "schema": "phaze.run/1", "gpt": GPT, "chip": "a100-80gb", "cluster": "selene",
        "stack": "megatron-core",
        "devices": 8, "batch": 64, "plan": {**split, **plan},
    }  # fmt: skip


def answer(phaze: Phaze, *options: Any) -> dict[str, Any]:
    ran = phaze("plan", *options, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_differences_sum_to_the_gain_and_the_flags_lead_to_the_best(
    phaze: Phaze, tmp_path: Path
) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(run()))
    document = answer(phaze, "--against", path)
    against = document["against"]
    given_s, best_s = against["plan"]["batch_s"], document["batch_s"]
    assert given_s > best_s
    assert sum(step["worth_s"] for step in against["differences"]) == pytest.approx(
        given_s - best_s, rel=1e-9
    )
    assert against["gain"] == pytest.approx(given_s / best_s - 1)
    fixed = answer(phaze, "--fixed", path)
    assert fixed["batch_s"] == given_s
    names = {row["name"] for row in against["flags"]["changes"]}
    assert "--recompute-granularity" in names


def test_the_best_plan_against_itself_differs_in_nothing(phaze: Phaze, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(run()))
    best = answer(phaze, "--against", path, "--chunks", "1")
    keys = ("tensor", "pipeline", "data", "microbatch", "zero", "sequence_parallel", "chunks")
    own = {key: best[key] for key in keys} | {"recompute": best["stages"][0]["recompute"]}
    assert {stage["recompute"] for stage in best["stages"]} == {own["recompute"]}
    again = against_document(Launched(run() | {"plan": own}, "run", "mine"), best, "calibrated")
    assert again["differences"] == []
    assert again["flags"]["changes"] == []


def test_a_file_and_the_command_line_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "launch.sh"
    path.write_text("--micro-batch-size 1 --global-batch-size 64 --num-layers 12")
    options: dict[str, Any] = {"model": {"model": "llama3-8b"}, "chip": "h100", "devices": 8}
    with pytest.raises(InputError, match="32 layers"):
        read_launch(str(path), LaunchOptions(**options), "dgx-h100")
    path.write_text("--micro-batch-size 1 --global-batch-size 64 --tensor-model-parallel-size 3")
    with pytest.raises(InputError, match="multiple"):
        read_launch(str(path), LaunchOptions(**options), "dgx-h100")
    path.write_text("--micro-batch-size 1 --global-batch-size 64")
    with pytest.raises(InputError, match="64"):
        read_launch(str(path), LaunchOptions(**options, batch=32), "dgx-h100")
    launched = read_launch(str(path), LaunchOptions(**options), "dgx-h100")
    assert launched.run["plan"]["data"] == 8


def test_a_file_without_the_flags_of_a_batch_is_none(tmp_path: Path) -> None:
    path = tmp_path / "launch.sh"
    path.write_text("--lr 1")
    with pytest.raises(
        InputError,
        match="neither --micro-batch-size nor --global-batch-size; give a shell file with",
    ):
        read_launch(str(path), LaunchOptions({}), None)


def test_a_contradicted_run_is_refused(phaze: Phaze, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(run()))
    assert phaze("plan", "--against", str(path), "--devices", "16").code == 2
    assert phaze("plan", "--against", str(path), "--model", "llama3-8b").code == 2
    path.write_text(json.dumps(run() | {"optimizer": "sgd"}))
    assert phaze("plan", "--against", str(path)).code == 2


SMALL = (
    "--chip",
    "h100",
    "--devices",
    "16",
    "--batch",
    "32",
    "--microbatch",
    "1",
    "--zero",
    "1",
    "--chunks",
    "1",
)


@pytest.mark.parametrize(
    ("job", "read"),
    [
        (
            ("--model", "llama3-8b", "--tensor", "2", "--context", "2", "--recompute", "full"),
            ("context", 2),
        ),
        (
            ("--model", "mixtral-8x7b", "--tensor", "1", "--expert", "8", "--recompute", "full"),
            ("expert", 8),
        ),
    ],
)
def test_an_exported_plan_read_back_is_priced_as_it_was(
    phaze: Phaze, tmp_path: Path, job: tuple[str, ...], read: tuple[str, int]
) -> None:
    plan, flags = tmp_path / "plan.json", tmp_path / "launch.sh"
    document = answer(phaze, *job, *SMALL)
    plan.write_text(json.dumps(document))
    flags.write_text(phaze("export", plan, "--to", "megatron").out)
    options = LaunchOptions({"model": job[1]}, "h100", devices=16)
    launched = read_launch(str(flags), options, "dgx-h100")
    assert launched.run["plan"][read[0]] == document[read[0]] == read[1]
    again = against_document(launched, document, "calibrated")
    assert again["plan"]["batch_s"] == pytest.approx(document["batch_s"], rel=1e-9)
    assert again["differences"] == [] and again["flags"]["changes"] == []


RUN = {
    "schema": "phaze.run/1", "gpt": GPT, "chip": "a100-80gb", "cluster": "selene",
    "stack": "megatron-2021",
    "devices": 8, "batch": 32, "plan": {"tensor": 2, "pipeline": 1, "data": 4, "microbatch": 2},
}  # fmt: skip


def test_a_plan_document_is_a_plan_to_compare_with(phaze: Phaze, tmp_path: Path) -> None:
    sizes = ",".join(f"{key}={value}" for key, value in GPT.items())
    job = ("--gpt", sizes, "--chip", "a100-80gb", "--devices", 8, "--batch", 32)
    narrow = json.loads(phaze("plan", *job, "--tensor", 4, "--microbatch", 1, "--json").out)
    (tmp_path / "plan.json").write_text(json.dumps(narrow))
    found = phaze("plan", "--against", tmp_path / "plan.json", "--json")
    assert found.code == 0, found.err
    document = json.loads(found.out)
    given = document["against"]["plan"]
    assert given["batch_s"] == pytest.approx(narrow["batch_s"]) and given["tensor"] == 4
    assert document["batch_s"] < given["batch_s"] and "restricted" not in document["job"]


def test_a_run_without_a_cluster_stands_in_that_of_its_chip(phaze: Phaze, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(
        json.dumps({key: value for key, value in RUN.items() if key != "cluster"})
    )
    found = phaze("plan", "--against", tmp_path / "run.json", "--json")
    assert found.code == 0, found.err
    assert json.loads(found.out)["job"]["cluster"] == "selene"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batch": "NaN"}, "batch: 'NaN' cannot be used"),
        ({"plan": 3}, "plan: 3 is of the wrong type; give a table"),
        ({"gpt": 3}, "gpt: 3 is of the wrong type; give a table"),
        ({"chip": 3}, "chip: 3 is of the wrong type"),
        ({"devices": "x"}, "devices: 'x' is of the wrong type"),
        ({"schema": "phaze.plan/1"}, "this key is missing"),
        ({"schema": "phaze.plan/1", "job": 3}, "this key is missing"),
    ],
)
def test_a_fault_of_a_run_to_compare_with_is_one_sentence(
    change: dict[str, Any], said: str, phaze: Phaze, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**RUN, **change}))
    found = phaze("plan", "--against", tmp_path / "run.json")
    assert found.code == 2 and said in found.err and found.err.count("\n") == 1, found.err

"""Files of other tools and of a proved plan, launch files, traces, logs, rows, a certificate, with
what reads them."""

import json
from pathlib import Path
from typing import Any

from tests.cli.fuzz_rows import Row, answer_of

LLAMA = "hidden=256,layers=4,heads=4,mlp=512,vocabulary=512,sequence=64"
SIZES = {part.split("=")[0]: int(part.split("=")[1]) for part in LLAMA.split(",")}
JOB = f"--llama {LLAMA} --chip h100 --devices 4 --batch 8 --microbatch 1 --tensor 1,2"
LAUNCH = """#!/usr/bin/env bash
NODES=1
torchrun --nproc-per-node 4 --nnodes $NODES pretrain_gpt.py --tensor-model-parallel-size 2 --sequence-parallel \\
  --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 \\
  --global-batch-size 8 --bf16 --use-distributed-optimizer --recompute-granularity selective
"""
MEASURED_RUN: dict[str, Any] = {
    "schema": "phaze.run/1", "llama": SIZES, "chip": "h100", "cluster": "dgx-h100",
    "stack": "megatron-core",
    "devices": 4, "batch": 8,
    "plan": {"tensor": 1, "pipeline": 1, "data": 4, "microbatch": 1, "recompute": "none",
    "zero": 1},
}  # fmt: skip
CHIPS = "name,chip,clock,tensor,pipeline\nfast,tpu-v4-paper,1.5 GHz,1,1\nplain,tpu-v4-paper,,,\n"
LOG = "".join(
    f" iteration {at}/ 10 | elapsed time per iteration (ms): {12.5 + at / 10} | lm loss: 9.1\n"
    for at in range(1, 6)
)


def _event(
    name: str, cat: str, start: float, length: float, tid: int, **args: Any
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 1,
        "tid": tid,
        "ts": start,
        "dur": length,
        "args": args,
    }


def _trace() -> dict[str, Any]:
    sent = {
        "Collective name": "allreduce",
        "In msg nelems": 524288,
        "dtype": "BFloat16",
        "Group size": 4,
    }
    events = []
    for step in range(2):
        at = 1000.0 * step
        events += [
            _event(f"ProfilerStep#{step}", "user_annotation", at, 900.0, 1),
            _event("aten::linear", "cpu_op", at, 200.0, 1),
            _event("cudaLaunchKernel", "cuda_runtime", at, 4.0, 1),
            _event(
                "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                "kernel",
                at,
                300.0,
                7,
            ),
            _event(
                "flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64>>",
                "kernel",
                at + 300,
                100.0,
                7,
            ),
            _event(
                "void at::native::vectorized_elementwise_kernel<4>", "kernel", at + 400, 100.0, 7
            ),
            _event(
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "kernel", at + 500, 200.0, 20, **sent
            ),
        ]
    return {
        "schemaVersion": 1,
        "distributedInfo": {"rank": 0, "world_size": 4},
        "traceEvents": events,
    }


def write_theirs(folder: Path) -> None:
    """Good files, each of a few lines."""
    texts = {
        "launch.sh": LAUNCH, "measured-run.json": json.dumps(MEASURED_RUN), "chips.csv": CHIPS,
        "log.txt": LOG,
        "trace.json": json.dumps(_trace()),
    }  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _launched(folder: Path) -> list[Row]:
    """A plan's launch files in every form, read back."""
    plan = folder / "llama.json"
    plan.write_text(answer_of("plan", *JOB.split(), "--json"))
    names = {
        "megatron": "launch.sh",
        "torchtitan": "job.toml",
        "maxtext": "job.yml",
        "deepspeed": "ds.json",
    }
    found = []
    for to, name in names.items():
        if to != "megatron":
            (folder / name).write_text(answer_of("export", str(plan), "--to", to))
        found.append(
            Row(
                f"plan --against {folder}/{name} --llama {LLAMA} --chip h100",
                f"{folder}/{name}",
                15,
            )
        )
        found.append(Row(f"export {plan} --to {to}", str(plan), 4))
    return [*found, Row(f"export {plan} --to chakra --out {folder}/traces", str(plan), 4)]


def _measured(folder: Path) -> list[Row]:
    run, line = f"{folder}/measured-run.json", f"{folder}/timeline.json"
    answer_of("plan", "--fixed", run, "--perfetto", line)
    fit = [(f"calibrate --trace {path} --run {run} --out {folder}/fitted", path)
           for path in (f"{folder}/trace.json", line, f"{folder}/log.txt")]  # fmt: skip
    found = [Row(command, path, 12) for command, path in fit]
    return [*found, Row(fit[0][0], run, 8)]


def rows_of_theirs(folder: Path) -> list[Row]:
    """What is read of other tools, and the certificate of a plan."""
    proof = folder / "proof"
    answer_of("plan", *JOB.split(), "--certificate", str(proof))
    chips = Row(
        f"compare {folder}/study.toml --chips {folder}/chips.csv", f"{folder}/chips.csv", 12
    )
    proved = [Row(f"verify {proof}", str(path), 8) for path in sorted(proof.glob("*.json"))]
    return [*_launched(folder), *_measured(folder), chips, *proved]

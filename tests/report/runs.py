"""Small finished runs and plans for tests of pages and exports."""

import json
from pathlib import Path
from typing import Any

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.report.page.search_page import Run
from phaze.search.folder import JOURNAL, run_in
from phaze.search.journal import read_closed, read_evaluated
from phaze.search.question_files import Papers
from phaze.search.task import ModelTask, SearchJob
from tests.search.made import made_job, traced_task

HOSTILE = "<script>alert(1)</script>\"'&"
STUDY = """schema = "phaze.study/1"
rules = "icml24"
name = "small"
models = ["bert-large"]
space = "space.toml"
hbm = ["32 GiB"]
[training]
devices = 64
batch = 256
microbatches = [1, 2]
"""
SPACE = """schema = "phaze.space/1"
name = "small"
title = "a few chips"
base = "tpu-v4-paper"
[axes]
tensor_cores = [4, 16]
rows = [32, 128]
columns = [128]
vector_cores = [4, 16]
lanes = [64, 256]
global_buffer = ["8 MiB", "32 MiB"]
[core_buffers]
least = "1 KiB"
bytes_per_unit = 16
[keep]
area_of = "tpu-v4-paper"
"""
PLAN = (
    "plan --gpt hidden=1024,layers=8,heads=16,vocabulary=51200,sequence=512 --chip "
    "a100-80gb --devices 8 --batch 32 "
    "--microbatch 2 --tensor 1,2"
)
# One whose best plan has alternatives.
CONTESTED_PLAN = PLAN.replace("--batch 32 --microbatch 2", "--batch 128 --microbatch 8,16")


def made_run(folder: Path, tasks: tuple[ModelTask, ...], study: str = "made") -> Run:
    """A run of made models, finished."""
    return run_of_job(folder, made_job(tasks, gap=1e-4), study)


def run_of_job(folder: Path, job: SearchJob, study: str = "made") -> Run:
    """A job run to its end, as a page wants it."""
    done = run_in(folder, Papers(study), job)
    journal = folder / JOURNAL
    rows = read_closed(journal), read_evaluated(journal)
    return Run(job, done.document, *rows, study, str(folder), done.state.chips)


def named(seed: int, name: str) -> ModelTask:
    """A small model with a name of its own, its layers and operators too."""
    return traced_task(seed, name=name)


def small_run(folder: Path) -> Path:
    """The folder of a real search of bert-large over a few chips, by the command line."""
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    (folder / "space.toml").write_text(SPACE)
    run = folder / "run"
    assert (
        exit_code_of(
            app, ["search", str(folder / "study.toml"), "--out", str(run), "--workers", "1"]
        )
        == 0
    )
    return run


def explained(run: Path) -> dict[str, Any]:
    """An explanation of a small run with everything that a page shows of one, written into its
    folder."""
    result = json.loads((run / "result.json").read_text(encoding="utf-8"))
    (model,) = result["models"]
    rate, step_s = model["throughput_per_s"], model["batch_s"]
    steps = [
        {"name": "GEMM FLOPs at peak", "seconds": step_s},
        {"name": "pipeline bubble", "seconds": step_s},
    ]
    neighbour = {
        "axis": "tensor_cores",
        "value": 8,
        "here": 4,
        "chip": "x",
        "refused": "704 of 700 W",
    }
    held = {
        "name": "opt-350m",
        "plan": "TP 1, PP 1, DP 64",
        "batch": 256,
        "sequence": 512,
        "mfu": 0.5,
    }
    amounts = {
        "throughput_per_s": 3 * rate,
        "tokens_per_s_per_device": 4321.0,
        "batch_s": 0.5,
        "energy_j": 5.0,
    }
    near = {"chip": "x", "loss": 0.003, "area_mm2": 764.0, "power_w": 700.0, "usd": 2000.0}
    side = {"changes": None, "chip": None}
    said = {
        "chip": result["chip"]["name"],
        "score": result["objective"]["score"],
        "marginals": [
            {
                "resource": "area <b>",
                "unit": "mm2",
                "now": 100,
                "more": 10,
                "gain": 0.05,
                "chip": "other",
            },
            {"resource": "HBM", "unit": "GiB", "now": 32, "more": 3, "gain": 0.0, "chip": "other"},
        ],
        "neighbours": [{**neighbour, "gain": 0.037, "over": 0.006}],
        "near_misses": [{**neighbour, "gain": 0.037, "over": 0.006}],
        "flatness": {
            "within": 0.01,
            "count": 17,
            "counts": [{"within": 0.001, "count": 3}, {"within": 0.01, "count": 17}],
            "words": "17 chips are within 1 %: all have rows 32 <i>.",
            "smallest": near,
        },
        "deciding": [
            {
                "constant": "support area <i>",
                "less": {"changes": -0.05, "chip": "wide"},
                "more": side,
            }
        ],
        "beside": [
            {
                "chip": name,
                "title": f"{name} <b>",
                "band": 0.2,
                "die_mm2": result["chip"]["area_mm2"] * 0.8,
                "models": [
                    {"name": "bert-large", "throughput_per_s": rate / 2, "steps": steps},
                    {"name": "opt-350m", "throughput_per_s": rate, "steps": steps},
                ],
            }
            for name in ("tpu-v4-paper", "b200")
        ],
        "held_out": [{**held, **amounts, "power_w": 300.0}],
        "alone": [
            {"name": "bert-large", "chip": result["chip"]["name"], "regret": 0.0, "gap": 1e-4},
            {"name": "opt-350m", "chip": "t8 <b>", "regret": 0.021, "gap": 1e-4},
        ],
    }
    (run / "explanation.json").write_text(json.dumps(said), encoding="utf-8")
    return said

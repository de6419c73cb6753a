"""Small finished runs and plans for tests of pages and exports."""

from pathlib import Path

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
    "plan --gpt hidden=1024,layers=8,heads=16,vocabulary=51200,sequence=512 --chip a100-80gb --devices 8 --batch 32 "
    "--microbatch 2 --tensor 1,2"
)


def made_run(folder: Path, tasks: tuple[ModelTask, ...], study: str = "made") -> Run:
    """A run of made models, finished."""
    return run_of_job(folder, made_job(tasks, gap=1e-4), study)


def run_of_job(folder: Path, job: SearchJob, study: str = "made") -> Run:
    """A job run to its end, as a page wants it."""
    done = run_in(folder, Papers(study), job)
    journal = folder / JOURNAL
    rows = read_closed(journal), read_evaluated(journal)
    return Run(job, done.document, *rows, study, str(folder), done.state.opened)


def named(seed: int, name: str) -> ModelTask:
    """A small model with a name of its own, its layers and operators too."""
    return traced_task(seed, name=name)


def small_run(folder: Path) -> Path:
    """The folder of a real search of bert-large over a few chips, by the command line."""
    (folder / "study.toml").write_text(STUDY.replace("space.toml", str(folder / "space.toml")))
    (folder / "space.toml").write_text(SPACE)
    run = folder / "run"
    assert exit_code_of(app, ["search", str(folder / "study.toml"), "--out", str(run), "--workers", "1"]) == 0
    return run

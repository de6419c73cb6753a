"""The searches and comparisons behind the paper's tables: each search in its own folder, resumed if stopped."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaze.graph.zoo import ZOO
from phaze.hardware.chip import Chip
from phaze.hardware.write import toml_text
from phaze.search.candidates import plain_candidates
from phaze.search.code import code_digest
from phaze.search.compare import ComparisonRow, compare
from phaze.search.folder import RESULT, run_in
from phaze.search.question_files import Papers
from phaze.search.spaces import enumerate_space
from phaze.search.task import SearchJob
from phaze.study.load import question_of, read_study, study_of, with_settings

HERE = Path(__file__).parent
MODELS = (
    "bert-large",
    "gpt2-xl",
    "opt-350m",
    "llama2-7b",
    "megatron-bert-large",
    "megatron-gpt2-54",
    "megatron-gpt2-72",
    "gpt3-175b",
)
EXPERTS = {name: split for name in MODELS if (split := ZOO[name].experts) is not None}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: the chip, its document, and the seconds that it took over all its sittings."""

    chip: Chip
    document: dict[str, Any]
    seconds: float


def _job(study: str, settings: Sequence[str]) -> tuple[SearchJob, Papers]:
    raw, origin = read_study(str(HERE / study))
    raw = with_settings(raw, settings)
    question = question_of(study_of(raw, origin.where), reader=origin.reader)
    return question.job, question.papers(toml_text(raw))


def _kept(folder: Path, job: SearchJob) -> dict[str, Any] | None:
    """The result that lies in a folder, if this study and this code made it."""
    if not (folder / RESULT).is_file():
        return None
    document: dict[str, Any] = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    same = document["study_digest"] == job.digest and document["code_digest"] == code_digest()
    return document if same else None


def searched(folder: Path, study: str, settings: Sequence[str] = ()) -> Found:
    """The answer of a search; a finished one is read, a stopped one goes on."""
    job, papers = _job(study, settings)
    document, clock = _kept(folder, job), folder / "seconds.txt"
    spent = float(clock.read_text(encoding="utf-8")) if clock.is_file() else 0.0
    if document is None:
        began = time.monotonic()
        document = run_in(folder, papers, job, os.cpu_count() or 1).document
        spent = round(spent + time.monotonic() - began, 1)
        clock.write_text(f"{spent}\n", encoding="utf-8")
    said = document["chip"]
    return Found(enumerate_space(job.space).chip(int(said["number"]), int(said["hbm_bytes"])), document, spent)


def rows(model: str, chips: Sequence[Chip], settings: Sequence[str] = ()) -> dict[tuple[str, str], ComparisonRow]:
    """One model of the paper's job on some chips, under both splits, by (chip, placement)."""
    job, _ = _job("model.toml", [f'models=["{model}"]', *settings])
    return {(row.chip, row.placement): row for row in compare(job, plain_candidates(job, chips), EXPERTS)}


def one_model(model: str) -> str:
    """The setting that makes a study be about one model."""
    return f'models=["{model}"]'


def one_block(model: str) -> str:
    """The setting that makes a study be about one block of a model."""
    return f'models=[{{name="{model}", part="block", widths=[1]}}]'

"""The searches and comparisons behind the paper's tables: each search in its own folder, resumed if
stopped."""

import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from phaze import api
from phaze.errors import InfeasibleError, InputError
from phaze.graph.zoo import ZOO
from phaze.hardware.chip import Chip
from phaze.hardware.write import toml_text
from phaze.search.candidates import plain_candidates
from phaze.search.chips import enumerate_space
from phaze.search.code import code_digest
from phaze.search.compare import ComparisonRow, compare
from phaze.search.folder import JOURNAL, RESULT, run_in
from phaze.search.journal import SqliteJournal
from phaze.search.question_files import Papers
from phaze.search.task import SearchJob
from phaze.study.load import question_of, study_of
from phaze.study.raw import read_study, with_settings

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
    """What a search found: the chip, its document, the seconds that it took over all its sittings,
    and the chip's value on every axis of its space."""

    chip: Chip
    document: dict[str, Any]
    seconds: float
    axes: tuple[tuple[str, float], ...] = ()

    @property
    def throughput_per_s(self) -> float:
        """Of the first model."""
        return float(self.document["models"][0]["throughput_per_s"])


class Question(NamedTuple):
    """A search: its folder, its study and what is changed of it."""

    folder: Path
    study: str
    settings: tuple[str, ...] = ()


def _job(study: str, settings: Sequence[str]) -> tuple[SearchJob, Papers]:
    raw, origin = read_study(str(HERE / study))
    raw = with_settings(raw, settings)
    question = question_of(study_of(raw, origin.where), reader=origin.reader)
    return question.job, question.papers(toml_text(raw))


def job_of(question: Question) -> SearchJob:
    """The job that a question searches."""
    return _job(question.study, question.settings)[0]


def _kept(folder: Path, job: SearchJob) -> dict[str, Any] | None:
    """The result that lies in a folder, if this study and this code made it."""
    if not (folder / RESULT).is_file():
        return None
    document: dict[str, Any] = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    same = document["study_digest"] == job.digest and document["code_digest"] == code_digest()
    return document if same else None


def _of_another(folder: Path, job: SearchJob) -> bool:
    """Whether a search that another version or study began was stopped here; every folder below the
    runs of make paper is its own."""
    if not (folder / JOURNAL).is_file():
        return False
    try:
        with SqliteJournal(folder / JOURNAL, job.digest, code_digest()):
            return False
    except InputError as fault:
        if "holds a run of" not in str(fault):  # in use, or damaged
            raise
        return True


def searched(
    folder: Path, study: str, settings: Sequence[str] = (), workers: int | None = None
) -> Found:
    """The answer of a search; a finished one is read, a stopped one goes on. ``workers``: as many
    as there are cores, if nothing is said."""
    job, papers = _job(study, settings)
    document, clock = _kept(folder, job), folder / "seconds.txt"
    spent = float(clock.read_text(encoding="utf-8")) if clock.is_file() else 0.0
    if document is None:
        if (folder / RESULT).is_file() or _of_another(
            folder, job
        ):  # of another version or study: begin again
            shutil.rmtree(folder)
            spent = 0.0
        began = time.monotonic()
        document = run_in(folder, papers, job, workers or os.cpu_count() or 1).document
        spent = round(spent + time.monotonic() - began, 1)
        clock.write_text(f"{spent}\n", encoding="utf-8")
    number, memory, chips = (
        int(document["chip"]["number"]),
        int(document["chip"]["hbm_bytes"]),
        enumerate_space(job.space),
    )
    axes = tuple((name, values[number].item()) for name, values in chips.axis_values().items())
    return Found(chips.chip(number, memory), document, spent, axes)


def _answered(question: Question) -> str:
    """Have the answer of a question lie in its folder; where nothing fits, say so."""
    try:
        return searched(*question, workers=1).chip.name
    except InfeasibleError as nothing:
        return str(nothing)


def answer_all(questions: Sequence[Question]) -> None:
    """Every question answered, as many at a time as there are cores: questions are spread, for one
    search has little to spread. What fails is said when all others are done."""
    cores = os.cpu_count() or 1
    failed: list[str] = []
    with ProcessPoolExecutor(cores, multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(_answered, question): question for question in questions}
        for done, future in enumerate(as_completed(waiting), 1):
            folder, fault = waiting[future].folder, future.exception()
            failed += [] if fault is None else [f"{folder}: {fault}"]
            said = future.result() if fault is None else f"failed: {fault}"
            sys.stderr.write(f"{done} of {len(waiting)}: {folder}: {said}\n")
    if failed:
        raise InputError(f"{len(failed)} of {len(questions)} searches", failed[0])


def _page(folder: Path) -> str:
    return str(api.report(str(folder))["page"])


def write_pages(out: Path) -> None:
    """The page of every run below a folder that has an answer and no page of it yet."""
    runs = [path.parent for path in sorted(out.rglob(RESULT))]
    old = [run for run in runs if not _is_newer(run / "report.html", run / RESULT)]
    with ProcessPoolExecutor(os.cpu_count() or 1, multiprocessing.get_context("spawn")) as pool:
        for done, page in enumerate(pool.map(_page, old), 1):
            sys.stderr.write(f"page {done} of {len(old)}: {page}\n")


def _is_newer(page: Path, result: Path) -> bool:
    return page.is_file() and page.stat().st_mtime >= result.stat().st_mtime


def axes_of(found: Found) -> dict[str, float]:
    """The value of a found chip on every axis."""
    return dict(found.axes)


def rows(
    model: str, chips: Sequence[Chip], settings: Sequence[str] = (), study: str | None = None
) -> dict[tuple[str, str], ComparisonRow]:
    """One model of the paper's job on some chips, under both splits, by (chip, placement);
    ``study``: one about it."""
    one = [] if study is not None else [one_model(model)]
    job, _ = _job(study or "model.toml", [*one, *settings])
    return {
        (row.chip, row.placement): row
        for row in compare(job, plain_candidates(job, chips), EXPERTS)
    }


def one_model(model: str) -> str:
    """The setting that makes a study be about one model."""
    return f'models=["{model}"]'


def one_block(model: str) -> str:
    """The setting that makes a study be about one block of a model."""
    return f'models=[{{name="{model}", part="block", widths=[1]}}]'

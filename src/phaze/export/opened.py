"""A finished run, or a plan's document, opened from its files with everything that a page or an export needs."""

from pathlib import Path
from typing import Any

from phaze.documents import parse, read_text
from phaze.errors import InputError
from phaze.report.page.search_page import Run
from phaze.search.folder import JOURNAL, RESULT, STUDY
from phaze.search.journal import read_closed, read_evaluated
from phaze.search.result import SCHEMA
from phaze.study.load import job_of, read_study, study_of

NEEDED = ("name", "chip", "models", "objective", "certificate", "study_digest", "code_digest", "version")


def read_result(folder: Path) -> dict[str, Any]:
    """The answer of a finished run, or an InputError."""
    text, where = read_text(str(folder / RESULT))
    raw = parse(text, "json", where)
    if raw.get("schema") != SCHEMA or any(key not in raw for key in NEEDED):
        raise InputError(where, f"this is no {SCHEMA}", "give the folder of a run that has ended")
    return raw


def run_of(folder: Path) -> Run:
    """A finished run; refused where its study is not the one of its result."""
    if not (folder / RESULT).exists():
        raise InputError(str(folder), "there is no finished run here", "give the folder of one, or search first")
    result = read_result(folder)
    raw, where = read_study(str(folder / STUDY))
    job = job_of(study_of(raw, where))
    if job.digest != result["study_digest"]:
        raise InputError(where, "the result beside it is of another study or another phaze", "search again")
    journal = folder / JOURNAL
    study, _ = read_text(str(folder / STUDY))
    return Run(job, result, read_closed(journal), read_evaluated(journal), study, str(folder))


def read_plan(path: str) -> tuple[dict[str, Any], str]:
    """A plan's document (``phaze.plan/1``) and the name to call it by."""
    text, where = read_text(path)
    raw = parse(text, "json", where)
    if raw.get("schema") != "phaze.plan/1" or "batch_s" not in raw:
        raise InputError(where, "this is no plan (phaze.plan/1)", "give what phaze plan ... --json prints")
    return raw, where

"""A finished run, or a plan's document, loaded from its files with everything that a page or an
export needs."""

from pathlib import Path
from typing import Any

from phaze.documents import read_answer
from phaze.errors import InputError
from phaze.evaluate.plan_file import require_plan
from phaze.files import read_text
from phaze.report.page.search_page import Run
from phaze.search.folder import JOURNAL, RESULT
from phaze.search.question_files import STUDY
from phaze.search.reopened import require_closed, require_evaluated, rows_in
from phaze.search.result_file import read_result, require_of_job
from phaze.study.complete import complete_text
from phaze.study.load import Question, question_in
from phaze.study.resolved import resolved


def run_of(folder: Path, current: Question | None = None) -> Run:
    """A finished run; refused where its study is not the one of its result. ``current``: its
    question, where the process that opens it has just asked it; one that names files is read again
    from the folder."""
    if not (folder / RESULT).exists():
        raise InputError(
            str(folder), "there is no finished run here", "give the folder of one, or search first"
        )
    result = read_result(folder)
    question = question_in(folder) if current is None or current.files else current
    job = question.job
    if job.digest != result["study_digest"]:
        where = str(folder / STUDY)
        raise InputError(
            where, "the result next to it is of another study or another phaze", "search again"
        )
    journal = folder / JOURNAL
    study, _ = read_text(str(folder / STUDY))
    chips, closed, evaluated = rows_in(journal, job.space)
    require_of_job(result, job, chips, str(folder / RESULT))
    if len(closed) != len(chips):
        raise InputError(
            str(journal), f"it has {len(closed):,} chips of its space", "search again to end it"
        )
    require_closed(journal, closed, evaluated, len(chips))
    require_evaluated(journal, evaluated, job)
    settings = [setting.row for setting in resolved(question.study, job)]
    return Run(
        job,
        result,
        closed,
        evaluated,
        complete_text(study, question.files),
        str(folder),
        chips,
        settings,
    )


def read_plan(path: str) -> tuple[dict[str, Any], str]:
    """A plan's document (``phaze.plan/1``) and the name to call it by."""
    raw, _, where = read_answer(path)
    if raw.get("schema") != "phaze.plan/1" or "batch_s" not in raw:
        raise InputError(
            where, "this is not a plan (phaze.plan/1)", "give what phaze plan ... --json prints"
        )
    require_plan(raw, where)
    return raw, where

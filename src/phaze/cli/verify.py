"""``phaze verify``: a run checked again by the plain, slow path."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

Run = Annotated[str, typer.Argument(help="The folder of a run, or of a front.")]
All = Annotated[bool, typer.Option("--all", help="Check the bound of every chip instead of a sample.")]
Sample = Annotated[int, typer.Option("--sample", help="How many chips that a bound closed are checked.")]
Seed = Annotated[int, typer.Option("--seed", help="Which sample.")]


def _result(path: Path) -> dict[str, Any]:
    from phaze.documents import parse
    from phaze.errors import InputError
    from phaze.files import read_text
    from phaze.search.result import SCHEMA

    text, where = read_text(str(path))
    raw = parse(text, "json", where)
    needed = ("chip", "models", "objective", "certificate", "study_digest", "code_digest")
    if raw.get("schema") != SCHEMA or any(key not in raw for key in needed):
        raise InputError(where, f"this is no {SCHEMA}", "give the folder of a run that has ended")
    return raw


def _objections(folder: Path, result: dict[str, Any], count: int | None, seed: int) -> list[str]:
    from phaze.search.baseline import scale_for
    from phaze.search.chips import open_space
    from phaze.search.folder import JOURNAL
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.search.papers import STUDY, unlike
    from phaze.search.result import code_digest
    from phaze.search.verify import check_bounds, check_evaluated, check_list, plain_of
    from phaze.search.verify_answer import check_answer
    from phaze.study.load import question_in

    question = question_in(folder)
    job = question.job
    if job.digest != result["study_digest"]:
        return [f"{STUDY} is not the study of this result"]
    if wrong := unlike(folder, question.papers("")):
        return wrong
    wrong = [] if code_digest() == result["code_digest"] else ["the result was made by another version of phaze"]
    plain = plain_of(job, scale_for(job), open_space(job.space))
    try:
        closed = read_closed(folder / JOURNAL)
        wrong += check_answer(plain, result)
        wrong += check_list(plain, result, closed, read_evaluated(folder / JOURNAL))
        best = float(result["objective"]["score"])
        wrong += check_evaluated(plain, closed, best, None if count is None else max(1, count // 20), seed)
        wrong += check_bounds(plain, closed, best, count, seed)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as fault:
        wrong.append(f"the result cannot be read ({type(fault).__name__}: {fault})")
    return wrong


def _front_objections(folder: Path, result: dict[str, Any], count: int | None, seed: int) -> list[str]:
    from phaze.front.metrics import asked_of
    from phaze.front.plain import PlainFront, points_of
    from phaze.front.run import job_for, memories_of
    from phaze.front.verify import objections
    from phaze.search.baseline import scale_for
    from phaze.search.chips import open_space
    from phaze.search.folder import JOURNAL
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.search.papers import STUDY, unlike
    from phaze.search.result import code_digest
    from phaze.search.verify import plain_of
    from phaze.study.load import question_in

    try:
        asked = asked_of(result["of"], [f"{name}={value!r}" for name, value in result["within"].items()])
        question = question_in(folder, asked.document())
        job = job_for(question.job, asked)
        if job.digest != result["study_digest"]:
            return [f"{STUDY} and the limits are not those of this front"]
        if wrong := unlike(folder, question.papers("")):
            return wrong
        wrong = [] if code_digest() == result["code_digest"] else ["the front was made by another version of phaze"]
        plain = plain_of(job, scale_for(job), open_space(job.space))
        front = PlainFront(plain, asked, points_of(result, asked, plain), tuple(memories_of(job, asked)))
        journal = folder / JOURNAL
        return wrong + objections(front, result, read_closed(journal), read_evaluated(journal), count, seed)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as fault:
        return [f"the front cannot be read ({type(fault).__name__}: {fault})"]


def _front(path: Path) -> dict[str, Any]:
    from phaze.documents import check, parse
    from phaze.files import read_text
    from phaze.front.schema import FrontFile

    text, where = read_text(str(path))
    raw = parse(text, "json", where)
    check(FrontFile, raw, where)
    return raw


@answering
def verify(run: Run, every: All = False, sample: Sample = 200, seed: Seed = 0) -> Answer:
    """Check a run again by the plain path: its answer fully, and the bounds of a sample of its chips or of all.

    Exit code 0: everything holds; 1: something does not. Example: phaze verify runs/bert-large --all
    """
    folder, count = Path(run), None if every else sample
    if (folder / "front.json").is_file():
        result = _front(folder / "front.json")
        wrong = _front_objections(folder, result, count, seed)
    else:
        result = _result(folder / "result.json")
        wrong = _objections(folder, result, count, seed)
    closed = int(result["certificate"].get("closed", {}).get("bound", 0)) if not wrong else 0
    checked = closed if every else min(sample, closed)
    document = {"run": run, "holds": not wrong, "checked_bounds": checked, "objections": wrong}

    def show(console: "Console") -> None:
        if wrong:
            console.print(f"{run} does not hold:", markup=False)
            for sentence in wrong[:20]:
                console.print(f"  {sentence}", markup=False)
        else:
            gap = json.dumps(result["certificate"]["gap"])
            console.print(f"{run} holds: answer, certificate, {checked:,} bounds checked anew; gap {gap}", markup=False)

    return Answer((document,), show, 1 if wrong else 0)

"""``phaze verify``: a run checked again by the plain, slow path."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

Run = Annotated[str, typer.Argument(help="The folder of a run.")]
All = Annotated[bool, typer.Option("--all", help="Check the bound of every chip instead of a sample.")]
Sample = Annotated[int, typer.Option("--sample", help="How many chips that a bound closed are checked.")]
Seed = Annotated[int, typer.Option("--seed", help="Which sample.")]


def _result(path: Path) -> dict[str, Any]:
    from phaze.documents import parse, read_text
    from phaze.errors import InputError
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
    from phaze.search.folder import JOURNAL, STUDY
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.search.result import code_digest
    from phaze.search.verify import check_bounds, check_evaluated, check_list, plain_of
    from phaze.search.verify_answer import check_answer
    from phaze.study.load import job_of, read_study, study_of

    raw, where = read_study(str(folder / STUDY))
    job = job_of(study_of(raw, where))
    if job.digest != result["study_digest"]:
        return [f"{STUDY} is not the study of this result"]
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


@answering
def verify(run: Run, every: All = False, sample: Sample = 200, seed: Seed = 0) -> Answer:
    """Check a run again by the plain path: its answer fully, and the bounds of a sample of its chips or of all.

    Exit code 0: everything holds; 1: something does not. Example: phaze verify runs/bert-large --all
    """
    folder = Path(run)
    result = _result(folder / "result.json")
    wrong = _objections(folder, result, None if every else sample, seed)
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

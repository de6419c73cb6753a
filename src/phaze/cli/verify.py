"""``phaze verify``: the certificate of a run, checked by code that shares none with the search (:mod:`phaze.check`).

What that checker does not cover yet, and what ``--all`` and ``--sample`` ask for, is checked by the reference path.
"""

import json
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering
from phaze.cli.plan_certificate import plan_independently
from phaze.cli.verify_certificate import READING, asked_otherwise, independently
from phaze.cli.verify_front import front_independently
from phaze.cli.verify_larger import larger_verified
from phaze.cli.verify_sweep import sweep_verified

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.check.verdict import Verdict
    from phaze.report.progress import Progress

Run = Annotated[str, typer.Argument(help="The folder of a run, front, sweep, or plan's certificate.")]
All = Annotated[bool, typer.Option("--all", help="Every chip by the reference path instead (slow).")]
Sample = Annotated[
    int | None, typer.Option("--sample", help="So many chips by the reference path instead; 200 if not said.", min=1)
]
Seed = Annotated[int | None, typer.Option("--seed", help="Which sample; without it another one each time.")]
Quick = Annotated[bool, typer.Option("--quick", help="The answer, and what rooflines close: no proof.")]
Study = Annotated[str | None, typer.Option("--study", help="The question that the run must answer: a study file.")]
Larger = Annotated[
    str | None, typer.Option("--space", help="Hold the answer against this space, a name or a file, however large.")
]
Gap = Annotated[float | None, typer.Option("--gap", help="With --space: by how much nothing in it may be better.")]
SAMPLE = 200


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found wrong, and how many chips (of a front: units) of how many were proved anew."""

    wrong: list[str]
    proved: int = 0
    rows: int = 0


def _document(path: Path, schema: str, needed: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    """A document of the folder, and its text."""
    from phaze.documents import parse
    from phaze.errors import InputError
    from phaze.files import read_text

    text, where = read_text(str(path))
    raw = parse(text, "json", where)
    if raw.get("schema") != schema or any(key not in raw for key in needed):
        raise InputError(where, f"this is no {schema}", "give the folder of a run that has ended")
    return raw, text


def _verified(
    folder: Path, result: dict[str, Any], text: str, sample: tuple[int | None, int], progress: "Progress"
) -> Verified:
    from phaze.search.baseline import scale_for
    from phaze.search.certificate import certificate_of
    from phaze.search.folder import JOURNAL
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.search.question_files import STUDY, unlike
    from phaze.search.result import code_digest
    from phaze.search.spaces import enumerate_space
    from phaze.search.verify import plain_of
    from phaze.search.verify_answer import check_result, regenerated
    from phaze.search.verify_rows import check_rows, prove_rows
    from phaze.study.load import question_in

    question = question_in(folder)
    if wrong := unlike(folder, question.papers("")):
        return Verified(wrong)
    job, code = question.job, code_digest()
    if job.digest != result["study_digest"]:
        return Verified([f"{STUDY} is not the study of this result"])
    if code != result["code_digest"]:
        return Verified(["the result was made by another version of phaze"])
    plain = plain_of(job, scale_for(job), enumerate_space(job.space))
    try:
        closed, evaluated = read_closed(folder / JOURNAL), read_evaluated(folder / JOURNAL)
        answer, wrong = regenerated(plain, result)
        if wrong:
            return Verified(wrong)
        score = float(answer["objective"]["score"])
        wrong = check_rows(plain, closed, evaluated, score)
        if wrong:
            return Verified(wrong)
        certificate = certificate_of(closed, evaluated, score, job.gap, plain.opened.left_out)
        wrong = check_result(plain, text, result, answer, (certificate, code))
        if wrong:
            return Verified(wrong)

        def watch(done: int, total: int) -> None:
            progress.count(done, total, "proving chips anew")

        found = prove_rows(plain, closed, evaluated, score, sample, result.get("provisional") is True, watch)
        return Verified(found.wrong, found.proved, found.rows)
    except READING as fault:
        return Verified([f"the result cannot be read ({type(fault).__name__}: {fault})"])


def _verified_front(folder: Path, result: dict[str, Any], text: str, sample: tuple[int | None, int]) -> Verified:
    import numpy as np

    from phaze.export.frame import csv_text
    from phaze.files import read_text
    from phaze.front.folder import TABLE, front_frame
    from phaze.front.measures import measures_of
    from phaze.front.metrics import asked_of
    from phaze.front.reference import PlainFront
    from phaze.front.run import job_for, memories_of, scales_for
    from phaze.front.verify import Claim, verified
    from phaze.search.folder import JOURNAL
    from phaze.search.journal import read_closed, read_evaluated
    from phaze.search.question_files import STUDY, unlike
    from phaze.search.result import code_digest
    from phaze.search.spaces import enumerate_space
    from phaze.search.verify import plain_of
    from phaze.study.load import question_in

    try:
        asked = asked_of(result["of"], [f"{name}={value!r}" for name, value in result["within"].items()])
        question, code = question_in(folder, asked.document()), code_digest()
        job, journal = job_for(question.job, asked), folder / JOURNAL
        if wrong := unlike(folder, question.papers("")):
            return Verified(wrong)
        if job.digest != result["study_digest"]:
            return Verified([f"{STUDY} and the limits are not those of this front"])
        if code != result["code_digest"]:
            return Verified(["the front was made by another version of phaze"])
        scales, memories = scales_for(job, asked), tuple(memories_of(job, asked))
        plain = plain_of(job, scales[0], enumerate_space(job.space))
        front = PlainFront(plain, asked, scales, np.empty((len(asked.of), 0)), memories)
        measures = measures_of(job, asked, scales, plain.opened, memories)
        claim = Claim(text, result, read_closed(journal), read_evaluated(journal), code)
        found = verified(front, measures, claim, sample)
        if not found.wrong and read_text(str(folder / TABLE))[0] != csv_text(front_frame(result)):
            return Verified([f"{TABLE}: it is not that of front.json"])
        return Verified(found.wrong, found.proved, found.rows)
    except READING as fault:
        return Verified([f"the front cannot be read ({type(fault).__name__}: {fault})"])


def _sentence(run: str, found: Verified, result: dict[str, Any], seed: int) -> str:
    """What was checked, in words: a sample proves nothing of the chips that are not in it."""
    closed, gap = result["certificate"]["closed"], json.dumps(result["certificate"]["gap"])
    left = [f"{closed[key]:,} {word}" for key, word in (("failed", "failed"), ("open", "not reached")) if closed[key]]
    counted = f"; {' and '.join(left)}, which the gap counts" if left else ""
    if found.proved == found.rows:
        return f"{run} holds: answer, certificate, all {found.rows:,} chips proved anew; gap {gap}{counted}"
    rest = found.rows - found.proved
    return (
        f"{run}: answer checked, optimality sampled: {found.proved:,} of {found.rows:,} chips proved anew "
        f"(--seed {seed} repeats them), {rest:,} not (--all proves them); gap {gap} as recorded{counted}"
    )


def _checked(run: str, verdict: "Verdict", wrong: list[str], result: dict[str, Any]) -> Answer:
    """The answer of the independent checker."""
    document = {
        "run": run,
        "run_id": verdict.run_id,
        "checker": "independent",
        "claim": verdict.words,
        "holds": not wrong and verdict.holds,
        "answer_holds": not wrong,
        "proved": verdict.proved,
        "unproved": verdict.chips - verdict.proved,
        "gap": verdict.proved_gap,
        "objections": wrong,
    }

    def show(console: "Console") -> None:
        for line in (*verdict.words, f"run         {verdict.run_id}"):
            console.print(line, markup=False, highlight=False)
        if wrong:
            console.print(f"{run} does not hold: {wrong[0]}", markup=False)
            return
        console.print(f"{run} {verdict.sentence()}", markup=False)
        said = float(result["certificate"]["gap"]) if result else verdict.gap
        if not verdict.quick and verdict.proved_gap > said + 1e-9:
            name = "front" if verdict.designs else "result"
            console.print(f"The smaller gap of {name}.json, {said:.3g}, is the search's own figure.", markup=False)

    return Answer((document,), show, 1 if wrong else 0)


def _uncovered(run: str, verdict: "Verdict") -> Answer:
    """A plan that the checker has no rules for: nothing else proves one."""
    document = {"run": run, "run_id": verdict.run_id, "checker": "independent", "not_covered": verdict.missing}

    def show(console: "Console") -> None:
        console.print(f"{run}: {verdict.sentence()}", markup=False)

    return Answer(({**document, "holds": False, "answer_holds": None, "objections": []},), show, 1)


def _otherwise(run: str, quick: bool, space: str | None, gap: float | None, progress: "Progress") -> Answer | None:
    """The verdict on what is no search or front: a plan, a sweep, an answer held against another space."""
    from phaze.errors import InputError

    folder = Path(run)
    if space is not None:
        return larger_verified(run, space, gap or 0.0, progress)
    if gap is not None:
        raise InputError("--gap", "a run has its own gap", "give --space as well")
    if (folder / "plan.json").is_file() and (folder / "certificate.json").is_file():
        progress.step("checking the certificate")
        verdict, wrong = plan_independently(run, quick, progress)
        return _uncovered(run, verdict) if verdict.missing else _checked(run, verdict, wrong, {})
    if (folder / "sweep.json").is_file():
        return sweep_verified(run, quick, progress)
    return None


@answering
def verify(
    run: Run,
    study: Study = None,
    quick: Quick = False,
    every: All = False,
    sample: Sample = None,
    seed: Seed = None,
    space: Larger = None,
    gap: Gap = None,
    *,
    progress: "Progress",
) -> Answer:
    """Check the certificate of a run: the claim in words, then whether it holds, every chip of the space.

    The checker shares no code with the search. Exit code 0: it holds; 1: it does not. Examples:
    phaze verify runs/bert-large · phaze verify runs/mine --study mine.toml · phaze verify runs/proof
    """
    from phaze.errors import InputError
    from phaze.search.result import SCHEMA

    folder, missing = Path(run), ""
    if (other := _otherwise(run, quick, space, gap, progress)) is not None:
        return other
    if (folder / "front.json").exists() and (folder / "result.json").exists():
        seen = "it holds a front.json and a result.json, and its certificate can prove one of them"
        raise InputError(run, seen, "move the one away that does not belong to it")
    if front := (folder / "front.json").is_file():
        from phaze.front.schema import front_in

        result, text = front_in(folder)
        if not every and sample is None:
            progress.step("checking the certificate")
            verdict, wrong = front_independently(run, study, quick, result, text, progress)
            if not verdict.missing:
                return _checked(run, verdict, wrong, result)
            missing = verdict.missing
    else:
        needed = ("chip", "models", "objective", "certificate", "study_digest", "code_digest")
        result, text = _document(folder / "result.json", SCHEMA, needed)
        if not every and sample is None:
            progress.step("checking the certificate")
            verdict, wrong = independently(run, study, quick, result, text, progress)
            if not verdict.missing:
                return _checked(run, verdict, wrong, result)
            missing = verdict.missing
    if study is not None and (wrong := asked_otherwise(folder, study)):
        return _by_reference(run, Verified(wrong), {}, 0, missing)
    progress.step("checking the answer")
    drawn = secrets.randbelow(1 << 32) if seed is None else seed
    chosen = (None if every else sample or SAMPLE, drawn)
    if front:
        found = _verified_front(folder, result, text, chosen)
    else:
        found = _verified(folder, result, text, chosen, progress)
    return _by_reference(run, found, result, drawn, missing)


def _by_reference(run: str, found: Verified, result: dict[str, Any], drawn: int, missing: str) -> Answer:
    """The answer of the reference path; ``missing`` is what the independent checker does not cover yet."""
    from phaze.search.witness import run_id_in

    complete, own = found.proved == found.rows, run_id_in(Path(run))
    document = {
        "run": run,
        "run_id": own,
        "checker": "reference path",
        "not_covered": missing or None,
        "holds": not found.wrong and complete,
        "answer_holds": not found.wrong,
        "proved": found.proved,
        "unproved": found.rows - found.proved,
        "seed": None if complete else drawn,
        "objections": found.wrong,
    }

    def show(console: "Console") -> None:
        if missing:
            words = f"Not checkable by the independent checker yet ({missing}); by the reference path:"
            console.print(words, markup=False)
        if own is not None:
            console.print(f"run         {own}", markup=False, highlight=False)
        if not found.wrong:
            console.print(_sentence(run, found, result, drawn), markup=False)
            return
        console.print(f"{run} does not hold:", markup=False)
        for sentence in found.wrong[:20]:
            console.print(f"  {sentence}", markup=False)

    return Answer((document,), show, 1 if found.wrong else 0)

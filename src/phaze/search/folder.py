"""A run is a folder: its question, the journal, the result. The same command in it goes on where it
was."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaze.documents import dumps
from phaze.errors import InputError
from phaze.files import folder_for, write_whole
from phaze.search import finished
from phaze.search.answer import BestDesign, best_of
from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of, closed_chips, evaluated_chips
from phaze.search.code import code_digest
from phaze.search.deadline import OutOfTime, after, nothing_in_time
from phaze.search.engine import workers
from phaze.search.finished import digests_of
from phaze.search.initial_incumbent import relisted
from phaze.search.journal import SqliteJournal
from phaze.search.question_files import FILES, GRAPHS, PROBLEM, Papers, refuse_another, texts_of
from phaze.search.reopened import require_evaluated
from phaze.search.result import (
    SCHEMA,
    AnswerParts,
    DisagreementError,
    answer_of,
    result_view,
    written,
)
from phaze.search.run import Evaluate, Watch, search
from phaze.search.shared import Shared
from phaze.search.shortage import nothing_found
from phaze.search.state import SearchState
from phaze.search.task import SearchJob
from phaze.search.witness import CERTIFICATE, proof_of

JOURNAL, RESULT = finished.JOURNAL, finished.RESULT


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended: its folder, its document, and the state that it was made from."""

    folder: Path
    document: dict[str, Any]
    state: SearchState
    best: BestDesign


def write_papers(folder: Path, papers: Papers) -> None:
    """Write all that a folder keeps of its question."""
    texts = texts_of(papers)
    if any(place.startswith(f"{FILES}/") for place in texts):
        folder_for(folder / FILES)
    for place, text in texts.items():
        write_whole(folder / place, text)


def answered(state: SearchState) -> tuple[BestDesign, AnswerParts] | None:
    """The best design of a search and its answer; where the time is up, one that can be written
    without solving.

    That is the best evaluated chip, where its schedules are at hand (they are not where it was
    resumed), else the better of that chip and of the search's first design, both by list schedules.
    """
    if not state.stopped:
        best = best_of(state)
        return None if best is None else (best, answer_of(state, best))
    offers = [] if state.provisional is None else [state.provisional]
    state.memo.frozen = True
    try:
        best = best_of(state)
        if best is not None and best.score <= min(
            (entry.score for entry in offers), default=best.score
        ):
            return best, answer_of(state, best)
    except OutOfTime:
        again = relisted(
            state,
            min(
                (entry for entry in state.evaluated.values() if entry.ran),
                key=lambda entry: entry.score,
            ),
        )
        offers += [] if again is None else [again]
    if not offers:
        return None
    design = min(offers, key=lambda entry: entry.score)
    best = BestDesign(design.chip, design.hbm, design.score, design.ran)
    return best, answer_of(state, best, provisional=True)


def run_in(
    folder: Path,
    papers: Papers,
    job: SearchJob,
    engine: int | Evaluate = 1,
    watch: Watch | None = None,
    shared: Shared | None = None,
) -> Finished:
    """Run a job in its folder, or go on with it; raises what says why there is no answer.

    ``engine`` may be a number: so many processes of this machine.
    """
    deadline, code = after(job.limit_s), code_digest()
    crew = workers(engine) if isinstance(engine, int) else engine
    refuse_another(folder_for(folder), papers)
    with SqliteJournal(folder / JOURNAL, job.digest, code) as journal:
        journalled = journal.evaluated()
        require_evaluated(journal.path, journalled.values(), job)
        write_papers(folder, papers)
        state = search(
            job, scale_for(job, crew, deadline), crew, journal, watch, shared, deadline=deadline
        )
        try:
            answer = answered(state)
        except DisagreementError:
            if not journalled:
                raise
            seen = "what the journal has of the best chip is not found again"
            raise InputError(
                str(journal.path), seen, "the journal was changed: give another --out"
            ) from None
        if answer is None:
            raise nothing_in_time(SCHEMA) if state.stopped else nothing_found(state)
        best, parts = answer
        evaluated, score = evaluated_chips(state), parts.document["objective"]["score"]
        closed = closed_chips(state, score)
        journal.finish(closed)
        certificate = certificate_of(
            closed, evaluated, score, job.gap, state.chips.left_out, state.boxed
        )
        document = result_view(job, parts.document, certificate, code)
        texts = {RESULT: written(document)}
        if papers.problem:
            texts[CERTIFICATE] = dumps(proof_of(state, best, parts, certificate, papers)) + "\n"
        for name, text in texts.items():
            write_whole(folder / name, text)
        question = {PROBLEM: papers.problem, GRAPHS: papers.graphs} if papers.problem else {}
        journal.keep_digests(digests_of({**question, **texts}))
    return Finished(folder, document, state, best)

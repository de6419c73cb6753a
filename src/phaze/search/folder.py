"""A run is a folder: its question, the journal, the result. The same command in it goes on where it was."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phaze.files import folder_for, write_whole
from phaze.search.answer import Best, best_of
from phaze.search.baseline import scale_for
from phaze.search.certificate import certificate_of, closed_chips
from phaze.search.deadline import after, nothing_in_time
from phaze.search.engine import workers
from phaze.search.journal import SqliteJournal
from phaze.search.journal_rows import require_evaluated
from phaze.search.papers import FILES, Papers, refuse_another, texts_of
from phaze.search.result import SCHEMA, answer_of, code_digest, result_view, written
from phaze.search.run import Evaluate, Watch, search
from phaze.search.shared import Shared
from phaze.search.shortage import nothing_found
from phaze.search.state import State
from phaze.search.task import Job

JOURNAL, RESULT = "journal.sqlite", "result.json"


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that has ended: its folder, its document, and the state that it was made from."""

    folder: Path
    document: dict[str, Any]
    state: State
    best: Best


def write_papers(folder: Path, papers: Papers) -> None:
    """Write all that a folder keeps of its question."""
    texts = texts_of(papers)
    if any(place.startswith(f"{FILES}/") for place in texts):
        folder_for(folder / FILES)
    for place, text in texts.items():
        write_whole(folder / place, text)


def run_in(
    folder: Path,
    papers: Papers,
    job: Job,
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
        require_evaluated(journal.path, journal.known().values(), job)
        write_papers(folder, papers)
        state = search(job, scale_for(job, crew, deadline), crew, journal, watch, shared, deadline=deadline)
        best = best_of(state)
        if best is None:
            raise nothing_in_time(SCHEMA) if state.stopped else nothing_found(state)
        closed = closed_chips(state)
        journal.finish(closed)
        answer, evaluated = answer_of(state, best), list(state.evaluated.values())
        score = answer["objective"]["score"]
        certificate = certificate_of(closed, evaluated, score, job.gap, state.opened.kept)
        document = result_view(job, answer, certificate, code)
        write_whole(folder / RESULT, written(document))
    return Finished(folder, document, state, best)

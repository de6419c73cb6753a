"""A front is a folder: the study as it was run, the journal, front.json and front.csv. The same
command goes on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phaze.documents import dumps
from phaze.export.frame import Frame, csv_text
from phaze.files import folder_for, write_whole
from phaze.front.answer import SCHEMA, front_document, nothing_within
from phaze.front.boxed import named_units
from phaze.front.certificate import closed_units
from phaze.front.ending import Ending
from phaze.front.metrics import RequestedMetrics
from phaze.front.run import Watch, front, job_for, scales_for
from phaze.front.witness import front_proof
from phaze.search.code import code_digest
from phaze.search.deadline import after, nothing_in_time
from phaze.search.engine import workers
from phaze.search.folder import JOURNAL, write_papers
from phaze.search.journal import SqliteJournal
from phaze.search.question_files import Papers, refuse_another
from phaze.search.reopened import require_evaluated
from phaze.search.result import written
from phaze.search.task import SearchJob
from phaze.search.witness import CERTIFICATE

FRONT, TABLE, PAGE = "front.json", "front.csv", "front.html"
CHIP = (
    "name",
    "hbm_bytes",
    "area_mm2",
    "design_power_w",
    "making_usd",
    "making_kgco2e",
    "peak_flops",
)
MODEL = (
    "throughput_per_s",
    "batch_s",
    "energy_j",
    "pipeline",
    "data",
    "tensor",
    "microbatch",
    "recompute",
)


@dataclass(frozen=True, slots=True)
class FinishedFront:
    """A front that has ended: its document, and the work it took."""

    document: dict[str, Any]
    evaluated: int
    work: str


def front_frame(document: Mapping[str, Any]) -> Frame:
    """Every design as a row: its metrics, its chip, how each model runs on it, and its gap."""
    points = document["points"]
    columns = {name: [point["metrics"][name] for point in points] for name in document["of"]}
    columns |= {f"chip_{key}": [point["chip"][key] for point in points] for key in CHIP}
    for index, model in enumerate(points[0]["models"]):
        columns |= {
            f"{model['name']}_{key}": [point["models"][index][key] for point in points]
            for key in MODEL
        }
    gap = document["certificate"]["gap"]
    columns["gap"] = [
        gap if point["certificate"] is None else point["certificate"]["gap"] for point in points
    ]
    return {name: np.array(column) for name, column in columns.items()}


def front_in(
    folder: Path,
    papers: Papers,
    job: SearchJob,
    metrics: RequestedMetrics,
    processes: int = 1,
    watch: Watch | None = None,
) -> FinishedFront:
    """Find a front in its folder, or go on with it; raises what says why there is no design.

    ``papers`` and ``job`` are those of the front (:meth:`phaze.study.load.Question.fronted`).
    """
    deadline, crew = after(job.limit_s), workers(processes)
    code, front_job = code_digest(), job_for(job, metrics)
    refuse_another(folder_for(folder), papers)
    with SqliteJournal(folder / JOURNAL, job.digest, code) as journal:
        require_evaluated(
            journal.path, journal.evaluated().values(), front_job, several=len(metrics.runs) > 1
        )
        write_papers(folder, papers)
        ending = Ending()
        state = front(
            front_job,
            metrics,
            scales_for(front_job, metrics, crew, deadline),
            crew,
            journal,
            watch,
            deadline,
            ending,
        )
        if not len(state.archive.numbers):
            raise nothing_in_time(SCHEMA) if state.stopped else nothing_within(state)
        closed = closed_units(state)
        journal.finish(named_units(state, closed))
        document = front_document(state, closed, code, ending.stated)
        write_whole(folder / FRONT, written(document))
        write_whole(folder / TABLE, csv_text(front_frame(document)))
        if papers.problem:
            proof = front_proof(state, ending.witnesses_of(state), document, papers)
            write_whole(folder / CERTIFICATE, dumps(proof) + "\n")
    return FinishedFront(document, len(state.evaluated), state.memo.sentence)

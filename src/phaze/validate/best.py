"""The best plan of ``phaze plan`` for each measured job, beside the plan that was run.

A job is a model, a machine, a number of devices and a batch; of the runs of one job the one that
was measured fastest stands for it. The search is that of :mod:`phaze.evaluate.plan`: widths 1, 2,
4, 8, microbatches up to 16 and that of the run, any stages, replicas, cuts, recompute and chunks,
with and without sequence parallelism, ZeRO as in the run. Both plans are priced by the same
formula, so that

    gain = predicted seconds of the run / predicted seconds of the best - 1

is below 0 only where the run did what is not searched (wider splits, other chunks of uneven stages)
or what does not fit by our count of memory.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.evaluate.memo import Memo
from phaze.evaluate.plan import Candidate
from phaze.evaluate.plan_order import planned
from phaze.evaluate.request import Job, request_of, usual_microbatches
from phaze.hardware.calibration import Basis
from phaze.hardware.formats import PLAIN
from phaze.validate.predict import Prediction, predict
from phaze.validate.rows import MeasuredRun


@dataclass(frozen=True, slots=True)
class BestBesideRun:
    """The run of a job as it was, and the best plan; ``best`` is None where nothing that is
    searched fits."""

    run: Prediction
    best: Candidate | None

    @property
    def best_s(self) -> float | None:
        return None if self.best is None or self.best.plan is None else self.best.plan.batch_s

    @property
    def gain(self) -> float | None:
        return None if self.best_s is None else self.run.seconds / self.best_s - 1


def jobs_of(rows: Iterable[MeasuredRun]) -> tuple[MeasuredRun, ...]:
    """The fastest run of every job, in the order in which jobs first appear."""
    fastest: dict[tuple[Any, ...], MeasuredRun] = {}
    for row in rows:
        if row.seconds is None:
            continue
        before = fastest.get(row.group)
        if before is None or before.seconds is None or row.seconds < before.seconds:
            fastest[row.group] = row
    return tuple(fastest.values())


def _job(row: MeasuredRun, basis: Basis) -> Job:
    run = row.run
    family = next((name for name in ("gpt", "llama", "moe") if name in run), None)
    sizes = {*usual_microbatches(run["batch"]), run["plan"].get("microbatch", 1)}
    named = {key: run[key] for key in ("chip", "devices", "batch", "cluster")}
    stated = {key: run[key] for key in ("stack", "sequence", "attention") if key in run}
    return Job(
        model=family or run["model"],
        sizes=run[family] if family else None,
        zero=run["plan"].get("zero", 0),
        basis=basis,
        microbatch=tuple(sorted(sizes)),
        headroom=0.0,
        allow_code=row.allow_code,
        **named,
        **stated,
    )


def priced_jobs(rows: Iterable[MeasuredRun]) -> tuple[tuple[MeasuredRun, ...], int]:
    """The jobs in 16 bits, and how many are left out: a plan is sought in the precision of its
    stack."""
    jobs = jobs_of(rows)
    priced = tuple(row for row in jobs if row.run.get("precision", PLAIN) == PLAIN)
    return priced, len(jobs) - len(priced)


def best_beside(row: MeasuredRun, basis: Basis, memo: Memo) -> BestBesideRun:
    """A job's run and its best plan."""
    run = predict(row, basis, memo)
    best = planned(request_of(_job(row, basis))).best
    return BestBesideRun(run, best if best.plan is not None else None)


def best_document(jobs: Sequence[BestBesideRun]) -> list[dict[str, Any]]:
    """The jobs as plain values."""
    return [
        {
            "id": job.run.row.id,
            "run": {**job.run.row.run["plan"], **job.run.chosen},
            "measured_s": job.run.row.seconds,
            "predicted_s": job.run.seconds,
            "best": None if job.best is None else plan_of(job.best),
            "best_s": job.best_s,
            "gain": job.gain,
        }
        for job in jobs
    ]


def plan_of(candidate: Candidate) -> dict[str, Any]:
    """The degrees of a candidate's plan; ``recompute`` by stage, equal ones once."""
    if candidate.plan is None:
        return {}
    modes = list(dict.fromkeys(stage.recompute for stage in candidate.plan.stages))
    return {
        "tensor": candidate.model.tensor,
        "pipeline": len(candidate.plan.stages),
        "data": candidate.plan.data,
        "microbatch": candidate.microbatch,
        "chunks": candidate.plan.chunks,
        "recompute": "/".join(map(str, modes)),
        "sequence_parallel": candidate.sequence_parallel,
    }

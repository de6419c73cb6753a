"""``phaze calibrate --trace ... --run ...``: fit constants to one measured run and write the files
that hold them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, sheet
from phaze.errors import InputError

if TYPE_CHECKING:
    from phaze.evaluate.run_file import RunJob
    from phaze.report.progress import Progress
    from phaze.validate.measured_step import MeasuredStep
    from phaze.validate.run_fit import RunFit

MOST_RANKS = 64
"""Traces at once: one of each kind of rank is enough."""


def calibrate_run(
    traces: Sequence[str], run: str | None, out: str | None, allow_code: bool, progress: "Progress"
) -> Answer:
    """The answer of ``phaze calibrate --trace``; code that the run names as its model runs only if
    ``allow_code``."""
    from phaze.evaluate.fixed import fixed_plan
    from phaze.evaluate.run_file import job_of, read_run
    from phaze.validate.fitted_files import fitted_texts, write_fitted

    if run is None:
        raise InputError(
            "--run",
            "a trace alone does not say what ran",
            "give the run (phaze.run/1) with --trace",
        )
    if len(traces) > MOST_RANKS:
        raise InputError(
            "--trace", f"{len(traces)} traces are given", f"give at most {MOST_RANKS} ranks"
        )
    raw, where = read_run(run)
    job = job_of(raw, where, allow_code=allow_code)
    measured_s, fit, measured = _fit(job, traces, progress)
    progress.step("pricing the run before and after")
    before_s = fixed_plan(job)[1].batch_s
    measurements = (
        "the timeline of a plan, no profile"
        if measured["kind"] == "plan"
        else f"{len(traces)} traces or logs"
    )
    texts = fitted_texts(raw, job, fit.fitted, f"1 run, {where}, {measurements}")
    folder = Path(out or f"{Path(where).stem}-fitted")
    files = write_fitted(texts, folder) if texts else {}
    after_s = (
        fixed_plan(job_of({**raw, **files}, where, allow_code=allow_code))[1].batch_s
        if files
        else before_s
    )
    document: dict[str, Any] = {
        "run": where,
        "measured": measured,
        "step_s": {"measured": measured_s, "before": before_s, "fitted": after_s},
        "fitted": [asdict(constant) for constant in fit.fitted],
        "undetermined": [{"key": key, "reason": reason} for key, reason in fit.undetermined],
        "files": files,
    }

    return Answer(document, sheet("phaze.report.run_fit_sheet", "run_fit_sections", document))


def _fit(
    job: "RunJob", traces: Sequence[str], progress: "Progress"
) -> "tuple[float, RunFit, dict[str, Any]]":
    """The measured step, what it determined, and what was measured as plain values."""
    from phaze.validate.measured_step import measured_step
    from phaze.validate.plan_timeline import fit_timeline, is_timeline, read_timeline
    from phaze.validate.profiler_trace import read_trace, trace_text
    from phaze.validate.run_fit import fit_log, fit_trace
    from phaze.validate.training_logs import is_log, read_log

    texts = []
    for done, path in enumerate(traces):
        progress.count(done, len(traces), "reading traces")
        texts.append((trace_text(path), path))
    if any(is_log(text) for text, _ in texts):
        if len(texts) > 1:
            raise InputError(
                "--trace", "a log is given with other files", "give one log, or traces alone"
            )
        ((text, path),) = texts
        logged = read_log(text, path, job.batch * job.model.sequence, job.devices)
        logged_values = {"kind": "log", "steps": logged.lines, "memory_bytes": logged.memory_bytes}
        return logged.step_s, fit_log(job, logged.step_s), logged_values
    if any(is_timeline(text) for text, _ in texts):
        if len(texts) > 1:
            raise InputError(
                "--trace", "a plan's timeline stands beside other files", "give it alone"
            )
        ((text, path),) = texts
        line = read_timeline(text, path)
        drawn = {
            "kind": "plan",
            "stages": line.stages,
            "passes_s": line.passes_s,
            "exposed_s": line.synchronisation_s,
        }
        return line.step_s, fit_timeline(job, line), drawn
    step = measured_step([read_trace(text, path) for text, path in texts])
    fit = fit_trace(job, step)
    return step.step_s, fit, _measured(step, fit)


def _measured(step: "MeasuredStep", fit: "RunFit") -> dict[str, Any]:
    total = sum(step.class_s.values())
    return {
        "kind": "trace" if step.on_device else "cpu trace",
        "ranks": step.ranks,
        "steps": step.steps,
        "seconds": {
            name: {"measured": seconds, "predicted": fit.predicted_s.get(name)}
            for name, seconds in step.class_s.items()
        },
        "unknown_share": step.class_s.get("unknown", 0.0) / total if total else 0.0,
        "unknown": [{"name": name, "share": share} for name, share in step.unknown],
        "exposed_collectives_s": step.exposed_s,
        "host_s": step.host_s,
        "launches": step.launches,
        "collectives": [asdict(measured) for measured in step.collectives],
        "unsized_collectives": step.unsized,
        "events_left_out": step.skipped,
    }

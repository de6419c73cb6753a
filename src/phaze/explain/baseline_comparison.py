"""The answer beside chips that exist, and each model beside the best chip for it alone.

beside   throughput of every model, held-out ones too, on a named chip with its best plan, on the
         constants of the space and the same network and stack: what the ratios of the page divide
         by
alone    the certified best chip of the space for one model alone; the regret of a model is what the
         answer loses to it, value on the answer / value on that chip - 1
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from phaze.explain.question import ExplainedRun, best_with
from phaze.report.page.baseline_comparison import priced_on
from phaze.search.objective import scale_of
from phaze.search.reference import value_on
from phaze.search.task import SearchJob, tasks_for
from phaze.study.compared import named_chip


@dataclass(frozen=True, slots=True)
class Alone:
    """The best chip for one model, how far that is proved, and what the answer loses to it."""

    name: str
    chip: str
    regret: float
    gap: float


def _every(question: ExplainedRun, held_out: SearchJob | None) -> SearchJob:
    """The run's job, with held-out models behind its own."""
    return (
        question.job
        if held_out is None
        else replace(question.job, models=(*question.job.models, *held_out.models))
    )


def compared_chips(
    question: ExplainedRun, held_out: SearchJob | None, names: Sequence[str]
) -> list[dict[str, Any]]:
    """The study's baseline and the named chips, each once."""
    job = _every(question, held_out)
    base = [] if job.baseline is None else [job.baseline]
    chips = {
        chip.name: chip for chip in (*base, *(named_chip(name, job, "--compare") for name in names))
    }
    rows = []
    for chip in chips.values():
        priced = priced_on(job, chip)
        models = [
            {
                "name": task.name,
                "throughput_per_s": rate,
                "steps": [{"name": s.name, "seconds": s.seconds} for s in steps],
            }
            for task, rate, steps in zip(job.models, priced.throughputs, priced.steps, strict=True)
        ]
        title = {
            "chip": chip.name,
            "title": chip.title,
            "band": priced.band,
            "die_mm2": priced.die_mm2,
        }
        rows.append({**title, "models": models})
    return rows


def alone(question: ExplainedRun, held_out: SearchJob | None, processes: int) -> list[Alone]:
    """For every model, held-out ones too, the best chip of the space for it alone, searched and
    certified."""
    job, rows = _every(question, held_out), []
    for task, on_chip in zip(job.models, tasks_for(job, question.chip), strict=True):
        single = replace(job, models=(task,), limit_s=None)
        scale = scale_of(job.objective, [1.0], [float(task.training.batch)], [1.0])
        best = best_with(single, scale, processes)
        here = value_on(on_chip, question.chip, job.objective)
        rows.append(Alone(task.name, best.name, max(0.0, here / best.score - 1.0), best.gap))
    return rows

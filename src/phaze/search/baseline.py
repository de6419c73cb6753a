"""Several models are compared by what they reach relative to a baseline: a chip's values, or each
model's own best."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phaze.errors import InputError
from phaze.search.answer import best_of
from phaze.search.candidates import with_constants
from phaze.search.deadline import NEVER, Deadline, OutOfTime, nothing_in_time, within
from phaze.search.objective import Scale, scale_of
from phaze.search.reference import value_on
from phaze.search.result import SCHEMA, answer_of
from phaze.search.run import Evaluate, in_process, search
from phaze.search.shortage import nothing_found
from phaze.search.task import SearchJob, tasks_for
from phaze.search.witness import witness_of


def own_bests(
    job: SearchJob, engine: Evaluate = in_process, deadline: Deadline = NEVER
) -> tuple[list[float], tuple[Mapping[str, Any] | None, ...]]:
    """The best value of each model alone in the job's space, to the job's gap, and the answers that
    have these."""
    bests, answers = [], []
    for task in job.models:
        alone = replace(job, models=(task,), limit_s=None)
        scale = scale_of(job.objective, [1.0], [float(task.training.batch)], [1.0])
        state = search(alone, scale, engine, deadline=deadline)
        if state.stopped:
            raise nothing_in_time(SCHEMA)
        if state.best == float("inf"):
            raise nothing_found(state)
        best = best_of(state)
        bests.append(state.best)
        answers.append(None if best is None else witness_of(state, best, answer_of(state, best)))
    return bests, tuple(answers)


def scale_for(job: SearchJob, engine: Evaluate = in_process, deadline: Deadline = NEVER) -> Scale:
    """The objective with its models' weights, sequences, and where it needs them their values on
    the baseline.

    ``engine`` and ``deadline`` are for the searches that this may take.
    """
    objective, models = job.objective, job.models
    weights = [task.weight for task in models]
    sequences = [float(task.training.batch) for task in models]
    if len(models) == 1 or objective.mean == "arithmetic":
        return scale_of(objective, weights, sequences, [1.0] * len(models))
    if objective.mean == "regret":
        bests, answers = own_bests(job, engine, deadline)
        return replace(scale_of(objective, weights, sequences, bests), bests=answers)
    # On the constants and the links that the space's own chips have: like for like.
    chip = job.baseline or job.space.chip_named(objective.baseline)
    chip = with_constants(chip, job.space.base)
    try:
        values = within(
            deadline, lambda: [value_on(task, chip, objective) for task in tasks_for(job, chip)]
        )
    except OutOfTime:
        raise nothing_in_time(SCHEMA) from None
    for task, value in zip(models, values, strict=True):
        if value == float("inf"):
            raise InputError(
                "objective.baseline",
                f"{task.name} does not fit on {chip.name}",
                "choose another chip",
            )
    return scale_of(objective, weights, sequences, values)

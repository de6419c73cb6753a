"""A finished run, opened again to be asked about: its job, its chip, and the score of any other
chip or job.

Scores are those of the search (:mod:`phaze.search.objective`): the less the better. A gain is old
score / new - 1: what a change buys, in throughput where throughput is the objective. Every score
here is exact: the reference path schedules and places anew (``score_on``), or a search proves the
best of a space (``best_with``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import chip_set
from phaze.errors import InfeasibleError, InputError
from phaze.evaluate.layer_table import layer_works
from phaze.hardware.chip import Chip
from phaze.placement.answer import document_of
from phaze.search.answer import BestDesign, best_of
from phaze.search.baseline import scale_for
from phaze.search.boxes.grid import BoxGrid
from phaze.search.boxes.opening import is_boxed
from phaze.search.chips import SpaceChips
from phaze.search.configurations import configuration_names, plan_found
from phaze.search.engine import workers
from phaze.search.folder import JOURNAL, RESULT
from phaze.search.objective import Scale
from phaze.search.plan_words import plan_words
from phaze.search.reference import value_on
from phaze.search.reopened import place_of, require_closed, rows_in
from phaze.search.result_file import read_result, require_of_job
from phaze.search.run import search
from phaze.search.shared import Shared
from phaze.search.state import SearchState
from phaze.search.task import SearchJob, tasks_for
from phaze.study.load import question_in

AGREEMENT = 1e-9
"""A score that is found anew is the same sum in another order."""


@dataclass(frozen=True, slots=True)
class ExplainedRun:
    """A run to be explained; ``plans`` are its models' in words, ``bounds`` what the run proved of
    every chip's score, infinite where a model does not fit. ``number`` is the place of its chip.

    ``boxed``: the space was searched in boxes, and ``opened`` are the chips that they left alone.
    ``gap``: how far the run says that it is proved.
    """

    job: SearchJob
    scale: Scale
    chips: SpaceChips
    number: int
    chip: Chip
    score: float
    plans: tuple[str, ...]
    bounds: NDArray[np.float64]
    boxed: bool = False
    gap: float = 1.0

    @property
    def identity(self) -> tuple[float, ...]:
        """The fields that make the chip this one, whatever its constants are: chips that are equal
        in them are the same choice."""
        return self.chips.identity(self.number)


@dataclass(frozen=True, slots=True)
class BestOfChanged:
    """The best of a changed space: which chip, its identity, its score, how far it is proved, and
    its plans."""

    name: str
    identity: tuple[float, ...]
    chip: Chip
    score: float
    gap: float
    plans: tuple[str, ...]


def _plans(state: SearchState, best: BestDesign) -> tuple[str, ...]:
    """The plan of every model on the best chip."""
    plans = []
    for model, (task, ran) in enumerate(
        zip(state.networks.tasks_of(best.chip), best.ran, strict=True)
    ):
        configuration, plan = (
            task.configurations[ran.configuration],
            plan_found(state, best.chip, model, ran.configuration, best.hbm),
        )
        if plan is None:
            raise AssertionError(f"{task.name}: the answer's plan does not fit")
        graph = task.graphs[configuration.graph]
        named = {
            "tensor": graph.width,
            "microbatch": graph.microbatch,
            "recompute": configuration.recompute,
            "zero": plan.zero,
        }
        plans.append(
            plan_words(named | configuration_names(task, configuration), document_of(plan.plan))
        )
    return tuple(plans)


def question_of(folder: str) -> ExplainedRun:
    """The run in a folder."""
    if not (Path(folder) / RESULT).is_file():
        raise InputError(
            folder, f"there is no {RESULT}", "give the folder of a finished phaze search"
        )
    result = read_result(Path(folder))
    if result.get("provisional"):
        seen = "the run was stopped before a chip was evaluated, and there is no answer to explain"
        raise InputError(f"{folder}/{RESULT}", seen, "resume the same phaze search without --time")
    question = question_in(Path(folder))
    job = question.job
    if result["study_digest"] != job.digest:
        raise InputError(folder, "result and study do not belong together", "search again")
    journal = Path(folder) / JOURNAL
    chips, closed, evaluated = rows_in(journal, job.space)
    require_of_job(result, job, chips, folder)
    require_closed(journal, closed, evaluated, len(chips))
    number = place_of(chips, int(result["chip"]["number"]), folder)
    chip, scale = chips.chip(number, int(result["chip"]["hbm_bytes"])), scale_for(job)
    plans = tuple(plan_words(model, model["plan"]) for model in result["models"])
    bounds = np.array([np.inf if unit.bound is None else unit.bound for unit in closed])
    score, stated = score_on(job, scale, chip), float(result["objective"]["score"])
    if abs(score - stated) > AGREEMENT * score:
        seen = f"its score is {stated:.9g} and by this phaze {score:.9g}"
        raise InputError(
            f"{folder}/{RESULT}", seen, "phaze verify says what does not hold; search again"
        )
    gap = max(job.gap, float(result["certificate"]["gap"]))
    return ExplainedRun(
        job, scale, chips, number, chip, score, plans, bounds, is_boxed(job.space), gap
    )


def require_best(question: ExplainedRun, chip: str, gained: float) -> None:
    """Refuse an answer that a chip of its space beats by more than the gap of the run leaves
    open."""
    if (1 + gained) * (1 - question.gap) - AGREEMENT > 1:
        seen = (
            f"{chip} of its space is better than its answer by {gained:.3%}, and its gap is "
            f"{question.gap:.3%}"
        )
        raise InputError(RESULT, seen, "phaze verify says what does not hold; search again")


def score_on(job: SearchJob, scale: Scale, chip: Chip) -> float:
    """The score of a chip by the reference path; infinite where a model does not fit."""
    return float(
        scale.score(
            np.array([value_on(task, chip, job.objective) for task in tasks_for(job, chip)])
        )
    )


def scores_on(scale: Scale, changed: Sequence[tuple[SearchJob, Chip]]) -> list[float]:
    """The same of many chips under jobs that differ in their network alone: works are costed on all
    chips at once."""
    jobs, chips = zip(*changed, strict=True)
    models, arrays, scores = jobs[0].models, chip_set(chips), list[float]()
    priced = [
        [task.setting(chip).constants for task in tasks_for(job, chip)] for job, chip in changed
    ]
    if any(constants != priced[0] for constants in priced):
        return [score_on(job, scale, chip) for job, chip in changed]
    pairs = zip(models, priced[0], strict=True)
    costs = [
        [layer_works(graph.layers, arrays, constants) for graph in task.graphs]
        for task, constants in pairs
    ]
    for index, (job, chip) in enumerate(changed):
        mine = [[cost.taken(np.array([index])) for cost in of_model] for of_model in costs]
        tasks = zip(tasks_for(job, chip), mine, strict=True)
        scores.append(
            float(
                scale.score(
                    np.array(
                        [
                            value_on(task, chip, job.objective, constants)
                            for task, constants in tasks
                        ]
                    )
                )
            )
        )
    return scores


def best_with(
    job: SearchJob,
    scale: Scale,
    processes: int,
    chips: SpaceChips | BoxGrid | None = None,
    shared: Shared | None = None,
) -> BestOfChanged:
    """The certified best of a changed job, or of changed chips, measured by the scale of the
    run."""
    state = search(job, scale, workers(processes), shared=shared, space_chips=chips)
    best = best_of(state)
    if best is None:
        raise InfeasibleError("nothing in the changed space is feasible", {})
    chip = state.chips.chip(best.chip, job.hbm_bytes[best.hbm])
    gap = state.standing().gap
    return BestOfChanged(
        chip.name, state.chips.identity(best.chip), chip, best.score, gap, _plans(state, best)
    )


def with_budget(job: SearchJob, rule: str, most: float) -> SearchJob:
    """The job with another limit of area, power or usd."""
    return replace(job, space=job.space.within({rule: most}))


def gain(old: float, new: float) -> float:
    """What a change from one score to another buys."""
    return old / new - 1.0 if new < float("inf") else -1.0

r"""The best of a space that was changed, looking only at chips that the run has not excluded far
enough.

Another limit of area or power, or another constant of the process, changes which combinations are
chips and the clocks that they hold. A batch takes at least f / f' of its time when a chip holds f'
> f instead of f, and no less when it holds less. So with the run's lower bound L on the score of a
chip

    L min(1, f / f') > the score of the run's chip in the changed space      =>      it is not the best there

where time alone counts, and a chip may have the memories that it might have before. Where rates of
HBM, links or software change too, by a factor of at most m > 1, L is divided by m: no part of a
batch is more than m f' / f times as fast. Chips that the change brings into the space, and all of
them elsewhere, are considered as in any search.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InfeasibleError
from phaze.explain.question import ExplainedRun, best_with, score_on
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.task import SearchJob


def _numbers(chips: SpaceChips) -> NDArray[np.int64]:
    """The number of every chip's combination, the same whatever the space keeps."""
    points, values = chips.space.axis_points(), chips.axis_values()
    places = [np.searchsorted(axis, values[name]) for name, axis in points.items()]
    return np.asarray(np.ravel_multi_index(places, [len(axis) for axis in points.values()])).astype(
        np.int64
    )


def candidates(
    question: ExplainedRun, changed: SpaceChips, job: SearchJob, rates: float = 1.0
) -> NDArray[np.int64]:
    """Chips of the changed space that may be its best; ``rates``: the greatest factor on any other
    rate than the clock."""
    old = question.chips
    other_memories = (
        job.space.memories is None and job.space.keep.most_usd != old.space.keep.most_usd
    )
    if job.objective.needs_energy or other_memories:
        return np.arange(len(changed))
    before, after = _numbers(old), _numbers(changed)
    order = np.argsort(before)
    place = order[np.minimum(np.searchsorted(before, after, sorter=order), len(order) - 1)]
    faster = np.minimum(1.0, old.held_hz[place] / changed.held_hz)
    bound = np.where(before[place] == after, question.bounds[place] * faster / max(1.0, rates), 0.0)
    there, hbm_bytes = (
        np.flatnonzero(after == before[question.number]),
        question.chip.hbm.size_bytes,
    )
    reach = (
        score_on(job, question.scale, changed.chip(int(there[0]), hbm_bytes))
        if len(there)
        else np.inf
    )
    return np.flatnonzero(bound <= reach * (1 + 1e-9))


@dataclass(frozen=True, slots=True)
class Winner:
    """The best chip of a changed space: its name, its identity and its score."""

    name: str
    identity: tuple[float, ...]
    score: float


def best_of_changed(
    question: ExplainedRun, job: SearchJob, processes: int, rates: float = 1.0
) -> Winner | None:
    """The certified best of a job whose space was changed, and rates by at most a factor; None
    where nothing fits."""
    if question.boxed:
        return _best(question, job, processes, None)
    chips = enumerate_space(job.space)
    if not len(chips):
        return None
    chips = chips.taken(candidates(question, chips, job, rates))
    if not len(chips):
        return None
    if (
        len(chips) == 1 and job.space.memories is not None
    ):  # all others are excluded by what the run proved
        chip = chips.chip(0)
        score = score_on(job, question.scale, chip)
        return Winner(chip.name, chips.identity(0), score) if score < np.inf else None
    return _best(question, job, processes, chips)


def _best(
    question: ExplainedRun, job: SearchJob, processes: int, chips: SpaceChips | None
) -> Winner | None:
    try:
        best = best_with(job, question.scale, processes, chips)
    except InfeasibleError:
        return None
    return Winner(best.name, best.identity, best.score)

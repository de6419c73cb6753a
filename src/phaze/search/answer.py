"""The best chip of a finished search: ties broken, and the least memory that keeps its time.

Chips whose scores are equal to 1e-9 are ordered by area, then by the HBM that they need, then by number. Under an
objective that does not count memory a chip was evaluated with the most of it, which never slows; the least HBM is then
found by evaluating its models again with less.
"""

from dataclasses import dataclass

import numpy as np

from phaze.search.evaluation import Evaluated, Opened, Ran
from phaze.search.run import TIE, State


@dataclass(frozen=True, slots=True)
class Best:
    """The chip, its memory (position in the job's list), its score, and for each model the way it runs."""

    chip: int
    hbm: int
    score: float
    ran: tuple[Ran, ...]


def _with_memory(state: State, found: Evaluated, hbm: int) -> tuple[Ran, ...] | None:
    """The models' best ways with that memory, as fast as with the most of it, or None."""
    opened = Opened(state.job, state.scale, found.chip, state.arrays.taken(np.array([found.chip])), state.known)
    ran = []
    for model, own in enumerate(found.ran):
        near = own.batch_s * (1 + TIE)
        bounds = state.bounds[model][:, -1, found.chip]
        ways = [way for way in np.argsort(bounds, kind="stable").tolist() if bounds[way] <= near]
        timed = [(opened.batch(model, way, state.job.hbm_bytes[hbm])[0], way) for way in ways]
        batch_s, way = min(timed, default=(float("inf"), 0))
        if batch_s > near:
            return None
        ran.append(Ran(way, batch_s, own.lower_s))
    return tuple(ran)


def _lean(state: State, found: Evaluated) -> tuple[int, tuple[Ran, ...]]:
    """The least memory that keeps the score, and the ways with it."""
    if state.job.objective.needs_hbm:
        return found.hbm, found.ran
    for hbm in range(found.hbm):
        ran = _with_memory(state, found, hbm)
        if ran is not None:
            return hbm, ran
    return found.hbm, found.ran


def best_of(state: State) -> Best | None:
    """The best chip, or None when nothing is feasible."""
    there = [found for found in state.evaluated.values() if found.ran]
    if not there:
        return None
    least = min(found.score for found in there)
    area = state.opened.chips.area_mm2
    tied = [found for found in there if found.score <= least * (1 + TIE)]
    smallest = min(area[found.chip] for found in tied)
    tied = [found for found in tied if area[found.chip] == smallest]
    lean = [(*_lean(state, found), found) for found in tied]
    hbm, ran, found = min(lean, key=lambda one: (one[0], one[2].chip))
    return Best(found.chip, hbm, found.score, ran)

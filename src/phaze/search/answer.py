"""The best chip of a finished search: ties broken, and the least memory that keeps its score.

Chips whose scores are equal to 1e-9 are ordered by area, then by the HBM that they need, then by
number. Under an objective that counts time alone a chip was evaluated with the most memory, which
never slows; the least HBM is then found by evaluating its models again with less.
"""

from dataclasses import dataclass

import numpy as np

from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.evaluation import BARELY, ChipEvaluation
from phaze.search.state import TIE, SearchState


@dataclass(frozen=True, slots=True)
class BestDesign:
    """The chip, its memory (position in the job's list), its score, and for each model the
    configuration it runs in."""

    chip: int
    hbm: int
    score: float
    ran: tuple[ModelRun, ...]


def _least(
    state: SearchState, evaluation: ChipEvaluation, model: int, hbm: int, near: float
) -> ModelRun | None:
    """The best configuration of a model with that memory, among those that may have a value of
    ``near``; the first of equals."""
    memory = state.memories.index(hbm) if hbm in state.memories else len(state.memories) - 1
    bounds = state.values(model, np.array([evaluation.chip]))[:, memory, 0]
    rates, best, task = state.rates.at(hbm, evaluation.chip), None, evaluation.tasks[model]
    for configuration in np.argsort(bounds, kind="stable").tolist():
        if bounds[configuration] > near or (
            best is not None and bounds[configuration] >= best.value
        ):
            break
        floor_j = float(
            state.floors[model][task.configurations[configuration].graph, evaluation.chip]
        )
        below_s = float(rates.last_s(near, floor_j)) * (1 + BARELY) if near < float("inf") else near
        if evaluation.too_slow(model, configuration, hbm, below_s):
            continue
        priced = evaluation.price(model, configuration, hbm, below_s)
        value = float(rates.value(np.asarray(priced.batch_s), priced.dynamic_j))
        if value < (float("inf") if best is None else best.value):
            best = ModelRun(
                configuration, priced.batch_s, priced.dynamic_j, value, float(bounds[configuration])
            )
    return best


def _with_memory(
    state: SearchState, evaluation: ChipEvaluation, design: Evaluated, hbm: int
) -> tuple[ModelRun, ...] | None:
    """The models' best configurations with that memory, if their score is as good, or None."""
    ran = []
    for model, evaluated in enumerate(design.ran):
        near = float("inf") if len(design.ran) > 1 else evaluated.value * (1 + TIE)
        best = _least(state, evaluation, model, hbm, near)
        if best is None:
            return None
        ran.append(best)
    score = float(state.scale.score(np.array([run.value for run in ran])))
    return tuple(ran) if score <= design.score * (1 + TIE) else None


def lean(state: SearchState, best: Evaluated) -> tuple[int, tuple[ModelRun, ...]]:
    """The least memory that keeps the score, and the configurations with it."""
    pricing = state.open(best.chip)  # what its layers take hangs on no memory
    for hbm in range(best.hbm):
        if not state.rates.rate[hbm, best.chip] < float(
            "inf"
        ):  # a memory that the chip may not have
            continue
        ran = _with_memory(state, pricing, best, hbm)
        if ran is not None:
            return hbm, ran
    return best.hbm, best.ran


def best_of(state: SearchState) -> BestDesign | None:
    """The best chip, or None when nothing is feasible."""
    there = [evaluated for evaluated in state.evaluated.values() if evaluated.ran]
    if not there:
        return None
    least = min(evaluated.score for evaluated in there)
    area = state.chips.area_mm2
    tied = [evaluated for evaluated in there if evaluated.score <= least * (1 + TIE)]
    smallest = min(area[evaluated.chip] for evaluated in tied)
    tied = [evaluated for evaluated in tied if area[evaluated.chip] == smallest]
    leaner = [(*lean(state, evaluated), evaluated) for evaluated in tied]
    hbm, ran, evaluated = min(leaner, key=lambda design: (design[0], design[2].chip))
    return BestDesign(evaluated.chip, hbm, evaluated.score, ran)

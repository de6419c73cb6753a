"""The search: bounds for all chips, then rounds of opened chips, best bound first, until no bound beats the best chip.

    1  cheap bounds on layer times for all chips; a pilot, every k-th chip, gives a first incumbent
    2  bounds on batch time for all chips, looked at only as far as they may matter
    3  a round of the best bounds; then the antichain dual for every chip that may still win
    4  rounds of ``round_size`` chips in order of (bound, area, number), each evaluated against the cut-off at the start
       of its round, until the next bound is above it:

           cut-off = incumbent * (1 - gap), or with gap 0 the incumbent and its ties

Chips of a round are merged in order, so neither the number of workers nor an interruption changes anything. A chip
whose evaluation fails keeps its bound in the global bound. Best: least score, ties (to 1e-9) by area, HBM, number.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.search.bound import CHEAP, DUAL, LayerTimes, layer_bounds, model_bounds
from phaze.search.chips import SpaceChips, open_space
from phaze.search.evaluation import Evaluated, Known, Opened, evaluate
from phaze.search.factors import factors_of
from phaze.search.objective import Scale
from phaze.search.task import Job

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

TIE = 1e-9
PILOTS = 600
# How far above the incumbent's batch time a model's bound is worked out: one model needs less than several.
REACH, REACH_OF_SEVERAL = 1.25, 6.0


class Journal(Protocol):
    """Where evaluated chips are kept between runs."""

    def known(self) -> dict[int, Evaluated]: ...

    def add(self, found: Iterable[Evaluated]) -> None: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a search is: chips by how they are closed, the best score, the bound, and the gap between them."""

    evaluated: int
    bound: int
    memory: int
    open: int
    best: float
    lower: float

    @property
    def gap(self) -> float:
        return max(0.0, 1.0 - self.lower / self.best) if 0 < self.best < float("inf") else 1.0


@dataclass(slots=True)
class State:
    """A search under way."""

    job: Job
    opened: SpaceChips
    arrays: ChipArrays
    scale: Scale
    memories: list[int]
    factors: Floats
    times: list[list[LayerTimes]]
    bounds: list[Floats]
    known: Known = field(default_factory=Known)
    evaluated: dict[int, Evaluated] = field(default_factory=dict)
    dual: frozenset[int] = frozenset()

    def scores(self) -> Floats:
        """The bound of every chip."""
        least = np.stack([bound.min(axis=0) for bound in self.bounds])
        return np.asarray(self.scale.score(least, self.factors).min(axis=0))

    @property
    def best(self) -> float:
        return min((found.score for found in self.evaluated.values()), default=float("inf"))

    @property
    def cut(self) -> float:
        """A chip whose bound is above this is closed."""
        return self.best * (1 - self.job.gap if self.job.gap > 0 else 1 + TIE)

    def standing(self) -> Standing:
        """Where the search is."""
        scores = self.scores()
        for chip, found in self.evaluated.items():
            scores[chip] = found.lower
        memory = int(np.isinf(scores).sum())
        closed = np.zeros(len(scores), np.bool_)
        closed[list(self.evaluated)] = True
        above = ~closed & (scores > self.cut) & ~np.isinf(scores)
        left = len(scores) - memory - int(above.sum()) - int((closed & ~np.isinf(scores)).sum())
        lower = min(float(scores.min(initial=np.inf)), self.best)
        return Standing(int((closed & ~np.isinf(scores)).sum()), int(above.sum()), memory, left, self.best, lower)


Evaluate = Callable[[State, list[int], float], list[Evaluated]]
Watch = Callable[[Standing], None]


def evaluate_one(state: State, chip: int, cut: float) -> Evaluated:
    """One chip against a cut-off; a failure is an answer that keeps the chip's bound."""
    index = np.array([chip])
    bounds = [bound[:, :, chip] for bound in state.bounds]
    opened = Opened(state.job, state.scale, chip, state.arrays.taken(index), state.known)
    try:
        return evaluate(opened, bounds, state.factors[:, chip], state.memories, cut)
    except Exception as fault:
        bound = float(state.scores()[chip])
        return Evaluated(chip, state.memories[-1], float("inf"), bound, (), f"{type(fault).__name__}: {fault}")


def in_process(state: State, chips: list[int], cut: float) -> list[Evaluated]:
    """The plain engine."""
    return [evaluate_one(state, chip, cut) for chip in chips]


def _round(state: State, chips: list[int], engine: Evaluate, journal: Journal | None) -> None:
    """Open the chips of a round; what the journal has is not done again."""
    kept = journal.known() if journal is not None else {}
    wanted = [chip for chip in chips if chip not in kept]
    found = {one.chip: one for one in engine(state, wanted, state.cut)} if wanted else {}
    if journal is not None:
        journal.add(found[chip] for chip in wanted)
    for chip in chips:
        state.evaluated[chip] = kept[chip] if chip in kept else found[chip]


def _next(state: State, count: int) -> list[int]:
    """The best chips that are still open, in order of bound, area, number."""
    scores = state.scores()
    scores[list(state.evaluated)] = np.inf
    order = np.lexsort((np.arange(len(scores)), state.opened.chips.area_mm2, scores))[:count]
    cut = state.cut
    return [int(chip) for chip in order if np.isfinite(scores[chip]) and scores[chip] <= cut]


def _cuts(state: State) -> list[float]:
    """For each model the batch time up to which bounds are worked out."""
    best = min(state.evaluated.values(), key=lambda one: (one.score, one.chip), default=None)
    if best is None or not best.ran:
        return [float("inf")] * len(state.job.models)
    reach = REACH if len(state.job.models) == 1 and not state.job.objective.needs_factor else REACH_OF_SEVERAL
    return [reach * ran.batch_s for ran in best.ran]


def _bounds(state: State, index: Integers, times: list[list[LayerTimes]], cuts: list[float]) -> list[Floats]:
    hbm = [state.job.hbm_bytes[at] for at in state.memories]
    some = [
        [LayerTimes(t.forward_s[:, index], t.backward_s[:, index]) for t in own]
        if len(index) < len(state.arrays)
        else own
        for own in times
    ]
    return [
        model_bounds(task, own, hbm, cut).batch_s for task, own, cut in zip(state.job.models, some, cuts, strict=True)
    ]


def _start(job: Job, opened: SpaceChips, scale: Scale) -> State:
    arrays = opened.arrays()
    memories = list(range(len(job.hbm_bytes))) if job.objective.needs_hbm else [len(job.hbm_bytes) - 1]
    times = [[layer_bounds(graph, arrays, CHEAP) for graph in task.graphs] for task in job.models]
    factors = factors_of(job.objective, opened, [job.hbm_bytes[at] for at in memories])
    ways = [len(task.ways) for task in job.models]
    unknown = [np.zeros((count, len(memories), len(arrays))) for count in ways]
    return State(job, opened, arrays, scale, memories, factors, times, unknown)


def _pilot(state: State, engine: Evaluate, journal: Journal | None) -> None:
    """Bounds of every k-th chip; the best of them are opened for a first incumbent."""
    index = np.arange(0, len(state.arrays), max(1, len(state.arrays) // PILOTS))
    unlimited = [float("inf")] * len(state.job.models)
    whole = [bound.copy() for bound in state.bounds]
    for bound, found in zip(state.bounds, _bounds(state, index, state.times, unlimited), strict=True):
        bound[:] = np.inf
        bound[:, :, index] = found
    _round(state, _next(state, max(1, state.job.round_size // 4)), engine, journal)
    state.bounds = whole


def _tighten(state: State) -> None:
    """The antichain dual for all chips that may still win; the better of both bounds is kept."""
    scores = state.scores()
    scores[list(state.evaluated)] = np.inf
    index = np.flatnonzero(scores <= state.cut)
    if not len(index):
        return
    state.dual = frozenset(index.tolist())
    some = state.arrays.taken(index)
    times = [[layer_bounds(graph, some, DUAL) for graph in task.graphs] for task in state.job.models]
    hbm = [state.job.hbm_bytes[at] for at in state.memories]
    alone = len(state.job.models) == 1 and not state.job.objective.needs_factor
    cut_s = state.best * (1 + 1e-6) if alone else float("inf")
    for bound, task, own in zip(state.bounds, state.job.models, times, strict=True):
        bound[:, :, index] = np.maximum(bound[:, :, index], model_bounds(task, own, hbm, cut_s, general=True).batch_s)


def search(
    job: Job, scale: Scale, engine: Evaluate = in_process, journal: Journal | None = None, watch: Watch | None = None
) -> State:
    """Run a search to its gap, or to its time limit; the state holds what was found and proved."""
    began = time.monotonic()
    state = _start(job, open_space(job.space), scale)
    _pilot(state, engine, journal)
    every = np.arange(len(state.arrays))
    state.bounds = _bounds(state, every, state.times, _cuts(state))
    tightened = False
    while True:
        if watch is not None:
            watch(state.standing())
        if job.limit_s is not None and time.monotonic() - began > job.limit_s:
            return state
        chips = _next(state, job.round_size)
        if not chips:
            return state
        if tightened:
            _round(state, chips, engine, journal)
            continue
        _round(state, chips[: max(1, job.round_size // 4)], engine, journal)
        _tighten(state)
        tightened = True

"""A front: bounds for all units, then rounds of evaluated units, until a design closes every one
that is left.

First a few units are evaluated that no other's bounds beat, from one end of that front of bounds to
the other. Then units are evaluated in the order of the product of their lower bounds in all
metrics, then by number. A design that closes a unit has no bound above it, so it comes first in
this order: what a front evaluates does not depend on luck. The finer bounds (the antichain dual,
the best cuts) are computed for the next units of the order only, and only up to what designs that
are no worse elsewhere leave of a unit. Units of a round are merged in order, so neither the number
of workers nor an interruption changes anything.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.front.answer import SCHEMA
from phaze.front.box_designs import FrontBoxes
from phaze.front.boxed import front_boxes
from phaze.front.cutoffs import last_times
from phaze.front.ending import Ending
from phaze.front.first_designs import first_designs
from phaze.front.metrics import RequestedMetrics
from phaze.front.order import undominated
from phaze.front.state import FrontState, front_state
from phaze.search.baseline import scale_for
from phaze.search.boxes.box_bounds import BoxQuestion
from phaze.search.boxes.grid import box_grid
from phaze.search.boxes.opening import is_boxed
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.deadline import NEVER, Deadline, OutOfTime, after, nothing_in_time
from phaze.search.dual_bounds import bounds_on, raise_open
from phaze.search.journal import Journal
from phaze.search.objective import Objective, Scale
from phaze.search.run import (
    Evaluate,
    begin,
    evaluate_round,
    in_process,
    keep_times,
)
from phaze.search.shared import Shared
from phaze.search.task import SearchJob

Integers = NDArray[np.int64]
# Chips whose finer bounds are computed at a time, and units of the first round: as many as fill the
# kernels.
DUALS, FIRST = 512, 256


@dataclass(frozen=True, slots=True)
class FrontProgress:
    """How far a front is: units evaluated, units with a chance, designs that none beats."""

    evaluated: int
    left: int
    designs: int


Watch = Callable[[FrontProgress], None]


def job_for(job: SearchJob, metrics: RequestedMetrics) -> SearchJob:
    """The job with the objective whose bounds and energies the front needs."""
    kinds = [metric.kind for metric in metrics.runs if metric.kind is not None]
    kind = kinds[0] if len(kinds) == 1 else "throughput_per_watt"
    return replace(job, objective=Objective(kind, job.objective.mean, job.objective.baseline))


def scales_for(
    job: SearchJob,
    metrics: RequestedMetrics,
    engine: Evaluate = in_process,
    deadline: Deadline = NEVER,
) -> tuple[Scale, ...]:
    """How several models are averaged in each metric of a run; ``engine`` and ``deadline`` as in a
    search."""
    kinds = [metric.kind for metric in metrics.runs if metric.kind is not None]
    jobs = (replace(job, objective=replace(job.objective, kind=kind)) for kind in kinds)
    return tuple(scale_for(job_of_metric, engine, deadline) for job_of_metric in jobs)


def memories_of(job: SearchJob, metrics: RequestedMetrics) -> list[int]:
    """The memories that count: the most is enough where they are free."""
    return job.memories(metrics.needs_hbm)


def _order(state: FrontState) -> Integers:
    """Units with a chance, those of the least product of bounds first."""
    units = np.flatnonzero(state.alive.any(axis=0))
    with np.errstate(divide="ignore"):
        logs = np.log(state.lower[: state.weighed, :, units]).sum(axis=0)
    keys = np.where(state.alive[:, units], logs, np.inf).min(axis=0)
    return np.asarray(units[np.lexsort((units, keys))])


def _tighten(state: FrontState, chips: Integers) -> None:
    """The finer bounds for some chips; the better of both is kept."""
    raise_open(state, chips, last_times(state, chips))
    state.tightened[chips] = True
    state.dual |= frozenset(chips.tolist())
    state.refresh(chips)


def _first(state: FrontState) -> list[int]:
    """The units of the first round: every so many of those whose bounds no other's beat, by their
    first bound."""
    units = np.flatnonzero(state.alive.any(axis=0))
    lower = state.lower[: state.weighed].min(axis=1)[:, units]
    best = undominated(lower, units)
    order = best[np.lexsort((units[best], lower[0, best]))]
    count = min(len(order), FIRST)
    places = np.unique(np.linspace(0, len(order) - 1, count).astype(np.int64))
    return [int(unit) for unit in units[order[places]]]


def _next(state: FrontState) -> list[int]:
    """The units of the next round, the finer bounds computed for all of them."""
    while True:
        order = _order(state)
        wanted = order[: state.job.round_size]
        loose = ~state.tightened[order % len(state.chips)]
        if not loose[: len(wanted)].any():
            return [int(unit) for unit in wanted]
        chips = order[loose] % len(state.chips)
        first = np.sort(np.unique(chips, return_index=True)[1])[:DUALS]
        _tighten(state, np.sort(chips[first]))


def _open(state: FrontState, units: list[int], engine: Evaluate, journal: Journal | None) -> None:
    """Open a round; its designs close what they can, those of a round that was not finished too."""
    try:
        evaluate_round(state, units, engine, journal)
    finally:
        done = [unit for unit in units if unit in state.evaluated]
        came = [number for unit in done for number in state.take(state.evaluated[unit])]
        new = np.isin(state.archive.numbers, came)
        state.close(
            np.arange(state.lower.shape[2]),
            state.archive.numbers[new],
            state.archive.values[:, new],
        )


def front(
    job: SearchJob,
    metrics: RequestedMetrics,
    scales: Sequence[Scale],
    engine: Evaluate = in_process,
    journal: Journal | None = None,
    watch: Watch | None = None,
    deadline: Deadline | None = None,
    ending: Ending | None = None,
) -> FrontState:
    """Find a front to the job's gap, or to its time limit; ``job`` is that of :func:`job_for`,
    ``scales`` of :func:`scales_for`. Where there is a limit, ``ending`` does after every round what
    it can of the front's end. A space of many chips is searched in boxes
    (:mod:`phaze.front.boxed`)."""
    deadline = after(job.limit_s) if deadline is None else deadline
    if not is_boxed(job.space):
        return _front_chips(
            Front(job, metrics, scales, engine, deadline),
            enumerate_space(job.space),
            journal,
            watch,
            ending,
        )
    memories, shared = tuple(memories_of(job, metrics)), Shared()
    question = BoxQuestion(job, scales[0], box_grid(job.space), memories, deadline)

    def against(state: FrontState, until: Deadline) -> FrontBoxes:
        until_then = replace(question, deadline=until)
        return FrontBoxes(
            until_then, metrics, tuple(scales), state.archive.values[: len(metrics.of)]
        )

    def some(
        chips: SpaceChips, chips_journal: Journal | None, first: list[int], gap: float, last: bool
    ) -> FrontState:
        setting = Front(replace(job, gap=gap), metrics, scales, engine, deadline, shared)
        if last and ending is not None:
            ending.clear()
        return _front_chips(
            setting, chips, chips_journal, watch if last else None, ending if last else None, first
        )

    return front_boxes(question, against, some, journal)


@dataclass(frozen=True, slots=True)
class Front:
    """What a front of any chips is asked with; ``shared``: what other fronts of the job have worked
    out."""

    job: SearchJob
    metrics: RequestedMetrics
    scales: Sequence[Scale]
    engine: Evaluate
    deadline: Deadline
    shared: Shared | None = None


def _front_chips(
    setting: Front,
    chips: SpaceChips,
    journal: Journal | None,
    watch: Watch | None,
    ending: Ending | None,
    before: list[int] | None = None,
) -> FrontState:
    """A front of chips one by one; units of ``before`` are evaluated first, whatever their
    bounds."""
    job, metrics, scales, engine, deadline = (
        setting.job,
        setting.metrics,
        setting.scales,
        setting.engine,
        setting.deadline,
    )
    first, hurried, memories = None, deadline.is_set, memories_of(job, metrics)
    try:
        start = begin(
            job,
            chips,
            scales[0],
            memories,
            keeps_times=not hurried,
            shared=setting.shared,
            deadline=deadline,
        )
        if hurried and len(chips):
            first = first_designs(start, metrics, scales, engine)
            if ending is not None:
                ending.prepare(first, deadline)
                start.deadline = first.deadline
            keep_times(start, setting.shared)
        if len(chips):
            start.set_bounds(
                bounds_on(start, np.arange(len(chips)), start.times, [np.inf] * len(start.times))
            )
    except OutOfTime:
        if first is None or not len(first.archive.numbers):
            raise nothing_in_time(SCHEMA) from None
        first.stopped = True
        return first
    state = front_state(start, metrics, scales)
    try:
        while units := _next(state) if state.evaluated else before or _first(state):
            state.deadline.check()
            _open(state, units, engine, journal)
            if ending is not None and deadline.is_set:
                ending.prepare(state, deadline)
            if watch is not None:
                left = int(state.alive.any(axis=0).sum())
                watch(FrontProgress(len(state.evaluated), left, len(state.archive.numbers)))
    except OutOfTime:
        state.stopped = True
        if first is not None and not len(state.archive.numbers):
            for unit, result in first.evaluated.items():
                state.evaluated[unit] = result
                state.take(result)
    return state

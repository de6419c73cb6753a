"""The search: bounds for all chips, then rounds of evaluated chips, best bound first, until no
bound beats the best chip.

    1  cheap bounds on layer times for all chips; a pilot, every k-th chip, gives a first incumbent,
       where layers need schedules by list schedules
    2  bounds on batch time for all chips, considered only as far as they may matter: where layers
       need schedules, layers only of those pairs of graph and chip that the loads of the chip's
       parts leave a chance
    3  a round of the best bounds; then the antichain dual for every chip that may still win
    4  rounds of ``round_size`` chips in order of (bound, area, number), each evaluated against the
       cut-off at the start of its round, until the next bound is above it:

           cut-off = incumbent * (1 - gap), or with gap 0 the incumbent and its ties

Chips of a round are merged in order, so neither the number of workers nor an interruption changes
anything. A chip whose evaluation fails keeps its bound in the global bound. Best: least score, ties
(to 1e-9) by area, HBM, number.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.layer_table import CHUNK, LayerTable
from phaze.schedule.solved import SolvedSchedules
from phaze.search.bounds.chip_times import layer_times_on, open_times_on
from phaze.search.bounds.model_bounds import CHEAP, model_floors, no_floors
from phaze.search.bounds.part_loads import counts_parts
from phaze.search.boxes.grid import BoxGrid
from phaze.search.boxes.opening import box_question, is_boxed
from phaze.search.boxes.searching import search_boxes
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.cutoffs import last_times
from phaze.search.deadline import NEVER, Deadline, OutOfTime, after
from phaze.search.dual_bounds import bounds_on, raise_open
from phaze.search.evaluated import Evaluated
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.initial_incumbent import (
    better_design,
    design_on,
    first_bounds,
    first_design,
    stop,
)
from phaze.search.journal import Journal
from phaze.search.objective import Scale
from phaze.search.rates import rates_of
from phaze.search.round_works import share_works
from phaze.search.shared import Shared
from phaze.search.state import WITHIN, SearchState, Standing
from phaze.search.task import SearchJob, networks_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Chips, spread over the space, that give a first incumbent; more of them delay the bounds of all.
PILOTS = 600
# In larger spaces the layer times of a chunk of chips are forgotten when its bounds are there.
LARGE = 1 << 18
# How far above the incumbent's batch time a model's bound is computed: one model needs less than
# several.
REACH, REACH_OF_SEVERAL = 1.25, 6.0


Evaluate = Callable[[SearchState, list[int], float], list[Evaluated]]
Watch = Callable[[Standing], None]


def evaluate_one(state: SearchState, chip: int, cut: float) -> Evaluated:
    """One chip against a cut-off; a failure is an answer that keeps the chip's bound."""
    return state.evaluate(chip, cut)


def in_process(state: SearchState, chips: list[int], cut: float) -> list[Evaluated]:
    """The plain engine."""
    return [evaluate_one(state, chip, cut) for chip in chips]


def evaluate_round(
    state: SearchState, chips: list[int], engine: Evaluate, journal: Journal | None
) -> None:
    """Open the chips of a round; what the journal has is not done again. What an engine leaves out
    stays open."""
    journalled = journal.evaluated() if journal is not None else {}
    wanted = [chip for chip in chips if chip not in journalled]
    share_works(state, wanted)
    evaluated = (
        {result.chip: result for result in engine(state, wanted, state.cut)} if wanted else {}
    )
    if journal is not None:
        journal.add(evaluated[chip] for chip in wanted if chip in evaluated)
    done = {**evaluated, **{chip: journalled[chip] for chip in chips if chip in journalled}}
    state.evaluated.update({chip: done[chip] for chip in chips if chip in done})
    if len(done) < len(chips):
        raise OutOfTime


def _next(state: SearchState, count: int) -> list[int]:
    """The best chips that are still open, in order of bound, area, number."""
    scores, cut = state.scores(), state.cut
    scores[list(state.evaluated)] = np.inf
    near = np.flatnonzero(np.isfinite(scores) & (scores <= cut))
    order = np.lexsort((near, state.chips.area_mm2[near], scores[near]))[:count]
    return [int(chip) for chip in near[order]]


def _cuts(state: SearchState) -> list[float]:
    """For each model the batch time up to which bounds are computed."""
    best = min(
        state.evaluated.values(),
        key=lambda result: (result.score, result.chip),
        default=state.provisional,
    )
    if best is None or not best.ran:
        return [float("inf")] * len(state.job.models)
    reach = (
        REACH
        if len(state.job.models) == 1 and not state.job.objective.needs_energy
        else REACH_OF_SEVERAL
    )
    return [reach * ran.batch_s for ran in best.ran]


def keep_times(state: SearchState, shared: Shared | None) -> None:
    """The cheap bounds on layer times and joules of all chips, as far as they are not shared."""
    job, chips = state.job, state.chips

    def work_out(index: Integers) -> list[list[LayerTable]]:
        return layer_times_on(
            job, chips, state.networks, state.arrays, index, CHEAP, state.deadline
        )

    if shared is None:
        state.times = work_out(np.arange(len(chips)))
    else:
        state.times = shared.layer_times(job, chips, work_out)
    state.floors = [
        model_floors(task, time) for task, time in zip(job.models, state.times, strict=True)
    ]


def begin(
    job: SearchJob,
    chips: SpaceChips,
    scale: Scale,
    memories: list[int] | None = None,
    keeps_times: bool = True,
    shared: Shared | None = None,
    deadline: Deadline = NEVER,
) -> SearchState:
    """A search before its first bound on batch times; ``memories`` are those that chips are
    evaluated with.

    ``keeps_times``: with the layer times and floors of all chips.
    """
    arrays = chips.arrays()
    networks = networks_of(job.models, job.space, chips.link_bytes_per_s)
    memories = job.memories(job.objective.needs_energy) if memories is None else memories
    rates = rates_of(job.objective, chips, list(job.hbm_bytes), job.models[0].training.devices)
    nothing = [
        np.full((len(task.configurations), len(memories), len(arrays)), np.inf)
        for task in job.models
    ]
    schedules = ScheduleMemo(solved=SolvedSchedules()) if shared is None else shared.schedules(job)
    floors = no_floors(job, len(arrays))
    state = SearchState(
        job, chips, arrays, networks, scale, rates, memories, [], nothing, floors, schedules
    )
    state.deadline, state.shared = deadline, shared
    if keeps_times:
        keep_times(state, shared)
    return state


def _times_on(state: SearchState, index: Integers) -> list[list[LayerTable]]:
    """Layer times of some chips of a large space, whose floors on joules are set by the
    configuration."""
    times = layer_times_on(
        state.job, state.chips, state.networks, state.arrays, index, CHEAP, state.deadline
    )
    if state.energy is not None:
        for floors, task, time in zip(state.floors, state.job.models, times, strict=True):
            floors[:, index] = model_floors(task, time)
    return times


def _bound_all(state: SearchState) -> None:
    """Bounds on batch times of every chip, as far as they may matter; in a large space a chunk
    after the other."""
    cuts, count = _cuts(state), len(state.arrays)
    if state.times:
        state.set_bounds(bounds_on(state, np.arange(count), state.times, cuts))
        return
    for start in range(0, count, CHUNK):
        index, floors = np.arange(start, min(start + CHUNK, count)), None
        if _by_parts(state.job):
            times, floors = open_times_on(
                state.job, state.networks, state.arrays, index, cuts, state.deadline
            )
        else:
            times = _times_on(state, index)
        state.put_bounds(
            slice(start, start + len(index)), bounds_on(state, index, times, cuts, floors=floors)
        )


def _by_parts(job: SearchJob) -> bool:
    """Whether the loads of parts leave layers of chips out; joules are those of
    all."""
    graphs = [graph for task in job.models for graph in task.graphs]
    return not job.objective.needs_energy and all(counts_parts(graph) for graph in graphs)


def _pilot(
    state: SearchState, engine: Evaluate, journal: Journal | None, shared: Shared | None
) -> None:
    """Bounds of every k-th chip; the best of them are evaluated for a first incumbent."""
    index = np.arange(0, len(state.arrays), max(1, len(state.arrays) // PILOTS))
    if state.deadline.is_set:
        first_bounds(state, index)
        _hurry(state, shared)
    else:
        times = [[table.taken(index) for table in model] for model in state.times] or _times_on(
            state, index
        )
        state.put_bounds(index, bounds_on(state, index, times, [np.inf] * len(times)))
    chips = _next(state, max(1, state.job.round_size // 4))
    if all(graph.has_formula for task in state.job.models for graph in task.graphs):
        evaluate_round(state, chips, engine, journal)
        return
    # Where schedules are to be solved a first incumbent is not worth proofs: chips that may win are
    # evaluated later.
    designs = [design for chip in chips if (design := design_on(state, chip)) is not None]
    best = min(designs, key=lambda result: result.score, default=None)
    if best is None:
        evaluate_round(state, chips, engine, journal)
        return
    state.listed, state.provisional = min(state.listed, best.score), state.provisional or best


def _hurry(state: SearchState, shared: Shared | None) -> None:
    """Before a chip is evaluated, which may take longer than there is time: a design, and except in
    a large space bounds of all chips, by which a better one may be found."""
    state.provisional = first_design(state)
    if len(state.arrays) > LARGE:
        return
    keep_times(state, shared)
    state.interim = bounds_on(state, np.arange(len(state.arrays)), state.times, _cuts(state))
    state.provisional = better_design(state, state.interim)


def _tighten(state: SearchState) -> None:
    """The finer bounds (the antichain dual, then the general solver or the best cuts) for all chips
    that may still win; the better one is kept."""
    scores = state.scores()
    scores[list(state.evaluated)] = np.inf
    index = np.flatnonzero(scores <= state.cut)
    if not len(index):
        return
    raise_open(state, index, last_times(state, index, min(state.best, state.listed) * (1 + WITHIN)))
    state.dual = frozenset(index.tolist())


def _rounds(
    state: SearchState, engine: Evaluate, journal: Journal | None, watch: Watch | None
) -> None:
    """Rounds of evaluated chips until no bound beats the best one."""
    size, tightened = state.job.round_size, False
    while True:
        if watch is not None:
            watch(state.standing())
        state.deadline.check()
        chips = _next(state, size)
        if not chips:
            return
        if tightened:
            evaluate_round(state, chips, engine, journal)
            continue
        evaluate_round(state, chips[: max(1, size // 4)], engine, journal)
        _tighten(state)
        tightened = True


def search(
    job: SearchJob,
    scale: Scale,
    engine: Evaluate = in_process,
    journal: Journal | None = None,
    watch: Watch | None = None,
    shared: Shared | None = None,
    space_chips: SpaceChips | BoxGrid | None = None,
    deadline: Deadline | None = None,
) -> SearchState:
    """Run a search to its gap, or to its time limit; the state holds what was found and proved.

    ``space_chips`` are chips to search instead of those of the job's space, or that space in boxes
    with other constants of its chips. With a deadline there is a design before any chip is
    evaluated (:mod:`phaze.search.initial_incumbent`); what is found later does not depend on it. A
    space of many chips is searched in boxes (:mod:`phaze.search.boxes`), and what they leave is
    searched.
    """
    deadline = after(job.limit_s) if deadline is None else deadline
    if isinstance(space_chips, BoxGrid) or (space_chips is None and is_boxed(job.space)):

        def some(chips: SpaceChips, box_journal: Journal | None, listed: float) -> SearchState:
            return _search_chips(
                job, scale, chips, engine, box_journal, watch, None, deadline, listed
            )

        return search_boxes(box_question(job, scale, deadline, space_chips), some, journal)
    space_chips = enumerate_space(job.space) if space_chips is None else space_chips
    return _search_chips(job, scale, space_chips, engine, journal, watch, shared, deadline)


def _search_chips(
    job: SearchJob,
    scale: Scale,
    chips: SpaceChips,
    engine: Evaluate,
    journal: Journal | None,
    watch: Watch | None,
    shared: Shared | None,
    deadline: Deadline,
    listed: float = float("inf"),
) -> SearchState:
    """A search of chips one by one; ``listed`` is the score of a design that is known to be one of
    them."""
    keeps_times, bounded = len(chips) <= LARGE and not deadline.is_set, False
    if shared is None and _by_parts(job):
        keeps_times = False
    state = begin(job, chips, scale, keeps_times=keeps_times, shared=shared, deadline=deadline)
    state.listed = listed
    try:
        _pilot(state, engine, journal, shared)
        _bound_all(state)
        bounded = True
        _rounds(state, engine, journal, watch)
    except OutOfTime:
        stop(state, bounded, {} if journal is None else journal.evaluated())
    return state

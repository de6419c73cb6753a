"""A design before any chip is evaluated, for a search whose time is limited: the chip with the best
bound, its layers by list schedules, the first configuration that fits.

    bounds   of every k-th chip, a graph after the other; where the time is up, of as few graphs as
             give a bound
    design   chip = least bound;  for each model the configuration of the least bound that has a
             plan, with list schedules (some ms each, and no less than the optimum; where a layer's
             time is a formula there is none)

It is feasible and its score is true, so a search that stops before it has evaluated a chip answers
with it, and the gap says how far it may be from the best. It decides nothing else: a search that is
not stopped forgets it.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from phaze.search.bounds.model_bounds import CHEAP, batch_bounds, layer_bounds
from phaze.search.bounds.shape_bounds import SLACK
from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.evaluation import ChipEvaluation
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.state import SearchState
from phaze.search.task import on_all_devices
from phaze.search.work_item import evaluation_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Chips tried where nothing fits on the one with the best bound: what fits hardly depends on the
# chip.
CHIPS = 3


def _graph_bounds(state: SearchState, model: int, graph: int, index: Integers) -> None:
    """The bounds of the chips of ``index`` for one graph of a model."""
    for positions, tasks in state.networks.groups(index):
        task, some = tasks[model], index[positions]
        times = layer_bounds(
            task, task.graphs[graph], state.arrays.taken(some), CHEAP, state.energy
        )
        if times.dynamic_j is not None:
            least_j = on_all_devices(task, task.graphs[graph], times.dynamic_j)
            state.floors[model][graph, some] = least_j * (1 - SLACK)
        for configuration, chosen in enumerate(task.configurations):
            if chosen.graph == graph:
                for memory, hbm in enumerate(state.memories):
                    bounds = batch_bounds(task, chosen, times, state.job.hbm_bytes[hbm])
                    state.bounds[model][configuration, memory, some] = bounds
    state.cached = None


def first_bounds(state: SearchState, index: Integers) -> None:
    """Bounds of the chips of ``index``, as the pilot of a search has them; raises where the time is
    up.

    It is considered only after there is some bound for every model, so that there is always a chip
    to choose.
    """
    job = state.job
    for graph in range(max(len(task.graphs) for task in job.models)):
        for model, task in enumerate(job.models):
            if graph < len(task.graphs):
                _graph_bounds(state, model, graph, index)
        if np.isfinite(state.scored()).any():
            state.deadline.check()


def listed(state: SearchState, chip: int) -> ChipEvaluation:
    """A chip to be priced by list schedules."""
    return evaluation_of(
        state.common(), state.item(chip), ScheduleMemo(state.memo.listed, scheduler="list")
    )


def design_on(state: SearchState, chip: int) -> Evaluated | None:
    """The first configuration of every model that fits on a chip, in order of bounds; None where a
    model has none."""
    index = np.array([chip])
    values = [state.values(model, index)[:, :, 0] for model in range(len(state.job.models))]
    scores = [
        float(state.scale.score(np.array([v[:, memory].min() for v in values])))
        for memory in range(len(state.memories))
    ]
    memory = int(np.argmin(scores))
    pricing, hbm, ran = listed(state, chip), state.memories[memory], list[ModelRun]()
    for model, bounds in enumerate(values):
        for configuration in np.argsort(bounds[:, memory], kind="stable").tolist():
            if not np.isfinite(bounds[configuration, memory]):
                return None
            priced = pricing.price(model, configuration, hbm)
            value = float(
                state.rates.at(hbm, chip).value(np.asarray(priced.batch_s), priced.dynamic_j)
            )
            if np.isfinite(value):
                ran.append(ModelRun(configuration, priced.batch_s, priced.dynamic_j, value, 0.0))
                break
        else:
            return None
    score = float(state.scale.score(np.array([run.value for run in ran])))
    return Evaluated(chip, hbm, score, 0.0, tuple(ran))


def first_design(state: SearchState) -> Evaluated | None:
    """The design, from the bounds that the state has; None where nothing fits on the chips with the
    best ones."""
    scores = state.scored()
    for chip in np.argsort(scores, kind="stable")[:CHIPS].tolist():
        if np.isfinite(scores[chip]):
            design = design_on(state, chip)
            if design is not None:
                return design
    return None


def relisted(state: SearchState, design: Evaluated) -> Evaluated | None:
    """A design that was evaluated, by list schedules: for one that was resumed, whose exact ones
    are not at hand."""
    pricing, ran = listed(state, design.chip), list[ModelRun]()
    for model, run in enumerate(design.ran):
        priced = pricing.price(model, run.configuration, design.hbm)
        value = float(
            state.rates.at(design.hbm, design.chip).value(
                np.asarray(priced.batch_s), priced.dynamic_j
            )
        )
        if not np.isfinite(value):
            return None
        ran.append(ModelRun(run.configuration, priced.batch_s, priced.dynamic_j, value, 0.0))
    return Evaluated(
        design.chip,
        design.hbm,
        float(state.scale.score(np.array([r.value for r in ran]))),
        0.0,
        tuple(ran),
    )


def better_design(state: SearchState, bounds: list[Floats]) -> Evaluated | None:
    """The better of the state's first design and that by other bounds."""
    before = state.bounds
    state.set_bounds(bounds)
    design, had = first_design(state), state.provisional
    state.set_bounds(before)
    return had if design is None or (had is not None and had.score <= design.score) else design


def stop(state: SearchState, bounded: bool, evaluated: Mapping[int, Evaluated]) -> None:
    """The time is up: what is known of all chips are their bounds, if they were computed, and
    what a journal has."""
    state.stopped = True
    state.evaluated.update(evaluated)
    if bounded:
        return
    if state.provisional is None:
        state.provisional = first_design(state)
    proved = state.interim or [np.zeros_like(bound) for bound in state.bounds]
    done = np.array(list(state.evaluated), np.int64)
    done = done[np.isfinite(state.scored()[done])]
    for new, old in zip(proved, state.bounds, strict=True):
        new[:, :, done] = old[:, :, done]  # by these they were opened
    state.set_bounds(proved)

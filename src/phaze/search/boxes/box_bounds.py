"""Lower bounds on the score of every chip of a box, by the bounds of a search on the box's virtual
chip.

A box is a chip with the seconds of :mod:`phaze.search.boxes.box_costs`, the most cores, the fastest
links and HBM, and the rates of the least area. Batch times, schedules and scores only rise with all
of these, so whatever bounds the virtual chip from below bounds every chip of the box. Schedules
have the cheap bounds; where ``finer`` plans have the bottleneck table or the best cuts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.layer_table import LayerTable
from phaze.hardware.technology import Technology
from phaze.search.bounds.model_bounds import DUAL, layer_bounds, model_bounds, model_floors
from phaze.search.boxes.box_costs import BoxChips
from phaze.search.boxes.box_works import box_joules, box_layer_works
from phaze.search.boxes.corners import corners_of
from phaze.search.boxes.grid import Boxes, BoxGrid
from phaze.search.deadline import NEVER, Deadline
from phaze.search.objective import Rates, Scale
from phaze.search.rates import alike, rates_of
from phaze.search.task import ModelTask, SearchJob, networks_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BoxQuestion:
    """A job whose space is searched in boxes; ``memories`` are those that chips are evaluated
    with."""

    job: SearchJob
    scale: Scale
    grid: BoxGrid
    memories: tuple[int, ...]
    deadline: Deadline = NEVER

    @property
    def energy(self) -> Technology | None:
        """The energies of the space's chips, where they count."""
        return self.job.space.technology if self.job.objective.needs_energy else None


def _graph_times(question: BoxQuestion, task: ModelTask, graph: int, boxes: BoxChips) -> LayerTable:
    """Bounds on the layers of one graph on every box."""
    rank_graph, constants = task.graphs[graph], task.constants
    costs = box_layer_works(rank_graph, boxes, constants)
    times = layer_bounds(task, rank_graph, boxes.high, DUAL, None, question.deadline, costs)
    energy = question.energy
    return (
        times
        if energy is None
        else replace(times, dynamic_j=box_joules(rank_graph, boxes, constants, energy))
    )


def _last_s(question: BoxQuestion, rates: Rates, cut: Floats) -> Floats:
    """The batch time of a model from which on a box of one model is of no interest; with several
    there is none."""
    count = rates.rate.shape[1]
    if len(question.job.models) > 1:
        return np.full(count, np.inf)
    fastest = Rates(rates.rate.min(axis=0), rates.weight, rates.delays)
    return np.where(cut < np.inf, fastest.last_s(cut, 0.0) * (1 + 1e-6), np.inf)


@dataclass(frozen=True, slots=True)
class BoxTimes:
    """Boxes with all that bounds on their scores need: rates, and by network its boxes, its models
    and their times."""

    rates: Rates
    networks: tuple[tuple[Integers, tuple[ModelTask, ...], tuple[tuple[LayerTable, ...], ...]], ...]

    def __len__(self) -> int:
        return int(self.rates.rate.shape[1])


def box_times(question: BoxQuestion, some: Boxes) -> BoxTimes:
    """The bounds on layers of every box, and its rates."""
    job, corners = question.job, corners_of(question.grid, some)
    rates = rates_of(job.objective, corners, list(job.hbm_bytes), job.models[0].training.devices)
    box_rates = Rates(rates.rate[list(question.memories)], rates.weight, rates.delays)
    networks = networks_of(job.models, job.space, corners.links())
    by_network = []
    for index, tasks in networks.groups(np.arange(len(some))):
        boxes = corners.taken(index).boxes()
        times = [
            tuple(_graph_times(question, task, graph, boxes) for graph in range(len(task.graphs)))
            for task in tasks
        ]
        by_network.append((index, tasks, tuple(times)))
    return BoxTimes(box_rates, tuple(by_network))


def box_scores(
    question: BoxQuestion, boxes: BoxTimes, cut: float, near: float, only: Flags, finer: bool
) -> Floats:
    """What no chip of the boxes of ``only`` scores below, or a value above ``near``; infinite where
    nothing fits, and 0 for other boxes. Those that ``cut`` leaves open are not bounded any better
    than that."""
    return np.asarray(
        box_values(question, boxes, ((boxes.rates, question.scale),), (near, cut), only, finer)[
            0
        ].min(axis=0)
    )


def box_values(
    question: BoxQuestion,
    boxes: BoxTimes,
    measured: Sequence[tuple[Rates, Scale]],
    reach: tuple[Floats | float, Floats | float],
    only: Flags,
    finer: bool,
) -> Floats:
    """What no chip of the boxes of ``only`` goes below with each memory in some values of a run,
    [values, memories, boxes], each given by its rates on boxes and how models count together;
    infinite where nothing fits, and 0 for other boxes. ``reach``, of all boxes or of each: up to
    which of the first value bounds are computed, and below which it is enough that some memory
    has one."""
    hbm = [question.job.hbm_bytes[memory] for memory in question.memories]
    bounds_of_runs = np.zeros((len(measured), len(hbm), len(boxes)))
    near, cut = (np.broadcast_to(np.asarray(limit, np.float64), len(boxes)) for limit in reach)
    for index, tasks, times in boxes.networks:
        some = np.flatnonzero(only[index])
        if not len(some):
            continue
        members = index[some]
        rates, least = (
            [_of_boxes(run_rates, members) for run_rates, _ in measured],
            list[list[Floats]]([] for _ in measured),
        )
        limits_s = (
            _last_s(question, rates[0], near[members]),
            _last_s(question, rates[0], cut[members]),
        )
        for model, task in enumerate(tasks):
            layer_times = [time.taken(some) for time in times[model]]
            bounds, floors = _bounds(question, task, layer_times, hbm, rates[0], limits_s, finer)
            for values, run_rates in zip(least, rates, strict=True):
                values.append(np.asarray(run_rates.value(bounds, floors).min(axis=0)))
        for row, (_, scale) in enumerate(measured):
            bounds_of_runs[row][:, members] = scale.score(np.stack(least[row]))
    return bounds_of_runs


def _of_boxes(rates: Rates, index: Integers) -> Rates:
    return Rates(rates.rate[:, index], rates.weight, rates.delays)


def _bounds(
    question: BoxQuestion,
    task: ModelTask,
    times: Sequence[LayerTable],
    hbm: Sequence[int],
    rates: Rates,
    limits_s: tuple[Floats, Floats],
    finer: bool,
) -> tuple[Floats, Floats]:
    """Bounds on the batch time of a model's configurations with each memory, [configurations,
    memories, boxes], and on their joules [configurations, 1, boxes]; up to which batch time, and
    below which it is enough that there is one."""
    near_s, open_s = limits_s
    bounds = np.full((len(task.configurations), len(hbm), len(near_s)), np.inf)
    alone = len(question.job.models) == 1 and question.energy is None
    for memories, chips in alike(np.isfinite(rates.rate)):
        some = (
            list(times) if len(chips) == len(near_s) else [layers.taken(chips) for layers in times]
        )
        enough = open_s[chips] / (1 + 1e-6) if alone else 0.0
        sizes = [hbm[memory] for memory in memories]
        some_bounds = model_bounds(
            task, some, sizes, near_s[chips], finer, question.deadline, enough
        )
        bounds[np.ix_(np.arange(len(task.configurations)), memories, chips)] = some_bounds
    graphs = [configuration.graph for configuration in task.configurations]
    return bounds, model_floors(task, times)[graphs][:, None, :]

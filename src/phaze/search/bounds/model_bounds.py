r"""Lower bounds on batch time for all chips at once, from arrays, in tightening steps. No bound
uses a schedule.

    1  what no schedule of a pass undercuts, for every chip
       (:meth:`phaze.evaluate.lowered_pass.LoweredPass.bound`)
    2  batch time is monotone in layer times, so the least batch time over all structures with these
       times in place of the layers' is a lower bound

Step 2 depends on what a family counts. Where only the pace and the first stage count, it is bounded
by what the first stage takes, then given by the bottleneck table of each chip that may still win,
exactly (:mod:`~phaze.search.bounds.bottleneck_bounds`). Where sums count, it is bounded by counting
and by the best cuts (:mod:`~phaze.search.bounds.shape_bounds`). Bounds are lowered by 1e-9 for the
rounding of sums. Where energy counts, the least joules of every layer come with the times.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.layer_table import LayerTable, layer_table
from phaze.evaluate.lowered_pass import LoweredPass, Times, WorkTimes
from phaze.hardware.technology import Technology
from phaze.placement.bottleneck_solver import decides
from phaze.placement.sharing import REPLICAS
from phaze.schedule.bounds import Bound
from phaze.search.bounds.bottleneck_bounds import first_stage_bounds, table_bounds
from phaze.search.bounds.shape_bounds import SLACK, shape_bounds
from phaze.search.bounds.shape_tables import tables_of
from phaze.search.deadline import NEVER, Deadline
from phaze.search.energy import layer_floors
from phaze.search.problem import has_plan, pattern_of
from phaze.search.rank_graph import RankGraph
from phaze.search.task import Configuration, ModelTask, SearchJob, on_all_devices

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# For all chips; the dual, which takes longer, is for those that may still win.
CHEAP: tuple[Bound, ...] = ("critical_path", "load")
DUAL: tuple[Bound, ...] = ("critical_path", "load", "antichain")


def pass_bound(lowered: LoweredPass, times: Times, use: Sequence[Bound]) -> Floats:
    """What no schedule of a pass can undercut, for each chip; the dual divides by times, so these
    must be above 0."""
    busy = [index for index, unit in enumerate(lowered.units) if unit.core != "none"]
    positive = (times.one_core_s[busy] > 0).all() and (times.spread_s[busy] > 0).all()
    return lowered.bound(times, use if positive else CHEAP)


def layer_bounds(
    task: ModelTask,
    graph: RankGraph,
    chips: ChipSet,
    use: Sequence[Bound],
    energy: Technology | None = None,
    deadline: Deadline = NEVER,
    costs: WorkTimes | None = None,
) -> LayerTable:
    """Bounds on all distinct layers of a graph, for each chip, and with ``energy`` on their joules;
    ``costs`` as in :func:`phaze.evaluate.layer_table.layer_table`."""

    def bound(lowered: LoweredPass, times: Times) -> Floats:
        deadline.check()
        return pass_bound(lowered, times, use)

    deadline.check()
    table = layer_table(graph.layers, chips, task.constants, bound, costs)
    if energy is None:
        return table
    return replace(table, dynamic_j=layer_floors(graph, chips, task.constants, energy))


def batch_bounds(
    task: ModelTask,
    configuration: Configuration,
    times: LayerTable,
    hbm_bytes: int,
    cut_s: Floats | float = np.inf,
    finer: bool = False,
    deadline: Deadline = NEVER,
    known_s: Floats | float = 0.0,
) -> Floats:
    """A lower bound on the batch time of a configuration on each chip; above ``cut_s`` (of all
    chips or of each) it may be any that is no less.

    ``finer``: by the bottleneck table or the best cuts, where the cheap bound is below ``cut_s``.
    ``known_s``: bounds that hold already, such as those with more memory.
    """
    deadline.check()
    problem = pattern_of(task, configuration, hbm_bytes)
    if problem.sharing != REPLICAS or not all(
        decides(problem, family) for family in problem.rules.families
    ):
        tables = task.memo.take(
            ("tables", configuration, hbm_bytes), lambda: tables_of(task, configuration, hbm_bytes)
        )
        return np.maximum(
            shape_bounds(tables, times, configuration.recompute, cut_s, finer, deadline), known_s
        )
    graph, training = task.graphs[configuration.graph], task.training
    both, cuts_s = (
        (times.forward_s, times.backward_s),
        np.broadcast_to(cut_s, times.forward_s.shape[1]),
    )
    floors = np.maximum(
        first_stage_bounds(graph, both, problem, training, float(cuts_s.max(initial=0.0))), known_s
    )
    if finer:
        floors = table_bounds(graph, both, problem, floors, cuts_s, deadline)
    return np.asarray(floors * (1 - SLACK))


def model_bounds(
    task: ModelTask,
    times: Sequence[LayerTable],
    hbm_bytes: Sequence[int],
    cut_s: Floats | float = np.inf,
    finer: bool = False,
    deadline: Deadline = NEVER,
    open_s: Floats | float = 0.0,
    least_s: Floats | None = None,
) -> Floats:
    """Bounds on the batch time of every configuration with layer times by graph, [configurations,
    memories, chips].

    A configuration is considered closely only on chips where its device-seconds leave it below the
    least bound of the others, unless energy counts too: on all others these are its bound, and what
    bounds a chip is the same. A chip with a configuration whose bound is below ``open_s`` is not
    considered any further: its bounds hold, and may be loose. Where the times of a graph are
    infinite they were not computed, and ``least_s`` [graphs, chips] bounds its batch.
    """
    chips = times[0].forward_s.shape[1] if times else 0
    bounds, cuts_s = (
        np.zeros((len(task.configurations), len(hbm_bytes), chips)),
        np.broadcast_to(cut_s, chips),
    )
    shared_s, best_s = device_floors(task, times), np.full((len(hbm_bytes), chips), np.inf)
    if least_s is not None:
        shared_s = np.where(np.isfinite(shared_s), shared_s, least_s)
    order = [configuration.graph for configuration in task.configurations]
    for place in np.argsort(shared_s.min(axis=1, initial=np.inf)[order], kind="stable").tolist():
        configuration, known_s = task.configurations[place], shared_s[order[place]]
        # More memory never slows: what no plan undercuts with more, none does with less.
        for memory in np.argsort(hbm_bytes)[::-1].tolist():
            bounds[place, memory] = known_s
            rival_s = (
                cuts_s if times[0].dynamic_j is not None else np.minimum(cuts_s, best_s[memory])
            )
            some = np.flatnonzero((known_s < rival_s) & (best_s.min(axis=0) >= open_s))
            if len(some):
                arguments = (
                    configuration,
                    times[configuration.graph].taken(some),
                    hbm_bytes[memory],
                    cuts_s[some],
                )
                bounds[place, memory, some] = batch_bounds(
                    task, *arguments, finer, deadline, known_s[some]
                )
            known_s = bounds[place, memory]
            best_s[memory] = np.minimum(best_s[memory], known_s)
    for memory, size in enumerate(hbm_bytes):
        if not _fits(task, size):
            bounds[:, memory] = np.inf
    return bounds


def _fits(task: ModelTask, hbm_bytes: int) -> bool:
    """Whether any configuration fits into a memory, whatever its layers take."""
    every = task.configurations
    return task.shared.take(
        ("fits", hbm_bytes),
        lambda: any(has_plan(task, configuration, hbm_bytes) for configuration in every),
    )


def device_floors(task: ModelTask, times: Sequence[LayerTable]) -> Floats:
    """What a batch of every graph takes at the least where no device ever waits, [graphs,
    chips]."""
    pairs = zip(task.graphs, times, strict=True)
    seconds = [
        on_all_devices(task, graph, layers.forward_s + layers.backward_s) for graph, layers in pairs
    ]
    return np.array(seconds) / task.training.devices * (1 - SLACK)


def no_floors(job: SearchJob, chips: int) -> list[Floats]:
    """Bounds on joules before any is known, by model [graphs, chips]; where energy does not count,
    without memory."""
    shapes = [(len(task.graphs), chips) for task in job.models]
    return [
        np.zeros(shape) if job.objective.needs_energy else np.broadcast_to(0.0, shape)
        for shape in shapes
    ]


def model_floors(task: ModelTask, times: Sequence[LayerTable]) -> Floats:
    """Bounds on the dynamic joules of a batch of every graph, [graphs, chips]; zero where energy
    does not count."""
    joules = [
        np.zeros(layers.forward_s.shape[1])
        if layers.dynamic_j is None
        else on_all_devices(task, graph, layers.dynamic_j) * (1 - SLACK)
        for graph, layers in zip(task.graphs, times, strict=True)
    ]
    return np.array(joules)

r"""Lower bounds on batch time for all chips at once, from arrays, in tightening steps. No bound uses a schedule.

    1  L and P of every operator on every chip, each distinct work on each distinct part once (:mod:`phaze.cost.table`)
    2  a pass takes at least the sum, over the components that run in series, of the greatest of
           longest path of min(L, P)  ·  load of either core kind  ·  in step "dual" the greedy antichain dual
    3  batch time is monotone in layer times, so the least batch time over all structures with these times in place of
       the layers' is a lower bound (:mod:`phaze.search.layouts`, :mod:`phaze.search.kernels`)

Layer graphs that are no chain of equal blocks first get a looser step 3, by what their first stage takes, and with the
dual the general solver (:mod:`phaze.search.floors`). Bounds are lowered by
1e-9 for the rounding of sums. Where energy counts, the least joules of every layer come from the same tables.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import ChipArrays
from phaze.evaluate.flow import Prepared, Training
from phaze.evaluate.passes import Pass, table_of, times_on
from phaze.placement.problem import Recompute
from phaze.schedule.bounds import Bound, chip_bounds
from phaze.search.deadline import NEVER, Deadline
from phaze.search.energy import Electricity, dynamic_floors, pass_floors
from phaze.search.floors import any_floors, solved
from phaze.search.kernels import least_batches
from phaze.search.layouts import chain_of, layout_of
from phaze.search.task import Job, ModelTask

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CHEAP: tuple[Bound, ...] = ("critical_path", "load")
DUAL: tuple[Bound, ...] = ("critical_path", "load", "antichain")
SLACK = 1e-9
CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Seconds of the distinct layers of one graph, [layers, chips] for each pass; where it counts, least joules."""

    forward_s: Floats
    backward_s: Floats
    dynamic_j: Floats | None = None

    def taken(self, index: Integers) -> "LayerTimes":
        """Those of the chips of ``index``."""
        joules = None if self.dynamic_j is None else self.dynamic_j[:, index]
        return LayerTimes(self.forward_s[:, index], self.backward_s[:, index], joules)


def pass_bound(
    one: Pass, times: tuple[Floats, Floats], cores: tuple[Integers, Integers], use: Sequence[Bound]
) -> Floats:
    """What no schedule of a pass can undercut, for each chip."""
    singles, spreads = times
    total: Floats = np.zeros(singles.shape[1])
    for part in one.parts:
        own = list(part.operators)
        if len(own) == 1:
            total = total + np.minimum(singles[own[0]], spreads[own[0]])
            continue
        kinds = [one.cores[i] for i in own]
        found = chip_bounds(
            "icml24", kinds, part.below, singles[own], spreads[own], *cores, use=_safe(use, singles, spreads)
        )
        total = total + np.max(np.stack(list(found.values())), axis=0)
    return total


def _safe(use: Sequence[Bound], singles: Floats, spreads: Floats) -> Sequence[Bound]:
    """The dual divides by times, so it needs all of them above zero."""
    return use if (singles > 0).all() and (spreads > 0).all() else CHEAP


def layer_bounds(
    model: Prepared,
    chips: ChipArrays,
    use: Sequence[Bound],
    electricity: Electricity | None = None,
    deadline: Deadline = NEVER,
) -> LayerTimes:
    """Bounds on the schedules of all distinct layers, for each chip, a chunk of chips at a time; and on joules."""
    found = np.empty((2, len(model.layers), len(chips)))
    joules = np.zeros((len(model.layers), len(chips)))
    for start in range(0, len(chips), CHUNK):
        index = np.arange(start, min(start + CHUNK, len(chips)))
        some = chips if len(index) == len(chips) else chips.taken(index)
        cores = (some.tensor_cores.astype(np.int64), some.vector_cores.astype(np.int64))
        deadline.check()
        table, first = table_of(model.passes, some), 0
        for at, one in enumerate(model.passes):
            deadline.check()
            found[at % 2, at // 2, index] = pass_bound(one, times_on(one, table, first), cores, use)
            if electricity is not None:
                joules[at // 2, index] += pass_floors(one, table, first, some, electricity)
            first += len(one.works)
    return LayerTimes(found[0], found[1], None if electricity is None else joules)


def batch_bounds(
    model: Prepared,
    times: LayerTimes,
    recompute: Recompute,
    hbm_bytes: float,
    training: Training,
    cut_s: float = np.inf,
    general: bool = False,
    deadline: Deadline = NEVER,
) -> Floats:
    """The least batch time, or ``cut_s`` if that is less, with these layer times on each chip.

    ``general``: where the layers are no chain of equal blocks, by the general solver instead of a floor.
    """
    deadline.check()
    chain = chain_of(model)
    if chain is None:
        both, job = (times.forward_s, times.backward_s), (recompute, hbm_bytes, training)
        floors = any_floors(model, both, job, cut_s)
        if general:
            floors = solved(model, both, job, floors, cut_s, deadline)
        return np.asarray(floors * (1 - SLACK))
    layout = layout_of(model, chain, recompute, hbm_bytes, training)
    nothing = np.zeros(times.forward_s.shape[1])
    rows = [
        np.stack([nothing if kind is None else seconds[kind] for kind in chain.kinds])
        for seconds in (times.forward_s, times.backward_s)
    ]
    return np.asarray(least_batches(layout, rows[0], rows[1], cut_s) * (1 - SLACK))


def model_bounds(
    task: ModelTask,
    times: Sequence[LayerTimes],
    hbm_bytes: Sequence[int],
    cut_s: float = np.inf,
    general: bool = False,
    deadline: Deadline = NEVER,
) -> Floats:
    """Bounds on the batch time of every way with layer times by graph, [ways, memories, chips]."""
    found = [
        [
            batch_bounds(graph, times[way.graph], way.recompute, hbm, task.training, cut_s, general, deadline)
            for hbm in hbm_bytes
        ]
        for way, graph in ((way, task.graphs[way.graph]) for way in task.ways)
    ]
    return np.array(found)


def no_floors(job: Job, chips: int) -> list[Floats]:
    """Floors before any is known, by model [graphs, chips]; where energy does not count they take no memory."""
    shapes = [(len(task.graphs), chips) for task in job.models]
    return [np.zeros(one) if job.objective.needs_energy else np.broadcast_to(0.0, one) for one in shapes]


def model_floors(task: ModelTask, times: Sequence[LayerTimes]) -> Floats:
    """Bounds on the dynamic joules of a batch of every graph, [graphs, chips]; zero where energy does not count."""
    found = [
        np.zeros(own.forward_s.shape[1])
        if own.dynamic_j is None
        else dynamic_floors(graph, own.dynamic_j, task.training) * (1 - SLACK)
        for graph, own in zip(task.graphs, times, strict=True)
    ]
    return np.array(found)

r"""The energy of a plan under rules ``cluster``: joules of a batch by component, and what no plan can undercut.

Operators run one after the other, each on all cores, and take J joules beyond static power (:mod:`phaze.cost.energy`).
With t devices a stage, d copies, M microbatches in m = ceil(M / d) rounds, j joules a byte of a link and h of HBM:

    layers      M t sum over stages of ( J of both passes of its layers, and of what its mode computes again )
                collectives count the bytes that they send, and every backward pass 8 bytes of HBM a parameter
    transfers   M sum over boundaries of 2 c (1 if the stack scatters and gathers, else t) j        c bytes carried
    synchronisation   t sum over stages of 2 (d - 1) w j; under ZeRO 2 half of it, under ZeRO 3 none
    ZeRO 2, 3   m t (1 or 3) (d - 1) sum over layers of w_l j                         scattered or gathered each round
    tied        t d 2 (k - 1) bytes j for each group of k tied layers in several stages
    optimizer   t (d, or 1 under ZeRO) sum over stages of N traffic h
    static      K s T                                                                 all K devices, all the time

The joules of both passes of all layers are what no plan of a graph undercuts (:func:`joule_floors`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.energy import energies
from phaze.cost.parts import ChipArrays
from phaze.cost.table import Column
from phaze.evaluate.ruled_pass import RuledPass
from phaze.evaluate.serial import ACCUMULATED_BYTES
from phaze.hardware.calibration import Constants
from phaze.hardware.technology import EnergyTable
from phaze.placement.one.problem import Problem
from phaze.placement.problem import Plan
from phaze.search.cluster_task import CHUNK, ClusterTask, SerialGraph, costed
from phaze.search.energy import COMPONENTS, LINKS

Floats = NDArray[np.float64]
HBM = COMPONENTS.index("hbm")


def _pass_joules(one: RuledPass, column: Column, first: int, chips: ChipArrays, table: EnergyTable) -> Floats:
    """Joules of a pass on one device, [components, chips]."""
    total, known = np.zeros((len(COMPONENTS), len(chips))), dict[object, Floats]()
    for at, work in enumerate(one.works):
        if work.core in ("none", "network"):
            continue
        if work not in known:
            found = energies(column, first + at, chips, table, np.zeros(len(chips)))
            known[work] = np.stack([getattr(found, name) for name in COMPONENTS])
        total += known[work]
    total[LINKS] += one.sent_bytes * table.link_j_per_byte
    return total


@dataclass(frozen=True, slots=True)
class SerialJoules:
    """Joules of one layer on one device, [components, chips]: both passes, and what each mode computes again."""

    forward_j: Floats
    backward_j: Floats
    selective_j: Floats
    full_j: Floats

    def of(self, mode: str) -> Floats:
        """A microbatch with that mode."""
        again = {"selective": self.selective_j, "full": self.full_j}.get(mode)
        both = self.forward_j + self.backward_j
        return both if again is None else both + again


def joules_on(
    graph: SerialGraph, chips: ChipArrays, constants: Constants, table: EnergyTable
) -> tuple[SerialJoules, ...]:
    """The layers of a graph on some chips."""
    column, first, found = costed(graph, chips, constants), 0, []
    for layer in graph.serial:
        own = []
        for one in layer.passes:
            own.append(_pass_joules(one, column, first, chips, table))
            first += len(one.works)
        own[1][HBM] += ACCUMULATED_BYTES * layer.parameters * table.hbm_j_per_byte
        found.append(SerialJoules(own[0], own[1], own[2], own[3] if layer.full is not None else own[0]))
    return tuple(found)


def layer_floors(graph: SerialGraph, chips: ChipArrays, constants: Constants, table: EnergyTable) -> Floats:
    """Joules of both passes of every layer on one device, [layers, chips], a chunk of chips at a time."""
    found = np.empty((len(graph.serial), len(chips)))
    for start in range(0, len(chips), CHUNK):
        index = np.arange(start, min(start + CHUNK, len(chips)))
        some = chips if len(index) == len(chips) else chips.taken(index)
        for kind, own in enumerate(joules_on(graph, some, constants, table)):
            found[kind, index] = own.of("none").sum(axis=0)
    return found


def joule_floors(task: ClusterTask, graph: SerialGraph, layers_j: Floats) -> Floats:
    """What no plan of a graph undercuts, from the joules of its layers [layers, chips], for every chip."""
    rounds, total = task.job.microbatches(graph.microbatch), np.zeros(layers_j.shape[1])
    for kind in range(len(graph.serial)):
        total = total + rounds * graph.width * graph.calls.count(kind) * layers_j[kind]
    return total


def _synchronised_bytes(problem: Problem, plan: Plan, weights: Sequence[float], sizes: Sequence[float]) -> float:
    """Bytes that all devices send for collectives over copies, of stages with these parameter bytes, in a batch."""
    others, rounds = plan.data - 1, problem.rounds(plan.data)
    share = {2: 1.0, 3: 0.0}.get(problem.zero, 2.0)
    return others * plan.tensor * (share * sum(weights) + rounds * sum(problem.gathers) * sum(sizes))


def _tied_bytes(problem: Problem, plan: Plan, stage_of: dict[int, int]) -> float:
    graph, extras = problem.graph(plan.tensor)
    total = 0.0
    for name in sorted({extra.tied for extra in extras if extra.tied is not None}):
        held = [(stage_of[la.id], e.tied_bytes) for la, e in zip(graph.layers, extras, strict=True) if e.tied == name]
        if len({stage for stage, _ in held}) > 1:
            total += plan.tensor * plan.data * 2 * (len(held) - 1) * held[0][1]
    return total


def _stage_parameters(problem: Problem, plan: Plan) -> list[float]:
    """Parameter bytes of every stage, tied ones once."""
    graph, extras = problem.graph(plan.tensor)
    own = {la.id: (la.parameter_bytes, e) for la, e in zip(graph.layers, extras, strict=True)}
    found = []
    for stage in plan.stages:
        total, seen = 0.0, set[str]()
        for place in stage.layers:
            size, extra = own[place]
            total += size - (extra.tied_bytes if extra.tied in seen else 0.0)
            seen |= {extra.tied} if extra.tied is not None else set()
        found.append(total)
    return found


def plan_joules(
    graph: SerialGraph, problem: Problem, plan: Plan, layers: Sequence[SerialJoules], table: EnergyTable
) -> Floats:
    """Joules of a batch by component, static power left out; the layers are on one chip."""
    total: Floats = np.zeros(len(COMPONENTS))
    stage_of = {place: at for at, stage in enumerate(plan.stages) for place in stage.layers}
    for stage in plan.stages:
        for place in stage.layers:
            kind = graph.calls[place]
            mode = stage.recompute if graph.calls.count(kind) > 1 else "none"
            total = total + problem.microbatches * plan.tensor * layers[kind].of(mode)[:, 0]
    lanes = 1 if problem.scatter_gather else plan.tensor
    carried = sum(size * (stage_of[head] - stage_of[tail]) for tail, head, size in graph.edges)
    weights = _stage_parameters(problem, plan)
    sizes = [graph.layers[kind].parameter_bytes for kind in graph.calls]
    sent = problem.microbatches * 2 * carried * lanes
    sent += _synchronised_bytes(problem, plan, weights, sizes) + _tied_bytes(problem, plan, stage_of)
    total[LINKS] += sent * table.link_j_per_byte
    moved = sum(weights) / problem.sent_bytes * problem.optimizer_traffic_bytes
    total[HBM] += plan.tensor * (1 if problem.zero else plan.data) * moved * table.hbm_j_per_byte
    return total

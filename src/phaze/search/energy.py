r"""The energy of a plan: joules of a batch by component, and what no plan can undercut.

An operator takes J joules beyond static power (:mod:`phaze.cost.energy`), on one core or on all as
its schedule runs it. With stages X on a(X) devices each, d replicas, M microbatches in m = ceil(M /
d) rounds, w(X) bytes and N(X) parameters, j joules a byte of a link and h of HBM:

    layers      M sum over X of a(X) ( J of both passes of its layers, and of what its mode
                recomputes ) collectives count the bytes that they send, a backward pass the adding
                of its gradients
    transfers   M sum over boundaries of 2 c (1 if the stack scatters and gathers, else t) j
                c bytes carried with v chunks v times that, and v - 1 times the most bytes between
                two blocks, last stage to first (none of these where a pipeline is folded) where
                edges arrive inside stages: M sum over edges between stages of 2 |e| a(stage it
                enters) j
    synchronisation   sum over X of a(X) 2 (d - 1) w j; under ZeRO 2 half of it, under ZeRO 3 none;
                      on a flat link
                twice as much, as published; where n of d ranks shard state d / n times that
                with n - 1 for d - 1, and a(X) 2 (d / n - 1) w j across the groups
    ZeRO 2, 3   m t (1 or 3) (d - 1) sum over layers of w_l j                         scattered or
                gathered each round
    tied        t d 2 (k - 1) bytes j for each group of k tied layers in several stages
    optimizer   t (d, or 1 under ZeRO) sum over stages of N traffic h
    static      K s T                                                                 all K devices,
                all the time

Every device of a stage runs its layers, so a layer that is not split is repeated on the a(X)
devices. The joules of both passes of all layers, each operator in its thriftier way, are what no
plan undercuts (:func:`phaze.search.task.on_all_devices`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.energy import Energies, energies
from phaze.cost.table import Column, CostTable, cost_table, cost_works
from phaze.cost.work import Work
from phaze.evaluate.layer_table import CHUNK
from phaze.evaluate.lowered_pass import LoweredPass
from phaze.hardware.calibration import Constants
from phaze.hardware.technology import Technology
from phaze.placement.layers import PlacedLayer
from phaze.placement.plan import Plan
from phaze.placement.prepared_width import wraparound_bytes
from phaze.placement.problem import PlacementProblem
from phaze.schedule.problem import Schedule
from phaze.search.rank_graph import RankGraph
from phaze.search.task import Configuration, ModelTask

Floats = NDArray[np.float64]
COMPONENTS = tuple(f.name for f in fields(Energies) if f.name != "static")
LINKS, HBM = COMPONENTS.index("links"), COMPONENTS.index("hbm")
# Which units of a pass its schedule spreads over all cores, a byte each; empty where all are.
Spread = bytes


def spread_of(schedule: Schedule) -> Spread:
    """Which units of a pass its schedule spreads."""
    return bytes(slot.spread for slot in schedule.slots)


@dataclass(slots=True)
class OperatorJoules:
    """Joules of the operators of some passes on some chips, [components, chips], each distinct one
    computed once; ``column``: of one of the chips alone."""

    chips: ChipSet
    table: Technology
    costs: CostTable | Column
    paired: bool
    by_work: dict[tuple[Work, bool], Floats]
    column: int | None = None

    def of_chip(self, column: int) -> "OperatorJoules":
        """Those of one of the chips; what is computed of it is computed of all."""
        return replace(self, column=column)

    @property
    def width(self) -> int:
        """How many chips are considered."""
        return len(self.chips) if self.column is None else 1

    def joules(self, place: int, work: Work, spread: bool) -> Floats:
        """Of the operator at a place, on all cores or on one."""
        if (work, spread) not in self.by_work:
            costs, row = self.costs, place
            if isinstance(costs, CostTable):
                row, fused = costs.rows[place], self.paired and work.core == "both"
                costs = (costs.paired if fused else costs.all_cores) if spread else costs.one_core
            components = energies(costs, row, self.chips, self.table)
            self.by_work[work, spread] = np.stack(
                [getattr(components, name) for name in COMPONENTS]
            )
        every = self.by_work[work, spread]
        return every if self.column is None else every[:, self.column : self.column + 1]


def operator_joules(
    graph: RankGraph, chips: ChipSet, constants: Constants, table: Technology
) -> OperatorJoules:
    """The operators of a graph on some chips, none computed yet."""
    works = [
        work for layer in graph.layers for layer_pass in layer.passes for work in layer_pass.works
    ]
    rule = graph.layers[0].rule
    costs = (
        cost_table(works, chips, constants)
        if rule.one_core
        else cost_works(works, chips, constants)
    )
    return OperatorJoules(chips, table, costs, rule.paired, {})


def _pass_joules(
    lowered: LoweredPass, operators: OperatorJoules, first: int, spread: Spread
) -> Floats:
    """Joules of a pass on one device as its schedule runs it, [components, chips]."""
    total = np.zeros((len(COMPONENTS), operators.width))
    for index, unit in enumerate(lowered.units):
        for place in unit.places:
            work = lowered.works[place]
            if work.core not in ("none", "network"):
                total += operators.joules(first + place, work, not spread or bool(spread[index]))
    total[LINKS] += lowered.sent_bytes * operators.table.sent_j_per_byte
    return total


def _pass_floor(lowered: LoweredPass, operators: OperatorJoules, first: int) -> Floats:
    """The least joules of a pass on every chip, each operator in its thriftier way."""
    total = np.full(len(operators.chips), lowered.sent_bytes * operators.table.sent_j_per_byte)
    for place, work in enumerate(lowered.works):
        if work.core not in ("none", "network"):
            spreads = (True, False) if lowered.rule.one_core else (True,)
            total += np.min(
                [operators.joules(first + place, work, spread).sum(axis=0) for spread in spreads],
                axis=0,
            )
    return total


@dataclass(frozen=True, slots=True)
class LayerJoules:
    """Joules of one layer on one device, [components, chips]: of both passes, and of what each mode
    recomputes."""

    passes_j: Floats
    again_j: Mapping[str, Floats]

    def of(self, mode: str) -> Floats:
        """A microbatch with that mode."""
        again = self.again_j.get(mode)
        return self.passes_j if again is None else self.passes_j + again


def layer_joules(
    graph: RankGraph,
    chips: ChipSet,
    constants: Constants,
    table: Technology,
    spreads: Sequence[Spread],
    shared: OperatorJoules | None = None,
) -> tuple[LayerJoules, ...]:
    """The layers of a graph on some chips; ``spreads`` by pass, in the order of layers and passes;
    ``shared``: joules of its operators there, where others need them too."""
    operators = operator_joules(graph, chips, constants, table) if shared is None else shared
    first, layers, scheduled = 0, list[LayerJoules](), 0
    for layer in graph.layers:
        passes_j = []
        for layer_pass in layer.passes:
            passes_j.append(
                _pass_joules(
                    layer_pass, operators, first, spreads[scheduled] if layer_pass.works else b""
                )
            )
            first, scheduled = first + len(layer_pass.works), scheduled + bool(layer_pass.works)
        passes_j[1][HBM] += (
            layer.accumulation_bytes * layer.parameters * table.energy.hbm_j_per_byte
        )
        (_, *between, full), left = layer.modes, iter(passes_j[2:])
        again = {"selective": next(left)}
        again["full"] = passes_j[0] if full.rerun is None else next(left)
        for mode in between:
            again[mode.name] = mode.part * again["full"] if mode.rerun is None else next(left)
        layers.append(LayerJoules(passes_j[0] + passes_j[1], again))
    return tuple(layers)


def layer_floors(
    graph: RankGraph, chips: ChipSet, constants: Constants, table: Technology
) -> Floats:
    """The least joules of both passes of every layer on one device, [layers, chips], a chunk of
    chips at a time."""
    least_j = np.empty((len(graph.layers), len(chips)))
    for start in range(0, len(chips), CHUNK):
        index = np.arange(start, min(start + CHUNK, len(chips)))
        some = chips if len(index) == len(chips) else chips.taken(index)
        operators, first = operator_joules(graph, some, constants, table), 0
        for kind, layer in enumerate(graph.layers):
            least_j[kind, index] = (
                layer.accumulation_bytes * layer.parameters * table.energy.hbm_j_per_byte
            )
            for layer_pass in layer.passes:
                if layer_pass is layer.forward or layer_pass is layer.backward:
                    least_j[kind, index] += _pass_floor(layer_pass, operators, first)
                first += len(layer_pass.works)
    return least_j


def _tied_bytes(problem: PlacementProblem, plan: Plan, stage_of: dict[int, int]) -> float:
    layers = problem.graph(plan.tensor).layers
    total = 0.0
    for name in sorted({layer.tied for layer in layers if layer.tied is not None}):
        holders = [layer for layer in layers if layer.tied == name]
        if len({stage_of[layer.id] for layer in holders}) > 1:
            total += plan.tensor * plan.data * 2 * (len(holders) - 1) * holders[0].tied_bytes
    return total


def _stage_parameters(problem: PlacementProblem, plan: Plan) -> list[float]:
    """Parameter bytes of every stage, tied ones once."""
    layers = {layer.id: layer for layer in problem.graph(plan.tensor).layers}
    totals = []
    for stage in plan.stages:
        total, seen = 0.0, set[str]()
        for layer in (layers[place] for place in stage.layers):
            total += layer.parameter_bytes - (layer.tied_bytes if layer.tied in seen else 0.0)
            seen |= {layer.tied} if layer.tied is not None else set()
        totals.append(total)
    return totals


def _sent_bytes(
    problem: PlacementProblem, plan: Plan, weights: Sequence[float], stage_of: dict[int, int]
) -> float:
    """Bytes that all devices send in a batch beside the collectives of layers."""
    graph = problem.graph(plan.tensor)
    ends = [
        (stage_of[graph.layers[e.tail].id], stage_of[graph.layers[e.head].id], e.size_bytes)
        for e in graph.edges
    ]
    if problem.rules.stage == "icml24":
        carried = sum(size * plan.stages[head].devices for tail, head, size in ends if tail != head)
    else:
        lanes = problem.sharing.context if problem.scatter_gather else plan.tensor
        carried = plan.chunks * sum(size * (head - tail) * lanes for tail, head, size in ends)
        around = problem.family(plan.family, plan.chunks).wraparound_transfers
        carried += around * wraparound_bytes(graph) * lanes
    gradient, weight = problem.rules.gradient_wire, problem.rules.weight_wire
    both = {0: 2 * gradient, 1: gradient + weight, 2: weight, 3: 0.0}[problem.zero]
    share = both if problem.rules.flat_link_bytes_per_s is None or problem.zero > 1 else 4.0
    reduced = share * sum(
        _sent_by(problem, plan, stage.devices, weight_bytes - experts, experts)
        for stage, weight_bytes, experts in zip(
            plan.stages, weights, _stage_experts(problem, plan), strict=True
        )
    )
    across = 2 * gradient * (_state_groups(problem, plan) - 1) / problem.sharing.context
    reduced += across * sum(
        stage.devices * weight_bytes
        for stage, weight_bytes in zip(plan.stages, weights, strict=True)
    )
    experts = sum(layer.expert_bytes for layer in graph.layers) if problem.has_experts else 0.0
    once = sum(layer.parameter_bytes for layer in graph.layers)
    wires = {2: gradient, 3: weight + (weight + gradient)}.get(problem.zero, 0.0)
    gathered = (
        problem.rounds(plan.data)
        * wires
        * _sent_by(problem, plan, plan.tensor, once - experts, experts)
    )
    if problem.zero == 3 and any(layer.frozen.bytes for layer in graph.layers):
        still = (
            sum(layer.frozen.expert_bytes for layer in graph.layers) if problem.has_experts else 0.0
        )
        dense = sum(layer.frozen.bytes for layer in graph.layers) - still
        gathered += (
            problem.rounds(plan.data)
            * 2
            * weight
            * _sent_by(problem, plan, plan.tensor, dense, still)
        )
    return problem.microbatches * 2 * carried + reduced + gathered


def _stage_experts(problem: PlacementProblem, plan: Plan) -> list[float]:
    """Bytes of experts that ranks shard, of every stage."""
    expert_bytes = {layer.id: layer.expert_bytes for layer in problem.graph(plan.tensor).layers}
    return [
        sum(expert_bytes[place] for place in stage.layers) if problem.has_experts else 0.0
        for stage in plan.stages
    ]


def _sent_by(
    problem: PlacementProblem, plan: Plan, devices: int, dense: float, experts: float
) -> float:
    """Bytes that all ranks of a stage of so many ``devices`` send when each gathers or reduces,
    once, what it holds over the ranks that hold the same: (ranks - 1) times the bytes, for each
    group of these."""
    sharing, apart = problem.sharing, _state_groups(problem, plan)
    alike = devices * plan.data / sharing.group
    groups = devices / sharing.context * apart
    return (
        groups * (sharing.context * plan.data / apart - 1) * dense
        + sharing.group * (alike - 1) * experts
    )


def _state_groups(problem: PlacementProblem, plan: Plan) -> float:
    """Groups of the ranks with the same weights, each of which shards all state; 1 without
    hybrid sharding."""
    ranks = problem.sharing.context * plan.data
    return ranks / problem.sharing.sharers(plan.data) if problem.zero else 1.0


def _is_recomputed(layer: PlacedLayer) -> bool:
    """Whether a mode of recompute runs a layer again: all layers if nothing is said, else those
    that take time."""
    return (
        layer.full_s is None
        or layer.full_s > 0
        or layer.selective_s > 0
        or any(x.again_s > 0 for x in layer.more)
    )


def plan_joules(
    task: ModelTask,
    configuration: Configuration,
    problem: PlacementProblem,
    plan: Plan,
    layers: Sequence[LayerJoules],
    table: Technology,
) -> Floats:
    """Joules of a batch by component, static power left out; the layers are on one chip."""
    total, calls = np.zeros(len(COMPONENTS)), task.graphs[configuration.graph].calls
    stage_of = {place: number for number, stage in enumerate(plan.stages) for place in stage.layers}
    recomputed = {layer.id: _is_recomputed(layer) for layer in problem.graph(plan.tensor).layers}
    for stage in plan.stages:
        for place in stage.layers:
            mode = stage.recompute if recomputed[place] else "none"
            total += problem.microbatches * stage.devices * layers[calls[place]].of(mode)[:, 0]
    weights = _stage_parameters(problem, plan)
    sent = _sent_bytes(problem, plan, weights, stage_of) + _tied_bytes(problem, plan, stage_of)
    total[LINKS] += sent * table.sent_j_per_byte
    ranks = plan.tensor * plan.data
    alike = plan.tensor / problem.sharing.context * _state_groups(problem, plan)
    groups = (alike, problem.sharing.group) if problem.zero else (ranks, ranks)
    experts = sum(_stage_experts(problem, plan))
    stepped = groups[0] * (sum(weights) - experts) + groups[1] * experts
    total[HBM] += (
        stepped / problem.sent_bytes * problem.optimizer_traffic_bytes * table.energy.hbm_j_per_byte
    )
    return total

"""Joules of a batch beyond static power: of a plan, and what none undercuts (docs/cost.md, Energy).

With X the stages on a(X) devices each, d replicas in m rounds, M microbatches, w bytes of
parameters of which c d / n are shared out by n ranks each (1 without ZeRO), j joules of a byte that
links send and h of one of HBM:

    layers      M sum of a(X) (both passes and what their mode runs again)      (:class:`LayerJoules`)
    transfers   2 M j sum of bytes x boundaries x chunks x lanes, and around the pipeline; where
                edges arrive inside stages 2 M j sum of bytes x a(stage that they enter)
    reduced     j s sum of a(X) (d - 1) w, s bytes sent for each: gradients and weights by the stage
                of ZeRO, 4 on a flat link; and over the groups that share out state 2 (groups - 1) w
    gathered    m j s (d - 1) w of every layer, s: gradients under ZeRO 2, them and weights twice
                under ZeRO 3
    tied        j width d 2 (k - 1) bytes of each tie of k calls in several stages
    step        h x bytes that the optimizer moves of all parameters that are stepped

No plan of a row takes less than its layers with nothing recomputed but what does not fit, each
boundary with the least bytes that may cross it, and its fewest replicas. Where stages of unsplit
layers may take one device, such a layer is counted on one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .job import FLAT_REDUCTION, Job, Shape
from .layer_costs import LayerJoules
from .plan_classes import FittingBlocks, PlanSpace, Row
from .plan_graph import PlanGraph
from .plans import around_bytes, stage_bytes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BatchPrices:
    """Joules of a byte that links send, and of one of HBM, on every chip."""

    sent: Floats
    hbm: Floats

    def taken(self, index: NDArray[Any]) -> "BatchPrices":
        """Those of some chips."""
        return BatchPrices(self.sent[index], self.hbm[index])


def _groups(shape: Shape) -> float:
    """Groups of the ranks with the same weights, each of which shares out all state."""
    return shape.alike / shape.sharers if shape.zero else 1.0


def _once(shape: Shape, devices: float, dense: float, experts: float) -> float:
    """Bytes that the ranks of a stage of so many devices send when each sends, once, what it holds
    to the others that hold the same."""
    groups = devices / shape.context * _groups(shape)
    others = shape.alike / _groups(shape) - 1
    experts_alike = devices * shape.data / shape.group
    return groups * others * dense + shape.group * (experts_alike - 1) * experts


def _reduced_share(job: Job, shape: Shape, low: float) -> float:
    """Bytes sent for a byte of parameters at the end of a batch; ``low``: for one of weights."""
    gradient = job.held.wire
    if job.stack.flat and shape.zero <= 1:
        return FLAT_REDUCTION
    return {0: 2 * gradient, 1: gradient + low, 2: low, 3: 0.0}[shape.zero]


def _gathered(graph: PlanGraph, job: Job, shape: Shape, rounds: float) -> float:
    """Bytes of ZeRO's collectives of parameters in all rounds."""
    gradient, sent = job.held.wire, job.held.sent
    share = {2: gradient, 3: 2 * graph.low + gradient}.get(shape.zero, 0.0)
    layers = [graph.layers[kind] for kind in graph.calls]
    experts = sum(sent * layer.experts for layer in layers)
    dense = sum(sent * layer.parameters for layer in layers) - experts
    total = share * _once(shape, graph.width, dense, experts)
    if shape.zero == 3:
        still = sum(sent * layer.frozen_experts for layer in layers)
        frozen = sum(sent * layer.frozen for layer in layers) - still
        total += 2 * graph.low * _once(shape, graph.width, frozen, still)
    return rounds * total


def _transfers(graph: PlanGraph, job: Job, shape: Shape, owner: Mapping[int, int],
               devices: list[int]) -> float:  # fmt: skip
    """Bytes between stages, of a pass of a microbatch."""
    if job.stack.arriving:
        entering = [
            size * devices[owner[head]]
            for tail, head, size in graph.edges
            if owner[tail] != owner[head]
        ]
        return sum(entering)
    lanes, family = graph.context if job.stack.scatters else graph.width, shape.family
    carried = sum(size * (owner[head] - owner[tail]) for tail, head, size in graph.edges)
    around = 0 if family.folded else family.chunks - 1
    return lanes * (family.chunks * carried + around * around_bytes(graph))


def _tied(graph: PlanGraph, job: Job, shape: Shape, owner: Mapping[int, int]) -> float:
    """Bytes of all-reduces of parameters that calls of several stages share."""
    total = 0.0
    for tie in graph.ties:
        if len({owner[call] for call in tie.calls}) > 1:
            total += 2 * (len(tie.calls) - 1) * job.held.sent * tie.elements
    return graph.width * shape.data * total


def _stepped(graph: PlanGraph, shape: Shape, dense: float, experts: float) -> float:
    """Parameters that all devices together step."""
    if not shape.zero:
        return graph.width * shape.data * (dense + experts)
    return graph.tensor * _groups(shape) * dense + graph.group * experts


def plan_joules(
    graph: PlanGraph,
    job: Job,
    shape: Shape,
    stages: tuple[tuple[tuple[int, ...], str], ...],
    spent: LayerJoules,
    prices: BatchPrices,
) -> float:
    """The joules of a batch of a plan on one chip; its rules are checked elsewhere."""
    microbatches = job.microbatches(graph.microbatch)
    layers, reduced, stepped, devices = 0.0, 0.0, 0.0, list[int]()
    across = 2 * job.held.wire * (_groups(shape) - 1) / shape.context
    share = _reduced_share(job, shape, graph.low)
    for calls, name in stages:
        mode = graph.names.index(name)
        split = not job.stack.unsplit or any(
            graph.layers[graph.calls[call]].sharded for call in calls
        )
        devices.append(graph.width if split else 1)
        for call in calls:
            kind = graph.calls[call]
            again = float(spent.again[mode, kind, 0]) if graph.recomputes(call) else 0.0
            layers += devices[-1] * (float(spent.both[kind, 0]) + again)
        held = stage_bytes(graph, job, sorted(calls), mode)
        dense, experts = (float(size) for size in held.size(job))
        reduced += share * _once(shape, devices[-1], dense, experts)
        reduced += across * devices[-1] * (dense + experts)
        stepped += _stepped(graph, shape, dense, experts) / job.held.sent
    owner = {call: number for number, (calls, _) in enumerate(stages) for call in calls}
    sent = 2 * microbatches * _transfers(graph, job, shape, owner, devices)
    sent += reduced + _gathered(graph, job, shape, -(-microbatches // shape.data))
    sent += _tied(graph, job, shape, owner)
    updated = stepped * job.held.update
    return microbatches * layers + sent * float(prices.sent[0]) + updated * float(prices.hbm[0])


@dataclass(frozen=True, slots=True)
class Spent:
    """What chips take beside time, where that counts: joules of layers, and of bytes of a batch."""

    layers: LayerJoules
    prices: BatchPrices

    def taken(self, index: NDArray[Any]) -> "Spent":
        layers = LayerJoules(self.layers.both[:, index], self.layers.again[:, :, index])
        return Spent(layers, self.prices.taken(index))

    def of_layers(self, space: PlanSpace) -> Floats:
        """Joules of a batch of all layers, nothing recomputed."""
        return np.asarray(space.microbatches * (_device_calls(space) @ self.layers.both))

    def of_row(self, space: PlanSpace, row: Row, fitting: FittingBlocks) -> Floats:
        """Joules of a batch that no plan of a row undercuts."""
        again = space.microbatches * self._again(space, row, fitting)
        if row not in space.moved:
            space.moved[row] = _least_sent(space, row), _least_stepped(space, row)
        sent_bytes, stepped = space.moved[row]
        sent = sent_bytes * self.prices.sent
        updated = stepped * space.job.held.update * self.prices.hbm
        return np.asarray(self.of_layers(space) + again + sent + updated)

    def _again(self, space: PlanSpace, row: Row, fitting: FittingBlocks) -> Floats:
        """Joules of the least that must be recomputed, of a microbatch."""
        graph, job = space.graph, space.job
        modes = space.modes_at(row.family, row.stages)
        nothing = np.zeros(len(self.prices.hbm))
        kind, blocks = graph.calls[graph.block.index(True)], sum(graph.block)
        whole = job.stack.unsplit and not graph.layers[kind].sharded
        devices = 1 if whole else graph.width
        if row.stages == 1:
            may = np.flatnonzero(fitting.blocks[0] >= 0).tolist()
            calls = [
                graph.calls[call] for call in range(len(graph.calls)) if graph.recomputes(call)
            ]
            every = [sum((self.layers.again[mode, k] for k in calls), nothing) for mode in may]
            alone = job.stack.unsplit and not any(graph.layers[k].sharded for k in graph.calls)
            return np.asarray(np.min(every, axis=0) * (1 if alone else graph.width))
        more = [mode for mode in modes if mode]
        if not (more and space.parts.simple):
            return nothing
        least = np.min([self.layers.again[mode, kind] for mode in more], axis=0)
        return np.asarray(devices * max(0, blocks - fitting.plain) * least)


def _device_calls(space: PlanSpace) -> Floats:
    """How often every layer is called, on all devices that must run it."""
    graph = space.graph
    devices = []
    for layer in graph.layers:
        alone = space.job.stack.unsplit and not layer.sharded
        devices.append(1 if alone else graph.width)
    often = np.bincount(np.array(graph.calls), minlength=len(graph.layers))
    return np.asarray(often * np.array(devices, float))


def _cuts_ties(space: PlanSpace, row: Row) -> bool:
    """Whether all that shares parameters lies in several stages."""
    return row.stages > 1 and space.parts.ends


def _parameters(space: PlanSpace, row: Row) -> tuple[float, float]:
    """Dense parameters, those of ties once where they may lie in one stage, and experts."""
    graph = space.graph
    layers = [graph.layers[kind] for kind in graph.calls]
    ties = 0.0
    if not _cuts_ties(space, row):
        ties = sum(tie.elements * (len(tie.calls) - 1) for tie in graph.ties)
    experts = float(sum(layer.experts for layer in layers))
    return float(sum(layer.parameters for layer in layers)) - experts - ties, experts


def _least_stepped(space: PlanSpace, row: Row) -> float:
    """Parameters that are stepped at least."""
    shape = space.shape(row, row.fewest, row.orders[0])
    return _stepped(space.graph, shape, *_parameters(space, row))


def _least_sent(space: PlanSpace, row: Row) -> float:
    """Bytes that all devices of a plan of a row send at least beside the collectives of layers."""
    graph, job, family = space.graph, space.job, row.family
    shape = space.shape(row, row.fewest, row.orders[0])
    boundaries = row.stages - 1
    if job.stack.arriving:
        each = 1 if space.parts.unsplit else graph.width
        carried = boundaries * each * space.parts.arriving
    else:
        lanes = graph.context if job.stack.scatters else graph.width
        around = 0 if family.folded else family.chunks - 1
        inner = family.chunks * boundaries * space.parts.carried
        carried = lanes * (inner + around * space.parts.around)
    dense, experts = (job.held.sent * count for count in _parameters(space, row))
    share = _reduced_share(job, shape, graph.low)
    devices: float = graph.width
    if space.parts.unsplit:
        every = [graph.layers[kind] for kind in graph.calls]
        split = sum(layer.parameters for layer in every if layer.sharded)
        total = max(1.0, sum(layer.parameters for layer in every))
        devices = 1 + (graph.width - 1) * split / total
    reduced = share * _once(shape, devices, dense, experts)
    across = 2 * job.held.wire * (_groups(shape) - 1) / shape.context
    reduced += across * devices * (dense + experts)
    gathered = _gathered(graph, job, shape, row.rounds)
    last = len(graph.calls) - 1
    owner = dict.fromkeys(range(last + 1), 0)
    if _cuts_ties(space, row):
        owner[last] = 1
    tied = _tied(graph, job, shape, owner)
    return 2 * space.microbatches * carried + reduced + gathered + tied

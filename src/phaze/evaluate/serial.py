"""Layers whose operators run one after the other, as a stack runs them: seconds on every chip of an array at once.

:class:`SerialPass` is a pass on no chip yet: its works, how long its collectives take on a cluster, and which products
may run beside them. For one pass with operators o and tensor-parallel collectives c:

    device   = sum over o of time(o) + sum over c of (time(c) - hidden(c))                     (:meth:`SerialPass.on`)
    hidden(c) = min(time(c), sum of the products that may run beside c)      backward, if the stack hides collectives
              = (1 - 1/n) of that     a gather or scatter over n ranks that the stack runs piece by piece, in any pass
    host     = (operators + collectives) * host time of the stack
    pass     = (device^3 + host^3)^(1/3)                         the host runs ahead, but not far: a soft maximum
    backward = pass + 8 N / HBM bandwidth        gradients of N parameters are added to those of earlier microbatches

A product may run beside c if it neither leads to c nor follows from it and reads what the last products before c read:
the weight gradient of the same map. Piece by piece, also the products that a scatter waits for or that wait for a
gather: while a piece is on its way, the product works on the next (:func:`companions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.collective import CollectiveCost, collective, kind_named
from phaze.cost.table import Column
from phaze.cost.work import Work, works_of
from phaze.graph.fuse import fuse_graph, fuse_layer
from phaze.graph.ir import Layer, OperatorGraph
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import Cluster
from phaze.hardware.stack import Stack

SOFTNESS = 3
ACCUMULATED_BYTES = 8.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a pass depends on beside the chip: the network, the software, and how far their figures are measured."""

    cluster: Cluster
    stack: Stack
    basis: Basis = "calibrated"


@dataclass(frozen=True, slots=True)
class SerialPass:
    """A pass on no chip yet; ``beside`` has for a collective's place the products beside it and the share they hide.

    ``collectives`` are None but where an operator is one.
    """

    works: tuple[Work, ...]
    collectives: tuple[CollectiveCost | None, ...]
    beside: tuple[tuple[int, tuple[int, ...], float], ...]
    host_s: float

    @property
    def waits_s(self) -> Floats:
        """Seconds of collectives by operator, 0 for others."""
        return np.array([0.0 if cost is None else cost.time_s for cost in self.collectives])

    @property
    def sent_bytes(self) -> float:
        """Bytes that one device sends."""
        return sum(cost.sent_bytes for cost in self.collectives if cost is not None)

    def hidden_s(self, times_s: Floats, waits_s: Floats) -> dict[int, Floats]:
        """By the place of a collective, how much of it products run beside on every chip."""
        found = {}
        for at, places, share in self.beside:
            covered = np.zeros(times_s.shape[1])
            for place in places:
                covered = covered + times_s[place]
            found[at] = share * np.minimum(waits_s[at], covered)
        return found

    def on(self, times_s: Floats) -> Floats:
        """Seconds on every chip, from those of its operators, [operators, chips]."""
        if not self.works:
            return np.zeros(times_s.shape[1])
        waits = self.waits_s
        device = times_s.sum(axis=0) + waits.sum()
        device = device - sum(self.hidden_s(times_s, waits).values(), start=np.zeros(times_s.shape[1]))
        return np.asarray((device**SOFTNESS + self.host_s**SOFTNESS) ** (1 / SOFTNESS))


@dataclass(frozen=True, slots=True)
class SerialLayer:
    """One distinct layer: its passes, what recomputing runs again, and its sizes on one device.

    ``full`` is None where a second forward pass is the first one again.
    """

    name: str
    forward: SerialPass
    backward: SerialPass
    selective: SerialPass
    full: SerialPass | None
    parameters: int
    saved_bytes: int
    selective_bytes: int
    kept_bytes: int
    sharded: bool

    @property
    def sizes(self) -> tuple[int, int, int, int, bool]:
        """Parameters, bytes saved without recomputing, selectively and fully, and whether it is sharded."""
        return self.parameters, self.saved_bytes, self.selective_bytes, self.kept_bytes, self.sharded

    @property
    def passes(self) -> tuple[SerialPass, ...]:
        """All of them, in a fixed order."""
        own = (self.forward, self.backward, self.selective)
        return own if self.full is None else (*own, self.full)


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """One layer on every chip: seconds of both passes, and of what either mode of recomputing runs again."""

    forward_s: Floats
    backward_s: Floats
    selective_s: Floats
    full_s: Floats


def closure(edges: Sequence[tuple[int, int]], start: set[int], forward: bool) -> set[int]:
    """Everything that can be reached from ``start`` along (or against) the edges."""
    steps: dict[int, list[int]] = {}
    for tail, head in edges:
        key, value = (tail, head) if forward else (head, tail)
        steps.setdefault(key, []).append(value)
    seen, open_ = set(start), list(start)
    while open_:
        for other in steps.get(open_.pop(), []):
            if other not in seen:
                seen.add(other)
                open_.append(other)
    return seen


def companions(graph: OperatorGraph, pieces: bool = False, weights: bool = True) -> dict[int, tuple[int, ...]]:
    """For the place of every collective, the places of the products that may run beside it.

    ``weights``: products of weight gradients; ``pieces``: also those after a gather and before a scatter.
    """
    edges = list(graph.edges())
    place = {operator.id: index for index, operator in enumerate(graph.operators)}
    products = [operator for operator in graph.operators if operator.core in ("tensor", "both")]
    matrix = {product.id for product in products}
    taken: set[int] = set()
    found: dict[int, tuple[int, ...]] = {}
    for operator in graph.operators:
        if operator.core != "network":
            continue
        before, after = (closure(edges, {operator.id}, forward) for forward in (False, True))
        last = closure([edge for edge in edges if edge[1] not in matrix], {operator.id}, False) & matrix
        near: set[int] = set()
        if pieces and operator.kind == "reduce_scatter":
            near = last
        elif pieces and operator.kind == "all_gather":
            near = closure([edge for edge in edges if edge[0] not in matrix], {operator.id}, True) & matrix
        inputs = {a.tensor for product in products if weights and product.id in last for a in product.reads}
        beside = [
            product.id
            for product in products
            if product.id not in taken
            and (
                product.id in near
                or (product.id not in before | after and inputs & {access.tensor for access in product.reads})
            )
        ]
        taken.update(beside)
        found[place[operator.id]] = tuple(place[id_] for id_ in beside)
    return found


def serial_pass(graph: OperatorGraph, machine: Machine, hides: bool = False) -> SerialPass:
    """A (fused) pass on a machine; ``hides``: collectives run behind products of weight gradients."""
    costs: list[CollectiveCost | None] = []
    for operator in graph.operators:
        cost = None
        if operator.core == "network":
            kind, size, group = kind_named(operator.kind), operator.size("bytes"), operator.size("group")
            cost = collective(kind, size, group, machine.cluster, machine.basis)
        costs.append(cost)
    beside, pieces = [], machine.stack.piecewise_collectives
    if hides or pieces:
        for at, places in companions(graph, pieces, hides).items():
            group = graph.operators[at].size("group") if pieces else 0
            beside.append((at, places, 1 - 1 / group if group else 1.0))
    host_s = sum(operator.core != "none" for operator in graph.operators) * machine.stack.host_s
    return SerialPass(tuple(works_of(graph)), tuple(costs), tuple(beside), host_s)


def needed_again(layer: Layer) -> OperatorGraph:
    """The forward pass without operators that lead to nothing the backward pass reads."""
    read = {access.tensor for operator in layer.backward.operators for access in operator.reads}
    start = {op.id for op in layer.forward.operators if read & {access.tensor for access in op.writes}}
    kept = closure(list(layer.forward.edges()), start, False)
    operators = tuple(op for op in layer.forward.operators if op.id in kept)
    taken = {access.tensor for op in operators for access in op.reads}
    made = {access.tensor for op in operators for access in op.writes}
    return OperatorGraph(
        tensors=tuple(tensor for tensor in layer.forward.tensors if tensor.id in taken | made),
        operators=operators,
        inputs=tuple(id_ for id_ in layer.forward.inputs if id_ in taken),
        outputs=tuple(sorted(made & read)),
    )


def serial_layer(layer: Layer, machine: Machine) -> SerialLayer:
    """A traced layer as a stack runs it."""
    fused, stack = fuse_layer(layer, machine.stack.fusion), machine.stack
    full = None
    if stack.trims_recompute:
        full = serial_pass(fuse_graph(needed_again(layer), stack.fusion), machine)
    return SerialLayer(
        name=layer.name,
        forward=serial_pass(fused.forward, machine),
        backward=serial_pass(fused.backward, machine, stack.hides_tensor_collectives),
        selective=serial_pass(fused.selective.rerun, machine),
        full=full,
        parameters=layer.parameter_elements,
        saved_bytes=layer.none.saved_bytes,
        selective_bytes=layer.selective.saved_bytes,
        kept_bytes=layer.full.saved_bytes,
        sharded=layer.sharded,
    )


def layer_seconds(layer: SerialLayer, times_s: Sequence[Floats], hbm_bytes_per_s: Floats) -> LayerSeconds:
    """A layer on every chip, from the times of its passes' operators; the bandwidth is what vector work reaches."""
    found = [one.on(times) for one, times in zip(layer.passes, times_s, strict=True)]
    forward_s, backward_s, selective_s = found[:3]
    return LayerSeconds(
        forward_s,
        backward_s + ACCUMULATED_BYTES * layer.parameters / hbm_bytes_per_s,
        np.minimum(forward_s, selective_s),
        forward_s if layer.full is None else np.minimum(forward_s, found[3]),
    )


def times_of(column: Column, first: int, one: SerialPass) -> Floats:
    """Seconds of the operators of a pass on every chip; its works stand in the column from ``first`` on."""
    found = np.empty((len(one.works), len(column.tensor_part_of)))
    for at in range(len(one.works)):
        found[at] = column.time_s(first + at)
    return found

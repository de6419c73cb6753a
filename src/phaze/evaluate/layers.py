"""The layers of a model on a chip, as a placement asks for them: seconds, bytes, and what recomputing costs.

For one pass over a layer with operators o (run one after the other) and tensor-parallel collectives c:

    device   = sum over o of time(o) + sum over c of (time(c) - hidden(c))                       (:func:`pass_seconds`)
    hidden(c) = min(time(c), sum of the products that may run beside c)      backward, if the stack hides collectives
              = (1 - 1/n) of that     a gather or scatter over n ranks that the stack runs piece by piece, in any pass
    host     = (operators + collectives) * host time of the stack
    pass     = (device^3 + host^3)^(1/3)                         the host runs ahead, but not far: a soft maximum
    backward = pass + 8 N / HBM bandwidth        gradients of N parameters are added to those of earlier microbatches

A product may run beside c if it neither leads to c nor follows from it and reads what the last products before c read:
the weight gradient of the same map. Piece by piece, also the products that a scatter waits for or that wait for a
gather: while a piece is on its way, the product works on the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.collective import collective, kind_named
from phaze.cost.parts import ChipArrays, chip_arrays
from phaze.cost.table import cost_works
from phaze.cost.work import works_of
from phaze.graph.fuse import fuse_graph, fuse_layer
from phaze.graph.ir import Layer, Model, OperatorGraph
from phaze.hardware.calibration import Basis, Constants, constants_of
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.stack import Stack

SOFTNESS = 3
ACCUMULATED_BYTES = 8.0


@dataclass(frozen=True, slots=True)
class Setting:
    """Where layers run: everything that their times depend on."""

    chip: Chip
    cluster: Cluster
    stack: Stack
    basis: Basis = "calibrated"

    @property
    def constants(self) -> Constants:
        return constants_of(self.chip.calibration, self.basis, "training")

    @property
    def hbm_bytes_per_s(self) -> float:
        """HBM bandwidth that vector work reaches."""
        return self.chip.hbm.bandwidth_bytes_per_s * self.constants.vector_hbm_share


@dataclass(frozen=True, slots=True)
class LayerCost:
    """One distinct layer: seconds of its passes and of what recomputing runs again, and its sizes on one device."""

    name: str
    forward_s: float
    backward_s: float
    selective_s: float
    full_s: float
    parameters: int
    saved_bytes: int
    selective_bytes: int
    kept_bytes: int
    sharded: bool


def _closure(edges: Sequence[tuple[int, int]], start: set[int], forward: bool) -> set[int]:
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
        before, after = (_closure(edges, {operator.id}, forward) for forward in (False, True))
        last = _closure([edge for edge in edges if edge[1] not in matrix], {operator.id}, False) & matrix
        near: set[int] = set()
        if pieces and operator.kind == "reduce_scatter":
            near = last
        elif pieces and operator.kind == "all_gather":
            near = _closure([edge for edge in edges if edge[0] not in matrix], {operator.id}, True) & matrix
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


def collective_seconds(graph: OperatorGraph, setting: Setting) -> NDArray[np.float64]:
    """Seconds of every operator that is a collective, before anything hides it; 0 of all others."""
    seconds = np.zeros(len(graph.operators))
    for index, operator in enumerate(graph.operators):
        if operator.core == "network":
            kind, size, group = kind_named(operator.kind), operator.size("bytes"), operator.size("group")
            seconds[index] = collective(kind, size, group, setting.cluster, setting.basis).time_s
    return seconds


def hidden_seconds(
    graph: OperatorGraph, setting: Setting, times: NDArray[np.float64], waits: NDArray[np.float64], hides: bool
) -> dict[int, float]:
    """By the place of a collective, how much of it products run beside; ``times`` and ``waits`` of all operators."""
    pieces, found = setting.stack.piecewise_collectives, dict[int, float]()
    if hides or pieces:
        for at, beside in companions(graph, pieces, hides).items():
            group = graph.operators[at].size("group") if pieces else 0
            found[at] = (1 - 1 / group if group else 1.0) * min(waits[at], sum(times[i] for i in beside))
    return found


def pass_seconds(graph: OperatorGraph, setting: Setting, chips: ChipArrays, hides: bool = False) -> float:
    """Seconds of one pass; the formula stands in the module's docstring."""
    if not graph.operators:
        return 0.0
    times = cost_works(works_of(graph), chips, setting.constants).times_s()[:, 0]
    waits = collective_seconds(graph, setting)
    device = float(times.sum() + waits.sum()) - sum(hidden_seconds(graph, setting, times, waits, hides).values())
    host = sum(operator.core != "none" for operator in graph.operators) * setting.stack.host_s
    return float((device**SOFTNESS + host**SOFTNESS) ** (1 / SOFTNESS))


def needed_again(layer: Layer) -> OperatorGraph:
    """The forward pass without operators that lead to nothing the backward pass reads."""
    read = {access.tensor for operator in layer.backward.operators for access in operator.reads}
    start = {op.id for op in layer.forward.operators if read & {access.tensor for access in op.writes}}
    kept = _closure(list(layer.forward.edges()), start, False)
    operators = tuple(op for op in layer.forward.operators if op.id in kept)
    taken = {access.tensor for op in operators for access in op.reads}
    made = {access.tensor for op in operators for access in op.writes}
    return OperatorGraph(
        tensors=tuple(tensor for tensor in layer.forward.tensors if tensor.id in taken | made),
        operators=operators,
        inputs=tuple(id_ for id_ in layer.forward.inputs if id_ in taken),
        outputs=tuple(sorted(made & read)),
    )


def layer_cost(layer: Layer, setting: Setting, chips: ChipArrays) -> LayerCost:
    """What one layer takes in a setting."""
    fused = fuse_layer(layer, setting.stack.fusion)
    forward_s = pass_seconds(fused.forward, setting, chips)
    full_s = forward_s
    if setting.stack.trims_recompute:
        rerun = fuse_graph(needed_again(layer), setting.stack.fusion)
        full_s = min(forward_s, pass_seconds(rerun, setting, chips))
    again = ACCUMULATED_BYTES * layer.parameter_elements / setting.hbm_bytes_per_s
    hides = setting.stack.hides_tensor_collectives
    return LayerCost(
        name=layer.name,
        forward_s=forward_s,
        backward_s=pass_seconds(fused.backward, setting, chips, hides) + again,
        selective_s=min(forward_s, pass_seconds(fused.selective.rerun, setting, chips)),
        full_s=full_s,
        parameters=layer.parameter_elements,
        saved_bytes=layer.none.saved_bytes,
        selective_bytes=layer.selective.saved_bytes,
        kept_bytes=layer.full.saved_bytes,
        sharded=layer.sharded,
    )


def layer_costs(model: Model, setting: Setting) -> tuple[LayerCost, ...]:
    """Every distinct layer of a model."""
    chips = chip_arrays([setting.chip])
    return tuple(layer_cost(layer, setting, chips) for layer in model.layers)

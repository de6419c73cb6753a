"""The layers of a model on a chip, as a placement asks for them: seconds, bytes, and what recomputing costs.

For one pass over a layer with operators o (run one after the other) and tensor-parallel collectives c:

    device   = sum over o of time(o) + sum over c of (time(c) - hidden(c))                       (:func:`pass_seconds`)
    hidden(c) = min(time(c), sum of the products that may run beside c)      backward, if the stack hides collectives
    host     = (operators + collectives) * host time of the stack
    pass     = (device^3 + host^3)^(1/3)                         the host runs ahead, but not far: a soft maximum
    backward = pass + 8 N / HBM bandwidth        gradients of N parameters are added to those of earlier microbatches

A product may run beside c if it neither leads to c nor follows from it and reads what the last products before c read:
the weight gradient of the same map.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.collective import collective, kind_named
from phaze.cost.parts import ChipArrays, chip_arrays
from phaze.cost.table import cost_works
from phaze.cost.work import works_of
from phaze.graph.fuse import fuse_layer
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


def companions(graph: OperatorGraph) -> dict[int, tuple[int, ...]]:
    """For the place of every collective, the places of the products that may run beside it."""
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
        open_edges = [(tail, head) for tail, head in edges if head not in matrix]
        last = _closure(open_edges, {operator.id}, False) & matrix
        inputs = {access.tensor for product in products if product.id in last for access in product.reads}
        beside = [
            product.id
            for product in products
            if product.id not in before | after | taken and inputs & {access.tensor for access in product.reads}
        ]
        taken.update(beside)
        found[place[operator.id]] = tuple(place[id_] for id_ in beside)
    return found


def _collective_seconds(graph: OperatorGraph, setting: Setting) -> NDArray[np.float64]:
    seconds = np.zeros(len(graph.operators))
    for index, operator in enumerate(graph.operators):
        if operator.core == "network":
            kind, size, group = kind_named(operator.kind), operator.size("bytes"), operator.size("group")
            seconds[index] = collective(kind, size, group, setting.cluster, setting.basis).time_s
    return seconds


def pass_seconds(graph: OperatorGraph, setting: Setting, chips: ChipArrays, hides: bool = False) -> float:
    """Seconds of one pass; the formula stands in the module's docstring."""
    if not graph.operators:
        return 0.0
    times = cost_works(works_of(graph), chips, setting.constants).times_s()[:, 0]
    waits = _collective_seconds(graph, setting)
    hidden = 0.0
    if hides:
        hidden = sum(min(waits[at], sum(times[i] for i in beside)) for at, beside in companions(graph).items())
    device = float(times.sum() + waits.sum()) - hidden
    host = sum(operator.core != "none" for operator in graph.operators) * setting.stack.host_s
    return float((device**SOFTNESS + host**SOFTNESS) ** (1 / SOFTNESS))


def layer_cost(layer: Layer, setting: Setting, chips: ChipArrays) -> LayerCost:
    """What one layer takes in a setting."""
    fused = fuse_layer(layer, setting.stack.fusion)
    forward_s = pass_seconds(fused.forward, setting, chips)
    again = ACCUMULATED_BYTES * layer.parameter_elements / setting.hbm_bytes_per_s
    hides = setting.stack.hides_tensor_collectives
    return LayerCost(
        name=layer.name,
        forward_s=forward_s,
        backward_s=pass_seconds(fused.backward, setting, chips, hides) + again,
        selective_s=min(forward_s, pass_seconds(fused.selective.rerun, setting, chips)),
        full_s=forward_s,
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

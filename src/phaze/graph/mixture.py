"""The mixture of experts of a layer, as its trace shows it.

Experts are *grouped products*: one product for all of them, with an offset into its rows for each.
The *experts' part* of a pass are the grouped products, what reads experts' weights or makes their
gradients, what lies between these, and what reads two of its tensors. A router, the sorting of rows
and their weighted sum are no part of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from phaze.errors import InputError
from phaze.graph.ir import Layer, Operator, OperatorGraph, Tensor


@dataclass(frozen=True, slots=True)
class Mixture:
    """What the graph of a layer says of its experts: how many, rows of all of them, the tensors of
    their weights, and the operators of the experts' part in any of its graphs."""

    experts: int
    rows: int
    weights: frozenset[int]
    inside: frozenset[int]


def is_grouped(operator: Operator, tensors: Mapping[int, Tensor]) -> bool:
    """Whether a product is one of many experts: it has an offset for each, which no parameter is
    (the bias of a convolution that maps every channel by itself has one for each too)."""
    if operator.kind != "product" or operator.size("batch") < 2 or len(operator.reads) < 3:
        return False
    read = [tensors[access.tensor] for access in operator.reads]
    return any(
        tensor.elements == operator.size("batch") and tensor.role != "parameter" for tensor in read
    )


def all_tensors(layer: Layer) -> dict[int, Tensor]:
    """Every tensor of a layer by number."""
    graphs = (
        layer.forward,
        layer.backward,
        layer.none.rerun,
        layer.selective.rerun,
        layer.full.rerun,
    )
    return {tensor.id: tensor for graph in graphs for tensor in graph.tensors}


def _between(graph: OperatorGraph, seeds: set[int]) -> set[int]:
    """The seeds, and every operator that follows from one and leads to one."""
    after, before = set(seeds), set(seeds)
    edges = list(graph.edges())
    for tail, head in edges:
        if tail in after:
            after.add(head)
    for tail, head in reversed(edges):
        if head in before:
            before.add(tail)
    return after & before


def _part(graph: OperatorGraph, seeds: set[int], earlier: set[int]) -> set[int]:
    """The experts' part of a pass; ``earlier`` are tensors that the part of the other pass made."""
    part = _between(graph, seeds)
    written = {access.tensor for op in graph.operators if op.id in part for access in op.writes}
    for op in graph.operators:
        read = {access.tensor for access in op.reads}
        # What joins several of its tensors, or reads nothing else (the masks of a limit), runs
        # where these are.
        if op.id not in part and (len(written & read) > 1 or (read and read <= written | earlier)):
            part.add(op.id)
            written.update(access.tensor for access in op.writes)
    return part


def _written(graph: OperatorGraph, inside: set[int]) -> set[int]:
    return {access.tensor for op in graph.operators if op.id in inside for access in op.writes}


def experts_of(layers: Iterable[Layer]) -> int:
    """How many experts the mixtures of some layers have; 0 where there are none."""
    return max(
        (mixture.experts for layer in layers if (mixture := mixture_of(layer)) is not None),
        default=0,
    )


def has_experts(layer: Layer) -> bool:
    """Whether a layer has a mixture of experts: a grouped product of parameters."""
    tensors = {
        tensor.id: tensor for graph in (layer.forward, layer.backward) for tensor in graph.tensors
    }
    owned = {p.tensor for p in layer.parameters if p.tensor >= 0}
    every = (*layer.forward.operators, *layer.backward.operators)
    return any(is_grouped(op, tensors) and any(a.tensor in owned for a in op.reads) for op in every)


def mixture_of(layer: Layer) -> Mixture | None:
    """The mixture of experts of a layer; None where it has none."""
    tensors = all_tensors(layer)
    elements = {number: tensor.elements for number, tensor in tensors.items()}
    grouped = [
        op
        for graph in (layer.forward, layer.backward)
        for op in graph.operators
        if is_grouped(op, tensors)
    ]
    owned = {p.tensor: p for p in layer.parameters if p.tensor >= 0}
    forward = [op for op in grouped if any(access.tensor in owned for access in op.reads)]
    if not forward:
        return None
    counts = {op.size("batch") for op in forward}
    if len(counts) > 1:
        raise InputError(
            layer.name, f"its grouped products have {sorted(counts)} experts", "use expert 1"
        )
    experts, rows = counts.pop(), max(op.size("batch") * op.size("m") for op in forward)
    paths = {op.module for op in forward}
    weights = {
        number
        for number, p in owned.items()
        if p.elements % experts == 0 and p.name.rpartition(".")[0] in paths
    } | {access.tensor for op in forward for access in op.reads if access.tensor in owned}
    sizes = {elements[number] for number in weights}
    # A gradient is known by its size, unless another weight or what enters the layer has the same.
    others = {p.elements for number, p in owned.items() if number not in weights}
    others |= {
        elements[number] for number in layer.forward.inputs if tensors[number].role == "input"
    }
    inside, numbers = set[int](), {op.id for op in grouped}
    for graph in (layer.forward, layer.backward):
        gradients = (
            {t for t in graph.outputs if elements[t] in sizes - others}
            if graph is layer.backward
            else set()
        )
        seeds = {
            op.id
            for op in graph.operators
            if op.id in numbers
            or weights & {access.tensor for access in op.reads}
            or gradients & {access.tensor for access in op.writes}
        }
        inside |= _part(
            graph, seeds, _written(layer.forward, inside) if graph is layer.backward else set()
        )
    return Mixture(experts, rows, frozenset(weights), frozenset(inside))

"""Grouped products of experts, marked: they have a share of their own of the rate that other
products reach.

A product of many experts at once has, beside rows and weights, the offset of each expert's rows:
whole numbers of 32 bits, at least one for each expert.
"""

from dataclasses import replace

from phaze.graph.ir import Layer, Operator, OperatorGraph, Recompute, Tensor

OFFSET_BYTES = 4
"""Grouped kernels read where each group ends as 32-bit integers."""
MARK = ("grouped", 1)


def _is_grouped(op: Operator, tensors: dict[int, Tensor]) -> bool:
    if op.kind != "product" or op.size("batch") < 2 or len(op.reads) < 3:
        return False
    operands = [tensors[access.tensor] for access in op.reads]
    return any(
        t.element_bytes == OFFSET_BYTES and t.elements % op.size("batch") == 0 for t in operands
    )


def _marked(graph: OperatorGraph) -> OperatorGraph:
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    if not any(_is_grouped(op, tensors) for op in graph.operators):
        return graph
    operators = tuple(
        replace(op, sizes=(*op.sizes, MARK)) if _is_grouped(op, tensors) else op
        for op in graph.operators
    )
    return replace(graph, operators=operators)


def with_grouped(layer: Layer) -> Layer:
    """The layer, its grouped products marked in every pass."""

    def again(value: Recompute) -> Recompute:
        return replace(value, rerun=_marked(value.rerun))

    return replace(
        layer,
        forward=_marked(layer.forward),
        backward=_marked(layer.backward),
        none=again(layer.none),
        selective=again(layer.selective),
        full=again(layer.full),
    )

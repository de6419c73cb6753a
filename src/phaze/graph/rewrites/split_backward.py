"""The backward pass of a layer in two: gradients of its input, and gradients of its weights."""

from phaze.graph.ir import Layer, Operator, OperatorGraph
from phaze.graph.recompute import closure, part_of


def input_gradients(layer: Layer) -> tuple[int, ...]:
    """The outputs of a backward pass that are no gradients of trained parameters.

    A gradient has as many elements as its parameter. Where an output for the input is as large as a
    parameter, the last one is the input's: it needs all operators of the layer.
    """
    elements = {tensor.id: tensor.elements for tensor in layer.backward.tensors}
    left: dict[int, int] = {}
    for parameter in layer.parameters:
        if parameter.trained:
            left[parameter.elements] = left.get(parameter.elements, 0) + 1
    gradients = []
    for output in layer.backward.outputs:
        size = elements[output]
        if left.get(size, 0) > 0:
            left[size] -= 1
        else:
            gradients.append(output)
    return tuple(gradients)


def split_backward(
    layer: Layer, fused: OperatorGraph | None = None
) -> tuple[OperatorGraph, OperatorGraph]:
    """The backward pass, or it ``fused``, in two: the operators that lead to gradients of the
    input, and all others."""
    graph, wanted = fused or layer.backward, set(input_gradients(layer))
    start = {op.id for op in graph.operators if wanted & {access.tensor for access in op.writes}}
    leads = closure(list(graph.edges()), start, False)
    first: list[Operator] = [op for op in graph.operators if op.id in leads]
    rest: list[Operator] = [op for op in graph.operators if op.id not in leads]
    read = {access.tensor for op in rest for access in op.reads}
    written = {access.tensor for op in first for access in op.writes}
    outputs = [output for output in graph.outputs if output in written]
    return part_of(graph, first, sorted({*outputs, *(written & read)})), part_of(
        graph, rest, [output for output in graph.outputs if output not in written]
    )

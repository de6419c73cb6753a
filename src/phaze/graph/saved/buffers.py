"""Weight gradients of one microbatch that live beside their sums: one buffer for every distinct
shape of a weight.

Where the product of a weight's gradient adds into the sum over microbatches, autograd still gets a
tensor of the weight's shape for it, and the framework keeps one for each shape. Products that read
the same activation are one weight there (queries, keys and values; gate and up): its rows are the
sum of theirs. The weights of experts have one shape.
"""

from phaze.graph.ir import Layer


def weight_shapes(layer: Layer) -> frozenset[tuple[int, int]]:
    """The distinct (rows, columns) of the trained weights of a layer, those that read one
    activation as one."""
    parameters = {tensor.id for tensor in layer.forward.tensors if tensor.role == "parameter"}
    frozen = {parameter.tensor for parameter in layer.parameters if not parameter.trained}
    rows: dict[tuple[int, int], int] = {}
    for op in layer.forward.operators:
        weights = {access.tensor for access in op.reads} & parameters
        if op.kind != "product" or not weights or weights <= frozen:
            continue
        read = next((access.tensor for access in op.reads if access.tensor not in parameters), -1)
        key = (read, op.size("k"))
        rows[key] = rows.get(key, 0) + op.size("n")
    return frozenset((count, width) for (_, width), count in rows.items())


def gradient_elements(layer: Layer) -> int:
    """Elements of one gradient of every distinct weight shape of a layer."""
    return sum(rows * columns for rows, columns in weight_shapes(layer))

"""Gradients of weights that their products add to a sum: the bytes of the results are those of the
sum.

A product is one of a weight's gradient if it reads no parameter and nobody reads what it makes. As
traced it writes 2 bytes for each element; where a stack fuses the adding, it reads and writes the
32-bit sum, 8 bytes, in the product's own time: what bounds it may hide them. The rest, cast or norm
of the sum, the stack counts apart.
"""

from dataclasses import replace

from phaze.graph.ir import Access, Layer, Operator, OperatorGraph

TRACED = 2.0
"""Bytes of a result as traced."""


def weight_gradients(backward: OperatorGraph) -> frozenset[int]:
    """Numbers of the products that make gradients of weights."""
    weights = {tensor.id for tensor in backward.tensors if tensor.role == "parameter"}
    read = {access.tensor for op in backward.operators for access in op.reads}

    def makes_one(op: Operator) -> bool:
        touched = {access.tensor for access in op.reads}
        return (
            op.kind == "product"
            and not touched & weights
            and not read & {access.tensor for access in op.writes}
        )

    return frozenset(op.id for op in backward.operators if makes_one(op))


# Rewritten operators by the one that each was made of, which is kept, and by the bytes of its
# results.
KnownGradients = dict[tuple[int, tuple[Access, ...]], tuple[Operator, Operator]]


def added_inside(layer: Layer, result_bytes: float, memo: KnownGradients | None = None) -> Layer:
    """The layer with so many bytes moved for each result of a weight's gradient; ``memo`` keeps
    the operators that layers have in common."""
    if result_bytes == TRACED:
        return layer
    gradients, elements = (
        weight_gradients(layer.backward),
        {t.id: t.element_bytes for t in layer.backward.tensors},
    )

    def written(access: Access) -> Access:
        return Access(
            access.tensor, round(access.bytes // max(1, elements[access.tensor]) * result_bytes)
        )

    def rewritten(op: Operator) -> Operator:
        writes = tuple([written(access) for access in op.writes])
        if memo is None:
            return replace(op, writes=writes)
        key = id(op), writes
        if key not in memo:
            memo[key] = op, replace(op, writes=writes)
        return memo[key][1]

    operators = tuple(
        [rewritten(op) if op.id in gradients else op for op in layer.backward.operators]
    )
    return replace(layer, backward=replace(layer.backward, operators=operators))

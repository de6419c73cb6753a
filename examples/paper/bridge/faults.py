r"""Faults of the published code as rewrites of a traced graph; what they are is known from its
text, not from its runs.

With b the microbatch and h the heads of a rank, each rewrite changes the operators of every pass:

    microbatch           a Linear's product over b s rows counts s of them          m or k -> that /
                         b, bytes too
    weight_gradients     dW = dY^T X is never counted                               the product is
                         free
    attention_products   a wrong inner dimension                                    k = width -> h
                         k, k = keys -> k / h
    vector_memory        vector operators never wait for memory                     bytes -> 0
    epilogues            what is fused behind a product costs one element           those operators
                         are free
    head                 the language-model head is lost, or stands in every block  free, or a
                         product more in each

The published code has 16 heads' worth of error in the attention products of a model with 16 heads
(BERT); that it is the number of heads for others is our reading. For which models the head is lost
and for which it is repeated is not known to us, so both are tried. Two further faults lie in
numbers of the hardware, see :mod:`.inputs`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from phaze.graph.ir import Access, Layer, Model, Operator, OperatorGraph, Recompute, Tensor
from phaze.graph.opset import KINDS

Head = Literal["kept", "lost", "repeated"]


@dataclass(frozen=True, slots=True)
class Faults:
    """What is put back; the first two and ``memory_rates`` are the table ``[faults]``'s hardware
    keys."""

    units: bool = False
    memory_rates: bool = False
    microbatch: bool = False
    weight_gradients: bool = False
    attention_products: bool = False
    vector_memory: bool = False
    epilogues: bool = False
    head: Head = "kept"


Rewrite = Callable[[Operator], Operator]


def free(op: Operator) -> Operator:
    """The operator with its place in the graph and no cost."""
    reads, writes = (tuple(Access(a.tensor, 0) for a in side) for side in (op.reads, op.writes))
    return replace(op, kind="free", core="none", sizes=(), reads=reads, writes=writes)


def _resized(op: Operator, **sizes: int) -> Operator:
    return replace(op, sizes=tuple((name, sizes.get(name, size)) for name, size in op.sizes))


def _is_linear(op: Operator) -> bool:
    return op.kind == "product" and op.size("batch") == 1


def _reads_weights(op: Operator, parameters: frozenset[int]) -> bool:
    return any(access.tensor in parameters for access in op.reads)


def _without_microbatch(op: Operator, parameters: frozenset[int], microbatch: int) -> Operator:
    """A Linear's product over the rows of one sequence: forward and input gradient have them in m,
    dW in k."""
    rows = "m" if _reads_weights(op, parameters) else "k"
    if not _is_linear(op) or op.size(rows) % microbatch:
        return op

    def fewer(side: tuple[Access, ...]) -> tuple[Access, ...]:
        return tuple(
            a if a.tensor in parameters else Access(a.tensor, a.bytes // microbatch) for a in side
        )

    writes = fewer(op.writes) if rows == "m" else op.writes
    return replace(
        _resized(op, **{rows: op.size(rows) // microbatch}), reads=fewer(op.reads), writes=writes
    )


def _wrong_depth(op: Operator, model: Model) -> Operator:
    """A batched product of attention: h times too deep where it sums over a head's width, h times
    too shallow where it sums over positions."""
    if op.kind != "product" or op.size("batch") == 1:
        return op
    heads, depth = max(op.size("batch") // model.microbatch, 1), op.size("k")
    positions = depth == model.sequence
    return _resized(op, k=max(depth // heads, 1) if positions else depth * heads)


def _epilogues(graph: OperatorGraph) -> frozenset[int]:
    """Element-wise operators behind a product, or behind another of them, whose result nobody else
    reads."""
    readers: dict[int, int] = {}
    for op in graph.operators:
        for access in op.reads:
            readers[access.tensor] = readers.get(access.tensor, 0) + 1
    behind: set[int] = set()
    found: set[int] = set()
    for op in graph.operators:
        alone = any(a.tensor in behind and readers[a.tensor] == 1 for a in op.reads)
        fused = KINDS[op.kind].rule == "map" and alone
        if fused:
            found.add(op.id)
        if fused or op.kind == "product":
            behind.update(a.tensor for a in op.writes)
    return frozenset(found)


def _rewritten(graph: OperatorGraph, rewrite: Callable[[OperatorGraph], Rewrite]) -> OperatorGraph:
    change = rewrite(graph)
    return replace(graph, operators=tuple(change(op) for op in graph.operators))


def _of_layer(layer: Layer, faults: Faults, model: Model, head: str | None) -> Layer:
    parameters = frozenset(parameter.tensor for parameter in layer.parameters)

    def rewrite(graph: OperatorGraph) -> Rewrite:
        fused = _epilogues(graph) if faults.epilogues else frozenset[int]()

        def change(op: Operator) -> Operator:
            gradient = _is_linear(op) and not _reads_weights(op, parameters)
            lost = (
                faults.head == "lost"
                and head is not None
                and op.kind == "product"
                and op.module == head
            )
            if op.id in fused or lost or (faults.weight_gradients and gradient):
                return free(op)
            if faults.microbatch and op.kind == "product":
                op = _without_microbatch(op, parameters, model.microbatch)
            if faults.attention_products:
                op = _wrong_depth(op, model)
            if faults.vector_memory and op.core == "vector":
                reads, writes = (
                    tuple(Access(a.tensor, 0) for a in side) for side in (op.reads, op.writes)
                )
                op = replace(op, reads=reads, writes=writes)
            return op

        return change

    def again(mode: Recompute) -> Recompute:
        return replace(mode, rerun=_rewritten(mode.rerun, rewrite))

    return replace(
        layer,
        forward=_rewritten(layer.forward, rewrite),
        backward=_rewritten(layer.backward, rewrite),
        none=again(layer.none),
        selective=again(layer.selective),
        full=again(layer.full),
    )


def _head(model: Model) -> Operator:
    """The product with the most columns in the last call's forward pass."""
    products = [
        op for op in model.layers[model.calls[-1].layer].forward.operators if op.kind == "product"
    ]
    return max(products, key=lambda op: op.size("n"))


def _with_product(graph: OperatorGraph, op: Operator, first: int) -> OperatorGraph:
    """The graph with one product more, on operands of its own; ``first`` is the next free number of
    a tensor."""
    m, n, k = (op.size(name) for name in "mnk")
    rows, weights = Tensor(first, m * k, 2, "input"), Tensor(first + 1, n * k, 2, "constant")
    result = Tensor(first + 2, m * n, 2, "intermediate")
    number = max((own.id for own in graph.operators), default=-1) + 1
    reads = (Access(rows.id, rows.bytes), Access(weights.id, weights.bytes))
    more = Operator(
        number, "product", "tensor", op.sizes, reads, (Access(result.id, result.bytes),), op.module
    )
    return OperatorGraph(
        (*graph.tensors, rows, weights, result),
        (*graph.operators, more),
        (*graph.inputs, rows.id, weights.id),
        (*graph.outputs, result.id),
    )


def _with_head(layer: Layer, op: Operator) -> Layer:
    """A block that runs the head, too, and its input gradient; recomputing it in full runs it
    again."""
    last = max(t.id for graph in (layer.forward, layer.backward) for t in graph.tensors)
    m, n, k = (op.size(name) for name in "mnk")
    back = replace(op, sizes=(("batch", 1), ("m", m), ("n", k), ("k", n)))
    forward = _with_product(layer.forward, op, last + 1)
    backward = _with_product(layer.backward, back, last + 4)
    return replace(
        layer, forward=forward, backward=backward, full=replace(layer.full, rerun=forward)
    )


def faulty(model: Model, faults: Faults) -> Model:
    """The model as the published code would count it."""
    head, last = _head(model), model.calls[-1].layer
    layers = list(model.layers)
    if faults.head == "repeated":
        kind = max(range(len(layers)), key=lambda at: (model.count(at), -at))
        layers[kind] = _with_head(layers[kind], head)
    found = [
        _of_layer(own, faults, model, head.module if at == last else None)
        for at, own in enumerate(layers)
    ]
    return replace(model, layers=tuple(found))

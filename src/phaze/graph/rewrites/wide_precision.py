"""A traced layer in 32 bits: what a trace holds in 16 bits is held, moved, saved and sent in 32.

    tensors      16-bit ones have 4 bytes an element, and so have accesses to them and collectives
                 of them
    casts        between 16 and 32 bits are none any more: whoever reads their result reads what
                 they read
    products     of such operands run at the rate of 32 bits (``bits``; the chip's ``[formats]
                 fp32``)
    attention    likewise, on the arrays: the kernels that were measured take 16 bits alone

Sizes, FLOP and elements are unchanged.
"""

from collections.abc import Mapping
from dataclasses import replace

from phaze.graph.ir import Access, Layer, Operator, OperatorGraph, Recompute, Tensor
from phaze.hardware.formats import WIDE_BITS

NARROW_BYTES, WIDE_BYTES = 2, 4
FLOATS = frozenset({NARROW_BYTES, WIDE_BYTES})
PRODUCTS = frozenset({"product", "attention", "attention_backward"})

Tensors = Mapping[int, Tensor]


def wide_layer(layer: Layer) -> Layer:
    """The layer in 32 bits."""
    graphs = (
        layer.forward,
        layer.backward,
        *(mode.rerun for mode in (layer.none, layer.selective, layer.full)),
    )
    tensors = {tensor.id: tensor for graph in graphs for tensor in graph.tensors}
    same = _same([op for graph in graphs for op in graph.operators], tensors)
    forward, backward = _graph(layer.forward, tensors, same), _graph(layer.backward, tensors, same)
    return replace(
        layer,
        forward=forward,
        backward=backward,
        parameters=tuple(
            replace(p, element_bytes=_width(p.element_bytes)) for p in layer.parameters
        ),
        none=_saved(layer.none, tensors, same),
        selective=_saved(layer.selective, tensors, same),
        full=_saved(layer.full, tensors, same),
        input_bytes=_grown(layer.input_bytes, tensors),
        output_bytes=_grown(layer.output_bytes, tensors),
    )


def _width(element_bytes: int) -> int:
    return WIDE_BYTES if element_bytes == NARROW_BYTES else element_bytes


def _grown(size: int, tensors: Tensors) -> int:
    """Bytes of activations that go from layer to layer: 16 bits as traced."""
    return (
        2 * size
        if any(tensor.element_bytes == NARROW_BYTES for tensor in tensors.values())
        else size
    )


def _same(operators: list[Operator], tensors: Tensors) -> dict[int, int]:
    """For the result of every cast between 16 and 32 bits, what it was made from."""
    origins: dict[int, int] = {}
    for op in operators:
        if op.kind != "cast" or len(op.reads) != 1 or len(op.writes) != 1:
            continue
        read, write = op.reads[0], op.writes[0]
        of, to = tensors[read.tensor], tensors[write.tensor]
        whole = read.bytes == of.bytes and write.bytes == to.bytes and of.elements == to.elements
        if whole and {of.element_bytes, to.element_bytes} == FLOATS and of.role != "parameter":
            origins[to.id] = of.id
    return {result: _first(result, origins) for result in origins}


def _first(tensor: int, same: Mapping[int, int]) -> int:
    while tensor in same:
        tensor = same[tensor]
    return tensor


def _access(access: Access, tensors: Tensors, same: Mapping[int, int]) -> Access:
    tensor = tensors[access.tensor]
    factor = 2 if tensor.element_bytes == NARROW_BYTES else 1
    return Access(same.get(access.tensor, access.tensor), factor * access.bytes)


def _operator(op: Operator, tensors: Tensors, same: Mapping[int, int]) -> Operator:
    sizes = op.sizes
    narrow = any(tensors[a.tensor].element_bytes == NARROW_BYTES for a in op.reads)
    if op.core == "network" and narrow:
        sizes = tuple((name, 2 * size if name == "bytes" else size) for name, size in sizes)
    if op.kind in PRODUCTS:
        sizes = (*sizes, ("bits", WIDE_BITS))
    reads, writes = (
        tuple(_access(a, tensors, same) for a in side) for side in (op.reads, op.writes)
    )
    return replace(op, sizes=sizes, reads=reads, writes=writes)


def _graph(graph: OperatorGraph, tensors: Tensors, same: Mapping[int, int]) -> OperatorGraph:
    gone = {op.id for op in graph.operators if op.kind == "cast" and op.writes[0].tensor in same}
    operators = tuple(_operator(op, tensors, same) for op in graph.operators if op.id not in gone)
    written = {access.tensor for op in operators for access in op.writes}
    read = {access.tensor for op in operators for access in op.reads}
    outputs = {same.get(number, number) for number in graph.outputs}
    widened = tuple(
        replace(tensors[number], element_bytes=_width(tensors[number].element_bytes))
        for number in sorted(written | read | (outputs & set(graph.inputs)))
    )
    inputs = sorted((read - written) | (outputs & set(graph.inputs)))
    return OperatorGraph(widened, operators, tuple(inputs), tuple(sorted(outputs)))


def _saved(mode: Recompute, tensors: Tensors, same: Mapping[int, int]) -> Recompute:
    """What a mode keeps: each tensor once, 16-bit ones in 32."""
    saved, size = list[int](), mode.saved_bytes
    before = {same.get(number, number) for number in mode.saved if number not in same}
    for number in mode.saved:
        origin, tensor = same.get(number, number), tensors[number]
        if origin != number and (origin in before or origin in saved):
            size -= tensor.bytes
            continue
        saved.append(origin)
        size += tensor.bytes if tensor.element_bytes == NARROW_BYTES else 0
    return Recompute(tuple(dict.fromkeys(saved)), max(0, size), _graph(mode.rerun, tensors, same))

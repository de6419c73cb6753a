r"""Which tensors a stack keeps from the forward to the backward pass of a layer, by its rule
``saves``.

Wanted is what the traced backward reads of the forward pass (parameters, constants and what all
blocks share cost nothing). Under every rule the kept tensors are the least bytes that all of it can
be made from (:mod:`phaze.graph.saved.cut`); the rules differ in what is there anyway and may be
made again:

    trace     nothing is made again: the tensors that eager PyTorch saves
    kernels   every kernel keeps its inputs. Operators outside the vector cores are kernels, so are
              norms of one operator, look-ups and dropouts, and other vector operators that follow
              each other are one. A tensor is *written to memory* if it enters the layer or leaves
              it, if a kernel of the former reads or writes it, or if it waits for a product (a
              reader needs more products before it than its writer did: the residual); and what is
              written beside such a tensor (a cast to few bits and its transpose). Those are
              sources; what lies inside a kernel is made again from them in that kernel's backward:
              norms from their 16-bit input, gates from the results of their products. Wider casts
              and expanding copies are no sources: attention keeps keys and values before they are
              repeated.
    mincut    a compiler keeps the least: sources are the inputs of the layer and the results of
              operators that it does not run twice (:data:`ONCE`); everything else is made again.

Where a grouped product's rows are scaled afterwards (the probabilities of experts) a stack of
kernels scales its input instead, so the result itself is not wanted (:func:`_scaled_rows`).

**Logits.** The vocabulary product's result L and all that the loss makes of it are alive for one
microbatch only: its backward pass follows at once. They are left out of what is kept
(:func:`logits`), and the stack's bytes for each logit are added while that layer runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal

from phaze.graph.ir import Layer, Operator, OperatorGraph, Tensor

Saves = Literal["trace", "kernels", "mincut"]
SAVES: tuple[Saves, ...] = ("trace", "kernels", "mincut")
ONCE = frozenset({"sort", "scatter", "gather", "embedding", "random", "dropout"})
"""Vector kinds that a compiler does not run twice: their memory access depends on data, or they
draw numbers."""
KERNELS = ONCE | {"layer_norm", "batch_norm"}
"""Vector kinds that are kernels of their own: those, and norms that come as one operator."""
WIDENING = frozenset({"cast", "copy"})
# A loss is one number of at most eight bytes.
LOSS_BYTES = 8


@dataclass(frozen=True, slots=True)
class ForwardFlow:
    """The forward pass of a layer as the rules read it: tensors, writers and readers, and what
    costs nothing."""

    tensors: Mapping[int, Tensor]
    writer: Mapping[int, Operator]
    readers: Mapping[int, tuple[Operator, ...]]
    wanted: frozenset[int]
    free: frozenset[int]
    inputs: frozenset[int]
    outputs: frozenset[int]

    def size(self, tensor: int) -> int:
        """Bytes of a tensor."""
        return self.tensors[tensor].bytes

    def made_from(self, tensor: int) -> tuple[int, ...]:
        """What a tensor is made from, without what costs nothing."""
        operator = self.writer.get(tensor)
        return (
            ()
            if operator is None
            else tuple([a.tensor for a in operator.reads if a.tensor not in self.free])
        )


def flow_of(layer: Layer) -> ForwardFlow:
    """The forward pass of a layer."""
    graph = layer.forward
    writer = {access.tensor: op for op in graph.operators for access in op.writes}
    readers: dict[int, list[Operator]] = {}
    for op in graph.operators:
        for access in op.reads:
            readers.setdefault(access.tensor, []).append(op)
    wanted = frozenset(layer.none.saved)
    saved_by_layer = wanted | set(layer.full.saved)
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    free = frozenset(
        id_ for id_, tensor in tensors.items() if id_ not in writer and id_ not in saved_by_layer
    )
    inputs = frozenset(id_ for id_ in tensors if id_ not in writer and id_ in saved_by_layer)
    saved = wanted | {a.tensor for op in layer.backward.operators for a in op.reads}
    results = frozenset(t for t in graph.outputs if t not in saved)
    return ForwardFlow(
        tensors,
        writer,
        {t: tuple(ops) for t, ops in readers.items()},
        wanted,
        free,
        inputs,
        results,
    )


def is_kernel(operator: Operator) -> bool:
    """Runs as a kernel of its own."""
    return operator.core != "vector" or operator.kind in KERNELS


def _depths(graph: OperatorGraph) -> dict[int, int]:
    """By tensor the most kernels of other cores on a path to it."""
    depth: dict[int, int] = {}
    for op in graph.operators:
        kernels = max((depth.get(access.tensor, 0) for access in op.reads), default=0)
        kernels += op.core in ("tensor", "both")
        for access in op.writes:
            depth[access.tensor] = kernels
    return depth


def _widens(flow: ForwardFlow, tensor: int) -> bool:
    """Whether a tensor is a cast or copy of fewer bytes."""
    operator = flow.writer.get(tensor)
    if operator is None or operator.kind not in WIDENING:
        return False
    return sum(flow.size(t) for t in {a.tensor for a in operator.reads}) < flow.size(tensor)


def _written(layer: Layer, flow: ForwardFlow) -> frozenset[int]:
    """The tensors that kernels write to memory, and inputs."""
    depth, written = _depths(layer.forward), set(flow.inputs)
    # Kernels read what is in memory, other operators what at most so many products lead to.
    reads = {
        op.id: inf if is_kernel(op) else max([depth.get(a.tensor, 0) for a in op.reads], default=0)
        for op in layer.forward.operators
    }
    for tensor, operator in flow.writer.items():
        later = any(
            reads[op.id] > depth[tensor]
            for beside in operator.writes
            for op in flow.readers.get(beside.tensor, ())
        )
        if (is_kernel(operator) or tensor in flow.outputs or later) and not _widens(flow, tensor):
            written.add(tensor)
    return frozenset(written)


def _once(flow: ForwardFlow) -> frozenset[int]:
    """The results of operators that a compiler does not run twice, and inputs."""
    results = (t for t, op in flow.writer.items() if op.core != "vector" or op.kind in ONCE)
    return flow.inputs | frozenset(results)


def sources_of(layer: Layer, flow: ForwardFlow, saves: Saves) -> frozenset[int]:
    """What is in memory anyway under a rule, before anything is recomputed."""
    if saves == "trace":
        return flow.inputs | frozenset(flow.writer)
    return _written(layer, flow) if saves == "kernels" else _once(flow)


def is_batched(op: Operator) -> bool:
    """Whether a product has several matrices; a convolution that maps every channel by itself has
    single columns."""
    return op.size("batch") > 1 and op.size("n") > 1


def _scaled_rows(layer: Layer, flow: ForwardFlow) -> frozenset[int]:
    """Results of grouped products that forward only scales and backward reads only for the scale's
    gradient."""
    roles = {tensor.id: tensor.role for tensor in layer.forward.tensors}
    reads: dict[int, list[Operator]] = {}
    for op in layer.backward.operators:
        for access in op.reads:
            reads.setdefault(access.tensor, []).append(op)
    scaled_rows = set()
    for tensor in flow.wanted:
        writer = flow.writer.get(tensor)
        if writer is None or writer.kind != "product" or not is_batched(writer):
            continue
        if not any(roles[a.tensor] == "parameter" for a in writer.reads):
            continue
        later = (*flow.readers.get(tensor, ()), *reads.get(tensor, ()))
        if all(op.kind == "multiply" for op in later):
            scaled_rows.add(tensor)
    return frozenset(scaled_rows)


def logits(layer: Layer) -> int | None:
    """The tensor of the logits of a layer that ends in a loss: its largest result of a product;
    None without one."""
    if layer.output_bytes > LOSS_BYTES:
        return None
    results = [
        a.tensor for op in layer.forward.operators if op.kind == "product" for a in op.writes
    ]
    elements = {tensor.id: tensor.elements for tensor in layer.forward.tensors}
    return max(results, key=lambda tensor: (elements[tensor], -tensor), default=None)


def after(graph: OperatorGraph, tensor: int) -> frozenset[int]:
    """A tensor and all that is made from it."""
    reached = {tensor}
    for op in graph.operators:
        if any(access.tensor in reached for access in op.reads):
            reached.update(access.tensor for access in op.writes)
    return frozenset(reached)


def wanted_of(
    layer: Layer, flow: ForwardFlow, saves: Saves, without_logits: bool
) -> frozenset[int]:
    """What backward reads and a rule has to provide."""
    wanted = flow.wanted
    if saves == "kernels":
        wanted -= _scaled_rows(layer, flow)
    last = logits(layer) if without_logits else None
    return wanted if last is None else wanted - after(layer.forward, last)

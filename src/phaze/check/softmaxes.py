"""Softmaxes of scores that a stack's kernel does not take: five plain kernels each (docs/cost.md,
Softmax kernels).

A kernel takes multiples of so many square matrices of scores. Others are cast to 32 bits, scaled,
masked, normalised and cast back: scores, and their gradients, are read and written nine times as
often as by one kernel, what the backward pass reads of the probabilities twice, and the host
launches five kernels.
"""

from dataclasses import replace

from .regions import score_paths
from .saving import flow_of
from .traced import Trace, Traced, TracedLayer

PLAIN, TIMES, KEPT = 5, 9, 2


def _taken(operator: Traced, matrices: int) -> bool:
    """Whether the kernel takes a softmax: it is over no square matrices, or over a multiple."""
    rows, elements = operator.op.size("rows"), operator.op.size("elements")
    keys = elements // rows if rows else 0
    return not keys or rows % keys > 0 or rows // keys % matrices == 0


def _plain(operator: Traced) -> Traced:
    op, (first, *rest) = operator.op, operator.op.reads
    reads = ((first[0], TIMES * first[1]), *((tensor, KEPT * size) for tensor, size in rest))
    writes = tuple((tensor, TIMES * size) for tensor, size in op.writes)
    return replace(
        operator, op=replace(op, sizes={**op.sizes, "kernels": PLAIN}, reads=reads, writes=writes)
    )


def with_plain_softmaxes(layer: TracedLayer, matrices: int) -> TracedLayer:
    """The layer as a stack runs it whose kernel takes multiples of so many matrices; 1: any."""
    if matrices <= 1:
        return layer
    scores = score_paths(flow_of(layer))
    plain = {
        operator.number: operator.writes
        for operator in layer.forward.operators
        if operator.number in scores
        and operator.op.kind == "softmax"
        and not _taken(operator, matrices)
    }
    made = {tensor for writes in plain.values() for tensor in writes}

    def run(trace: Trace) -> Trace:
        return replace(
            trace,
            operators=tuple(
                _plain(operator) if operator.number in plain else operator
                for operator in trace.operators
            ),
        )

    back = tuple(
        _plain(operator)
        if operator.op.kind == "softmax_backward" and made & set(operator.reads)
        else operator
        for operator in layer.backward.operators
    )
    if not plain:
        return layer
    return replace(
        layer,
        forward=run(layer.forward),
        backward=replace(layer.backward, operators=back),
        again=run(layer.again),
    )

"""Softmaxes of attention scores that a stack's own kernel does not take: five plain kernels each.

Megatron's fused kernel (scale, mask and softmax in one) takes a multiple of so many attention
matrices (microbatch x heads of a rank); of other counts the framework runs, an element of the
scores being 2 bytes,

    forward     cast to 32 bits, scale, mask, softmax, cast back          18 bytes read, 18 written
                (2 and 2 fused)
    backward    the same five in reverse                                  22 bytes read, 18 written
                (4 and 2 fused)

each launched by the host. An operator that stands for several has a size ``kernels``, which
:func:`launches` counts. A matrix has as many queries as keys here: of others (shared sequences) the
count is not known and the kernel is used. What is kept between the passes stays as it was.
"""

from collections.abc import Set
from dataclasses import replace

from phaze.graph.ir import Access, Layer, Operator, OperatorGraph, Recompute
from phaze.graph.recompute import score_path

KERNELS = 5
"""Plain kernels in place of the fused one."""
TIMES = 9
"""Traffic of scores and of their gradient: (2 + 4 + 4 + 4 + 4) / 2 read, (4 + 4 + 4 + 4 + 2) / 2
written."""
KEPT_TIMES = 2
"""Traffic of the probabilities that the backward pass reads, in 32 bits."""
MARK = ("kernels", KERNELS)


def launches(operator: Operator) -> int:
    """Kernels that the host launches for an operator."""
    if operator.core == "none":
        return 0
    launched = 1
    for part in operator.parts or (operator,):
        for name, count in part.sizes:
            if name == "kernels":
                launched += count - 1
    return launched


def uncovered(operator: Operator, matrices: int) -> bool:
    """Whether a softmax is over a number of square matrices that is no multiple of ``matrices``."""
    rows, keys = operator.size("rows"), operator.size("elements") // max(1, operator.size("rows"))
    return keys > 0 and rows % keys == 0 and (rows // keys) % matrices != 0


def _times(access: Access, times: int) -> Access:
    return Access(access.tensor, times * access.bytes)


def _plain(operator: Operator) -> Operator:
    reads = (
        _times(operator.reads[0], TIMES),
        *(_times(access, KEPT_TIMES) for access in operator.reads[1:]),
    )
    writes = tuple(_times(access, TIMES) for access in operator.writes)
    return replace(operator, sizes=(*operator.sizes, MARK), reads=reads, writes=writes)


def unfused_softmaxes(layer: Layer, matrices: int) -> Layer:
    """The layer, softmaxes of scores that a kernel for multiples of ``matrices`` does not take run
    in plain kernels."""
    scores = score_path(layer.forward) if matrices > 1 else frozenset[int]()
    unfused = {
        op.id for op in layer.forward.operators if op.id in scores and _is_plain(op, matrices)
    }
    if not unfused:
        return layer
    written = {
        access.tensor for op in layer.forward.operators if op.id in unfused for access in op.writes
    }
    back = {
        op.id
        for op in layer.backward.operators
        if op.kind == "softmax_backward" and written & {access.tensor for access in op.reads}
    }

    forward = _rewritten(layer.forward, unfused)

    def again(value: Recompute) -> Recompute:
        return replace(
            value,
            rerun=forward if value.rerun is layer.forward else _rewritten(value.rerun, unfused),
        )

    return replace(
        layer,
        forward=forward,
        backward=_rewritten(layer.backward, back),
        none=again(layer.none),
        selective=again(layer.selective),
        full=again(layer.full),
    )


def _is_plain(operator: Operator, matrices: int) -> bool:
    return operator.kind == "softmax" and uncovered(operator, matrices)


def _rewritten(graph: OperatorGraph, numbers: Set[int]) -> OperatorGraph:
    if not any(op.id in numbers for op in graph.operators):
        return graph
    return replace(
        graph, operators=tuple(_plain(op) if op.id in numbers else op for op in graph.operators)
    )

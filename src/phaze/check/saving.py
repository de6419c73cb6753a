"""What a stack keeps of a layer between its passes (docs/plan.md, Memory): the fewest bytes that
make all of it again.

*Wanted* is what backward reads of the forward pass. A tensor may be made again from what its
operator read, unless it is a *source*: there anyway. The kept tensors are the least bytes that
every path from a source to a wanted tensor meets, both ends included, and of equal ones those
nearest to what is wanted. Sources are

    trace     all tensors: nothing is made again
    kernels   inputs, and what kernels write: results of operators outside the vector cores, of
              norms, look-ups and dropouts, what such an operator reads, what leaves the layer, what
              waits for a product; no wider casts and copies
    mincut    inputs, and results of operators outside the vector cores, of sorts, look-ups, random
              numbers and dropouts

Logits of a loss, and all that is made of them, are alive for one microbatch and no part of it.
Kernels do not want the results of experts that are only scaled.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from .traced import Traced, TracedLayer

ONCE = frozenset({"sort", "scatter", "gather", "embedding", "random", "dropout"})
KERNELS = ONCE | {"layer_norm", "batch_norm"}
LOSS_BYTES = 8
"""A loss is one number of 64 bits at the most."""
SOURCE, TARGET = -1, -2
"""The two ends of a flow: nodes of tensors are no less than 0."""


def is_kernel(operator: Traced) -> bool:
    """Whether an operator is a kernel of its own."""
    return operator.op.core != "vector" or operator.op.kind in KERNELS


@dataclass(frozen=True, slots=True)
class Flow:
    """The forward pass of a layer: who writes and reads what, what costs nothing, what enters and
    leaves."""

    layer: TracedLayer
    writer: Mapping[int, Traced]
    readers: Mapping[int, tuple[Traced, ...]]
    free: frozenset[int]
    inputs: frozenset[int]
    leaving: frozenset[int]

    def made_from(self, tensor: int) -> tuple[int, ...]:
        """What a tensor is made from, without what costs nothing."""
        operator = self.writer.get(tensor)
        return () if operator is None else tuple(t for t in operator.reads if t not in self.free)

    def weighted(self, operator: Traced) -> bool:
        """Whether an operator is a product with a parameter."""
        return operator.op.kind == "product" and any(
            self.layer.roles[t] == "parameter" for t in operator.reads
        )

    def grouped(self, operator: Traced) -> bool:
        """Whether an operator is a product with the weights of several experts; a convolution that
        maps every channel by itself has single columns."""
        return (
            self.weighted(operator) and operator.op.size("batch") > 1 and operator.op.size("n") > 1
        )


def flow_of(layer: TracedLayer) -> Flow:
    """The forward pass of a layer."""
    operators = layer.forward.operators
    writer = {tensor: operator for operator in operators for tensor in operator.writes}
    readers: dict[int, list[Traced]] = {}
    for operator in operators:
        for tensor in operator.reads:
            readers.setdefault(tensor, []).append(operator)
    there = {*writer, *readers}
    kept = layer.saved | layer.inputs
    needed = layer.saved | {
        tensor for operator in layer.backward.operators for tensor in operator.reads
    }
    return Flow(
        layer, writer, {tensor: tuple(own) for tensor, own in readers.items()},
        frozenset(t for t in there if t not in writer and t not in kept),
        frozenset(t for t in there if t not in writer and t in kept),
        frozenset(t for t in layer.forward.outputs if t not in needed),
    )  # fmt: skip


def logits_of(layer: TracedLayer) -> int | None:
    """The largest result of a product of a layer that ends in a loss; None without one."""
    if layer.output_bytes > LOSS_BYTES:
        return None
    made = [
        tensor
        for operator in layer.forward.operators
        if operator.op.kind == "product"
        for tensor in operator.writes
    ]
    return min(made, key=lambda tensor: (-layer.tensors[tensor][0], tensor), default=None)


def wanted_of(flow: Flow, saves: str, without_logits: bool) -> frozenset[int]:
    """What backward reads, as far as it must be kept or made again."""
    layer = flow.layer
    wanted = layer.saved - (_scaled(flow) if saves == "kernels" else frozenset())
    last = logits_of(layer) if without_logits else None
    if last is None:
        return wanted
    after = {last}
    for operator in layer.forward.operators:
        if after & set(operator.reads):
            after |= set(operator.writes)
    return wanted - after


def _scaled(flow: Flow) -> frozenset[int]:
    """Results of grouped products that are only ever multiplied: kernels scale what such a product
    reads instead."""
    found = {tensor for tensor, operator in flow.writer.items() if flow.grouped(operator)}
    for operator in (*flow.layer.forward.operators, *flow.layer.backward.operators):
        if operator.op.kind != "multiply":
            found -= set(operator.reads)
    return frozenset(found)


def _waits(flow: Flow, operator: Traced, depth: Mapping[int, int]) -> bool:
    """Whether a kernel, or an operator behind a later product, reads what an operator writes."""
    own = max((depth[t] for t in operator.writes), default=0)
    return any(
        is_kernel(reader) or max((depth.get(t, 0) for t in reader.reads), default=0) > own
        for tensor in operator.writes
        for reader in flow.readers.get(tensor, ())
    )


def _widens(flow: Flow, operator: Traced, tensor: int) -> bool:
    return operator.op.kind in ("cast", "copy") and sum(
        flow.layer.size(t) for t in set(operator.reads)
    ) < flow.layer.size(tensor)


def sources_of(flow: Flow, saves: str) -> frozenset[int]:
    """What is there anyway, before anything is recomputed."""
    if saves == "trace":
        return flow.inputs | frozenset(flow.writer)
    if saves == "mincut":
        once = (
            t
            for t, operator in flow.writer.items()
            if operator.op.core != "vector" or operator.op.kind in ONCE
        )
        return flow.inputs | frozenset(once)
    depth: dict[int, int] = {}
    for operator in flow.layer.forward.operators:
        behind = max((depth.get(t, 0) for t in operator.reads), default=0) + (
            operator.op.core in ("tensor", "both")
        )
        depth.update(dict.fromkeys(operator.writes, behind))
    found = set(flow.inputs)
    for tensor, operator in flow.writer.items():
        written = is_kernel(operator) or tensor in flow.leaving or _waits(flow, operator, depth)
        if written and not _widens(flow, operator, tensor):
            found.add(tensor)
    return frozenset(found)


def _behind(flow: Flow, wanted: frozenset[int], there: frozenset[int]) -> set[int]:
    """What is wanted, and all that it can be made from, as far as what is there anyway."""
    behind, walk = set[int](), list(wanted)
    while walk:
        tensor = walk.pop()
        if tensor not in behind:
            behind.add(tensor)
            if tensor not in there:
                walk.extend(flow.made_from(tensor))
    return behind


def least_kept(flow: Flow, wanted: Iterable[int], sources: Iterable[int]) -> frozenset[int]:
    """The least bytes on every path from ``sources`` to ``wanted``: a minimum cut, the one nearest
    to ``wanted``.

    A tensor is an arc from node 2 t to node 2 t + 1 with its bytes as capacity, what it is made
    from an arc without a limit; -1 leads to all sources that are not kept anyway, all that is
    wanted to -2.
    """
    there, needed = frozenset(sources), frozenset(wanted)
    always = needed & there
    behind = _behind(flow, needed, there)
    reached = (behind & there) - always
    room: dict[int, dict[int, float]] = {SOURCE: {}, TARGET: {}}

    def join(tail: int, head: int, capacity: float) -> None:
        room.setdefault(tail, {})[head] = capacity
        room.setdefault(head, {}).setdefault(tail, 0.0)

    for tensor in reached:
        join(SOURCE, 2 * tensor, inf)
    # Operators stand in an order that can run: what leads to a tensor is reached before it.
    for operator in flow.layer.forward.operators:
        for tensor in operator.writes:
            if tensor not in behind or tensor in there:
                continue
            for other in flow.made_from(tensor):
                if other in reached:
                    join(2 * other + 1, 2 * tensor, inf)
            if not reached.isdisjoint(flow.made_from(tensor)):
                reached.add(tensor)
    for tensor in reached:
        join(2 * tensor, 2 * tensor + 1, float(flow.layer.size(tensor)))
        if tensor in needed:
            join(2 * tensor + 1, TARGET, inf)
    _saturate(room)
    near = _reaching(room)
    return always | {
        tensor for tensor in reached if 2 * tensor + 1 in near and 2 * tensor not in near
    }


def _saturate(room: dict[int, dict[int, float]]) -> None:
    """A greatest flow from source to target, along shortest paths with room."""
    while True:
        before, waiting = {SOURCE: SOURCE}, deque([SOURCE])
        while waiting and TARGET not in before:
            node = waiting.popleft()
            for head, left in room[node].items():
                if left > 0 and head not in before:
                    before[head] = node
                    waiting.append(head)
        if TARGET not in before:
            return
        steps, node = list[tuple[int, int]](), TARGET
        while node != SOURCE:
            steps.append((before[node], node))
            node = before[node]
        most = min(room[tail][head] for tail, head in steps)
        for tail, head in steps:
            room[tail][head] -= most
            room[head][tail] += most


def _reaching(room: dict[int, dict[int, float]]) -> set[int]:
    """Nodes from which something can still flow to the target."""
    nodes, waiting = {TARGET}, [TARGET]
    while waiting:
        node = waiting.pop()
        for tail in room[node]:
            if tail not in nodes and room[tail][node] > 0:
                nodes.add(tail)
                waiting.append(tail)
    return nodes

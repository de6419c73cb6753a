"""Groups of operators become fused operators; work and what enters or leaves a group stay as they
were.

For a group G with members p (its ``parts``):

    FLOP(G)      = sum of FLOP(p),  vector operations likewise
    reads(G, T)  = min(bytes of T, sum of reads(p, T)), for each tensor T that no member writes
    writes(G, T) = writes(p, T), for each T that a member writes and that is an output of the graph
    or read outside G

What a member writes and only members read never leaves the chip: it is no operand of G, though
still one of its parts, and a tensor of the graph. A tensor that several members read is fetched
once. :func:`contract` checks the first line over the whole graph, and that inputs and outputs are
the same.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence, Set

from phaze.graph import opset
from phaze.graph.fuse.partition import FusionPartition
from phaze.graph.ir import Access, Core, Operator, OperatorGraph


def leaves(operator: Operator) -> tuple[Operator, ...]:
    """What an operator consists of: its parts, or itself."""
    return operator.parts or (operator,)


def in_order(operators: Sequence[Operator]) -> list[Operator]:
    """``operators`` in an order in which they can run; of those that can, the smallest number
    first."""
    writer = {access.tensor: i for i, op in enumerate(operators) for access in op.writes}
    waits = [
        {writer[a.tensor] for a in op.reads if a.tensor in writer} - {i}
        for i, op in enumerate(operators)
    ]
    readers: dict[int, list[int]] = {}
    for i, sources in enumerate(waits):
        for source in sources:
            readers.setdefault(source, []).append(i)
    open_count = [len(sources) for sources in waits]
    ready = [(op.id, i) for i, op in enumerate(operators) if not open_count[i]]
    heapq.heapify(ready)
    order: list[Operator] = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(operators[i])
        for reader in readers.get(i, ()):
            open_count[reader] -= 1
            if not open_count[reader]:
                heapq.heappush(ready, (operators[reader].id, reader))
    if len(order) < len(operators):
        raise AssertionError("the operators form a cycle")
    return order


def _core(parts: Iterable[Operator]) -> Core:
    cores = {part.core for part in parts}
    if "both" in cores or {"tensor", "vector"} <= cores:
        return "both"
    return "tensor" if "tensor" in cores else "vector"


def _module(parts: Sequence[Operator]) -> str:
    """The path that all members have in common, else that of the first."""
    paths = [part.module.split(".") for part in parts]
    same = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
    shared = ".".join(same) if paths[0][: len(same)] == same else ""
    return shared or parts[0].module


def produced(operator: Operator) -> int:
    """Elements that an operator goes through: of its result for products, its own ``elements`` for
    vector work."""
    sizes = dict(operator.sizes)
    if "elements" in sizes:
        return sizes["elements"]
    return sizes["batch"] * sizes["m"] * sizes["n"] if "m" in sizes else 0


def joined(
    number: int,
    core: Core,
    module: str,
    parts: Sequence[Operator],
    outside: Set[int],
    bytes_of: Mapping[int, int],
) -> Operator:
    """One operator of ``parts``, which are in order; of what they write ``outside`` are read by
    others or outputs."""
    written = {access.tensor: access.bytes for part in parts for access in part.writes}
    reads: dict[int, list[int]] = {}
    for part in parts:
        for access in part.reads:
            if access.tensor not in written:
                reads.setdefault(access.tensor, []).append(access.bytes)
    inputs = tuple([Access(t, max(*n, min(bytes_of[t], sum(n)))) for t, n in reads.items()])
    results = tuple([Access(t, n) for t, n in written.items() if t in outside])
    sizes = (("elements", max([produced(part) for part in parts])),)
    return Operator(number, "fused", core, sizes, inputs, results, module, tuple(parts))


def fused(members: Sequence[Operator], outside: Set[int], bytes_of: Mapping[int, int]) -> Operator:
    """One operator of ``members``; ``outside`` are tensors that others read or that are outputs."""
    parts = in_order([part for member in members for part in leaves(member)])
    return joined(members[0].id, _core(parts), _module(parts), parts, outside, bytes_of)


def _readers(graph: OperatorGraph) -> dict[int, set[int]]:
    """For each tensor the places of the operators that read it."""
    readers: dict[int, set[int]] = {}
    for place, op in enumerate(graph.operators):
        for access in op.reads:
            readers.setdefault(access.tensor, set()).add(place)
    return readers


def contract(graph: OperatorGraph, partition: FusionPartition) -> OperatorGraph:
    """``graph`` with each group of ``partition`` as one operator."""
    if len(partition.members) == len(graph.operators):
        return graph
    readers, outputs = _readers(graph), set(graph.outputs)
    bytes_of = {tensor.id: tensor.bytes for tensor in graph.tensors}
    operators: list[Operator] = []
    for places in partition.members.values():
        members = [graph.operators[place] for place in places]
        if len(members) == 1:
            operators.append(members[0])
            continue
        inside = set(places)
        written = {access.tensor for op in members for access in op.writes}
        outside = {t for t in written if t in outputs or readers.get(t, set()) - inside}
        operators.append(fused(members, outside, bytes_of))
    after = OperatorGraph(graph.tensors, tuple(in_order(operators)), graph.inputs, graph.outputs)
    check_conserved(graph, after)
    return after


def check_conserved(before: OperatorGraph, after: OperatorGraph) -> None:
    """An AssertionError unless both graphs do the same work on the same inputs for the same
    outputs."""
    for work in (opset.flops, opset.vector_operations):
        if sum(map(work, before.operators)) != sum(map(work, after.operators)):
            raise AssertionError("fusion changed the work")
    written = {access.tensor: access.bytes for op in after.operators for access in op.writes}
    read = {access.tensor for op in after.operators for access in op.reads}
    if (read - set(written)) != set(after.inputs) or after.inputs != before.inputs:
        raise AssertionError("fusion changed what is read from outside")
    whole = {access.tensor: access.bytes for op in before.operators for access in op.writes}
    if any(whole[tensor] != size for tensor, size in written.items()) or set(after.outputs) & (
        set(whole) - set(written)
    ):
        raise AssertionError("fusion changed what is written")

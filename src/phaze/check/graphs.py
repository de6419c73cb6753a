"""A traced graph, and how its operators were fused, become passes of operators (docs/graph.md).

Which operators are fused is part of the certificate; what a fused operator reads, writes and
computes follows from its members here, and every operator of the trace must be in exactly one of
them, in an order that can run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .reading import cover, listed, number, require, whole
from .traced import Trace
from .works import NEVER, Operator, Work, needs_of, work_of

Groups = list[list[int]]
"""The operators of every fused one, by number, in the order in which they run."""
Edge = tuple[int, int, float]
"""From a call to a later one, and the bytes between them."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A fused pass: operators in order, for each the positions of those that it waits for, and the
    modules of it."""

    operators: tuple[Operator, ...]
    waits: tuple[frozenset[int], ...]
    works: tuple[Work, ...]
    modules: tuple[tuple[str, ...], ...] = ()


def _groups_of(table: Any, numbers: Sequence[int]) -> Groups:
    """The groups that a certificate lists, which hold every operator once."""
    groups = []
    for row in listed(table, "fusion"):
        group = [whole(operator, "fusion") for operator in listed(row, "fusion")]
        groups.append(group)
    every = [operator for group in groups for operator in group]
    require(
        sorted(every) == sorted(numbers) and all(groups),
        "fusion: it does not hold every operator once",
    )
    return groups


def _readers_of(groups: Groups, operators: Mapping[int, Operator]) -> dict[int, set[int]]:
    """The groups that read each tensor."""
    readers: dict[int, set[int]] = {}
    for place, group in enumerate(groups):
        for operator in group:
            for tensor, _ in operators[operator].reads:
                readers.setdefault(tensor, set()).add(place)
    return readers


def _writers_of(groups: Groups, operators: Mapping[int, Operator]) -> dict[int, int]:
    """The one group that writes each tensor."""
    writer: dict[int, int] = {}
    for place, group in enumerate(groups):
        for operator in group:
            for tensor, _ in operators[operator].writes:
                require(
                    writer.get(tensor, place) == place, "graphs.json: a tensor is written twice"
                )
                writer[tensor] = place
    return writer


def _waits_of(groups: Groups, operators: Mapping[int, Operator]) -> tuple[frozenset[int], ...]:
    """For every group those that write what it reads, all of them before it."""
    writer, waits = _writers_of(groups, operators), []
    for place, group in enumerate(groups):
        before = set[int]()
        for operator in group:
            before |= {
                writer[tensor] for tensor, _ in operators[operator].reads if tensor in writer
            }
        before.discard(place)
        in_order = all(other < place for other in before)
        require(in_order, "fusion: the operators are in an order that cannot run")
        waits.append(frozenset(before))
    return tuple(waits)


def _joined(
    members: Sequence[Operator], outside: frozenset[int], size_of: Mapping[int, int]
) -> Operator:
    """Several operators as one: what only members read stays inside, what several read is read
    once."""
    written = {tensor: size for part in members for tensor, size in part.writes}
    reads: dict[int, list[int]] = {}
    for part in members:
        for tensor, size in part.reads:
            if tensor not in written:
                reads.setdefault(tensor, []).append(size)
    cores = {part.core for part in members}
    require(
        cores <= {"tensor", "vector", "both"}, "fusion: a collective or nothing at all is fused"
    )
    core = "both" if len(cores) > 1 else cores.pop()
    entering = []
    for tensor, sizes in reads.items():
        once = min(size_of[tensor], sum(sizes))
        entering.append((tensor, max(*sizes, once)))
    leaving = [(tensor, size) for tensor, size in written.items() if tensor in outside]
    return Operator("fused", core, {}, tuple(entering), tuple(leaving), tuple(members))


def _fused(
    groups: Groups,
    operators: Mapping[int, Operator],
    outputs: frozenset[int],
    tensors: Mapping[int, tuple[int, int]],
) -> list[Operator]:
    """The operator that every group is."""
    size_of = {tensor: elements * width for tensor, (elements, width) in tensors.items()}
    readers, fused = _readers_of(groups, operators), []
    for place, group in enumerate(groups):
        members = [operators[operator] for operator in group]
        if len(members) == 1:
            fused.append(members[0])
            continue
        written = {tensor for part in members for tensor, _ in part.writes}
        elsewhere = {tensor for tensor in written if readers.get(tensor, set()) - {place}}
        fused.append(_joined(members, frozenset(elsewhere | (written & outputs)), size_of))
    return fused


def pass_of(
    trace: Trace, tensors: Mapping[int, tuple[int, int]], fusion: Any, residency: bool
) -> Pass:
    """The fused pass; ``residency``: what was written may still be in the global buffer when it is
    read."""
    operators = {row.number: row.op for row in trace.operators}
    groups = _groups_of(fusion, list(operators))
    fused = _fused(groups, operators, trace.outputs, tensors)
    needs = [([NEVER] * len(op.reads), [NEVER] * len(op.writes)) for op in fused]
    if residency:
        needs = needs_of(fused, trace.outputs)
    works = [work_of(op, need, tensors) for op, need in zip(fused, needs, strict=True)]
    module = {row.number: row.module for row in trace.operators}
    modules = [tuple(module[operator] for operator in group) for group in groups]
    return Pass(tuple(fused), _waits_of(groups, operators), tuple(works), tuple(modules))


def chain_of(table: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[Edge, ...]]:
    """The calls of a graph, by layer, and the bytes between them."""
    last_layer = len(table["layers"]) - 1
    calls = tuple(whole(call[0], "calls", 0, last_layer) for call in table["calls"])
    last, edges = len(calls) - 1, []
    for tail, head, size, _ in table["edges"]:
        edge = whole(tail, "edge", 0, last), whole(head, "edge", 0, last), number(size, "edge")
        require(edge[0] < edge[1], "graphs.json: an edge leads back")
        edges.append(edge)
    cover(bool(calls), "models without a layer")
    return calls, tuple(edges)

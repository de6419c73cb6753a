"""A traced graph, and how its operators were fused, become passes of operators (docs/graph.md).

Which operators are fused is part of the certificate; what a fused operator reads, writes and computes follows from its
members here, and every operator of the trace must be in exactly one of them, in an order that can run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .plan_graph import LayerBytes, PlanGraph, StatedMode
from .reading import RefusedError, cover, listed, number, require, whole
from .traced import Trace, traced_layer
from .works import NEVER, Operator, Work, needs_of, work_of


@dataclass(frozen=True, slots=True)
class Pass:
    """A fused pass: operators in order, for each the positions of those that it waits for, and the modules of it."""

    operators: tuple[Operator, ...]
    waits: tuple[frozenset[int], ...]
    works: tuple[Work, ...]
    modules: tuple[tuple[str, ...], ...] = ()


def _joined(members: Sequence[Operator], outside: frozenset[int], size_of: Mapping[int, int]) -> Operator:
    """Several operators as one: what only members read stays inside, what several read is read once."""
    written = {tensor: size for part in members for tensor, size in part.writes}
    reads: dict[int, list[int]] = {}
    for part in members:
        for tensor, size in part.reads:
            if tensor not in written:
                reads.setdefault(tensor, []).append(size)
    cores = {part.core for part in members}
    require(cores <= {"tensor", "vector", "both"}, "fusion: a collective or nothing at all is fused")
    core = "both" if len(cores) > 1 else cores.pop()
    taken = tuple((tensor, max(*sizes, min(size_of[tensor], sum(sizes)))) for tensor, sizes in reads.items())
    given = tuple((tensor, size) for tensor, size in written.items() if tensor in outside)
    return Operator("fused", core, {}, taken, given, tuple(members))


def pass_of(trace: Trace, tensors: Mapping[int, tuple[int, int]], groups: Any, residency: bool) -> Pass:
    """The fused pass: ``groups`` lists, in order, the operators of each fused one by number."""
    by_number, outputs = {one.number: one.op for one in trace.operators}, trace.outputs
    listing = [[whole(i, "fusion") for i in listed(group, "fusion")] for group in listed(groups, "fusion")]
    every = [i for group in listing for i in group]
    require(sorted(every) == sorted(by_number) and all(listing), "fusion: it does not hold every operator once")
    readers: dict[int, set[int]] = {}
    for at, group in enumerate(listing):
        for i in group:
            for tensor, _ in by_number[i].reads:
                readers.setdefault(tensor, set()).add(at)
    size_of = {tensor: elements * width for tensor, (elements, width) in tensors.items()}
    operators = []
    for at, group in enumerate(listing):
        members = [by_number[i] for i in group]
        written = {tensor for part in members for tensor, _ in part.writes}
        outside = frozenset(t for t in written if t in outputs or readers.get(t, set()) - {at})
        operators.append(members[0] if len(members) == 1 else _joined(members, outside, size_of))
    writer: dict[int, int] = {}
    for at, group in enumerate(listing):
        for i in group:
            for tensor, _ in by_number[i].writes:
                require(tensor not in writer or writer[tensor] == at, "graphs.json: a tensor is written twice")
                writer[tensor] = at
    waits = []
    for at, group in enumerate(listing):
        before = {writer[t] for i in group for t, _ in by_number[i].reads if t in writer} - {at}
        require(all(other < at for other in before), "fusion: the operators are in an order that cannot run")
        waits.append(frozenset(before))
    none = [([NEVER] * len(op.reads), [NEVER] * len(op.writes)) for op in operators]
    needs = needs_of(operators, outputs) if residency else none
    works = tuple(work_of(op, need, tensors) for op, need in zip(operators, needs, strict=True))
    module = {one.number: one.module for one in trace.operators}
    return Pass(tuple(operators), tuple(waits), works, tuple(tuple(module[i] for i in group) for group in listing))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer(LayerBytes):
    """A distinct layer with both passes fused."""

    name: str
    forward: Pass
    backward: Pass

    @property
    def saved_bytes(self) -> float:
        """Bytes that a microbatch keeps where nothing runs again."""
        return self.modes[0].kept


@dataclass(frozen=True, slots=True)
class Graph(PlanGraph):
    """A graph with the passes of its layers; a stage recomputes all of them or none."""

    layers: tuple[Layer, ...]


def _layer(table: Mapping[str, Any], groups: Any, residency: bool) -> Layer:
    traced, passes = traced_layer(table), listed(groups, "fusion", 2)
    cover(not traced.frozen, "weights that are not trained, under rules icml24")
    return Layer(
        modes=(StatedMode(traced.saved_bytes), StatedMode(0.0)),
        parameters=traced.parameters,
        sharded=traced.sharded,
        name=traced.name,
        forward=pass_of(traced.forward, traced.tensors, passes[0], residency),
        backward=pass_of(traced.backward, traced.tensors, passes[1], residency),
    )


def chain_of(table: Mapping[str, Any]) -> tuple[tuple[int, ...], tuple[tuple[int, int, float], ...]]:
    """The calls of a graph, by layer, and the bytes between them."""
    calls = tuple(whole(call[0], "calls", 0, len(table["layers"]) - 1) for call in table["calls"])
    count = len(calls) - 1
    edges = tuple((whole(a, "edge", 0, count), whole(b, "edge", 0, count), number(s, "edge"))
                  for a, b, s, _ in table["edges"])  # fmt: skip
    require(all(a < b for a, b, _ in edges), "graphs.json: an edge leads back")
    cover(bool(calls), "models without a layer")
    return calls, edges


def graph_of(table: Mapping[str, Any], fusion: Any, residency: bool) -> Graph:
    """A graph of the run, its layers fused as the certificate says."""
    try:
        groups = listed(fusion, "fusion", len(table["layers"]))
        layers = tuple(_layer(layer, own, residency) for layer, own in zip(table["layers"], groups, strict=True))
        calls, edges = chain_of(table)
        return Graph(
            tensor=whole(table["tensor"], "tensor", 1),
            microbatch=whole(table["microbatch"], "microbatch", 1),
            names=("none", "full"),
            layers=layers,
            calls=calls,
            block=(False,) * len(calls),
            equal=False,
            edges=edges,
            every_mode=True,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as fault:
        raise RefusedError(f"graphs.json: it cannot be read ({type(fault).__name__}: {fault})") from None

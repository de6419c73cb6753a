"""The layers of a traced graph as they stand in graphs.json (docs/graph.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .reading import cover, listed, require, whole
from .works import COLLECTIVES, EXCHANGES, LANE_OPERATIONS, MATRIX, Operator

FORWARD = "forward"


@dataclass(frozen=True, slots=True)
class Traced:
    """An operator of a trace by its number, and the module that it stands in."""

    number: int
    op: Operator
    module: str

    @property
    def reads(self) -> tuple[int, ...]:
        return tuple(tensor for tensor, _ in self.op.reads)

    @property
    def writes(self) -> tuple[int, ...]:
        return tuple(tensor for tensor, _ in self.op.writes)


@dataclass(frozen=True, slots=True)
class Trace:
    """Operators in an order that can run, and what is used of their results afterwards."""

    operators: tuple[Traced, ...]
    outputs: frozenset[int]

    def part(self, numbers: frozenset[int] | set[int], wanted: frozenset[int]) -> "Trace":
        """Some of the operators; of what they write ``wanted`` is used afterwards."""
        chosen = tuple(operator for operator in self.operators if operator.number in numbers)
        return Trace(chosen, wanted & {tensor for operator in chosen for tensor in operator.writes})


NOTHING = Trace((), frozenset())


def _operator(row: Sequence[Any]) -> Traced:
    number, kind, core, sizes, reads, writes, module, parts = row
    require(not parts, "graphs.json: an operator of a trace has parts")
    sent = kind in COLLECTIVES or kind in EXCHANGES
    cover(core != "network" or sent, f"the collective {str(kind)[:40]}")
    known = kind in LANE_OPERATIONS or kind in MATRIX or sent or core == "none"
    require(known, f"graphs.json: {str(kind)[:40]} is not a kind of operator")
    own = {str(name): whole(value, f"graphs.json: {kind}.{name}") for name, value in sizes.items()}
    require("kernels" not in own, f"graphs.json: {kind} has other sizes")
    names = {"bytes", "group"} | ({"stride", "copies"} if kind in EXCHANGES else set())
    require(core != "network" or set(own) == names, f"graphs.json: {kind} has other sizes")
    moved = [
        tuple((whole(t, "tensor"), whole(n, "bytes")) for t, n in side) for side in (reads, writes)
    ]
    return Traced(
        whole(number, "operator"),
        Operator(str(kind), str(core), own, moved[0], moved[1]),
        str(module),
    )


def trace_of(table: Mapping[str, Any]) -> Trace:
    """A graph of operators."""
    found = tuple(_operator(row) for row in listed(table["operators"], "graphs.json: operators"))
    require(
        len({operator.number for operator in found}) == len(found),
        "graphs.json: an operator appears twice",
    )
    return Trace(found, frozenset(whole(t, "outputs") for t in table["outputs"]))


@dataclass(frozen=True, slots=True)
class TracedLayer:
    """A distinct layer: tensors (elements, bytes an element) and their roles, both passes, trained
    parameters, those of experts among them, elements of each, what is saved, and weights that are
    not trained: elements, those of experts among them, and their tensors."""

    name: str
    tensors: Mapping[int, tuple[int, int]]
    roles: Mapping[int, str]
    forward: Trace
    backward: Trace
    parameters: int
    experts: int
    trained: tuple[int, ...]
    saved: frozenset[int]
    again: Trace
    inputs: frozenset[int]
    input_bytes: int
    output_bytes: int
    sharded: bool
    frozen: int = 0
    frozen_experts: int = 0
    still: frozenset[int] = frozenset()

    def size(self, tensor: int) -> int:
        """Bytes of a tensor."""
        elements, width = self.tensors[tensor]
        return elements * width


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A parameter of a layer: its tensor, elements, whether it is trained, whether it is one of
    several experts."""

    tensor: int
    elements: int
    trained: bool
    expert: bool


def _parameter(row: Sequence[Any]) -> _Parameter:
    experts = row[6] if len(row) > 6 else 0
    return _Parameter(
        int(row[1]), whole(row[2], "parameters"), row[4] is True, whole(experts, "experts") > 0
    )


def _elements(parameters: Sequence[_Parameter], experts: bool = False) -> int:
    """Elements of all parameters, or of those of experts."""
    return sum(own.elements for own in parameters if own.expert or not experts)


def _saved(table: Mapping[str, Any]) -> frozenset[int]:
    """The tensors that a mode keeps."""
    return frozenset(whole(tensor, "saved") for tensor in listed(table["saved"], "saved"))


def traced_layer(table: Mapping[str, Any]) -> TracedLayer:
    """A layer of a graph; ``again`` is what selective recompute of attention scores runs,
    ``inputs`` what a full one keeps."""
    tensors, roles = dict[int, tuple[int, int]](), dict[int, str]()
    for number, elements, width, role, *_ in table["tensors"]:
        tensor = whole(number, "tensor")
        tensors[tensor] = whole(elements, "elements"), whole(width, "bytes")
        roles[tensor] = str(role)
    parameters = [_parameter(row) for row in table["parameters"]]
    trained = [parameter for parameter in parameters if parameter.trained]
    frozen = [parameter for parameter in parameters if not parameter.trained]
    forward, rerun = trace_of(table["forward"]), table["selective"]["rerun"]
    return TracedLayer(
        name=str(table["name"]),
        tensors=tensors,
        roles=roles,
        forward=forward,
        backward=trace_of(table["backward"]),
        parameters=_elements(trained),
        experts=_elements(trained, experts=True),
        trained=tuple(parameter.elements for parameter in trained),
        saved=_saved(table["none"]),
        again=forward if rerun == FORWARD else trace_of(rerun),
        inputs=_saved(table["full"]),
        input_bytes=whole(table["full"]["saved_bytes"], "saved_bytes"),
        output_bytes=whole(table["output_bytes"], "output_bytes"),
        sharded=table["sharded"] is True,
        frozen=_elements(frozen),
        frozen_experts=_elements(frozen, experts=True),
        still=frozenset(parameter.tensor for parameter in frozen),
    )


def with_sums(layer: TracedLayer, result_bytes: float) -> TracedLayer:
    """The layer whose products of weight gradients move so many bytes for each result: those that
    read no parameter and whose results no operator reads (docs/cost.md, Gradients)."""
    if result_bytes == 2.0:
        return layer
    read = {tensor for operator in layer.backward.operators for tensor in operator.reads}

    def summed(operator: Traced) -> Traced:
        weight = any(layer.roles[tensor] == "parameter" for tensor in operator.reads)
        if operator.op.kind != "product" or weight or read & set(operator.writes):
            return operator
        writes = [
            (t, round(size // max(1, layer.tensors[t][1]) * result_bytes))
            for t, size in operator.op.writes
        ]
        return replace(operator, op=replace(operator.op, writes=tuple(writes)))

    return replace(
        layer,
        backward=replace(layer.backward, operators=tuple(map(summed, layer.backward.operators))),
    )

"""Checks of a ``phaze.graph/1`` file: its shape by pydantic, then what one value says about
another.

A graph is right when every operand is a tensor of the layer, every tensor is written at most once
and not read before, every output is touched, and every operator has the core and the sizes of its
kind.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze import documents
from phaze.errors import InputError, unknown_name
from phaze.graph import opset
from phaze.graph.ir import MOST_WHOLE, Attention, Core, Model, Role
from phaze.graph.summary import SIZES, sizes_named

Whole = Annotated[int, Field(ge=0, le=MOST_WHOLE)]
Degree = Annotated[int, Field(ge=1, le=2**20)]
Name = Annotated[str, Field(max_length=1000)]
Fixed = Field(strict=False)
"""JSON has lists only: rows of fixed length are read from them."""
Operand = Annotated[tuple[Whole, Whole], Fixed]
Operands = list[Operand]
Part = Annotated[
    tuple[
        Whole, Name, Core, dict[Name, Whole], Operands, Operands, Name, Annotated[tuple[()], Fixed]
    ],
    Fixed,
]
OperatorRow = Annotated[
    tuple[Whole, Name, Core, dict[Name, Whole], Operands, Operands, Name, list[Part]], Fixed
]
TensorRow = Annotated[tuple[Whole, Whole, Whole, Role], Fixed]
_Owner = Annotated[int, Field(ge=-1, le=MOST_WHOLE)]
ParameterRow = (
    Annotated[tuple[Name, _Owner, Whole, Whole, bool, bool], Fixed]
    | Annotated[tuple[Name, _Owner, Whole, Whole, bool, bool, Whole], Fixed]
)
CallRow = Annotated[tuple[Whole, Name], Fixed]
EdgeRow = Annotated[tuple[Whole, Whole, Whole, Whole], Fixed]
TieRow = Annotated[tuple[Name, list[Whole], Whole, Whole], Fixed]


class GraphShape(documents.Document):
    operators: list[OperatorRow]
    outputs: list[Whole]


class RecomputeShape(documents.Document):
    saved: list[Whole]
    saved_bytes: Whole
    rerun: GraphShape | Literal["forward"]


class LayerShape(documents.Document):
    name: Name
    tensors: list[TensorRow]
    forward: GraphShape
    backward: GraphShape
    parameters: list[ParameterRow]
    none: RecomputeShape
    selective: RecomputeShape
    full: RecomputeShape
    shared_bytes: Whole
    input_bytes: Whole
    output_bytes: Whole
    sharded: bool


class GraphFile(documents.Document):
    """``phaze.graph/1``: one model at one tensor width, microbatch and sequence."""

    schema_: Literal["phaze.graph/1"] = Field(alias="schema")
    name: Name
    tensor: Annotated[Whole, Field(gt=0)]
    microbatch: Annotated[Whole, Field(gt=0)]
    sequence: Whole
    sequence_parallel: bool
    attention: Attention
    context: Degree = 1
    context_way: Literal["", "ring", "all_gather", "ulysses", "hierarchical"] = ""
    expert: Degree = 1
    expert_tensor: Degree = 1
    summary: dict[str, Any] | None = None
    layers: list[LayerShape]
    calls: list[CallRow]
    edges: list[EdgeRow]
    ties: list[TieRow]
    approximations: list[Name]


FORMAT = documents.Format(
    "phaze.graph/1", GraphFile, "a model as layers of operators, forward and backward"
)


def check_shape(raw: Mapping[str, Any], where: str) -> dict[str, Any]:
    """``raw`` with every value of the right type and range, as plain values in the file's order."""
    checked = documents.check(GraphFile, raw, where)
    return checked.model_dump(by_alias=True, exclude={"summary"})


def _sizes(operator: Sequence[Any], path: str) -> None:
    _, kind, core, sizes, _, _, _, parts = operator
    row = opset.KINDS.get(kind)
    if row is None:
        raise unknown_name(path, "kind of operator", kind, opset.KINDS)
    if not parts and core != row.core:
        raise InputError(path, f"{kind} runs on core '{row.core}', not on '{core}'")
    if not sizes_named(row.rule, list(sizes)):
        raise InputError(
            path,
            f"{kind} has the sizes {', '.join(SIZES[row.rule])}",
            f"not {', '.join(sizes) or 'none'}",
        )
    if sizes.get("causal", 0) > 1:
        raise InputError(path, f"causal is {sizes['causal']}", "give 0 or 1")


def _parts(operator: Sequence[Any], tensors: frozenset[int], path: str) -> None:
    _sizes(operator, path)
    for number, _ in (*operator[4], *operator[5]):
        if number not in tensors:
            raise InputError(path, f"there is no tensor {number} in this layer")
    for place, part in enumerate(operator[7]):
        _parts(part, tensors, f"{path}.parts[{place}]")


def _graph(raw: Mapping[str, Any], tensors: frozenset[int], where: str) -> None:
    numbers: set[int] = set()
    written_at: dict[int, int] = {}
    for place, operator in enumerate(raw["operators"]):
        path = f"{where}.operators[{place}]"
        _parts(operator, tensors, path)
        if operator[0] in numbers:
            raise InputError(path, f"the operator number {operator[0]} appears twice")
        numbers.add(operator[0])
        for tensor, _ in operator[5]:
            if tensor in written_at:
                raise InputError(path, f"tensor {tensor} is written twice")
            written_at[tensor] = place
    touched: set[int] = set(written_at)
    for place, operator in enumerate(raw["operators"]):
        for tensor, _ in operator[4]:
            touched.add(tensor)
            if written_at.get(tensor, -1) >= place:
                raise InputError(
                    f"{where}.operators[{place}]", f"tensor {tensor} is read before it is written"
                )
    for tensor in raw["outputs"]:
        if tensor not in touched:
            raise InputError(f"{where}.outputs", f"no operator touches tensor {tensor}")


def _bytes(layer: Mapping[str, Any], sizes: Mapping[int, int], path: str) -> None:
    """Nothing reads or writes more of a tensor than there is; without recomputing nothing runs
    again, and with all of it everything does."""
    for key in ("forward", "backward"):
        for place, operator in enumerate(layer[key]["operators"]):
            for tensor, size in (*operator[4], *operator[5]):
                if size > sizes.get(tensor, size):
                    seen = f"{size} bytes of tensor {tensor}, which has {sizes[tensor]}"
                    raise InputError(
                        f"{path}.{key}.operators[{place}]", seen, "move at most all of it"
                    )
    if layer["none"]["rerun"] == "forward" or layer["none"]["rerun"]["operators"]:
        raise InputError(
            f"{path}.none.rerun",
            "without recomputing nothing runs again",
            "leave its operators out",
        )
    if layer["full"]["rerun"] != "forward":
        raise InputError(
            f"{path}.full.rerun", "full recomputing runs the whole forward pass", 'say "forward"'
        )
    entering = sum(
        size for row in layer["tensors"] if row[3] == "input" and (size := sizes[row[0]])
    )
    leaving = sum(sizes.get(tensor, 0) for tensor in layer["forward"]["outputs"])
    for key, most in (("input_bytes", entering), ("output_bytes", leaving)):
        if layer[key] > most:
            raise InputError(
                f"{path}.{key}",
                f"{layer[key]}, and its tensors have {most}",
                "give at most as many",
            )


def check_layers(layers: Iterable[Mapping[str, Any]], where: str) -> None:
    """What the operators of every layer say about its tensors."""
    for place, layer in enumerate(layers):
        path = f"{where}: layers[{place}]"
        numbers = [row[0] for row in layer["tensors"]]
        if len(set(numbers)) < len(numbers):
            raise InputError(f"{path}.tensors", "a tensor's number appears twice")
        tensors = frozenset(numbers)
        sizes = {row[0]: row[1] * row[2] for row in layer["tensors"]}
        _bytes(layer, sizes, path)
        for key in ("forward", "backward"):
            _graph(layer[key], tensors, f"{path}.{key}")
        for key in ("none", "selective", "full"):
            if layer[key]["rerun"] != "forward":
                _graph(layer[key]["rerun"], tensors, f"{path}.{key}.rerun")
            if not tensors.issuperset(layer[key]["saved"]):
                raise InputError(
                    f"{path}.{key}.saved", "it names a tensor that this layer does not have"
                )
        if any(row[1] >= 0 and row[1] not in tensors for row in layer["parameters"]):
            raise InputError(
                f"{path}.parameters", "one names a tensor that this layer does not have"
            )


def check_model(model: Model, where: str) -> None:
    """What calls, edges and ties say about layers and about each other, and how degrees belong
    together."""
    if (model.context > 1) != bool(model.context_way):
        raise InputError(
            f"{where}: context_way",
            f"{model.context_way!r} with context {model.context}",
            "name one where ranks share a sequence, and only there",
        )
    shared = any(parameter.experts for layer in model.layers for parameter in layer.parameters)
    if model.expert * model.expert_tensor > 1 and not shared:
        raise InputError(
            f"{where}: expert",
            (
                f"one of {model.expert} x {model.expert_tensor} expert-parallel ranks, and "
                "no parameter is an expert's"
            ),
            "leave it out",
        )
    for place, call in enumerate(model.calls):
        if call.layer >= len(model.layers):
            raise InputError(f"{where}: calls[{place}]", f"there is no layer {call.layer}")
    for place, edge in enumerate(model.edges):
        if not edge.source < edge.target < len(model.calls):
            raise InputError(
                f"{where}: edges[{place}]", "an edge goes from an earlier to a later call"
            )
    for place, tie in enumerate(model.ties):
        if any(call >= len(model.calls) for call in tie.calls) or len(set(tie.calls)) < len(
            tie.calls
        ):
            raise InputError(
                f"{where}: ties[{place}]", "it names a call that is not there, or one twice"
            )

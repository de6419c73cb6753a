"""A model's graph as JSON, ``phaze.graph/1``, and back, without PyTorch; the same model always
gives the same bytes.

    model    = {schema, name, tensor, microbatch, sequence, sequence_parallel, attention, summary,
                layers, calls: [[layer, module]], edges: [[source, target, bytes, gradient_bytes]],
                ties: [[name, calls, elements, element_bytes]], approximations, and context,
                context_way, expert, expert_tensor where ranks share a sequence or experts}
    layer    = {name, tensors: [[id, elements, element_bytes, role]], forward, backward,
                parameters: [[name, tensor, elements, element_bytes, trained, split, experts if
                any]], none, selective, full, shared_bytes, input_bytes, output_bytes, sharded}
    graph    = {operators, outputs}
    operator = [id, kind, core, sizes, reads: [[tensor, bytes]], writes: [[tensor, bytes]], module,
    parts] none, selective, full = {saved, saved_bytes, rerun: graph, or "forward" for the forward
    graph again}

A graph's tensors are those that its operators (or their parts) touch, its inputs those that are
read and not written: both follow from the operators and are not stored. Shipped graphs are read
without pydantic, which is slow to import; hence the imports inside functions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.errors import InputError
from phaze.files import read_text
from phaze.graph.ir import (
    Access,
    Call,
    Edge,
    Layer,
    Model,
    Operator,
    OperatorGraph,
    Parameter,
    Recompute,
    Tensor,
    Tie,
)
from phaze.graph.summary import summary

SCHEMA = "phaze.graph/1"
AGAIN = "forward"
# What a graph says of itself only where it is one of several ranks that share a sequence or
# experts.
DEGREES = ("context", "context_way", "expert", "expert_tensor")
# What the rank of a graph is.
TRACED = ("name", "tensor", "microbatch", "sequence", "sequence_parallel", "attention")


def touched(operators: Sequence[Operator]) -> set[int]:
    """Numbers of the tensors that ``operators`` and their parts read or write."""
    numbers: set[int] = set()
    for operator in operators:
        numbers.update(access.tensor for access in (*operator.reads, *operator.writes))
        if operator.parts:
            numbers |= touched(operator.parts)
    return numbers


def graph_from(
    operators: Sequence[Operator], outputs: Sequence[int], tensors: Mapping[int, Tensor]
) -> OperatorGraph:
    """The graph of ``operators``: its tensors and inputs follow."""
    written = {access.tensor for op in operators for access in op.writes}
    read = {access.tensor for op in operators for access in op.reads}
    used = tuple(tensors[number] for number in sorted(touched(operators)))
    return OperatorGraph(used, tuple(operators), tuple(sorted(read - written)), tuple(outputs))


def _tensors(layer: Layer) -> dict[int, Tensor]:
    graphs = (
        layer.forward,
        layer.backward,
        layer.none.rerun,
        layer.selective.rerun,
        layer.full.rerun,
    )
    return {tensor.id: tensor for graph in graphs for tensor in graph.tensors}


# ---- to plain values ----


def _operator_out(operator: Operator) -> list[Any]:
    return [
        operator.id,
        operator.kind,
        operator.core,
        dict(operator.sizes),
        [[access.tensor, access.bytes] for access in operator.reads],
        [[access.tensor, access.bytes] for access in operator.writes],
        operator.module,
        [_operator_out(part) for part in operator.parts],
    ]


def _graph_out(graph: OperatorGraph, tensors: Mapping[int, Tensor]) -> dict[str, Any]:
    if graph != graph_from(graph.operators, graph.outputs, tensors):
        raise ValueError("a graph's tensors and inputs must follow from its operators")
    return {
        "operators": [_operator_out(op) for op in graph.operators],
        "outputs": list(graph.outputs),
    }


def _recompute_out(value: Recompute, layer: Layer, tensors: Mapping[int, Tensor]) -> dict[str, Any]:
    again = value.rerun is layer.forward or (
        bool(value.rerun.operators) and value.rerun == layer.forward
    )
    rerun = AGAIN if again else _graph_out(value.rerun, tensors)
    return {"saved": list(value.saved), "saved_bytes": value.saved_bytes, "rerun": rerun}


def _parameter_out(p: Parameter) -> list[Any]:
    row = [p.name, p.tensor, p.elements, p.element_bytes, p.trained, p.split]
    return [*row, p.experts] if p.experts else row


def _layer_out(layer: Layer) -> dict[str, Any]:
    tensors = _tensors(layer)
    return {
        "name": layer.name,
        "tensors": [
            [t.id, t.elements, t.element_bytes, t.role] for _, t in sorted(tensors.items())
        ],
        "forward": _graph_out(layer.forward, tensors),
        "backward": _graph_out(layer.backward, tensors),
        "parameters": [_parameter_out(p) for p in layer.parameters],
        "none": _recompute_out(layer.none, layer, tensors),
        "selective": _recompute_out(layer.selective, layer, tensors),
        "full": _recompute_out(layer.full, layer, tensors),
        "shared_bytes": layer.shared_bytes,
        "input_bytes": layer.input_bytes,
        "output_bytes": layer.output_bytes,
        "sharded": layer.sharded,
    }


def plain(model: Model) -> dict[str, Any]:
    """The model as plain values, without the schema and the summary."""
    return {
        "name": model.name,
        "tensor": model.tensor,
        "microbatch": model.microbatch,
        "sequence": model.sequence,
        "sequence_parallel": model.sequence_parallel,
        "attention": model.attention,
        "layers": [_layer_out(layer) for layer in model.layers],
        "calls": [[call.layer, call.module] for call in model.calls],
        "edges": [[e.source, e.target, e.bytes, e.gradient_bytes] for e in model.edges],
        "ties": [
            [tie.name, list(tie.calls), tie.elements, tie.element_bytes] for tie in model.ties
        ],
        "approximations": list(model.approximations),
        **{key: value for key in DEGREES if (value := getattr(model, key)) not in (1, "")},
    }


def document_of(model: Model) -> dict[str, Any]:
    """The ``phaze.graph/1`` document of ``model``."""
    values = plain(model)
    head = {key: values.pop(key) for key in ("name", "tensor", "microbatch", "sequence")}
    ways = {
        key: values.pop(key)
        for key in ("sequence_parallel", "attention", *DEGREES)
        if key in values
    }
    return {"schema": SCHEMA, **head, **ways, "summary": summary(model), **values}


def dumps(model: Model, pretty: bool = False) -> str:
    """The document as text."""
    from phaze import documents

    return documents.dumps(document_of(model), pretty)


# ---- from plain values ----


def _accesses(raw: Sequence[Sequence[int]]) -> tuple[Access, ...]:
    return tuple([Access(tensor, size) for tensor, size in raw])


def _operator_in(raw: Sequence[Any]) -> Operator:
    number, kind, core, sizes, reads, writes, module, parts = raw
    members = tuple([_operator_in(part) for part in parts]) if parts else ()
    return Operator(
        number,
        kind,
        core,
        tuple(sizes.items()),
        _accesses(reads),
        _accesses(writes),
        module,
        members,
    )


def _graph_in(raw: Mapping[str, Any], tensors: Mapping[int, Tensor]) -> OperatorGraph:
    return graph_from([_operator_in(op) for op in raw["operators"]], raw["outputs"], tensors)


def _layer_in(raw: Mapping[str, Any]) -> Layer:
    tensors = {row[0]: Tensor(*row) for row in raw["tensors"]}
    forward = _graph_in(raw["forward"], tensors)

    def recompute(key: str) -> Recompute:
        value = raw[key]
        rerun = forward if value["rerun"] == AGAIN else _graph_in(value["rerun"], tensors)
        return Recompute(tuple(value["saved"]), value["saved_bytes"], rerun)

    return Layer(
        name=raw["name"],
        forward=forward,
        backward=_graph_in(raw["backward"], tensors),
        parameters=tuple(Parameter(*row) for row in raw["parameters"]),
        none=recompute("none"),
        selective=recompute("selective"),
        full=recompute("full"),
        shared_bytes=raw["shared_bytes"],
        input_bytes=raw["input_bytes"],
        output_bytes=raw["output_bytes"],
        sharded=raw["sharded"],
    )


def from_plain(raw: Mapping[str, Any]) -> Model:
    """The model of plain values that are known to be right, such as :func:`plain` makes."""
    return framed(raw, [_layer_in(layer) for layer in raw["layers"]])


def framed(raw: Mapping[str, Any], layers: Sequence[Layer]) -> Model:
    """The model of layers, and of plain values for all else."""
    return Model(
        **{key: raw[key] for key in TRACED},
        layers=tuple(layers),
        calls=tuple(Call(*row) for row in raw["calls"]),
        edges=tuple(Edge(*row) for row in raw["edges"]),
        ties=tuple(
            Tie(name, tuple(calls), size, width) for name, calls, size, width in raw["ties"]
        ),
        approximations=tuple(raw["approximations"]),
        **{key: raw[key] for key in DEGREES if key in raw},
    )


def _agrees(stated: Any, computed: Any) -> bool:
    """Whether a stated summary is the graph's own; those of older files know fewer of its
    figures."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        return all(
            key in computed and _agrees(value, computed[key]) for key, value in stated.items()
        )
    if isinstance(stated, list) and isinstance(computed, list):
        return len(stated) == len(computed) and all(
            _agrees(a, b) for a, b in zip(stated, computed, strict=True)
        )
    return bool(stated == computed) and isinstance(stated, bool) == isinstance(computed, bool)


def model_of(raw: Mapping[str, Any], where: str) -> Model:
    """The model of a ``phaze.graph/1`` document, or an :class:`InputError` with the path of what is
    wrong."""
    from phaze.graph.store_check import check_layers, check_model, check_shape

    if raw.get("schema") != SCHEMA:
        raise InputError(
            f"{where}: schema",
            f"this is not a graph, its schema is {raw.get('schema')!r}"[:200],
            SCHEMA,
        )
    values = check_shape(raw, where)
    check_layers(values["layers"], where)
    model = from_plain(values)
    check_model(model, where)
    if "summary" in raw and not _agrees(raw["summary"], summary(model)):
        raise InputError(
            f"{where}: summary", "it is not that of this graph", "leave it out, it is derived"
        )
    return model


def loads(text: str, where: str) -> Model:
    """The model of a document's text."""
    from phaze import documents

    return model_of(documents.parse(text, "json", where), where)


def load(path: str) -> Model:
    """The model in the file at ``path`` (``-``: standard input)."""

    text, where = read_text(path)
    return loads(text, where)

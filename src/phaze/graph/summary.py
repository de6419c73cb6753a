"""What a graph adds up to: parameters, work, what is kept, what goes over the network.

    forward_flops  = sum over calls of 2 x multiply-accumulates of the layer's products,
                   backward_flops likewise;
                     attention over all pairs of queries and keys
    causal_*_flops = the same without what causal and windowed kernels skip
    saved_bytes    = sum over calls of what the layer keeps from forward to backward, nothing
                   recomputed
    parameters     = sum over calls of the layer's parameters, tied ones once
    collectives    = for each (kind, pass, bytes) how often one microbatch makes it, over all calls

All of one rank and one microbatch; ``layers`` has the same of one call of each distinct layer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from phaze.graph import opset
from phaze.graph.ir import Layer, Model, Operator, OperatorGraph

SIZES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "product": ("batch", "m", "n", "k"),
        "convolution": ("batch", "m", "n", "k"),
        "attention": ("batch", "queries", "keys", "width", "value_width"),
        "map": ("elements",),
        "reduce": ("elements", "rows"),
        "normalize": ("elements", "rows"),
        "move": ("elements",),
        "collective": ("bytes", "group"),
        "exchange": ("bytes", "group", "stride", "copies"),
        "free": (),
    }
)
"""The names of the sizes that an operator has, by the rule of its kind, in order."""
MASK = ("causal", "window")
"""Sizes of attention that older graphs do not have: what its mask leaves."""


def sizes_named(rule: str, names: Sequence[str]) -> bool:
    """Whether an operator of that rule may have just these sizes, in this order."""
    return tuple(names) == SIZES[rule] or (
        rule == "attention" and tuple(names) == (*SIZES[rule], *MASK)
    )


def graph_flops(graph: OperatorGraph, masked: bool = False) -> int:
    """Floating-point operations of all products of a graph; ``masked``: without what a causal or
    windowed kernel skips."""
    return sum(opset.flops(operator, masked) for operator in graph.operators)


def _network(operators: Iterable[Operator]) -> Counter[tuple[str, int]]:
    counts: Counter[tuple[str, int]] = Counter()
    for operator in operators:
        if operator.parts:
            counts += _network(operator.parts)
        elif operator.core == "network":
            counts[operator.kind, operator.size("bytes")] += 1
    return counts


def collectives(layer: Layer) -> Counter[tuple[str, str, int]]:
    """How often one call of ``layer`` makes each (kind, pass, bytes)."""
    counts: Counter[tuple[str, str, int]] = Counter()
    for name, graph in (("forward", layer.forward), ("backward", layer.backward)):
        for (kind, size), count in _network(graph.operators).items():
            counts[kind, name, size] += count
    return counts


def _rows(counts: Counter[tuple[str, str, int]]) -> list[dict[str, Any]]:
    order = sorted(
        counts.items(), key=lambda item: (item[0][1] != "forward", item[0][0], -item[0][2])
    )
    return [
        {"kind": kind, "pass": name, "bytes": size, "count": n} for (kind, name, size), n in order
    ]


def _layer(layer: Layer, count: int) -> dict[str, Any]:
    return {
        "name": layer.name,
        "count": count,
        "forward_operators": len(layer.forward.operators),
        "backward_operators": len(layer.backward.operators),
        "forward_flops": graph_flops(layer.forward),
        "backward_flops": graph_flops(layer.backward),
        "causal_forward_flops": graph_flops(layer.forward, masked=True),
        "causal_backward_flops": graph_flops(layer.backward, masked=True),
        "parameters": layer.parameter_elements,
        "parameter_bytes": layer.parameter_bytes,
        "saved_bytes": layer.none.saved_bytes,
        "selective_bytes": layer.selective.saved_bytes,
        "full_bytes": layer.full.saved_bytes,
        "shared_bytes": layer.shared_bytes,
        "collectives": _rows(collectives(layer)),
        "sharded": layer.sharded,
    }


def summary(model: Model) -> dict[str, Any]:
    """The ``summary`` of ``phaze.graph/1``: whole model, repeats multiplied; ``layers`` one row per
    distinct layer."""
    counts = [model.count(number) for number in range(len(model.layers))]
    layers = [_layer(layer, count) for layer, count in zip(model.layers, counts, strict=True)]
    network: Counter[tuple[str, str, int]] = Counter()
    for layer, count in zip(model.layers, counts, strict=True):
        for key, times in collectives(layer).items():
            network[key] += times * count
    return {
        "parameters": model.parameters,
        "forward_flops": sum(row["forward_flops"] * row["count"] for row in layers),
        "backward_flops": sum(row["backward_flops"] * row["count"] for row in layers),
        "causal_forward_flops": sum(row["causal_forward_flops"] * row["count"] for row in layers),
        "causal_backward_flops": sum(row["causal_backward_flops"] * row["count"] for row in layers),
        "saved_bytes": sum(row["saved_bytes"] * row["count"] for row in layers),
        "collectives": _rows(network),
        "layers": layers,
    }

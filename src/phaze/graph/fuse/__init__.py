"""Fusion: operators that a compiler would run as one become one, with their members as ``parts``.

Levels, as a software stack names them: ``none``; ``chains`` (element-wise operators with one reader
each, as kernels that are fused by hand); ``elementwise`` (also clusters of vector operators);
``full`` (also siblings, epilogues of products, and bias sums).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from types import MappingProxyType
from typing import Literal

from phaze.graph.fuse import rules
from phaze.graph.fuse.structure import Fusions
from phaze.graph.ir import Layer, Model, OperatorGraph, Recompute

Fusion = Literal["none", "chains", "elementwise", "full"]
Rule = Callable[[OperatorGraph], OperatorGraph]

ELEMENTWISE: tuple[Rule, ...] = (rules.chains, rules.clusters)
LEVELS: Mapping[Fusion, tuple[Rule, ...]] = MappingProxyType(
    {
        "none": (),
        "chains": (rules.chains,),
        "elementwise": ELEMENTWISE,
        "full": (*ELEMENTWISE, rules.siblings, rules.clusters, rules.epilogues, rules.bias_sums),
    }
)


# Rules that ask for the structure of a graph and for no size.
STRUCTURAL: tuple[Rule, ...] = (rules.chains, rules.clusters)


def fuse_graph(
    graph: OperatorGraph, fusion: Fusion, fusions: Fusions | None = None
) -> OperatorGraph:
    """``graph`` after all rules of a level; ``fusions`` keeps what graphs of one structure have in
    common."""
    every = LEVELS[fusion]
    first = every[
        : next((index for index, rule in enumerate(every) if rule not in STRUCTURAL), len(every))
    ]

    def by_structure(unfused: OperatorGraph) -> OperatorGraph:
        return reduce(lambda fused, rule: rule(fused), first, unfused)

    if first:
        graph = (
            by_structure(graph) if fusions is None else fusions.fused(graph, fusion, by_structure)
        )
    return reduce(lambda fused, rule: rule(fused), every[len(first) :], graph)


def _recompute(value: Recompute, layer: Layer, forward: OperatorGraph, fusion: Fusion) -> Recompute:
    rerun = forward if value.rerun is layer.forward else fuse_graph(value.rerun, fusion)
    return replace(value, rerun=rerun)


def fuse_layer(layer: Layer, fusion: Fusion) -> Layer:
    """A layer with both passes, and what it would recompute, fused."""
    forward = fuse_graph(layer.forward, fusion)
    return replace(
        layer,
        forward=forward,
        backward=fuse_graph(layer.backward, fusion),
        none=_recompute(layer.none, layer, forward, fusion),
        selective=_recompute(layer.selective, layer, forward, fusion),
        full=_recompute(layer.full, layer, forward, fusion),
    )


def fuse(model: Model, fusion: Fusion) -> Model:
    """The model with all its layers fused; parameters, edges and what is saved stay."""
    if fusion == "none":
        return model
    return replace(model, layers=tuple(fuse_layer(layer, fusion) for layer in model.layers))

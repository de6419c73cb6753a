"""A traced rank of a model as its stack runs it, and the seconds of its layers on all chips at
once.

A graph is a trace of one rank at one tensor width and microbatch; its layers' operators run under
the stack's fusion and schedule rule (:mod:`phaze.evaluate.layer_table`), its collectives on the
levels that they cross. Where the rule has a closed formula the seconds of a layer are exact for all
chips at once; otherwise they are lower bounds, and an evaluated chip has its schedules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.flow import TRACED_BYTES, sharing_of
from phaze.evaluate.lowered_layer import LoweredLayer, lower_layers, on_network
from phaze.graph.experts import notes_of
from phaze.graph.ir import Attention, Model
from phaze.placement.machine import Machine
from phaze.placement.sharing import Sharing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# What a model is where no ranks share a sequence or experts.
DEGREES: Mapping[str, int | str] = MappingProxyType(
    {"context": 1, "context_way": "", "expert": 1, "expert_tensor": 1}
)


@dataclass(frozen=True, slots=True)
class RankGraph:
    """A traced rank: its distinct layers with their passes, which of them each call runs, and bytes
    between calls."""

    model: Model
    layers: tuple[LoweredLayer, ...]
    calls: tuple[int, ...]
    edges: tuple[tuple[int, int, float], ...]

    @property
    def width(self) -> int:
        return self.model.tensor

    @property
    def microbatch(self) -> int:
        return self.model.microbatch

    @property
    def sharing(self) -> Sharing:
        """Ranks that share a sequence, and experts."""
        return sharing_of(self.model)

    @property
    def degrees(self) -> dict[str, int | str]:
        """How many ranks share a sequence and how, and shard the experts, as far as it is more
        than one."""
        degrees = {key: getattr(self.model, key) for key in DEGREES}
        return {key: value for key, value in degrees.items() if value != DEGREES[key]}

    @property
    def attention(self) -> Attention:
        return self.model.attention

    @property
    def has_formula(self) -> bool:
        """Whether the seconds of its layers are exact on every chip at once."""
        return all(layer.rule.one_queue or layer.rule.named_only for layer in self.layers)

    def notes(self, planned: bool) -> tuple[str, ...]:
        """What an answer must say beside its numbers; ``planned``: experts that ranks shard
        were configurations."""
        return notes_of(self.model, planned)


def rank_graph_of(model: Model, layers: Sequence[LoweredLayer]) -> RankGraph:
    """A traced rank with its layers as a stack runs them."""
    wide = layers[0].sent_bytes / TRACED_BYTES if layers else 1.0
    edges = tuple((edge.source, edge.target, wide * edge.bytes) for edge in model.edges)
    return RankGraph(model, tuple(layers), tuple(call.layer for call in model.calls), edges)


def rank_graph(model: Model, machine: Machine, selective: bool = True) -> RankGraph:
    """A traced rank on a machine; ``selective``: what selective recompute runs is of interest."""
    layers = lower_layers(model, machine)
    return rank_graph_of(
        model, layers if selective else [_without_selective(layer) for layer in layers]
    )


def _without_selective(layer: LoweredLayer) -> LoweredLayer:
    selective, *_, full = layer.modes
    nothing = replace(
        selective.rerun or layer.forward,
        works=(),
        collectives=(),
        units=(),
        edges=(),
        beside=(),
        host_s=0.0,
    )
    return replace(layer, modes=(replace(selective, rerun=nothing), full))


def graph_on(graph: RankGraph, machine: Machine) -> RankGraph:
    """The graph on another network."""
    return replace(graph, layers=tuple(on_network(layer, machine) for layer in graph.layers))


def block_model(model: Model) -> Model:
    """The most repeated layer of a model as a model of its own, called once; the first of
    equals."""
    kind = max(range(len(model.layers)), key=lambda index: (model.count(index), -index))
    call = next(call for call in model.calls if call.layer == kind)
    return replace(
        model, layers=(model.layers[kind],), calls=(replace(call, layer=0),), edges=(), ties=()
    )

"""A traced rank of a model as its stack runs it, and the seconds of its layers on all chips at once.

A graph is a trace of one rank at one tensor width and microbatch; its layers' operators run under the stack's fusion
and schedule rule (:mod:`phaze.evaluate.layer_times`), its collectives on the levels that they cross. Where the rule has
a closed formula the seconds of a layer are exact for all chips at once; otherwise they are lower bounds, and an
evaluated chip has its schedules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.flow import TRACED_BYTES, sharing_of
from phaze.evaluate.layer_times import DeviceSeconds, RuledLayer, on_network, ruled_layers, several_layer_times
from phaze.evaluate.layers import LayerCost, mode_costs
from phaze.evaluate.ruled_pass import WorkTimes
from phaze.graph.experts import notes_of
from phaze.graph.ir import Attention, Model
from phaze.hardware.calibration import Constants
from phaze.placement.machine import Machine
from phaze.placement.sharing import Sharing

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# What a model is where no ranks share a sequence or experts.
DEGREES: Mapping[str, int | str] = MappingProxyType({"context": 1, "context_way": "", "expert": 1, "expert_tensor": 1})
# Chips whose times are worked out in one piece, to bound memory.
CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class RankGraph:
    """A traced rank: its distinct layers with their passes, which of them each call runs, and bytes between calls."""

    model: Model
    layers: tuple[RuledLayer, ...]
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
        """How many ranks share a sequence and how, and share out the experts, as far as it is more than one."""
        found = {key: getattr(self.model, key) for key in DEGREES}
        return {key: value for key, value in found.items() if value != DEGREES[key]}

    @property
    def attention(self) -> Attention:
        return self.model.attention

    @property
    def has_formula(self) -> bool:
        """Whether the seconds of its layers are exact on every chip at once."""
        return all(layer.rule.one_queue or layer.rule.named_only for layer in self.layers)

    def notes(self, planned: bool) -> tuple[str, ...]:
        """What an answer must say beside its numbers; ``planned``: experts that ranks share out were configurations."""
        return notes_of(self.model, planned)


def rank_graph_of(model: Model, layers: Sequence[RuledLayer]) -> RankGraph:
    """A traced rank with its layers as a stack runs them."""
    wide = layers[0].sent_bytes / TRACED_BYTES if layers else 1.0
    edges = tuple((edge.source, edge.target, wide * edge.bytes) for edge in model.edges)
    return RankGraph(model, tuple(layers), tuple(call.layer for call in model.calls), edges)


def rank_graph(model: Model, machine: Machine, selective: bool = True) -> RankGraph:
    """A traced rank on a machine; ``selective``: what selective recompute runs is of interest."""
    layers = ruled_layers(model, machine)
    return rank_graph_of(model, layers if selective else [_without_selective(layer) for layer in layers])


def _without_selective(layer: RuledLayer) -> RuledLayer:
    nothing = replace(layer.selective, works=(), collectives=(), units=(), edges=(), beside=(), host_s=0.0)
    return replace(layer, selective=nothing, more=())


def graph_on(graph: RankGraph, machine: Machine) -> RankGraph:
    """The graph on another network."""
    return replace(graph, layers=tuple(on_network(layer, machine) for layer in graph.layers))


def block_model(model: Model) -> Model:
    """The most repeated layer of a model as a model of its own, called once; the first of equals."""
    kind = max(range(len(model.layers)), key=lambda at: (model.count(at), -at))
    call = next(call for call in model.calls if call.layer == kind)
    return replace(model, layers=(model.layers[kind],), calls=(replace(call, layer=0),), edges=(), ties=())


@dataclass(frozen=True, slots=True)
class GraphTimes:
    """Seconds of the distinct layers of one graph, [layers, chips]: both passes, and what selective and full recompute
    run again; of the modes between them [modes, layers, chips]; the HBM bandwidth that vector work reaches by chip;
    where it counts, least joules of both passes; where a stack splits backward passes, gradients of weights."""

    forward_s: Floats
    backward_s: Floats
    selective_s: Floats
    full_s: Floats
    more_s: Floats
    hbm_bytes_per_s: Floats
    dynamic_j: Floats | None = None
    weight_s: Floats | None = None

    def taken(self, index: Integers) -> "GraphTimes":
        """Those of the chips of ``index``."""
        return GraphTimes(*(None if own is None else own[..., index] for own in self._arrays()))  # type: ignore[arg-type]

    def _arrays(self) -> list[Floats | None]:
        return [getattr(self, field.name) for field in fields(self)]

    def put(self, index: Integers, other: "GraphTimes") -> None:
        """Write those of some chips."""
        for own, new in zip(self._arrays(), other._arrays(), strict=True):
            if own is not None and new is not None:
                own[..., index] = new

    def forget(self) -> None:
        """Make all of them infinite: of no chip is anything known."""
        for own in self._arrays():
            if own is not None:
                own[...] = np.inf

    def costs(self, graph: RankGraph, chip: int = 0) -> tuple[LayerCost, ...]:
        """The layers on one of the chips."""
        return tuple(
            LayerCost(
                own.name,
                float(self.forward_s[kind, chip]),
                float(self.backward_s[kind, chip]),
                float(self.selective_s[kind, chip]),
                float(self.full_s[kind, chip]),
                *own.sizes,
                mode_costs(own, self.more_s[:, kind, chip].tolist()),
                own.expert_parameters,
                weight_s=None if self.weight_s is None else float(self.weight_s[kind, chip]),
                frozen=own.frozen,
            )
            for kind, own in enumerate(graph.layers)
        )


def empty_times(graph: RankGraph, chips: int, joules: bool) -> GraphTimes:
    """Room for the seconds of so many chips."""
    shape = (len(graph.layers), chips)
    forward_s, backward_s, selective_s, full_s = (np.empty(shape) for _ in range(4))
    least_j = np.empty(shape) if joules else None
    more_s = np.empty((len(graph.layers[0].more), *shape))
    weight_s = None if graph.layers[0].halves is None else np.empty(shape)
    return GraphTimes(forward_s, backward_s, selective_s, full_s, more_s, np.empty(chips), least_j, weight_s)


def graph_times(
    graph: RankGraph, chips: ChipSet, constants: Constants, device_s: DeviceSeconds, costs: WorkTimes | None = None
) -> GraphTimes:
    """The seconds of all layers of a graph on every chip; ``device_s`` gives those of a pass, ``costs`` those of its
    works where they are known."""
    found, count = empty_times(graph, len(chips), False), len(chips)
    for start in range(0, count, CHUNK):
        index = np.arange(start, min(start + CHUNK, count))
        some = chips if len(index) == count else chips.taken(index)
        known = costs if costs is None or len(index) == count else costs.taken(index)
        for kind, own in enumerate(several_layer_times(graph.layers, some, constants, device_s, known)):
            found.forward_s[kind, index], found.backward_s[kind, index] = own.forward_s, own.backward_s
            found.selective_s[kind, index], found.full_s[kind, index] = own.selective_s, own.full_s
            if found.weight_s is not None:
                found.weight_s[kind, index] = 0.0 if own.weight_s is None else own.weight_s
            for mode, again_s in enumerate(own.more_s):
                found.more_s[mode, kind, index] = again_s
    found.hbm_bytes_per_s[:] = chips.hbm_bytes_per_s * constants.vector_hbm_share
    return found

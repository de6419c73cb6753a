"""Layer graphs: the layers of a model at one tensor width with their seconds and bytes, and the edges between them."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phaze.errors import InputError

# No second or byte of a layer may reach this, so that no sum or product overflows.
LARGEST = 1e24


@dataclass(frozen=True, slots=True)
class PlacedLayer:
    """One layer at one tensor width, all numbers of one device and one microbatch; ``expert_bytes`` of its parameters
    are experts that ranks share out. Of ``backward_s`` the gradients of weights take ``weight_s``, where that is known.
    """

    id: int
    forward_s: float
    backward_s: float
    parameter_bytes: float
    activation_bytes: float
    sharded: bool
    expert_bytes: float = 0.0
    weight_s: float | None = None

    def __post_init__(self) -> None:
        times = 0 <= self.forward_s < LARGEST and 0 <= self.backward_s < LARGEST
        sizes = 0 <= self.parameter_bytes < LARGEST and 0 <= self.activation_bytes < LARGEST
        if not (times and sizes and 0 <= self.expert_bytes < LARGEST):
            self._refuse()
        if self.weight_s is not None and not 0 <= self.weight_s <= self.backward_s:
            raise InputError(
                f"layer {self.id}: weight_s", f"{self.weight_s!r} is out of range", "it is a part of backward_s"
            )
        if self.expert_bytes > self.parameter_bytes:
            raise InputError(
                f"layer {self.id}: expert_bytes",
                f"{self.expert_bytes!r} is out of range",
                "give at most all parameters",
            )

    def _refuse(self) -> None:
        """Say which amount is out of range."""
        for name in ("forward_s", "backward_s", "parameter_bytes", "activation_bytes", "expert_bytes"):
            if not 0 <= getattr(self, name) < LARGEST:
                raise InputError(
                    f"layer {self.id}: {name}",
                    f"{getattr(self, name)!r} is out of range",
                    f"it must be at least 0 and below {LARGEST:g}",
                )


@dataclass(frozen=True, slots=True)
class LayerEdge:
    """Bytes from the layer at position ``tail`` of a graph to the one at position ``head``."""

    tail: int
    head: int
    size_bytes: float


@dataclass(frozen=True, slots=True)
class LayerGraph:
    """The layers of one tensor width in topological order, ties by id, and the edges between them."""

    width: int
    layers: tuple[PlacedLayer, ...]
    edges: tuple[LayerEdge, ...]


def require_same_layers(graphs: Sequence[LayerGraph]) -> None:
    """Refuse graphs that are not one model at several widths, each once and ascending."""
    if not graphs:
        raise InputError("widths", "there is no tensor-parallel degree", "give the layers of at least one")
    widths = [graph.width for graph in graphs]
    if widths != sorted(set(widths)):
        raise InputError("widths", f"the widths {widths} are not ascending", "give each once, in order")
    known = {layer.id for layer in graphs[0].layers}
    for graph in graphs[1:]:
        unlike = sorted(known ^ {layer.id for layer in graph.layers})
        if unlike:
            raise InputError(
                f"widths.{graph.width}.layers",
                f"layer {unlike[0]} is not at both width {graph.width} and width {widths[0]}",
                "give the same layers at every width",
            )


def require_weights(graphs: Sequence[LayerGraph], family: str) -> None:
    """Refuse layers without the seconds of their weight gradients, which a family needs."""
    for graph in graphs:
        for layer in graph.layers:
            if layer.weight_s is None:
                where = f"widths.{graph.width}: layer {layer.id}: weight_s"
                raise InputError(where, f"it is missing and {family} needs it", "add it")


def layer_graph(
    width: int, layers: Sequence[PlacedLayer], edges: Iterable[tuple[int, int, float]], where: str = "widths"
) -> LayerGraph:
    """Sort layers topologically, ties by id; ``edges`` name layers by id. Faults are said with their path."""
    place = f"{where}.{width}"
    if width < 1:
        raise InputError(place, f"width {width} is out of range", "it must be at least 1")
    if not layers:
        raise InputError(f"{place}.layers", "there is no layer", "give at least one")
    by_id = {layer.id: layer for layer in layers}
    if len(by_id) != len(layers):
        ids = [layer.id for layer in layers]
        twice = next(id_ for id_ in ids if ids.count(id_) > 1)
        raise InputError(f"{place}.layers", f"the id {twice} appears twice", "give every layer its own id")
    given = list(edges)
    follows: dict[int, list[int]] = {id_: [] for id_ in by_id}
    waits = dict.fromkeys(by_id, 0)
    for index, (tail, head, _) in enumerate(given):
        for end, name in ((tail, "from"), (head, "to")):
            if end not in by_id:
                raise InputError(
                    f"{place}.edges[{index}].{name}", f"there is no layer {end}", "name a layer of this width"
                )
        follows[tail].append(head)
        waits[head] += 1
    order = _topological(follows, waits)
    if len(order) < len(by_id):
        stuck = min(set(by_id) - set(order))
        raise InputError(f"{place}.edges", f"the edges run in a cycle through or into layer {stuck}", "remove it")
    rank = {id_: position for position, id_ in enumerate(order)}
    return LayerGraph(
        width,
        tuple(by_id[id_] for id_ in order),
        tuple(LayerEdge(*edge) for edge in sorted((rank[tail], rank[head], size) for tail, head, size in given)),
    )


def _topological(follows: dict[int, list[int]], waits: dict[int, int]) -> list[int]:
    ready = [id_ for id_, count in waits.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        id_ = heapq.heappop(ready)
        order.append(id_)
        for after in follows[id_]:
            waits[after] -= 1
            if waits[after] == 0:
                heapq.heappush(ready, after)
    return order

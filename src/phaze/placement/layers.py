"""Layer graphs: the layers of a model at one tensor width with their seconds and bytes, and the
edges between them."""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter

from phaze.errors import InputError
from phaze.placement.frozen import NO_FROZEN, Frozen
from phaze.placement.rules import Mode

# No second or byte of a layer may reach this, so that no sum or product overflows.
LARGEST = 1e24


@dataclass(frozen=True, slots=True)
class RecomputeOption:
    """A layer in a mode beyond none, selective and full: bytes that every microbatch in flight
    keeps, bytes beside them while the layer's backward runs, and seconds that run again or are
    exposed of copies to the host."""

    name: Mode
    bytes: float
    live_bytes: float
    again_s: float


@dataclass(frozen=True, slots=True)
class PlacedLayer:
    """One layer at one tensor width, all numbers of one device and one microbatch.

    ``expert_bytes`` of its parameters are experts that ranks shard. Of ``backward_s`` the
    gradients of weights take ``weight_s``, where that is known. ``tied`` names parameters it
    shares; ``block`` marks one of the equal blocks that chunks are made of. ``live_bytes`` are held
    in every mode while it runs; ``buffer_bytes`` by a stage once for all its layers of one
    ``kind``, a number (-1: a kind of its own). ``more`` are its modes between selective and full,
    the same for all layers. ``frozen`` are its weights that are not trained, beside its parameters.
    ``beside_s``: what both
    passes take longer with no other microbatch behind whose work its exchanges of experts run.
    """

    id: int
    forward_s: float
    backward_s: float
    parameter_bytes: float
    activation_bytes: float
    sharded: bool
    expert_bytes: float = 0.0
    weight_s: float | None = None
    selective_bytes: float | None = None
    selective_s: float = 0.0
    full_s: float | None = None
    tied: str | None = None
    tied_bytes: float = 0.0
    block: bool = False
    live_bytes: float = 0.0
    buffer_bytes: float = 0.0
    kind: int = -1
    more: tuple[RecomputeOption, ...] = ()
    frozen: Frozen = NO_FROZEN
    beside_s: float = 0.0

    def __post_init__(self) -> None:
        times = 0 <= self.forward_s < LARGEST and 0 <= self.backward_s < LARGEST
        sizes = 0 <= self.parameter_bytes < LARGEST and 0 <= self.activation_bytes < LARGEST
        if not (times and sizes and 0 <= self.expert_bytes < LARGEST):
            self._refuse()
        if self.weight_s is not None and not 0 <= self.weight_s <= self.backward_s:
            raise InputError(
                f"layer {self.id}: weight_s",
                f"{self.weight_s!r} is out of range",
                "it is a part of backward_s",
            )
        if self.expert_bytes > self.parameter_bytes:
            raise InputError(
                f"layer {self.id}: expert_bytes",
                f"{self.expert_bytes!r} is out of range",
                "give at most all parameters",
            )

    def _refuse(self) -> None:
        """Say which amount is out of range."""
        for name in (
            "forward_s",
            "backward_s",
            "parameter_bytes",
            "activation_bytes",
            "expert_bytes",
        ):
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


_all_but_id = attrgetter(*(entry.name for entry in fields(PlacedLayer) if entry.name != "id"))


@dataclass(frozen=True, slots=True)
class LayerGraph:
    """The layers of one tensor width in topological order, ties by id, and the edges between them.

    ``alike``: of every layer, the position of the first that differs from it in nothing but the id;
    ``starts``: the positions of layers that nothing leads to; ``parameter_bytes`` of all layers.
    """

    width: int
    layers: tuple[PlacedLayer, ...]
    edges: tuple[LayerEdge, ...]
    alike: tuple[int, ...] = field(init=False, compare=False, repr=False)
    starts: tuple[int, ...] = field(init=False, compare=False, repr=False)
    parameter_bytes: float = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        first: dict[tuple[object, ...], int] = {}
        alike = tuple(
            first.setdefault(_all_but_id(layer), place) for place, layer in enumerate(self.layers)
        )
        object.__setattr__(self, "alike", alike)
        heads = {edge.head for edge in self.edges}
        starts = tuple(place for place in range(len(self.layers)) if place not in heads)
        object.__setattr__(self, "starts", starts)
        total = sum(layer.parameter_bytes for layer in self.layers)
        object.__setattr__(self, "parameter_bytes", total)
        _require_sound(self.width, [self.layers[place] for place in first.values()])

    @property
    def option_names(self) -> tuple[Mode, ...]:
        """The modes between selective and full, as all layers have them."""
        return tuple(option.name for option in self.layers[0].more) if self.layers else ()


def _require_sound(width: int, layers: Sequence[PlacedLayer]) -> None:
    """Refuse layers, each that differs from the others once, that contradict themselves or one
    another."""
    tied, buffers = dict[str, float](), dict[int, float]()
    for layer in layers:
        where = f"widths.{width}: layer {layer.id}"
        _require_sizes(where, layer, buffers)
        _require_options(where, layer, layers[0])
        if layer.tied is not None:
            if not 0 <= layer.tied_bytes <= layer.parameter_bytes:
                raise InputError(
                    where,
                    f"tied_bytes {layer.tied_bytes!r} is out of range",
                    "they are parameters of it",
                )
            if tied.setdefault(layer.tied, layer.tied_bytes) != layer.tied_bytes:
                raise InputError(
                    where,
                    f"'{layer.tied}' has other tied_bytes elsewhere",
                    "give the same everywhere",
                )


def _require_sizes(where: str, layer: PlacedLayer, buffers: dict[int, float]) -> None:
    if (
        layer.selective_bytes is not None
        and not 0 <= layer.selective_bytes <= layer.activation_bytes
    ):
        raise InputError(
            where,
            f"selective_bytes {layer.selective_bytes!r} is out of range",
            "keep no more than all",
        )
    for name, size in (("live_bytes", layer.live_bytes), ("buffer_bytes", layer.buffer_bytes)):
        if not 0 <= size < LARGEST:
            raise InputError(where, f"{name} {size!r} is out of range", "it must be at least 0")
    if not layer.frozen.is_sound:
        raise InputError(
            where, f"frozen {layer.frozen!r} is out of range", "parts are at most all of it"
        )
    if layer.kind >= 0 and buffers.setdefault(layer.kind, layer.buffer_bytes) != layer.buffer_bytes:
        raise InputError(
            where, f"kind {layer.kind} has other buffer_bytes elsewhere", "give the same everywhere"
        )
    for name, value in (("selective_s", layer.selective_s), ("full_s", layer.full_s)):
        if value is not None and not 0 <= value <= layer.forward_s:
            raise InputError(
                where, f"{name} {value!r} is out of range", "it is a part of forward_s"
            )


def _require_options(where: str, layer: PlacedLayer, first: PlacedLayer) -> None:
    if [option.name for option in layer.more] != [option.name for option in first.more]:
        raise InputError(
            where, "it has other modes of recompute", "give all layers the same, in one order"
        )
    for option in layer.more:
        if not (0 <= option.bytes <= layer.activation_bytes and 0 <= option.live_bytes < LARGEST):
            raise InputError(
                where, f"{option.name} keeps {option.bytes!r} bytes", "keep no more than all"
            )
        if not 0 <= option.again_s < LARGEST:
            raise InputError(
                where, f"{option.name} takes {option.again_s!r} s", "it must be at least 0"
            )


def require_same_layers(graphs: Sequence[LayerGraph]) -> None:
    """Refuse graphs that are not one model at several widths, each once and ascending."""
    if not graphs:
        raise InputError(
            "widths", "there is no tensor-parallel degree", "give the layers of at least one"
        )
    widths = [graph.width for graph in graphs]
    if widths != sorted(set(widths)):
        raise InputError(
            "widths", f"the widths {widths} are not ascending", "give each once, in order"
        )
    first_ids = {layer.id for layer in graphs[0].layers}
    for graph in graphs[1:]:
        unlike = sorted(first_ids ^ {layer.id for layer in graph.layers})
        if unlike:
            raise InputError(
                f"widths.{graph.width}.layers",
                f"layer {unlike[0]} is not at both width {graph.width} and width {widths[0]}",
                "give the same layers at every width",
            )
        if graph.option_names != graphs[0].option_names:
            where = f"widths.{graph.width}: layer {graph.layers[0].id}"
            raise InputError(
                where, "it has other modes of recompute", "give all layers the same, in one order"
            )


def require_weights(graphs: Sequence[LayerGraph], family: str) -> None:
    """Refuse layers without the seconds of their weight gradients, which a family needs."""
    for graph in graphs:
        for layer in graph.layers:
            if layer.weight_s is None:
                where = f"widths.{graph.width}: layer {layer.id}: weight_s"
                raise InputError(where, f"it is missing and {family} needs it", "add it")


def layer_graph(
    width: int,
    layers: Sequence[PlacedLayer],
    edges: Iterable[tuple[int, int, float]],
    where: str = "widths",
) -> LayerGraph:
    """Sort layers topologically, ties by id; ``edges`` name layers by id. Faults are said with
    their path."""
    place = f"{where}.{width}"
    if width < 1:
        raise InputError(place, f"width {width} is out of range", "it must be at least 1")
    if not layers:
        raise InputError(f"{place}.layers", "there is no layer", "give at least one")
    by_id = {layer.id: layer for layer in layers}
    if len(by_id) != len(layers):
        ids = [layer.id for layer in layers]
        twice = next(id_ for id_ in ids if ids.count(id_) > 1)
        raise InputError(
            f"{place}.layers", f"the id {twice} appears twice", "give every layer its own id"
        )
    edge_list = list(edges)
    follows: dict[int, list[int]] = {id_: [] for id_ in by_id}
    waits = dict.fromkeys(by_id, 0)
    for index, (tail, head, _) in enumerate(edge_list):
        for end, name in ((tail, "from"), (head, "to")):
            if end not in by_id:
                raise InputError(
                    f"{place}.edges[{index}].{name}",
                    f"there is no layer {end}",
                    "name a layer of this width",
                )
        follows[tail].append(head)
        waits[head] += 1
    order = _topological(follows, waits)
    if len(order) < len(by_id):
        stuck = min(set(by_id) - set(order))
        raise InputError(
            f"{place}.edges", f"the edges run in a cycle through or into layer {stuck}", "remove it"
        )
    rank = {id_: position for position, id_ in enumerate(order)}
    return LayerGraph(
        width,
        tuple(by_id[id_] for id_ in order),
        tuple(
            LayerEdge(*edge)
            for edge in sorted((rank[tail], rank[head], size) for tail, head, size in edge_list)
        ),
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

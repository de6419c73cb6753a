r"""Rules ``icml24``: what a split of a model over devices costs, as closed formulas, and the values that state it.

A model is a graph of layers for each tensor width t. Layer l takes f_l seconds forward and b_l backward, holds w_l
bytes of parameters and A_l bytes of activations a microbatch; edge e carries |e| bytes. There are K devices of H bytes
each, every device sends and receives B bytes a second, and a batch is M microbatches.

A *stage* X is a set of layers. Stages X_1 .. X_S in pipeline order are a partition of the layers in which no edge goes
backwards; stage i has the number s = S - i + 1, counted from the end. The layers of a stage run one after another, in
topological order, ties by id: x_1 .. x_n. An edge *enters* X at its head if its tail lies outside, and *leaves* X at
its tail if its head lies outside.

    devices   a(X)  = t if a layer of X is sharded, else 1
    forward   F(X)  = max( f(X),  max over entering e at x_k of |e| / B + f_k + ... + f_n )
    backward  R(X)  = max( b(X),  max over leaving  e at x_k of |e| / B + b_1 + ... + b_k )
      again   R'(X) = max( f(X) + b(X),  the same )            when X stashes nothing and runs its forward again
    time      T(X)  = F + R, or F + R' when it recomputes; the last stage never does
    memory    m(X)  = (2 or, with Adam, 3) w(X) + A(X) + (s - 1) Z  <= H
              Z     = A(X) when it stashes, the bytes of all entering edges when it recomputes

Here f(X), b(X), w(X), A(X) are sums over the stage. With d copies of the pipeline, each on at most K / d devices, under
the pipeline schedule 1F1B with a flush after ceil(M / d) microbatches,

    batch time = max over i of T(X_i) * (ceil(M / d) + S - 1)  +  4 (d - 1) / d * w(X_1) / B          (batch_seconds)

which GPipe shares, as only its memory differs. That formula is what a solver minimises and what a plan is judged by; an
event simulation of the same schedule never takes longer (docs/placement.md has the proof).
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from phaze.errors import InputError

Optimizer = Literal["sgd", "adam"]
Recompute = Literal["none", "full", "best"]
StageRecompute = Literal["none", "selective", "full"]

# Sums of the same bytes in another order differ in the last bits; a need that exceeds the memory by no more than that
# fits.
ROUNDING = 1e-12
# No second or byte of a layer may reach this, so that no sum or product overflows.
LARGEST = 1e24


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer at one tensor width, all numbers of one device and one microbatch."""

    id: int
    forward_s: float
    backward_s: float
    parameter_bytes: float
    activation_bytes: float
    sharded: bool

    def __post_init__(self) -> None:
        for name in ("forward_s", "backward_s", "parameter_bytes", "activation_bytes"):
            if not 0 <= getattr(self, name) < LARGEST:
                raise InputError(
                    f"layer {self.id}: {name}",
                    f"{getattr(self, name)!r} is out of range",
                    f"it must be at least 0 and below {LARGEST:g}",
                )


@dataclass(frozen=True, slots=True)
class Edge:
    """Bytes from the layer at position ``tail`` of a graph to the one at position ``head``."""

    tail: int
    head: int
    size_bytes: float


@dataclass(frozen=True, slots=True)
class LayerGraph:
    """The layers of one tensor width in topological order, ties by id, and the edges between them."""

    width: int
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """A placement problem under rules ``icml24``; ``graphs`` by ascending width."""

    devices: int
    hbm_bytes: float
    link_bytes_per_s: float
    microbatches: int
    optimizer: Optimizer
    recompute: Recompute
    graphs: tuple[LayerGraph, ...]

    def __post_init__(self) -> None:
        for name in ("devices", "microbatches", "hbm_bytes", "link_bytes_per_s"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0):
                raise InputError(name, f"{value!r} is out of range", "it must be greater than 0")
        require_same_layers(self.graphs)

    def graph(self, width: int) -> LayerGraph:
        """The layers at ``width``."""
        for graph in self.graphs:
            if graph.width == width:
                return graph
        raise InputError("tensor", f"width {width} is missing", f"given are {[g.width for g in self.graphs]}")

    @property
    def state_factor(self) -> float:
        """Bytes held for a byte of parameters: the parameter, its gradient, and with Adam as much again."""
        return 3.0 if self.optimizer == "adam" else 2.0

    def fits(self, need_bytes: float) -> bool:
        """Whether a device has that much memory."""
        return need_bytes <= self.hbm_bytes * (1 + ROUNDING)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device of a stage, by term."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    in_flight: float
    reserve: float = 0.0

    @property
    def total_bytes(self) -> float:
        return self.parameters + self.gradients + self.optimizer + self.activations + self.in_flight + self.reserve


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a plan and what it costs; ``forward_s`` and ``backward_s`` include waiting and recomputing."""

    layers: tuple[int, ...]
    devices: int
    recompute: StageRecompute
    forward_s: float
    backward_s: float
    time_s: float
    memory: Memory


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the batch time goes; the terms sum to it.

    Per-microbatch terms are those of the slowest stage, times the microbatches of a copy; ``bubble_s`` is S - 1 times
    that stage's time, under rules ``cluster`` the time of the other stages and of waiting. ``synchronisation_s`` holds
    what is not hidden of all collectives over copies. The last two are of rules ``cluster``.
    """

    forward_s: float
    backward_s: float
    recompute_s: float
    transfer_s: float
    bubble_s: float
    synchronisation_s: float
    optimizer_s: float = 0.0
    tied_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A priced split: ``tensor`` wide, ``data`` copies of a pipeline of ``stages``.

    ``order`` says what lies next to each other beyond tensor groups, under rules ``cluster``: the stages of a copy
    (``pipeline``) or the copies of a stage (``data``). ``chunks`` pieces of a stage take turns (interleaved 1F1B).
    """

    tensor: int
    data: int
    stages: tuple[Stage, ...]
    batch_s: float
    lower_bound_s: float
    simulated_s: float
    breakdown: Breakdown
    order: Literal["", "pipeline", "data"] = ""
    chunks: int = 1


def batch_seconds(longest_s: float, microbatches: int, stages: int, data: int) -> float:
    """The pipeline's share of the batch time: max T * (ceil(M / d) + S - 1)."""
    return longest_s * (-(-microbatches // data) + stages - 1)


def synchronisation_seconds(first_parameter_bytes: float, data: int, link_bytes_per_s: float) -> float:
    """4 (d - 1) / d * w_first / B: a reduction and a gather of the first stage's gradients, never hidden."""
    return 4 * (data - 1) / data * first_parameter_bytes / link_bytes_per_s


def require_same_layers(graphs: Sequence[LayerGraph]) -> None:
    """Refuse graphs that are not one model at several widths, each once and ascending."""
    if not graphs:
        raise InputError("widths", "there is no tensor width", "give the layers of at least one")
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


def layer_graph(
    width: int, layers: Sequence[Layer], edges: Iterable[tuple[int, int, float]], where: str = "widths"
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
        raise InputError(f"{place}.layers", f"the id {twice} stands twice", "give every layer its own id")
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
        tuple(Edge(*edge) for edge in sorted((rank[tail], rank[head], size) for tail, head, size in given)),
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

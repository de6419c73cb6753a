"""What the layers of a stage add up to, and when edges arrive inside it: the sums of
:mod:`phaze.placement.problem`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from phaze.placement.frozen import frozen_sums
from phaze.placement.layers import LayerGraph, PlacedLayer
from phaze.placement.prepared_width import kind_of
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import Mode
from phaze.placement.stage_memory import StageSums
from phaze.placement.structure import StageCut


def _walk(start_s: float, steps: Iterable[tuple[float, float]]) -> float:
    """The end of steps (arrival, duration) that run one after another from ``start_s``."""
    for arrival_s, duration_s in steps:
        start_s = max(start_s, arrival_s) + duration_s
    return start_s


@dataclass(frozen=True, slots=True)
class Arrivals:
    """By position of a layer: bytes of all edges that enter it, and from other stages; seconds of
    the slowest edge from and to other stages, where edges arrive inside stages."""

    entering: list[float]
    came: list[float]
    entering_s: list[float]
    leaving_s: list[float]


def arrivals_of(problem: PlacementProblem, graph: LayerGraph, owner: dict[int, int]) -> Arrivals:
    arrivals = Arrivals(*([0.0] * len(graph.layers) for _ in range(4)))
    link = problem.rules.link_bytes_per_s if problem.rules.stage == "icml24" else None
    stage_of = [owner[layer.id] for layer in graph.layers]
    for edge in graph.edges:
        tail, head = edge.tail, edge.head
        arrivals.entering[head] += edge.size_bytes
        if stage_of[tail] != stage_of[head]:
            arrivals.came[head] += edge.size_bytes
            if link is not None:
                seconds = edge.size_bytes / link
                arrivals.entering_s[head] = max(arrivals.entering_s[head], seconds)
                arrivals.leaving_s[tail] = max(arrivals.leaving_s[tail], seconds)
    return arrivals


def _waiting(
    graph: LayerGraph, positions: Sequence[int], edges: Arrivals, again_s: float
) -> tuple[float, float]:
    """What edges that arrive inside a stage add to its forward and its backward."""
    layers = graph.layers
    forward_s = _walk(0.0, ((edges.entering_s[p], layers[p].forward_s) for p in positions))
    backward_s = _walk(
        again_s, ((edges.leaving_s[p], layers[p].backward_s) for p in reversed(positions))
    )
    ahead_s, behind_s = (
        sum(layers[p].forward_s for p in positions),
        sum(layers[p].backward_s for p in positions),
    )
    return max(0.0, forward_s - ahead_s), max(0.0, backward_s - again_s - behind_s)


def _recomputed(
    layer: PlacedLayer, mode: Mode, entering_bytes: float
) -> tuple[float, float, float]:
    """What a layer keeps of each microbatch in a mode, what lives beside it while its backward
    runs, and the seconds that it recomputes."""
    saved, beside, again_s = layer.activation_bytes, None, 0.0
    if mode == "full":
        saved = entering_bytes
        again_s = layer.forward_s if layer.full_s is None else layer.full_s
    elif mode == "selective" and layer.selective_bytes is not None:
        saved, again_s = layer.selective_bytes, layer.selective_s
    for option in layer.more:
        if option.name == mode:
            saved, beside = option.bytes, option.live_bytes
            again_s += option.again_s
    return saved, max(0.0, layer.activation_bytes - saved) if beside is None else beside, again_s


def sums_of(
    problem: PlacementProblem,
    mode: Mode,
    positions: Sequence[int],
    graph_edges: tuple[LayerGraph, Arrivals],
) -> StageSums:
    """The sums of the layers at ``positions`` of a graph, with what arrives at each."""
    graph, edges = graph_edges
    forward_s = backward_s = again_s = parameters = kept_bytes = live = 0.0
    inside = problem.rules.stage == "icml24"
    entering = edges.came if inside else edges.entering
    shared: set[str] = set()
    layer_s, layers = [], [graph.layers[position] for position in positions]
    for position, layer in zip(positions, layers, strict=True):
        before_s = again_s
        forward_s += layer.forward_s
        backward_s += layer.backward_s
        parameters += layer.parameter_bytes
        if layer.tied is not None:
            parameters -= layer.tied_bytes if layer.tied in shared else 0.0
            shared.add(layer.tied)
        saved, beside, recomputed_s = _recomputed(layer, mode, entering[position])
        again_s += recomputed_s
        layer_s.append((layer.forward_s, layer.backward_s + again_s - before_s))
        kept_bytes += saved
        live = max(live, beside + layer.live_bytes)
    waiting_s = (0.0, 0.0)
    if inside:
        live = sum(layer.activation_bytes for layer in layers) - kept_bytes
        live += max(layer.live_bytes for layer in layers)
        waiting_s = _waiting(graph, positions, edges, again_s)
    buffers = {
        kind_of(graph.layers, place): graph.layers[place].buffer_bytes for place in positions
    }
    has_experts = problem.has_experts
    frozen = tuple(layer.frozen for layer in layers)
    return StageSums(
        forward_s=forward_s,
        backward_s=backward_s,
        again_s=again_s,
        waiting_s=waiting_s,
        parameter_bytes=parameters,
        kept_bytes=kept_bytes,
        live_bytes=live,
        buffer_bytes=sum(buffers.values()),
        layer_bytes=tuple(layer.parameter_bytes for layer in layers),
        layer_experts=tuple(layer.expert_bytes if has_experts else 0.0 for layer in layers),
        weight_s=sum(layer.weight_s or 0.0 for layer in layers),
        layer_s=tuple(layer_s),
        layer_frozen=frozen,
        frozen=frozen_sums(frozen, has_experts, problem.gathers_pairs),
        beside_s=sum(la.beside_s for la in layers) if problem.runs_exchanges_beside else 0.0,
    )


def stage_sums(
    problem: PlacementProblem, graph: LayerGraph, cuts: Sequence[StageCut], owner: dict[int, int]
) -> tuple[list[list[int]], list[StageSums]]:
    """The layers of every stage by position, and what they add up to; stages of the same amounts
    are summed once."""
    place, edges = (
        {layer.id: position for position, layer in enumerate(graph.layers)},
        arrivals_of(problem, graph, owner),
    )
    ends = zip(edges.entering, edges.came, edges.entering_s, edges.leaving_s, strict=True)
    kinds: dict[tuple[object, ...], int] = {}
    kind = [kinds.setdefault(key, len(kinds)) for key in zip(graph.alike, ends, strict=True)]
    each = [sorted(place[id_] for id_ in cut.layers) for cut in cuts]
    distinct: dict[tuple[Mode, tuple[int, ...]], StageSums] = {}
    sums = []
    for cut, positions in zip(cuts, each, strict=True):
        key = (cut.mode, tuple(kind[position] for position in positions))
        if key not in distinct:
            distinct[key] = sums_of(problem, cut.mode, positions, (graph, edges))
        sums.append(distinct[key])
    return each, sums

"""What the layers of a stage add up to, and when edges arrive inside it: the sums of :mod:`phaze.placement.problem`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from phaze.placement.frozen import frozen_sums
from phaze.placement.layers import LayerGraph
from phaze.placement.prepared_width import kind_of
from phaze.placement.problem import Extra, PlacementProblem
from phaze.placement.rules import Mode
from phaze.placement.stage_memory import StageSums
from phaze.placement.structure import StageCut

_amounts = attrgetter("forward_s", "backward_s", "parameter_bytes", "activation_bytes", "weight_s", "expert_bytes")


def _walk(start_s: float, steps: Iterable[tuple[float, float]]) -> float:
    """The end of steps (arrival, duration) that run one after another from ``start_s``."""
    for arrival_s, duration_s in steps:
        start_s = max(start_s, arrival_s) + duration_s
    return start_s


@dataclass(frozen=True, slots=True)
class Arrivals:
    """By position of a layer: bytes of all edges that enter it, and from other stages; seconds of the slowest edge from
    and to other stages, where edges arrive inside stages."""

    entering: list[float]
    came: list[float]
    entering_s: list[float]
    leaving_s: list[float]


def arrivals_of(problem: PlacementProblem, graph: LayerGraph, owner: dict[int, int]) -> Arrivals:
    found = Arrivals(*([0.0] * len(graph.layers) for _ in range(4)))
    link = problem.rules.link_bytes_per_s if problem.rules.stage == "icml24" else None
    stage_of = [owner[layer.id] for layer in graph.layers]
    for edge in graph.edges:
        tail, head = edge.tail, edge.head
        found.entering[head] += edge.size_bytes
        if stage_of[tail] != stage_of[head]:
            found.came[head] += edge.size_bytes
            if link is not None:
                seconds = edge.size_bytes / link
                found.entering_s[head] = max(found.entering_s[head], seconds)
                found.leaving_s[tail] = max(found.leaving_s[tail], seconds)
    return found


def _waiting(graph: LayerGraph, positions: Sequence[int], edges: Arrivals, again_s: float) -> tuple[float, float]:
    """What edges that arrive inside a stage add to its forward and its backward."""
    layers = graph.layers
    forward_s = _walk(0.0, ((edges.entering_s[p], layers[p].forward_s) for p in positions))
    backward_s = _walk(again_s, ((edges.leaving_s[p], layers[p].backward_s) for p in reversed(positions)))
    ahead_s, behind_s = sum(layers[p].forward_s for p in positions), sum(layers[p].backward_s for p in positions)
    return max(0.0, forward_s - ahead_s), max(0.0, backward_s - again_s - behind_s)


def sums_of(
    problem: PlacementProblem,
    extras: Sequence[Extra],
    mode: Mode,
    positions: Sequence[int],
    given: tuple[LayerGraph, Arrivals],
) -> StageSums:
    graph, edges = given
    forward_s = backward_s = again_s = parameters = kept = live = 0.0
    inside = problem.rules.stage == "icml24"
    entering = edges.came if inside else edges.entering
    shared: set[str] = set()
    layer_s = []
    for position in positions:
        layer, extra, before_s = graph.layers[position], extras[position], again_s
        forward_s += layer.forward_s
        backward_s += layer.backward_s
        parameters += layer.parameter_bytes
        if extra.tied is not None:
            parameters -= extra.tied_bytes if extra.tied in shared else 0.0
            shared.add(extra.tied)
        saved, beside = layer.activation_bytes, None
        if mode == "full":
            saved = entering[position]
            again_s += layer.forward_s if extra.full_s is None else extra.full_s
        elif mode == "selective" and extra.selective_bytes is not None:
            saved = extra.selective_bytes
            again_s += extra.selective_s
        for own in extra.more:
            if own.name == mode:
                saved, beside = own.bytes, own.live_bytes
                again_s += own.again_s
        layer_s.append((layer.forward_s, layer.backward_s + again_s - before_s))
        kept += saved
        beside = max(0.0, layer.activation_bytes - saved) if beside is None else beside
        live = max(live, beside + extra.live_bytes)
    waiting_s = (0.0, 0.0)
    if inside:
        live = sum(graph.layers[position].activation_bytes for position in positions) - kept
        live += max(extras[position].live_bytes for position in positions)
        waiting_s = _waiting(graph, positions, edges, again_s)
    sizes = tuple(graph.layers[position].parameter_bytes for position in positions)
    buffers = sum({kind_of(extras, position): extras[position].buffer_bytes for position in positions}.values())
    has_experts = problem.has_experts
    experts = tuple(graph.layers[position].expert_bytes if has_experts else 0.0 for position in positions)
    weight_s = sum(graph.layers[position].weight_s or 0.0 for position in positions)
    frozen = tuple(extras[position].frozen for position in positions)
    still = frozen_sums(frozen, has_experts, problem.gathers_pairs)
    whole = (parameters, kept, live, buffers, sizes, experts, weight_s, tuple(layer_s), frozen, still)
    return StageSums(forward_s, backward_s, again_s, waiting_s, *whole)


def stage_sums(
    problem: PlacementProblem,
    graph: LayerGraph,
    extras: Sequence[Extra],
    cuts: Sequence[StageCut],
    owner: dict[int, int],
) -> tuple[list[list[int]], list[StageSums]]:
    """The layers of every stage by position, and what they add up to; stages of the same amounts are summed once."""
    place, edges = {layer.id: at for at, layer in enumerate(graph.layers)}, arrivals_of(problem, graph, owner)
    ends = zip(edges.entering, edges.came, edges.entering_s, edges.leaving_s, strict=True)
    kinds: dict[tuple[object, ...], int] = {}
    kind = [
        kinds.setdefault((_amounts(layer), id(extra), end), len(kinds))
        for layer, extra, end in zip(graph.layers, extras, ends, strict=True)
    ]
    each = [sorted(place[id_] for id_ in cut.layers) for cut in cuts]
    known: dict[tuple[Mode, tuple[int, ...]], StageSums] = {}
    sums = []
    for cut, own in zip(cuts, each, strict=True):
        key = (cut.mode, tuple(kind[position] for position in own))
        if key not in known:
            known[key] = sums_of(problem, extras, cut.mode, own, (graph, edges))
        sums.append(known[key])
    return each, sums

"""What any given plan costs: every formula of :mod:`phaze.placement.problem`, line by line, without a solver.

A plan is a tensor width, a data degree and the stages in pipeline order, each with its layers and whether it
recomputes. A plan that breaks the structure (a layer lost, an edge backwards, too many devices) is refused; one that
does not fit into memory is priced all the same, and :func:`fits` tells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from phaze.errors import InputError
from phaze.placement.problem import (
    ROUNDING,
    Breakdown,
    Layer,
    LayerGraph,
    Memory,
    Plan,
    Problem,
    Stage,
    batch_seconds,
    synchronisation_seconds,
)
from phaze.placement.simulate import simulated_seconds


@dataclass(frozen=True, slots=True)
class Cut:
    """A stage as it is asked for: the ids of its layers, and whether it runs its forward pass again."""

    layers: tuple[int, ...]
    recompute: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A stage's place in a graph: positions of its layers in order, seconds of the edges that its layers wait for, by
    position, and the bytes that enter."""

    order: list[int] = field(default_factory=list)
    entering_s: dict[int, float] = field(default_factory=dict)
    leaving_s: dict[int, float] = field(default_factory=dict)
    entering: list[float] = field(default_factory=list)


def _places(graph: LayerGraph, cuts: Sequence[Cut], link_bytes_per_s: float) -> list[_Place]:
    stage_of = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    owner = [stage_of[layer.id] for layer in graph.layers]
    places = [_Place() for _ in cuts]
    for position, stage in enumerate(owner):
        places[stage].order.append(position)
    for edge in graph.edges:
        source, target = places[owner[edge.tail]], places[owner[edge.head]]
        if source is not target:
            seconds = edge.size_bytes / link_bytes_per_s
            target.entering_s[edge.head] = max(target.entering_s.get(edge.head, 0.0), seconds)
            target.entering.append(edge.size_bytes)
            source.leaving_s[edge.tail] = max(source.leaving_s.get(edge.tail, 0.0), seconds)
    return places


def _walk(start_s: float, steps: Iterable[tuple[float, float]]) -> float:
    """The end of steps (arrival, duration) that run one after another from ``start_s``."""
    for arrival_s, duration_s in steps:
        start_s = max(start_s, arrival_s) + duration_s
    return start_s


def _memory(problem: Problem, layers: Sequence[Layer], number: int, kept_bytes: float) -> Memory:
    parameters = sum(layer.parameter_bytes for layer in layers)
    return Memory(
        parameters=parameters,
        gradients=parameters,
        optimizer=parameters if problem.optimizer == "adam" else 0.0,
        activations=sum(layer.activation_bytes for layer in layers),
        in_flight=(number - 1) * kept_bytes,
    )


def _stage(problem: Problem, graph: LayerGraph, place: _Place, recompute: bool, number: int) -> Stage:
    """The stage that stands at ``number`` counted from the end of its pipeline."""
    layers = [graph.layers[position] for position in place.order]
    forward_s = _walk(0.0, ((place.entering_s.get(p, 0.0), graph.layers[p].forward_s) for p in place.order))
    again_s = sum(layer.forward_s for layer in layers) if recompute else 0.0
    backward = ((place.leaving_s.get(p, 0.0), graph.layers[p].backward_s) for p in reversed(place.order))
    backward_s = _walk(again_s, backward)
    kept = sum(place.entering) if recompute else sum(layer.activation_bytes for layer in layers)
    return Stage(
        layers=tuple(layer.id for layer in layers),
        devices=graph.width if any(layer.sharded for layer in layers) else 1,
        recompute="full" if recompute else "none",
        forward_s=forward_s,
        backward_s=backward_s,
        time_s=forward_s + backward_s,
        memory=_memory(problem, layers, number, kept),
    )


def _require_structure(graph: LayerGraph, cuts: Sequence[Cut]) -> None:
    stage_of = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    if sum(len(cut.layers) for cut in cuts) != len(stage_of) or any(not cut.layers for cut in cuts):
        raise InputError("stages", "a layer stands twice or a stage is empty", "give every layer one stage")
    unlike = sorted(set(stage_of) ^ {layer.id for layer in graph.layers})
    if unlike:
        raise InputError("stages", f"layer {unlike[0]} is lost or unknown", "give every layer of the graph one stage")
    for edge in graph.edges:
        tail, head = graph.layers[edge.tail].id, graph.layers[edge.head].id
        if stage_of[tail] > stage_of[head]:
            raise InputError("stages", f"the edge from {tail} to {head} runs backwards", "keep the order of the edges")
    if cuts[-1].recompute:
        raise InputError(f"stages[{len(cuts) - 1}]", "the last stage recomputes", "let it keep what it computed")


def _breakdown(problem: Problem, graph: LayerGraph, stages: Sequence[Stage], data: int, sync_s: float) -> Breakdown:
    slowest = max(stages, key=lambda stage: stage.time_s)
    ids = set(slowest.layers)
    own = [layer for layer in graph.layers if layer.id in ids]
    forward_s, backward_s = sum(layer.forward_s for layer in own), sum(layer.backward_s for layer in own)
    again_s = forward_s if slowest.recompute == "full" else 0.0
    waits_s = slowest.time_s - forward_s - backward_s - again_s
    rounds = -(-problem.microbatches // data)
    return Breakdown(
        forward_s=rounds * forward_s,
        backward_s=rounds * backward_s,
        recompute_s=rounds * again_s,
        transfer_s=rounds * waits_s if waits_s > ROUNDING * slowest.time_s else 0.0,
        bubble_s=(len(stages) - 1) * slowest.time_s,
        synchronisation_s=sync_s,
    )


def price(problem: Problem, tensor: int, data: int, cuts: Sequence[Cut]) -> Plan:
    """The plan with its batch time; nothing is proved of it, so its lower bound is 0."""
    graph = problem.graph(tensor)
    if not 1 <= data <= min(problem.devices, problem.microbatches):
        raise InputError("data", f"{data} copies are out of range", "use 1 to min(devices, microbatches)")
    if not cuts:
        raise InputError("stages", "there is no stage", "give at least one")
    _require_structure(graph, cuts)
    places = _places(graph, cuts, problem.link_bytes_per_s)
    stages = tuple(
        _stage(problem, graph, place, cut.recompute, len(cuts) - i)
        for i, (place, cut) in enumerate(zip(places, cuts, strict=True))
    )
    taken = sum(stage.devices for stage in stages)
    if taken > problem.devices // data:
        raise InputError(
            "stages", f"{data} copies of {taken} devices are more than {problem.devices}", "use fewer copies or stages"
        )
    longest_s = max(stage.time_s for stage in stages)
    sync_s = synchronisation_seconds(stages[0].memory.parameters, data, problem.link_bytes_per_s)
    plan = Plan(
        tensor=tensor,
        data=data,
        stages=stages,
        batch_s=batch_seconds(longest_s, problem.microbatches, len(stages), data) + sync_s,
        lower_bound_s=0.0,
        simulated_s=0.0,
        breakdown=_breakdown(problem, graph, stages, data, sync_s),
    )
    return replace(plan, simulated_s=simulated_seconds(problem, plan, sync_s))


def fits(problem: Problem, plan: Plan) -> bool:
    """Whether every stage fits into the memory of its devices."""
    return all(problem.fits(stage.memory.total_bytes) for stage in plan.stages)

"""What any given plan costs: every formula of :mod:`phaze.placement.problem`, line by line, without
a solver.

A plan is a shape and its stages in pipeline order, each with its layers and its recompute mode. A
plan that breaks the structure (a layer lost, an edge backwards, too many devices) is refused; one
that does not fit into memory is priced all the same, and :func:`fits` tells.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from phaze.cost.network_prices import NetworkPrices
from phaze.pipeline.family import Family
from phaze.placement import batch_end
from phaze.placement.layout import Shape, boundary_levels
from phaze.placement.plan import Breakdown, Plan, Stage
from phaze.placement.prepared_width import starts_s, wraparound_bytes
from phaze.placement.problem import ROUNDING, PlacementProblem
from phaze.placement.simulate import replica_seconds
from phaze.placement.stage_memory import HeldBytes, StageSums, memory_of
from phaze.placement.stage_pace import timed
from phaze.placement.stage_sums import arrivals_of, stage_sums, sums_of
from phaze.placement.structure import (
    StageCut,
    require_degrees,
    require_exchanged_once,
    require_modes,
    require_structure,
)

Floats = npt.NDArray[np.float64]


def fits_at(
    problem: PlacementProblem, shape: Shape, cuts: Sequence[StageCut], stages: Iterable[int]
) -> bool:
    """Whether the stages of these numbers fit into memory when the plan has the shape and these
    cuts."""
    graph = problem.graph(shape.tensor)
    owner = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    place, graph_edges = (
        {layer.id: position for position, layer in enumerate(graph.layers)},
        (graph, arrivals_of(problem, graph, owner)),
    )
    family, held_bytes = problem.family(shape.family, shape.chunks), HeldBytes.of(problem, shape)
    for number in stages:
        sums = sums_of(
            problem,
            cuts[number].mode,
            sorted(place[id_] for id_ in cuts[number].layers),
            graph_edges,
        )
        in_flight = family.in_flight(problem.rounds(shape.data), len(cuts) - number, len(cuts))
        if not problem.fits(memory_of(problem, held_bytes, sums, in_flight).total_bytes):
            return False
    return True


def _transfers(
    problem: PlacementProblem,
    shape: Shape,
    family: Family,
    owner: dict[int, int],
    prices: NetworkPrices,
) -> list[float]:
    """What a microbatch takes to cross every boundary, the entry of the first stage and the exit of
    the last included: v x, and v - 1 times the way around at both ends."""
    graph = problem.graph(shape.tensor)
    if problem.rules.stage != "layers":
        return [0.0] * (shape.stages + 1)
    carried = [0.0] * (shape.stages - 1)
    for edge in graph.edges:
        for boundary in range(owner[graph.layers[edge.tail].id], owner[graph.layers[edge.head].id]):
            carried[boundary] += edge.size_bytes
    lanes = shape.tensor // problem.sharing.context if problem.scatter_gather else 1
    levels = boundary_levels(problem.cluster, shape).tolist()

    def once(level: int, size: float) -> float:
        return float(prices.transfer_s(level, np.array([size / lanes]))[0])

    between = [
        shape.chunks * once(level, size) for level, size in zip(levels, carried, strict=True)
    ]
    # A family without them must not be asked for a price: one stage has no level to cross.
    wraps = family.wraparound_transfers
    wraparound_s = wraps * once(max(levels, default=0), wraparound_bytes(graph)) if wraps else 0.0
    return [wraparound_s, *between, wraparound_s]


def _collectives(
    problem: PlacementProblem, shape: Shape, prices: NetworkPrices, sums: Sequence[StageSums]
) -> list[tuple[Floats, Floats]]:
    """The collectives of ZeRO 2 and 3 of the layers of every stage, forward and backward."""
    if problem.zero < 2:
        return [(np.empty(0), np.empty(0)) for _ in sums]
    sizes, experts = (
        np.array([size for stage in sums for size in getattr(stage, name)])
        for name in ("layer_bytes", "layer_experts")
    )
    ends = np.cumsum([len(stage.layer_bytes) for stage in sums])[:-1]
    frozen = [layer for stage in sums for layer in stage.layer_frozen]
    ahead_s, behind_s = batch_end.collected_s(problem, shape, prices, sizes, experts, frozen)
    return list(zip(np.split(ahead_s, ends), np.split(behind_s, ends), strict=True))


def _passes(
    problem: PlacementProblem, sums: StageSums, collectives_s: tuple[Floats, Floats]
) -> tuple[float, float]:
    """Forward and backward of a stage without transfers, with what is exposed of the collectives of
    ZeRO 2 and 3."""
    forward_s = sums.forward_s + sums.waiting_s[0]
    backward_s = sums.again_s + sums.backward_s + sums.waiting_s[1]
    if problem.zero < 2:
        return forward_s, backward_s
    cost, (ahead_s, behind_s) = problem.rules.sharded_cost, collectives_s
    if problem.rules.prefetch == "stage":
        ahead, behind = float(ahead_s.sum()), float(behind_s.sum())
        return overlapped(forward_s, ahead, cost), overlapped(backward_s, behind, cost)
    for (ahead, behind), (layer_s, back_s) in zip(
        zip(ahead_s.tolist(), behind_s.tolist(), strict=True), sums.layer_s, strict=True
    ):
        forward_s += overlapped(layer_s, ahead, cost) - layer_s
        backward_s += overlapped(back_s, behind, cost) - back_s
    return forward_s, backward_s


def _end(
    problem: PlacementProblem, shape: Shape, prices: NetworkPrices, counted: Sequence[StageSums]
) -> tuple[float, float]:
    """Synchronisation and step of the stage whose end is the last."""
    sizes, experts = (
        np.array([getattr(stage, name) for stage in counted])
        for name in ("parameter_bytes", "expert_bytes")
    )
    syncs_s = batch_end.synchronisation_s(problem, shape, prices, sizes, experts_bytes=experts)
    steps_s = batch_end.step_s(problem, shape, sizes, experts)
    steps_s = steps_s + batch_end.norm_s(problem, shape, prices)
    last = int(np.argmax(syncs_s + steps_s))
    return float(syncs_s[last]), float(steps_s[last])


def overlapped(work_s: float, collectives_s: float, cost: float) -> float:
    """Work and collectives, a second of which adds ``cost`` where it is beside work: max(w + cost v,
    v)."""
    return max(work_s + cost * collectives_s, collectives_s)


def _tied(
    problem: PlacementProblem, shape: Shape, owner: dict[int, int], prices: NetworkPrices
) -> float:
    """Y: an all-reduce for each group of tied layers that lies in several stages."""
    groups: dict[str, list[int]] = {}
    sizes: dict[str, float] = {}
    for layer in problem.graph(shape.tensor).layers:
        if layer.tied is not None:
            groups.setdefault(layer.tied, []).append(owner[layer.id])
            sizes[layer.tied] = layer.tied_bytes
    crossing = {name: stages for name, stages in groups.items() if len(set(stages)) > 1}
    return sum(
        batch_end.tied_s(problem, shape, prices, len(stages), sizes[name])
        for name, stages in crossing.items()
    )


def _devices(problem: PlacementProblem, shape: Shape, cuts: Sequence[StageCut]) -> list[int]:
    """Devices of every stage: one where none of its layers is sharded and the rules allow it."""
    split = {
        layer.id
        for layer in problem.graph(shape.tensor).layers
        if layer.sharded or not problem.rules.unsplit_stages
    }
    return [1 if split.isdisjoint(cut.layers) else shape.tensor for cut in cuts]


def _stages(
    problem: PlacementProblem,
    shape: Shape,
    cuts: Sequence[StageCut],
    owner: dict[int, int],
    devices: Sequence[int],
    prices: NetworkPrices,
) -> tuple[list[Stage], list[StageSums], list[tuple[float, float]]]:
    """Every stage, what its layers add up to, and its passes without transfers."""
    graph = problem.graph(shape.tensor)
    family, rounds = problem.family(shape.family, shape.chunks), problem.rounds(shape.data)
    moves = _transfers(problem, shape, family, owner, prices)
    each, sums = stage_sums(problem, graph, cuts, owner)
    collectives_s = _collectives(problem, shape, prices, sums)
    passes_s = [_passes(problem, *stage) for stage in zip(sums, collectives_s, strict=True)]
    held_bytes, start_s = HeldBytes.of(problem, shape), starts_s(problem, family)
    unpaired = problem.rules.unpaired_share(family, rounds, len(cuts))
    overlaps = problem.rules.overlaps(family)
    alone = problem.rules.alone_share(family, rounds, len(cuts))
    stages = []
    for i, (cut, stage_sum) in enumerate(zip(cuts, sums, strict=True)):
        # What exchanges of experts take with no other microbatch beside them counts as backward.
        works_s = passes_s[i][0], passes_s[i][1] + alone * stage_sum.beside_s
        (forward_s, ahead_s, into_s), (backward_s, behind_s, back_s) = (
            timed(work_s, moved_s, start_s, unpaired, overlaps)
            for work_s, moved_s in zip(works_s, moves[i : i + 2], strict=True)
        )
        stages.append(
            Stage(
                layers=tuple(graph.layers[position].id for position in each[i]),
                devices=devices[i],
                recompute=cut.mode,
                forward_s=forward_s,
                backward_s=backward_s,
                time_s=ahead_s + behind_s,
                memory=memory_of(
                    problem,
                    held_bytes,
                    stage_sum,
                    family.in_flight(rounds, len(cuts) - i, len(cuts)),
                ),
                weight_s=stage_sum.weight_s if family.split else 0.0,
                forward_transfer_s=into_s,
                backward_transfer_s=back_s,
                beside_s=(1 - alone) * stage_sum.beside_s,
            )
        )
    return stages, sums, passes_s


def _pipeline_s(family: Family, rounds: int, stages: Sequence[Stage]) -> float:
    """alpha P + beta sum D: the batch without what happens once at its end."""
    depth = len(stages)
    pace_s = max(stage.time_s for stage in stages)
    if family.separate_passes:
        pace_s = max(stage.forward_s for stage in stages) + max(
            stage.backward_s for stage in stages
        )
    counted_s = sum(counted(family, depth, stage) for stage in stages)
    return family.alpha(rounds, depth) * pace_s + family.beta(depth) * counted_s


def price(
    problem: PlacementProblem,
    shape: Shape,
    cuts: Sequence[StageCut],
    prices: NetworkPrices,
    simulated: bool = True,
) -> Plan:
    """The plan with its batch time, fitting or not; nothing is proved of it, so its lower bound is
    0. Its events are run if it is to be ``simulated``."""
    graph = problem.graph(shape.tensor)
    family = problem.family(shape.family, shape.chunks)
    owner = require_structure(problem, graph, shape, cuts)
    devices = _devices(problem, shape, cuts)
    require_degrees(problem, shape, family, sum(devices))
    require_modes(family, cuts)
    require_exchanged_once(problem, cuts)
    stages, sums, passes_s = _stages(problem, shape, cuts, owner, devices, prices)
    rounds = problem.rounds(shape.data)
    sync_s, step_s = _end(
        problem, shape, prices, sums[:1] if problem.rules.end == "first" else sums
    )
    tied_s = _tied(problem, shape, owner, prices)
    pipeline_s = _pipeline_s(family, rounds, stages)
    batch_s = pipeline_s + sync_s + step_s + tied_s
    slowest = max(range(len(stages)), key=lambda i: (stages[i].time_s, -i))
    shown_s = stages[slowest].time_s - sum(passes_s[slowest])
    breakdown = _breakdown(sums[slowest], stages[slowest].time_s, shown_s, rounds)
    breakdown = replace(
        breakdown,
        bubble_s=pipeline_s - rounds * stages[slowest].time_s,
        synchronisation_s=breakdown.synchronisation_s + sync_s,
        optimizer_s=step_s,
        tied_s=tied_s,
    )
    name, order = problem.rules.name, shape.order
    degrees = (order, shape.chunks, family.name, problem.sharing)
    plan = Plan(
        name, shape.tensor, shape.data, tuple(stages), batch_s, 0.0, 0.0, breakdown, *degrees
    )
    if not simulated:
        return plan
    end_s = replica_seconds(plan, family, rounds) + sync_s + step_s + tied_s
    # Where every stage is given the common pace the events never take longer (docs/placement.md);
    # rounding aside.
    return replace(plan, simulated_s=min(end_s, batch_s) if family.pace_stages else end_s)


def counted(family: Family, depth: int, stage: Stage) -> float:
    """D of a stage: its time with transfers waited for, or the greatest form of its F, B and W."""
    if not family.split:
        return stage.blocking_s
    passes = np.array([stage.forward_s, stage.backward_s - stage.weight_s, stage.weight_s])
    return float((family.coefficients(depth) @ passes).max())


def _breakdown(sums: StageSums, time_s: float, moved_s: float, rounds: int) -> Breakdown:
    """What the microbatches of a replica take in a stage, by term."""
    moved_s += sum(sums.waiting_s)
    waited_s = time_s - moved_s - sums.forward_s - sums.backward_s - sums.again_s
    return Breakdown(
        forward_s=rounds * sums.forward_s,
        backward_s=rounds * sums.backward_s,
        recompute_s=rounds * sums.again_s,
        transfer_s=rounds * moved_s if moved_s > ROUNDING * time_s else 0.0,
        bubble_s=0.0,
        synchronisation_s=rounds * waited_s if waited_s > ROUNDING * time_s else 0.0,
    )


def fits(problem: PlacementProblem, plan: Plan) -> bool:
    """Whether every stage fits into the memory of its devices."""
    return all(problem.fits(stage.memory.total_bytes) for stage in plan.stages)

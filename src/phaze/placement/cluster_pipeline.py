"""What any given plan costs under rules ``cluster``: every formula of its problem, line by line, without a solver."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from phaze.errors import InputError
from phaze.placement.cluster_layout import Shape, boundary_levels, copies_by_level
from phaze.placement.cluster_prices import Prices
from phaze.placement.cluster_problem import ClusterProblem, Extra, Mode, batch_seconds, beside, pace_seconds
from phaze.placement.one.pipeline import Cut
from phaze.placement.problem import Breakdown, LayerGraph, Memory, Plan, Stage
from phaze.placement.simulate import one_copy_seconds

Floats = npt.NDArray[np.float64]


# One class of stages that are requested, until the other solver goes.
ModeCut = Cut


@dataclass(frozen=True, slots=True)
class _Sums:
    """What a stage adds up to, apart from its place in a plan."""

    forward_s: float
    backward_s: float
    again_s: float
    parameter_bytes: float
    largest_bytes: float
    kept_bytes: float
    live_bytes: float
    layer_bytes: tuple[float, ...]


def _require_structure(problem: ClusterProblem, graph: LayerGraph, shape: Shape, cuts: Sequence[ModeCut]) -> None:
    owner = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    if sorted(id_ for cut in cuts for id_ in cut.layers) != sorted(layer.id for layer in graph.layers):
        raise InputError("stages", "they do not hold every layer once", "give every layer one stage")
    if any(not cut.layers for cut in cuts):
        raise InputError("stages", "a stage is empty", "leave it out")
    for edge in graph.edges:
        tail, head = graph.layers[edge.tail].id, graph.layers[edge.head].id
        if owner[tail] > owner[head]:
            raise InputError("stages", f"the edge from {tail} to {head} runs backwards", "keep the order of the edges")
    if shape.tensor * shape.stages * shape.data > problem.devices or not 1 <= shape.data <= problem.microbatches:
        raise InputError("data", f"{shape.data} copies are out of range", "use fewer copies or stages")


def _require_chunks(problem: ClusterProblem, rounds: int, stages: int, chunks: int) -> None:
    if chunks < 1 or (chunks > 1 and problem.schedule == "gpipe"):
        raise InputError("chunks", f"{chunks} under {problem.schedule}", "use 1, or more under 1f1b")
    if chunks > 1 and rounds % stages:
        raise InputError(
            "chunks",
            f"{chunks} need a multiple of the {stages} stages as microbatches of a copy, and there are {rounds}",
            "use 1, or another microbatch, batch, data or pipeline degree",
        )


def _entering(graph: LayerGraph) -> list[float]:
    """Bytes of all edges that enter each layer."""
    entering = [0.0] * len(graph.layers)
    for edge in graph.edges:
        entering[edge.head] += edge.size_bytes
    return entering


def _sums(
    graph: LayerGraph, extras: Sequence[Extra], mode: Mode, positions: Sequence[int], entering: Sequence[float]
) -> _Sums:
    forward_s = backward_s = again_s = parameters = kept = live = 0.0
    seen: set[str] = set()
    sizes: list[float] = []
    for position in positions:
        layer, extra = graph.layers[position], extras[position]
        forward_s += layer.forward_s
        backward_s += layer.backward_s
        parameters += layer.parameter_bytes
        sizes.append(layer.parameter_bytes)
        if extra.tied is not None:
            parameters -= extra.tied_bytes if extra.tied in seen else 0.0
            seen.add(extra.tied)
        own = layer.activation_bytes
        if mode == "full":
            own = entering[position]
            again_s += layer.forward_s if extra.full_s is None else extra.full_s
        elif mode == "selective" and extra.selective_bytes is not None:
            own = extra.selective_bytes
            again_s += extra.selective_s
        kept += own
        live = max(live, layer.activation_bytes - own)
    return _Sums(forward_s, backward_s, again_s, parameters, max(sizes), kept, live, tuple(sizes))


def _memory(problem: ClusterProblem, sums: _Sums, data: int, in_flight: float) -> Memory:
    parameters, largest = sums.parameter_bytes / problem.sent_bytes, sums.largest_bytes / problem.sent_bytes
    held, working = problem.held(data), problem.working(data)
    return Memory(
        parameters=parameters * held.weight + largest * working.weight,
        gradients=parameters * held.gradient + largest * working.gradient,
        optimizer=parameters * held.optimizer,
        activations=sums.kept_bytes + sums.live_bytes,
        in_flight=(in_flight - 1) * sums.kept_bytes,
        reserve=problem.stack.reserve_bytes,
    )


def _transfers(
    problem: ClusterProblem, graph: LayerGraph, shape: Shape, cuts: Sequence[ModeCut], chunks: int, prices: Prices
) -> list[float]:
    """What a microbatch takes to cross every boundary, the entry of the first stage and the exit of the last included:
    v x_i, and (v - 1) x_S at both ends."""
    owner = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    carried = [0.0] * (len(cuts) - 1)
    for edge in graph.edges:
        for boundary in range(owner[graph.layers[edge.tail].id], owner[graph.layers[edge.head].id]):
            carried[boundary] += edge.size_bytes
    lanes = shape.tensor if problem.stack.scatter_gather else 1
    levels = boundary_levels(problem.cluster, shape).tolist()

    def once(level: int, size: float) -> float:
        return float(prices.transfer_s(level, np.array([size / lanes]))[0])

    between = [chunks * once(level, size) for level, size in zip(levels, carried, strict=True)]
    round_s = (chunks - 1) * once(max(levels), max(carried)) if chunks > 1 and carried else 0.0
    return [round_s, *between, round_s]


def tied_seconds(problem: ClusterProblem, shape: Shape, owner: dict[int, int], prices: Prices) -> float:
    """Y: an all-reduce for each group of tied layers that lies in several stages; ``owner`` is the stage of an id."""
    graph, extras = problem.graph(shape.tensor)
    groups: dict[str, list[int]] = {}
    sizes: dict[str, float] = {}
    for layer, extra in zip(graph.layers, extras, strict=True):
        if extra.tied is not None:
            groups.setdefault(extra.tied, []).append(owner[layer.id])
            sizes[extra.tied] = extra.tied_bytes
    total = 0.0
    for name, stages in groups.items():
        if len(set(stages)) > 1:
            members = [1] * len(problem.cluster.levels)
            members[int(boundary_levels(problem.cluster, shape).max())] = len(stages)
            total += float(prices.all_reduce_s(tuple(members), np.array([sizes[name]]))[0])
    return total


def end_seconds(problem: ClusterProblem, shape: Shape, prices: Prices, parameter_bytes: float) -> tuple[float, float]:
    """E of a stage: its synchronisation in the open, and its optimizer step."""
    sync_s = float(synchronisation_s(problem, shape, prices, np.array([parameter_bytes]))[0])
    step_s = 0.0
    if problem.hbm_bytes_per_s is not None:
        shared = shape.data if problem.zero >= 1 else 1
        traffic = parameter_bytes / problem.sent_bytes * problem.stack.optimizer_traffic_bytes
        step_s = traffic / shared / problem.hbm_bytes_per_s
    return sync_s, step_s


def synchronisation_s(problem: ClusterProblem, shape: Shape, prices: Prices, parameter_bytes: Floats) -> Floats:
    """(1 - h) sync_d of stages with so many bytes of parameters."""
    members, shown = copies_by_level(problem.cluster, shape), 1 - problem.stack.hidden_synchronisation
    if problem.zero == 3:
        return np.zeros_like(parameter_bytes)
    collective = prices.gather_s if problem.zero == 2 else prices.all_reduce_s
    return shown * collective(members, parameter_bytes)


def _gathered(problem: ClusterProblem, shape: Shape, prices: Prices, sums: _Sums) -> tuple[float, float]:
    """v and u: the collectives of ZeRO 2 and 3 that a microbatch takes, forward and backward."""
    ahead, behind = problem.gathers
    if not behind:
        return 0.0, 0.0
    members = copies_by_level(problem.cluster, shape)
    once_s = float(prices.gather_s(members, np.array(sums.layer_bytes)).sum())
    return ahead * once_s, behind * once_s


def _stages(
    problem: ClusterProblem, shape: Shape, cuts: Sequence[ModeCut], chunks: int, prices: Prices
) -> tuple[list[Stage], list[_Sums], list[float]]:
    """Every stage with its times and memory, what it adds up to, and the transfers at every boundary."""
    graph, extras = problem.graph(shape.tensor)
    moves = _transfers(problem, graph, shape, cuts, chunks, prices)
    place, entering = {layer.id: at for at, layer in enumerate(graph.layers)}, _entering(graph)
    rounds, hidden = problem.rounds(shape.data), problem.stack.hidden_synchronisation
    stages, sums = [], []
    for i, cut in enumerate(cuts):
        positions = sorted(place[id_] for id_ in cut.layers)
        own = _sums(graph, extras, cut.mode, positions, entering)
        ahead_s, behind_s = _gathered(problem, shape, prices, own)
        forward_s = beside(own.forward_s, ahead_s, hidden) + moves[i]
        backward_s = beside(own.again_s + own.backward_s, behind_s, hidden) + moves[i + 1]
        memory = _memory(problem, own, shape.data, problem.in_flight(rounds, len(cuts) - i, len(cuts), chunks))
        ids = tuple(graph.layers[at].id for at in positions)
        stages.append(Stage(ids, shape.tensor, cut.mode, forward_s, backward_s, forward_s + backward_s, memory))
        sums.append(own)
    return stages, sums, moves


def price(
    problem: ClusterProblem,
    shape: Shape,
    cuts: Sequence[ModeCut],
    prices: Prices,
    chunks: int = 1,
    simulated: bool = True,
) -> Plan:
    """The plan with its batch time, fitting or not; nothing is proved of it, so its lower bound is 0. Its events are
    run if it is to be ``simulated``."""
    if shape.stages != len(cuts):
        raise InputError("pipeline", f"{shape.stages} stages are said and {len(cuts)} given", "let them agree")
    _require_structure(problem, problem.graph(shape.tensor)[0], shape, cuts)
    rounds = problem.rounds(shape.data)
    _require_chunks(problem, rounds, len(cuts), chunks)
    stages, sums, moves = _stages(problem, shape, cuts, chunks, prices)
    # Prices do not fall with size, so the end of the stage with the most parameters is the last.
    sync_s, step_s = end_seconds(problem, shape, prices, max(own.parameter_bytes for own in sums))
    owner = {id_: index for index, cut in enumerate(cuts) for id_ in cut.layers}
    tied_s = tied_seconds(problem, shape, owner, prices)
    passes = [(stage.forward_s, stage.backward_s) for stage in stages]
    batch_s = batch_seconds(passes, rounds, problem.schedule, sync_s + step_s + tied_s, chunks)
    slowest = max(range(len(stages)), key=lambda i: (stages[i].time_s, -i))
    own, time_s, moved_s = sums[slowest], stages[slowest].time_s, moves[slowest] + moves[slowest + 1]
    waited_s = time_s - moved_s - own.forward_s - own.backward_s - own.again_s if problem.zero >= 2 else 0.0
    breakdown = Breakdown(
        forward_s=rounds * own.forward_s,
        backward_s=rounds * own.backward_s,
        recompute_s=rounds * own.again_s,
        transfer_s=rounds * moved_s,
        bubble_s=(sum(stage.time_s for stage in stages) - time_s) / chunks
        + (rounds - 1) * (pace_seconds(passes, problem.schedule) - time_s),
        synchronisation_s=rounds * max(0.0, waited_s) + sync_s,
        optimizer_s=step_s,
        tied_s=tied_s,
    )
    plan = Plan(shape.tensor, shape.data, tuple(stages), batch_s, 0.0, 0.0, breakdown, shape.order, chunks)
    if not simulated:
        return plan
    end_s = one_copy_seconds(plan, rounds, problem.schedule == "gpipe")
    return replace(plan, simulated_s=end_s + sync_s + step_s + tied_s)


def fits(problem: ClusterProblem, plan: Plan) -> bool:
    """Whether every stage fits into the memory of its devices."""
    return all(problem.fits(stage.memory.total_bytes) for stage in plan.stages)

"""One width of a problem made ready for the kernels: its stage table, transfers, limits and
sums."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.pipeline.family import Family
from phaze.placement import stage_kernels
from phaze.placement.cut_sets import CutSets, cut_sets_of
from phaze.placement.frozen import frozen_stages
from phaze.placement.layers import LayerGraph, PlacedLayer
from phaze.placement.problem import ROUNDING, PlacementProblem
from phaze.placement.rules import Mode
from phaze.placement.stage_kernels import Room, Saved, StageTable
from phaze.placement.stage_memory import HeldBytes

# A table of so many stages takes about half a GB.
MOST_STAGES = 4_000_000
# Kinds of layers with buffers are bits of one number; further ones count as the last.
MOST_KINDS = 61

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Width:
    """One width: its closed sets, what layers save, devices of a split stage, how many numbers of
    unsplit stages are distinguished, depth at the most, and sums.

    ``moves_s`` are transfers by level and closed set, 0 where edges arrive inside stages;
    ``wraparound_s`` by level those from the last stage to the first.
    """

    graph: LayerGraph
    cut_sets: CutSets
    saved: Saved
    devices_per_stage: int
    kinds: int
    depth: int
    blocks: int
    moves_s: Floats
    wraparound_s: Floats
    seconds: float
    longest_s: float
    parameter_bytes: float

    def fewest_devices(self, stages: Ints) -> Ints:
        """The fewest devices that so many stages take."""
        return self.devices_per_stage * np.maximum(stages - (self.kinds - 1), 0) + np.minimum(
            stages, self.kinds - 1
        )

    @property
    def grows(self) -> bool:
        """Whether a longer stage never takes less time: not where edges arrive inside stages."""
        return self.saved.link_bytes_per_s == 0


def _saved(problem: PlacementProblem, graph: LayerGraph, cut_sets: CutSets) -> Saved:
    layers = graph.layers
    entering = [0.0] * len(layers)
    for edge in graph.edges:
        entering[edge.head] += edge.size_bytes
    shape = (len(layers), len(problem.mode_names))
    kept_bytes, again, block = np.empty(shape), np.zeros(shape), np.zeros(len(layers), np.int64)
    kept_bytes[:, :-1], kept_bytes[:, -1], again[:, -1] = (
        cut_sets.activation_bytes[:, None],
        entering,
        cut_sets.forward_s,
    )
    names = sorted({layer.tied for layer in layers if layer.tied is not None})
    group = np.full(len(layers), -1)
    sizes, members, last = (
        np.zeros(len(names)),
        np.zeros(len(names), np.int64),
        np.zeros(len(names), np.int64),
    )
    for i, layer in enumerate(layers):
        if layer.selective_bytes is not None:
            kept_bytes[i, 1], again[i, 1] = layer.selective_bytes, layer.selective_s
        if layer.full_s is not None:
            again[i, -1] = layer.full_s
        for mode, option in enumerate(layer.more, 2):
            kept_bytes[i, mode], again[i, mode] = option.bytes, option.again_s
        if layer.block:
            block[i] = 1
        if layer.tied is not None:
            g = group[i] = names.index(layer.tied)
            sizes[g], members[g], last[g] = layer.tied_bytes, members[g] + 1, i
    link = problem.rules.link_bytes_per_s if problem.rules.stage == "icml24" else None
    live = np.maximum(0.0, cut_sets.activation_bytes[:, None] - kept_bytes)
    if layers[0].more:
        live[:, 2:-1] = [[option.live_bytes for option in layer.more] for layer in layers]
    live += np.array([layer.live_bytes for layer in layers])[:, None]
    buffers, kind = (
        np.array([layer.buffer_bytes for layer in layers]),
        np.zeros(len(layers), np.int64),
    )
    if buffers.any():
        kind[:] = _kinds(layers, buffers)
    pairs = 1.0 if problem.gathers_pairs else 0.0
    return Saved(
        kept_bytes,
        again,
        group,
        sizes,
        members,
        last,
        block,
        float(link or 0.0),
        live,
        buffers,
        kind,
        pairs,
    )


def _kinds(layers: Sequence[PlacedLayer], buffers: Floats) -> list[int]:
    """A number for every kind of layers with buffers, by position."""
    kinds = [kind_of(layers, position) for position in range(len(layers))]
    numbers = dict.fromkeys(kinds, 0)
    numbers |= {
        kind: number
        for number, kind in enumerate(
            dict.fromkeys(k for k, size in zip(kinds, buffers, strict=True) if size > 0)
        )
    }
    return [min(numbers[kind], MOST_KINDS) for kind in kinds]


def kind_of(layers: Sequence[PlacedLayer], position: int) -> int:
    """The kind of a layer whose buffers are shared; one of its own below 0 if none is said."""
    return layers[position].kind if layers[position].kind >= 0 else -1 - position


def wraparound_bytes(graph: LayerGraph) -> float:
    """The most bytes between two blocks in the order of layers: what a chunk sends from the last
    stage to the first."""
    blocks = [i for i, layer in enumerate(graph.layers) if layer.block]
    carried = np.zeros(len(graph.layers))
    for edge in graph.edges:
        carried[edge.tail : edge.head] += edge.size_bytes
    return (
        float(carried[blocks[0] : blocks[-1]].max(initial=0.0))
        if blocks
        else float(carried.max(initial=0.0))
    )


def prepared(problem: PlacementProblem, graph: LayerGraph, prices: NetworkPrices) -> Width:
    """One width. Where no layer is sharded, or the width is 1, stages need not be distinguished."""
    cut_sets = cut_sets_of(graph)
    saved = _saved(problem, graph, cut_sets)
    plain, n = int(cut_sets.unsplit[-1]), len(graph.layers)
    unsplit = problem.rules.unsplit_stages and graph.width > 1
    devices_per_stage, kinds = (
        (1 if unsplit and plain == n else graph.width),
        (plain + 1 if unsplit and plain < n else 1),
    )
    few = min(kinds - 1, problem.devices)
    depth = min(n, few + (problem.devices - few) // devices_per_stage)
    levels, sets = len(problem.cluster.levels), len(cut_sets.size)
    moves, around = np.zeros((levels + 1, sets)), np.zeros(levels)
    if problem.rules.stage == "layers":
        lanes = graph.width // problem.sharing.context if problem.scatter_gather else 1
        carried, most = stage_kernels.cut_bytes(cut_sets) / lanes, wraparound_bytes(graph) / lanes
        for level in range(levels):
            moves[level] = prices.transfer_s(level, carried)
            around[level] = prices.transfer_s(level, np.array([most]))[0]
    seconds = cut_sets.forward_s + cut_sets.backward_s
    shared = float((saved.group_bytes * (saved.group_size - 1)).sum())
    return Width(
        graph,
        cut_sets,
        saved,
        devices_per_stage,
        kinds,
        depth,
        int(saved.block.sum()),
        moves,
        around,
        float(seconds.sum()),
        float(seconds.max()),
        float(cut_sets.parameter_bytes.sum()) - shared,
    )


def retimed(width: Width, forward_s: Floats, backward_s: Floats) -> Width:
    """The width with other seconds of its layers, by position, which a full recompute runs forward
    as a whole."""
    # Kernels are shipped for contiguous arrays: a column of many chips would be compiled for anew.
    forward_s, backward_s = np.ascontiguousarray(forward_s), np.ascontiguousarray(backward_s)
    cut_sets = width.cut_sets._replace(forward_s=forward_s, backward_s=backward_s)
    again, seconds = np.zeros_like(width.saved.again_s), forward_s + backward_s
    again[:, -1] = forward_s
    saved = width.saved._replace(again_s=again)
    whole_s, longest_s = float(seconds.sum()), float(seconds.max())
    return replace(width, cut_sets=cut_sets, saved=saved, seconds=whole_s, longest_s=longest_s)


def _flags(problem: PlacementProblem, modes: tuple[Mode, ...]) -> Ints:
    return np.array([mode in modes for mode in problem.mode_names], np.int64)


def allowed_modes(problem: PlacementProblem, family: Family | None = None) -> tuple[Ints, Ints]:
    """How a family may recompute a stage, and the last one: a flag for every mode."""
    inner, last = (_flags(problem, problem.modes(last, family)) for last in (False, True))
    return inner, last


def room_of(
    problem: PlacementProblem,
    data: int,
    width: int = 1,
    family: Family | None = None,
    modes: tuple[Ints, Ints] | None = None,
) -> Room:
    """What a stage of a ``width`` must fit into when there are so many replicas, and how a family
    may recompute it; ``modes`` are :func:`allowed_modes` where they are known."""
    there = problem.available_bytes * (1 + ROUNDING) - problem.reserve_bytes
    held_bytes, working = problem.resident(data).total, problem.working(data).total
    sent, flags = problem.sent_bytes, allowed_modes(problem, family) if modes is None else modes
    more = most = 0.0
    if problem.has_experts:
        more, most = (
            problem.held_experts(width, data).total - held_bytes,
            problem.working_experts(width, data).total,
        )
    return Room(there, held_bytes / sent, working / sent, more / sent, most / sent, *flags)


def stages_of(problem: PlacementProblem, width: Width, limit_s: Floats | None = None) -> StageTable:
    """The stage table of a width, of stages no longer than the limit of their closed set."""
    n, sets = len(width.graph.layers), len(width.cut_sets.size)
    limit = np.full(sets, inf) if limit_s is None else limit_s
    device = room_of(problem, max(1, min(problem.devices, problem.microbatches)), width.graph.width)
    device = device._replace(state=device.state + min(0.0, device.experts))
    count, table = stage_kernels.stage_table(
        width.cut_sets, width.saved, device, limit, n * (n + 1) // 2
    )
    if count > len(table.rest):
        if count > MOST_STAGES:
            raise InputError(
                f"widths.{width.graph.width}.edges",
                f"the layers branch into {count:,} possible stages",
                "merge layers",
            )
        count, table = stage_kernels.stage_table(width.cut_sets, width.saved, device, limit, count)
    table = table._replace(**{n: getattr(table, n)[:count] for n in table._fields if n != "start"})
    return _with_experts(width, table) if problem.has_experts else table


def _over_stages(width: Width, table: StageTable) -> Callable[[Floats], Floats]:
    """Sums an amount of each layer over the layers of every stage of a table."""
    tops = np.repeat(np.arange(len(table.start) - 1), np.diff(table.start))

    def of_stages(amounts: Floats) -> Floats:
        whole = inside(width.cut_sets, amounts)
        return np.asarray(whole[tops] - whole[table.rest])

    return of_stages


def with_frozen(
    problem: PlacementProblem, width: Width, table: StageTable, data: int
) -> StageTable:
    """The table with the frozen weights that a device holds in so many replicas, among the bytes of
    every stage that depend on no mode; as it is where there are none."""
    frozen = [layer.frozen for layer in problem.graph(width.graph.width).layers]
    if not any(layer.bytes for layer in frozen):
        return table
    sums = frozen_stages(
        frozen, problem.has_experts, problem.gathers_pairs, _over_stages(width, table)
    )
    held_bytes = HeldBytes.of_degrees(problem, width.graph.width, data)
    return table._replace(
        buffer_bytes=table.buffer_bytes + sums.held_bytes(held_bytes.each, problem.sent_bytes)
    )


def _with_experts(width: Width, table: StageTable) -> StageTable:
    """The table with the bytes of experts of every stage, and the most that a layer of it has of
    either kind."""
    experts = np.array([layer.expert_bytes for layer in width.graph.layers])
    dense = np.array([layer.parameter_bytes for layer in width.graph.layers]) - experts
    of_stages = _over_stages(width, table)

    def most(amounts: Floats) -> Floats:
        largest = np.zeros(len(table.rest))
        for size in np.unique(amounts):  # ascending: the last that a stage has is its largest
            largest[of_stages((amounts == size).astype(np.float64)) > 0.5] = size
        return largest

    return table._replace(
        expert_bytes=of_stages(experts), largest_bytes=most(dense), most_expert_bytes=most(experts)
    )


def inside(cut_sets: CutSets, amounts: Floats) -> Floats:
    """The sum of an amount of each layer over the layers of every closed set."""
    steps = cut_sets.step_start[1:-1]
    before, added = cut_sets.step_set[steps], amounts[cut_sets.step_layer[steps]]
    sums = np.zeros(len(cut_sets.size))
    if len(before) == len(amounts):  # a chain: each closed set is the one before and a layer
        np.cumsum(added, out=sums[1:])
        return sums
    for place, (smaller, amount) in enumerate(zip(before.tolist(), added.tolist(), strict=True), 1):
        sums[place] = sums[smaller] + amount
    return sums


def whole_blocks(table: StageTable, chunks: int) -> StageTable:
    """The stages whose blocks can be cut into so many chunks."""
    if chunks == 1:
        return table
    divisible = (table.blocks % chunks == 0) & (table.blocks > 0)
    before = np.concatenate([[0], np.cumsum(divisible)])
    picked = {name: getattr(table, name)[divisible] for name in table._fields if name != "start"}
    return table._replace(start=before[table.start], **picked)


def in_flight_of(family: Family, microbatches: int, stages: int | None, depth: int) -> Floats:
    """Microbatches in flight by stage number, 0 .. ``depth``; of the depth where each is least if
    none is given."""
    if family.in_flight_rule == "all":
        return np.full(depth + 1, float(microbatches))
    numbers = np.arange(float(depth + 1))
    in_flight = family.uncapped(
        numbers, numbers if stages is None else np.full(depth + 1, float(stages))
    )
    return (
        in_flight
        if family.in_flight_rule == "number"
        else np.minimum(in_flight, float(microbatches))
    )


def transfers_of(width: Width, family: Family, level: int | None) -> Floats:
    """Transfers by level and closed set as the family's chunks make them; the last row at the ends
    of the pipeline, around it across ``level``, or the least of any."""
    moves = family.chunks * width.moves_s
    around = width.wraparound_s.min() if level is None else width.wraparound_s[level]
    moves[-1] += family.wraparound_transfers * around
    return np.asarray(moves)


def starts_s(problem: PlacementProblem, family: Family) -> float:
    """What starting the chunks of a family beyond the first adds to each pass of a stage."""
    return (family.chunks - 1) * problem.rules.piece_start_s

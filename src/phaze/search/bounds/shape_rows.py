r"""The degrees of the shapes of a graph, on no chip and in no memory: what each takes at the least
beside its layers.

A shape is a depth S, d replicas and an order, under a stage of ZeRO and a pipeline family. Tabled
once for a graph, for sizes w of a largest stage:

    rounds     m = ceil(M / d)
    moves      2 sum over boundaries of the transfer of the smallest cut, at the level that the
               boundary crosses
    waits      the cost of the sum over layers of ZeRO's collectives of a microbatch
               z = 2, 3
    ends       what is exposed of sync_d(w), by which no chip gets less

A family of v chunks counts each transfer v times, and v - 1 times the start of a chunk and the way
around. Where its chunks overlap transfers none of them is counted: what filling and emptying the
pipeline exposes is at least nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.pipeline.family import Family
from phaze.placement.batch_end import collected_s, synchronisation_s
from phaze.placement.layout import Shape, boundary_levels_of
from phaze.placement.prepared_width import Width, starts_s
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import ORDERS
from phaze.placement.shapes import experts_met
from phaze.placement.stage_kernels import cut_bytes
from phaze.search.bounds.stage_sizes import StageSizes
from phaze.search.task import ModelTask

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Ranks that hold the same by level, dense weights and experts, and that shard state, each once:
# their place in a list, and a shape.
Met = dict[tuple[tuple[int, ...], ...], tuple[int, Shape]]


def most_replicas(problem: PlacementProblem, width: Width, stages: int) -> int:
    """The most replicas of a pipeline of so many stages, as many unsplit as there can be."""
    devices = int(width.fewest_devices(np.array([stages]))[0])
    return max(1, min(problem.microbatches, problem.devices // devices))


def least_prices(task: ModelTask, problem: PlacementProblem, width: Width) -> Floats:
    """By level, the transfer of the smallest cut; nothing where edges arrive inside stages."""
    if problem.rules.stage != "layers":
        return np.zeros(len(problem.cluster.levels))
    cuts, lanes = cut_bytes(width.cut_sets)[1:-1], 1
    if problem.scatter_gather:
        lanes = width.graph.width // problem.sharing.context
    carried = np.array([cuts.min() / lanes if len(cuts) else 0.0])
    return np.array(
        [
            float(task.prices.transfer_s(level, carried)[0])
            for level in range(len(problem.cluster.levels))
        ]
    )


@dataclass(frozen=True, slots=True)
class ShapeDegrees:
    """The degrees of one depth, those of an order after those of the other: replicas, rounds, which
    of ``levels`` [patterns, boundaries] their boundaries cross, and the replicas by level (a place
    in a list of these)."""

    replicas: Integers
    rounds: Integers
    pattern: Integers
    members: Integers
    levels: Integers

    def transfers_s(self, prices_s: Floats) -> tuple[Floats, Floats]:
        """All transfers of a microbatch and the least of one, by pattern, at these prices by
        level."""
        taken_s = prices_s[self.levels]
        return 2 * taken_s.sum(axis=1), taken_s.min(axis=1) if taken_s.shape[1] else np.zeros(
            len(taken_s)
        )


@dataclass(frozen=True, slots=True)
class Ends:
    """What ranks that hold the same, by level, take under one stage of ZeRO: [members, sizes] at
    the end, [members] a microbatch."""

    ends_s: Floats
    waits_s: Floats


def _degrees(problem: PlacementProblem, width: Width, stages: int, met: Met) -> ShapeDegrees:
    tensor, columns = width.graph.width, []
    most = most_replicas(problem, width, stages)
    several = stages > 1 and len(problem.cluster.levels) > 1
    sharing, cluster = problem.sharing, problem.cluster
    for order in ORDERS if several else ORDERS[:1]:
        shape = Shape(tensor, stages, most, order)
        replicas = np.array(
            [data for data in range(1, most + 1) if sharing.allows(shape._replace(data=data))], int
        )
        members = np.empty(len(replicas), np.int64)
        for index, data in enumerate(replicas.tolist()):
            degrees = shape._replace(data=data)
            held_by: tuple[tuple[int, ...], ...] = (
                sharing.dense_by_level(cluster, degrees),
                experts_met(problem, degrees),
            )
            if sharing.shard:
                held_by += (
                    sharing.shard_by_level(cluster, degrees),
                    sharing.shards_by_level(cluster, degrees),
                )
            members[index] = met.setdefault(held_by, (len(met), degrees))[0]
        levels = np.zeros((most, stages - 1), np.int64)
        if several:
            levels = boundary_levels_of(cluster, shape)
        columns.append(
            (replicas, -(-problem.microbatches // replicas), members, levels[replicas - 1])
        )
    many, rounds, met_at, crossed = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    patterns, which = np.unique(crossed, axis=0, return_inverse=True)
    return ShapeDegrees(many, rounds, which.reshape(-1).astype(np.int64), met_at, patterns)


def all_degrees(problem: PlacementProblem, width: Width) -> tuple[tuple[ShapeDegrees, ...], Met]:
    """The degrees of every depth, from 1 on, and the replicas by level that they have; on any
    bandwidth."""
    met = Met()
    return tuple(_degrees(problem, width, stages, met) for stages in range(1, width.depth + 1)), met


@dataclass(frozen=True, slots=True)
class ShapeRows:
    """All degrees of a graph by depth, from 1 on; by pattern all transfers of a microbatch and the
    least of one, as far as no chunks hide them; what the replicas take by stage of ZeRO, for
    ``sizes_bytes``; where some parameters are experts the least bytes that the optimizer updates on
    a rank under ZeRO, with one replica."""

    degrees: tuple[ShapeDegrees, ...]
    transfers_s: tuple[tuple[Floats, Floats], ...]
    sizes_bytes: Floats
    ends: dict[int, Ends]
    stepped_bytes: Floats | None

    def at(self, stages: int) -> ShapeDegrees:
        """Those of a depth."""
        return self.degrees[stages - 1]


def _ends(
    task: ModelTask,
    problem: PlacementProblem,
    width: Width,
    met: Met,
    sizes_bytes: Floats,
    mixed: StageSizes | None,
) -> Ends:
    """``mixed``: the sizes of stages where some parameters are experts. Of stages of at least so
    many bytes the least end counts, as experts may be reduced over fewer ranks than other
    parameters."""
    layers = np.stack(
        [width.cut_sets.parameter_bytes, [layer.expert_bytes for layer in width.graph.layers]],
        axis=1,
    )
    kinds, counts = np.unique(layers, axis=0, return_counts=True)
    ends_s, waits_s = np.zeros((len(met), len(sizes_bytes))), np.zeros(len(met))
    for member, shape in met.values():
        if mixed is None:
            ends_s[member] = synchronisation_s(problem, shape, task.prices, sizes_bytes, least=True)
        else:
            bytes_by_stage = mixed.parameter_bytes, mixed.expert_bytes
            ends_s[member] = mixed.least(
                synchronisation_s(problem, shape, task.prices, *bytes_by_stage, least=True),
                sizes_bytes,
            )
        if problem.zero >= 2:
            ahead_s, behind_s = collected_s(problem, shape, task.prices, *kinds.T)
            waits_s[member] = problem.rules.sharded_cost * float(
                ((ahead_s + behind_s) * counts).sum()
            )
    return Ends(ends_s + problem.rules.host_s, waits_s)


def shape_rows_of(
    task: ModelTask,
    problem: PlacementProblem,
    width: Width,
    met_degrees: tuple[tuple[ShapeDegrees, ...], Met],
    zeros: Sequence[int],
    sizes_bytes: Floats,
    mixed: StageSizes | None = None,
) -> ShapeRows:
    """The rows of a graph whose degrees are known, for sizes of the largest stage; ``mixed`` as of
    :func:`_ends`."""
    (degrees, met), prices_s = met_degrees, least_prices(task, problem, width)
    if (
        problem.rules.overlapped_transfers
    ):  # the rows bound every number of chunks, which may hide their transfers
        prices_s = np.zeros_like(prices_s)
    at_zeros = {
        zero: _ends(task, problem.at_zero(zero), width, met, sizes_bytes, mixed) for zero in zeros
    }
    stepped = (
        None if mixed is None else mixed.least(mixed.stepped_bytes(problem, width), sizes_bytes)
    )
    moved_s = tuple(depth_degrees.transfers_s(prices_s) for depth_degrees in degrees)
    return ShapeRows(degrees, moved_s, sizes_bytes, at_zeros, stepped)


def paced_transfers(problem: PlacementProblem, family: Family) -> int:
    """How often a boundary is surely crossed at the pace of a pipeline, a pass: not at all behind
    other chunks."""
    return 0 if problem.rules.overlaps(family) else family.chunks


def chunk_seconds(
    problem: PlacementProblem, width: Width, family: Family, levels: Integers
) -> tuple[float, Floats]:
    """What the chunks of a family add to the pace at a boundary, a pass, and at each end of a
    pipeline whose boundaries cross these ``levels`` [patterns, boundaries]: at least their starts
    where transfers are overlapped."""
    start_s = starts_s(problem, family)
    back = family.wraparound_transfers if paced_transfers(problem, family) else 0
    return start_s, start_s + back * width.wraparound_s[levels.max(axis=1, initial=0)]

"""The shapes of one width and family: what no plan of each can beat, and whether anything of it
fits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TypeVar, cast

import numpy as np
import numpy.typing as npt

from phaze.cost.network_prices import NetworkPrices
from phaze.pipeline.family import Family
from phaze.placement import depth_kernels
from phaze.placement.batch_end import collected_s, norm_s, step_s, synchronisation_s
from phaze.placement.layout import Shape
from phaze.placement.prepared_width import (
    Width,
    allowed_modes,
    in_flight_of,
    inside,
    room_of,
    stages_of,
    starts_s,
    transfers_of,
    whole_blocks,
    with_frozen,
)
from phaze.placement.problem import ROUNDING, PlacementProblem
from phaze.placement.stage_kernels import Room, StageTable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WidthCase:
    """One width and family of a problem; ``stages`` are those of the width, and ``known`` is what
    shapes share."""

    problem: PlacementProblem
    prices: NetworkPrices
    width: Width
    family: Family
    stages: StageTable
    tables: dict[tuple[object, ...], object] = field(default_factory=dict, compare=False)

    def remembered(self, key: tuple[object, ...], compute: Callable[[], T]) -> T:
        """What was computed for a key before, or now."""
        if key not in self.tables:
            self.tables[key] = compute()
        return cast(T, self.tables[key])

    @property
    def table(self) -> StageTable:
        """The stages that the chunks of the family allow: most families are never asked for
        them."""
        return self.remembered(("table",), lambda: whole_blocks(self.stages, self.family.chunks))

    @property
    def sizes(self) -> tuple[Floats, Ints]:
        """Bytes of parameters of the stages of the table, each size once, ascending, and which of
        them each has."""
        return self.remembered(("sizes",), lambda: _sizes(self.table))

    @property
    def mixed_sizes(self) -> tuple[Floats, Floats, Ints]:
        """The same where some parameters are experts: bytes of all, bytes of experts, and which
        each stage has."""
        return self.remembered(("mixed",), lambda: _mixed_sizes(self.table))

    @property
    def weight_s(self) -> Floats:
        """Seconds of the weight gradients of the layers in every closed set."""
        layer_weight_s = np.array([layer.weight_s or 0.0 for layer in self.width.graph.layers])
        return self.remembered(("weights",), lambda: inside(self.width.cut_sets, layer_weight_s))

    @property
    def most_by_depth(self) -> Ints:
        """The most replicas of 1, 2, ... stages, as many of them unsplit as can be; at least
        one."""
        return self.remembered(("most",), lambda: _most_by_depth(self.problem, self.width))

    def table_at(self, replicas: int) -> StageTable:
        """The same with the frozen weights of so many replicas, which share them out under ZeRO
        3."""
        shared = replicas if self.problem.zero == 3 else 1
        return self.remembered(
            ("table", shared), lambda: with_frozen(self.problem, self.width, self.table, shared)
        )

    def room(self, replicas: int) -> Room:
        """What a stage must fit into when there are so many replicas."""
        modes = self.remembered(("modes",), lambda: allowed_modes(self.problem, self.family))
        return room_of(self.problem, replicas, self.width.graph.width, self.family, modes)

    def most_replicas(self, stages: int, unsplit: int | None = None) -> int:
        """The most replicas of so many stages, of which so many are unsplit, or as many as can
        be."""
        plain = min(stages, self.width.kinds - 1) if unsplit is None else unsplit
        devices = self.width.devices_per_stage * (stages - plain) + plain
        return min(self.problem.microbatches, self.problem.devices // devices)


def _most_by_depth(problem: PlacementProblem, width: Width) -> Ints:
    devices = width.fewest_devices(np.arange(1, width.depth + 1))
    return np.maximum(1, np.minimum(problem.microbatches, problem.devices // devices))


def _sizes(table: StageTable) -> tuple[Floats, Ints]:
    sizes, which = np.unique(table.parameter_bytes, return_inverse=True)
    return sizes, which


def _mixed_sizes(table: StageTable) -> tuple[Floats, Floats, Ints]:
    pairs, which = np.unique(
        np.stack([table.parameter_bytes, table.expert_bytes], axis=1), axis=0, return_inverse=True
    )
    return pairs[:, 0].copy(), pairs[:, 1].copy(), which.reshape(-1)


def cases_of(
    problem: PlacementProblem, width: Width, families: tuple[Family, ...], prices: NetworkPrices
) -> list[WidthCase]:
    """One case for each family that the width allows: chunks divide the blocks of every stage,
    hence all blocks."""
    table = stages_of(problem, width)
    if table.start[-1] == table.start[-2]:
        return []
    return [WidthCase(problem, prices, width, f, table) for f in families if _allows(width, f)]


def _allows(width: Width, family: Family) -> bool:
    return family.chunks == 1 or (
        width.blocks >= family.chunks and width.blocks % family.chunks == 0
    )


def least_moves(case: WidthCase) -> Floats:
    """The least transfer into each closed set with the starts of chunks, rounded down."""

    def least_moves() -> Floats:
        moves = transfers_of(case.width, case.family, None) + starts_s(case.problem, case.family)
        return np.asarray(moves[:-1].min(axis=0) * (1 - ROUNDING))

    return case.remembered(("moves",), least_moves)


def rows_of(case: WidthCase, best_s: float, pace_s: Floats) -> tuple[Ints, Floats]:
    """Every (stages, replicas, unsplit needed) of a case with its bound, end aside, below
    ``best_s``."""
    problem, width, family = case.problem, case.width, case.family
    offset = -1.0 if family.pace_stages else 0.0 if family.split else -family.fill
    if family.most_stages:
        pace_s = np.where(np.arange(pace_s.shape[1]) > family.most_stages, inf, pace_s)
    rows: tuple[Ints, Floats] = depth_kernels.shape_rows(
        pace_s,
        (width.devices_per_stage, problem.devices, problem.microbatches),
        (int(family.whole_rounds), family.min_microbatches_per_stage),
        (float(family.pace_stages), offset, 0.0 if family.split else family.beta(1)),
        least_sums(case),
        best_s,
    )
    return rows


def least_sums(case: WidthCase) -> Floats:
    """By S, what a family counts of the sum of D at the least."""
    return case.remembered(("sums",), lambda: _sums(case))


def _sums(case: WidthCase) -> Floats:
    """By S, what a family counts of the sum of D with all layers and the least transfers."""
    problem, width, family = case.problem, case.width, case.family
    inner = least_moves(case)[1:-1]
    stages = np.arange(width.depth + 1)
    if family.split:
        return np.array(
            [
                family.beta(max(1, depth)) * least_fill(case, max(1, depth))
                for depth in stages.tolist()
            ]
        )
    between_s = float(inner.min()) if len(inner) else 0.0
    ends_s = family.wraparound_transfers * float(width.wraparound_s.min()) + starts_s(
        problem, family
    )
    moved_s = 2 * (np.maximum(stages - 1, 0) * between_s + ends_s) * (1 - ROUNDING)
    return np.asarray(family.beta(1) * (width.seconds + moved_s))


def _depths(case: WidthCase, in_flight: Floats, replicas: int) -> Ints:
    room = case.room(replicas)
    table = case.table_at(replicas)
    return np.asarray(
        depth_kernels.depths_that_fit(case.width.cut_sets, table, room, in_flight, case.width.kinds)
    )


def fits(case: WidthCase, stages: int, needed: int) -> bool:
    """Whether some cut into that many stages, so many unsplit at least, fits with as many replicas
    as there can be."""
    return case.remembered(("fits", stages, needed), lambda: _fits(case, stages, needed))


def _fits(case: WidthCase, stages: int, needed: int) -> bool:
    problem, width = case.problem, case.width
    for unsplit in range(needed, width.kinds):
        replicas = case.most_replicas(stages, unsplit) if unsplit <= stages else 0
        if not replicas:
            continue
        rounds, depth = problem.rounds(replicas), stages if case.family.by_depth else width.depth
        if case.family.in_flight_rule in ("capped", "depth") and rounds >= case.family.in_flight(
            2 * stages, stages, stages
        ):
            rounds = 2 * depth
        # More in flight and fewer replicas need no less, so powers of two on the safe side serve
        # many depths at once.
        safe, few_safe = 1 << (rounds - 1).bit_length(), 1 << (replicas.bit_length() - 1)
        number = stages if case.family.by_depth else None
        for m, few in ((safe, few_safe), (rounds, replicas)):
            depths = case.remembered(
                ("depths", m, number, few if problem.zero else 1),
                partial(_depths, case, in_flight_of(case.family, m, number, depth), few),
            )
            if depths[unsplit, stages]:
                return True
    return False


def experts_met(problem: PlacementProblem, shape: Shape) -> tuple[int, ...]:
    """How many ranks with the same experts meet at each level; empty where none are sharded."""
    return problem.sharing.experts_by_level(problem.cluster, shape) if problem.has_experts else ()


Gathered = tuple[Floats, Floats]


def gathered_s(case: WidthCase, shape: Shape) -> Gathered:
    """Seconds of the collectives of ZeRO of the layers of every closed set, forward and backward;
    empty where there are none."""
    if case.problem.zero < 2:
        return np.empty(0), np.empty(0)

    def summed() -> Gathered:
        ahead, behind = _collected_s(case, shape)
        return inside(case.width.cut_sets, ahead), inside(case.width.cut_sets, behind)

    return case.remembered(("gathered", shared_members(case, shape)), summed)


def _collected_s(case: WidthCase, shape: Shape) -> Gathered:
    """The same of every layer."""
    experts = np.array([layer.expert_bytes for layer in case.width.graph.layers])
    frozen = [layer.frozen for layer in case.problem.graph(case.width.graph.width).layers]
    return collected_s(
        case.problem, shape, case.prices, case.width.cut_sets.parameter_bytes, experts, frozen
    )


def shared_members(case: WidthCase, shape: Shape) -> tuple[tuple[int, ...], ...]:
    """The ranks by level that shard dense state, and that of experts."""
    return case.problem.sharing.shard_by_level(case.problem.cluster, shape), experts_met(
        case.problem, shape
    )


def _waited_table(case: WidthCase, shape: Shape) -> StageTable:
    """The stages with what is exposed of ZeRO's collectives where each layer hides its own; as they
    are elsewhere."""
    problem, width, table = case.problem, case.width, case.table_at(shape.data)
    if problem.zero < 2 or problem.rules.prefetch == "stage":
        return table

    def waited() -> StageTable:
        cut_sets, again_s, cost = width.cut_sets, width.saved.again_s, problem.rules.sharded_cost
        ahead, behind = _collected_s(case, shape)
        back_s = cut_sets.backward_s[:, None] + again_s
        ahead_s = np.maximum(cost * ahead, ahead - cut_sets.forward_s)
        behind_s = np.maximum(cost * behind[:, None], behind[:, None] - back_s)
        tops = np.repeat(np.arange(len(table.start) - 1), np.diff(table.start))
        forward = inside(cut_sets, ahead_s)
        backward = np.stack([inside(cut_sets, column) for column in behind_s.T], axis=1)
        return table._replace(
            forward_s=table.forward_s + forward[tops] - forward[table.rest],
            backward_s=table.backward_s + backward[tops] - backward[table.rest],
        )

    return case.remembered(("timed", shared_members(case, shape)), waited)


def beside_s(case: WidthCase) -> Floats:
    """What exchanges of experts add to every stage of the table with no other microbatch beside
    them; empty where they run beside none."""
    if not case.problem.runs_exchanges_beside:
        return np.empty(0)

    def of_stages() -> Floats:
        layers, table = case.width.graph.layers, case.table
        within = inside(case.width.cut_sets, np.array([layer.beside_s for layer in layers]))
        tops = np.repeat(np.arange(len(table.start) - 1), np.diff(table.start))
        return np.asarray(within[tops] - within[table.rest])

    return case.remembered(("beside",), of_stages)


def alone_share(case: WidthCase, shape: Shape) -> float:
    """The share of passes whose exchanges have no other microbatch beside them."""
    rounds = case.problem.rounds(shape.data)
    return case.problem.rules.alone_share(case.family, rounds, shape.stages)


def timed_table(case: WidthCase, shape: Shape) -> StageTable:
    """The stages as a shape times them: with what is exposed of ZeRO's collectives, and of
    exchanges of experts at the pace of the pipeline."""
    table, added = _waited_table(case, shape), beside_s(case)
    if not len(added):
        return table
    more = alone_share(case, shape) * added
    return table._replace(backward_s=table.backward_s + more[:, None])


def least_seconds(case: WidthCase, gathered: Gathered) -> float:
    """C: all layers, and what is exposed of their collectives, whose sums are rounded apart from
    those of stages."""
    waits = float(gathered[0][-1] + gathered[1][-1]) if len(gathered[0]) else 0.0
    return (case.width.seconds + case.problem.rules.sharded_cost * waits) * (1 - ROUNDING)


def least_fill(case: WidthCase, stages: int) -> float:
    """The least sum of D over stages: no less than each form at the sums of all layers, without
    their transfers."""
    layers = case.width.graph.layers
    forward_s, weight_s = sum(layer.forward_s for layer in layers), float(case.weight_s[-1])
    input_s = sum(layer.backward_s for layer in layers) - weight_s
    forms = case.family.coefficients(stages)
    rising = forms[(forms[:, :2] >= 0).all(axis=1)]
    return max(
        0.0, float((rising @ np.array([forward_s, input_s, weight_s])).max()) * (1 - ROUNDING)
    )


def end_s(
    case: WidthCase, shape: Shape, sizes_bytes: Floats, experts_bytes: Floats | None = None
) -> Floats:
    """E of stages with so many bytes of parameters, and of experts among them."""
    exposed = synchronisation_s(
        case.problem, shape, case.prices, sizes_bytes, experts_bytes=experts_bytes
    )
    agreed = norm_s(case.problem, shape, case.prices)
    return exposed + step_s(case.problem, shape, sizes_bytes, experts_bytes) + agreed


def least_end(case: WidthCase, shape: Shape) -> float:
    """What the end takes at least: one stage has its share of the dense parameters, one its share
    of the experts."""
    width, layers = case.width, case.width.graph.layers
    if not case.problem.has_experts:
        least = max(
            width.parameter_bytes / shape.stages, float(width.cut_sets.parameter_bytes.max())
        )
        if case.problem.rules.end == "first":
            least = float(case.sizes[0][0])
        return float(end_s(case, shape, np.array([least]))[0])
    if case.problem.rules.end == "first":
        return 0.0
    experts = [layer.expert_bytes for layer in layers]
    dense = [layer.parameter_bytes - layer.expert_bytes for layer in layers]
    total = width.parameter_bytes - sum(experts)
    sizes = np.array(
        [max(total / shape.stages, *dense), max(sum(experts) / shape.stages, *experts)]
    )
    return float(end_s(case, shape, sizes, np.array([0.0, sizes[1]])).max())

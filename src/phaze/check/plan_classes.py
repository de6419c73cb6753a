"""The rows of a configuration: shapes of plans that differ in replicas alone, what of them fits,
and the least that the end of a batch takes. Nothing here depends on a chip's times."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .families import Family
from .intervals import Intervals, intervals_of, is_chain
from .job import (
    Job,
    Shape,
    Size,
    experts_by_level,
    outermost_level,
    replicas_by_level,
    sharers_by_level,
    step_bytes,
    synchronised,
)
from .placements import Cuts, Stages, cuts_of, stages_of
from .plan_graph import PlanGraph
from .plans import StageBytes, allowed_families, around_bytes, gathered, reduced_bytes, stage_bytes

Floats = NDArray[np.float64]
ORDERS = ("pipeline", "data")


def crossing(graph: PlanGraph) -> list[float]:
    """Bytes over every boundary that there can be."""
    return [sum(s for a, b, s in graph.edges if a <= at < b) for at in range(len(graph.calls) - 1)]


@dataclass(frozen=True, slots=True)
class Row:
    """Plans of S stages of a family with m microbatches a replica, d from ``fewest`` to ``most``, at a ZeRO stage, with
    stages or replicas as neighbours."""

    stages: int
    family: Family
    rounds: int
    fewest: int
    most: int
    zero: int
    orders: tuple[str, ...] = ORDERS


@dataclass(frozen=True, slots=True)
class FittingBlocks:
    """What fits in a row, whatever the chip: by stage number from the end and mode the most blocks, -1 for none at
    all; ``plain``: blocks that fit without recomputing."""

    blocks: NDArray[np.int64]
    plain: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The least synchronisation of a row and bytes of its optimizer step, for each size that some stage has, and ZeRO's
    collectives of each distinct layer, forward and backward, of plans whose boundaries cross no level beyond one."""

    seconds: Floats
    step_bytes: Floats
    gathers: tuple[Floats, Floats]


@dataclass(slots=True)
class GraphParts:
    """What the plans of a graph have in common, whatever configuration and memory: ``simple``: equal blocks in a row,
    ``chain``: plans are cuts of calls in a row; ``carried``: the least bytes over a boundary, ``around``: those
    around the pipeline; ``closed``: where edges arrive while a stage runs, its stages between closed sets."""

    graph: PlanGraph
    job: Job
    simple: bool = field(init=False)
    chain: bool = field(init=False)
    carried: float = field(init=False)
    around: float = field(init=False)
    closed: Stages | None = field(init=False)
    _stages: dict[tuple[str, int], StageBytes] = field(default_factory=dict)
    _intervals: Intervals | None = None

    def __post_init__(self) -> None:
        self.simple, self.chain = self._equal_blocks(), is_chain(self.graph)
        self.carried, self.around = min(crossing(self.graph), default=0.0), around_bytes(self.graph)
        self.closed = stages_of(self.graph, self.job) if self.job.stack.arriving else None

    def _equal_blocks(self) -> bool:
        """Equal blocks in a row, as much entering each and crossing every boundary, with at most one call before and
        one after them, and no ties of theirs."""
        graph = self.graph
        blocks = [call for call, is_block in enumerate(graph.block) if is_block]
        entering = {sum(size for _, head, size in graph.edges if head == call) for call in blocks}
        tied = any(graph.block[call] for tie in graph.ties for call in tie.calls)
        short = blocks[0] <= 1 and blocks[-1] >= len(graph.calls) - 2
        return graph.equal and short and not tied and len(entering) <= 1 and len(set(crossing(graph))) <= 1

    @property
    def intervals(self) -> Intervals:
        """The stages of a chain."""
        if self._intervals is None:
            self._intervals = intervals_of(self.graph, self.job)
        return self._intervals

    def stages(self, part: str, mode: int) -> StageBytes:
        """Stages of 0, 1, 2 ... blocks with what lies before them (``first``), after them (``last``), or both."""
        if (part, mode) not in self._stages:
            graph = self.graph
            blocks = [call for call, is_block in enumerate(graph.block) if is_block]
            before = list(range(blocks[0])) if part in ("first", "only") else []
            after = list(range(blocks[-1] + 1, len(graph.calls))) if part in ("last", "only") else []
            empty = not before and not after
            rows = []
            for count in range(1 if empty else 0, len(blocks) + 1):
                rows.append(stage_bytes(graph, self.job, [*before, *blocks[:count], *after], mode))
            columns = [[float(getattr(row, name)) for row in rows] for name in StageBytes.__slots__]
            if empty:
                columns = [[0.0, *column] for column in columns]
            self._stages[part, mode] = StageBytes(*map(np.array, columns))
        return self._stages[part, mode]


@dataclass(slots=True)
class PlanSpace:
    """The rows of one configuration of a model: its modes of recompute, its stages of ZeRO, a memory."""

    parts: GraphParts
    modes: tuple[int, ...]
    zeros: tuple[int, ...]
    hbm_bytes: float
    shard: int = 0
    held: dict[Row, FittingBlocks | None] = field(default_factory=dict)
    ends: dict[tuple[object, ...], dict[int, Ends]] = field(default_factory=dict)
    _cuts: Cuts | None = None

    @property
    def graph(self) -> PlanGraph:
        return self.parts.graph

    @property
    def job(self) -> Job:
        return self.parts.job

    @property
    def cuts(self) -> Cuts | None:
        """Where edges arrive while a stage runs: the stages that fit."""
        if self._cuts is None and self.parts.closed is not None:
            plain, again = 0 in self.modes, len(self.graph.names) - 1 in self.modes
            self._cuts = cuts_of(self.parts.closed, self.job, (plain, again), self.hbm_bytes)
        return self._cuts

    @property
    def microbatches(self) -> int:
        return self.job.microbatches(self.graph.microbatch)

    def rows(self, seconds: float, longest: float, goal: float) -> Iterator[Row]:
        """Rows that a chip with these seconds of all layers and of the longest may bring below the goal."""
        wide, blocks, total = self.graph.width, sum(self.graph.block), self.microbatches
        # ZeRO 1 needs no more memory and no more time than ZeRO 0: weights are sent in no more bytes than gradients.
        apart = self.graph.low > self.job.held.wire or self.shard > 0
        zeros = [zero for zero in self.zeros if zero or 1 not in self.zeros or apart]
        for family in allowed_families(self.graph, self.job):
            v = family.chunks
            deepest = len(self.graph.calls) if v == 1 else (blocks // v if blocks % v == 0 else 0)
            for stages in range(1, min(1 if family.alone else deepest, self.job.devices // wide) + 1):
                most = min(total, self.job.devices // (wide * stages))
                while most >= 1:
                    rounds = -(-total // most)
                    fewest = -(-total // rounds)
                    filled = 0.0 if family.split else family.share(stages) * seconds
                    if family.laps(rounds) * max(seconds / stages, longest) + filled >= goal:
                        break
                    if family.runs(rounds, stages):
                        for zero in zeros:
                            yield Row(stages, family, rounds, fewest, most, zero)
                    most = fewest - 1

    def modes_of(self, row: Row) -> tuple[int, ...]:
        """The modes that stages of a row may run in."""
        return tuple(mode for mode in self.modes if mode == 0 or not row.family.split)

    def shape(self, row: Row, data: int, order: str) -> Shape:
        graph = self.graph
        degrees = graph.context, graph.group, self.shard
        return Shape(graph.tensor, row.stages, data, order, row.family, row.zero, *degrees)

    def what_fits(self, row: Row) -> FittingBlocks | None:
        """The most blocks by stage number and mode; None where nothing fits."""
        if row not in self.held:
            self.held[row] = self._fitting(row) if self.modes_of(row) else None
        return self.held[row]

    def _fitting(self, row: Row) -> FittingBlocks | None:
        graph, room, modes = self.graph, self.job.room(self.hbm_bytes), self.modes_of(row)
        shape, count = self.shape(row, row.most, "data"), len(graph.calls)
        if row.stages == 1:
            flying = row.family.flying(row.rounds, 1, 1)
            every = [stage_bytes(graph, self.job, range(count), mode) for mode in modes]
            need = [own.needed(self.job, shape, flying) for own in every]
            fits = np.where(np.array(need) <= room, sum(graph.block), -1)
            return FittingBlocks(fits[None, :], int(fits.max())) if (fits >= 0).any() else None
        if not self.parts.simple:
            return FittingBlocks(np.full((row.stages, len(modes)), count), count)
        v, numbers = row.family.chunks, np.arange(1, row.stages + 1)
        flying_at = np.array([row.family.flying(row.rounds, int(number), row.stages) for number in numbers])[:, None]
        found = np.full((row.stages, len(modes)), -1)
        for at, mode in enumerate(modes):
            for part, own in (("inner", slice(1, -1)), ("last", slice(0, 1)), ("first", slice(-1, None))):
                held = self.parts.stages(part, mode).needed(self.job, shape, flying_at[own])
                found[own, at] = (held <= room).sum(axis=1) - 1
        least = np.full(row.stages, v)
        if v == 1:
            least[0], least[-1] = int(graph.block[-1]), int(graph.block[0])
        found = found // v * v
        found = np.where(found >= least[:, None], found, -1)
        most = found.max(axis=1)
        if (most < 0).any() or int(most.sum()) < sum(graph.block):
            return None
        plain = int(np.maximum(found[:, modes.index(0)], 0).sum()) if 0 in modes else 0
        return FittingBlocks(found, plain)

    def end(self, row: Row, links: float) -> dict[int, Ends]:
        """The least ends over all replicas of a row by the outermost level that its boundaries cross, on a network with
        these innermost links; none where no replicas can share out the experts."""
        key = row.stages, row.fewest, row.most, row.zero, row.orders, links
        if key not in self.ends:
            self.ends[key] = self._ends(row, self.job if links == 0 else self.job.at_links(links))
        return self.ends[key]

    def _sizes(self, row: Row) -> Size:
        """Bytes of which some stage has no less: its share of each kind, the largest layer, and of equal blocks those
        of the stage that has most."""
        graph, sent = self.graph, self.job.held.sent
        kinds = [graph.layers[kind] for kind in graph.calls]
        ties = sum(tie.elements * (len(tie.calls) - 1) for tie in graph.ties)
        dense, experts = (
            [sent * (layer.parameters - layer.experts) for layer in kinds],
            [sent * layer.experts for layer in kinds],
        )
        rows = [(max((sum(dense) - sent * ties) / row.stages, *dense), 0.0)]
        if any(experts):
            most = -(-sum(graph.block) // row.stages) if graph.equal else 1
            at = graph.block.index(True)
            blocks = max(0.0, most * dense[at] - sent * ties)
            rows += [(0.0, sum(experts) / row.stages), (blocks, most * experts[at])]
        return np.array([own for own, _ in rows]), np.array([own for _, own in rows])

    def _ends(self, row: Row, job: Job) -> dict[int, Ends]:
        graph = self.graph
        block, experts = reduced_bytes(graph, job)
        size = self._sizes(row)
        nothing = np.full(len(size[0]), np.inf)
        ends = dict[int, Ends]()
        seen = set[Any]()
        for data in range(row.fewest, row.most + 1):
            for order in row.orders[: 1 if row.stages == 1 else 2]:
                shape = self.shape(row, data, order)
                if not shape.allowed:
                    continue
                level = outermost_level(job.network, shape)
                least = ends.get(level, Ends(nothing, nothing, (np.full(len(graph.layers), np.inf),) * 2))
                steps = np.minimum(least.step_bytes, step_bytes(job, shape, size))
                whole = replicas_by_level(job.network, shape), experts_by_level(job.network, shape)
                members = (level, *whole, *sharers_by_level(job.network, shape))
                if members in seen:
                    ends[level] = Ends(least.seconds, steps, least.gathers)
                    continue
                seen.add(members)
                seconds = synchronised(job, shape, size, graph.low, (block, experts, np.inf))
                ahead, behind = map(np.minimum, least.gathers, gathered(graph, job, shape))
                ends[level] = Ends(np.minimum(least.seconds, seconds), steps, (ahead, behind))
        return ends

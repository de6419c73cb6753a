"""The rows of a configuration: shapes of plans that differ in replicas alone, what of them fits,
and the least that the end of a batch takes. Nothing here depends on a chip's times."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .closed_sets import StageSets, is_chain, stage_sets
from .families import PUBLISHED, Family
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
from .plan_graph import PlanGraph
from .plans import StageBytes, allowed_families, around_bytes, gathered, reduced_block, stage_bytes

Floats = NDArray[np.float64]
ORDERS = ("pipeline", "data")


def crossing(graph: PlanGraph) -> list[float]:
    """Bytes over every boundary that there can be."""
    return [sum(s for a, b, s in graph.edges if a <= at < b) for at in range(len(graph.calls) - 1)]


@dataclass(frozen=True, slots=True)
class Row:
    """Plans of S stages of a family, d from ``fewest`` to ``most`` replicas, at a ZeRO stage, with
    stages or replicas as neighbours; ``rounds``: the least microbatches of a replica, of all
    ``microbatches``."""

    stages: int
    family: Family
    rounds: float
    fewest: int
    most: int
    zero: int
    microbatches: int
    orders: tuple[str, ...] = ORDERS

    def extremes(self) -> "tuple[Row, ...]":
        """The row itself, or where replicas run different numbers of microbatches two rows of one
        degree: with M/d for ceil(M/d) what bounds a plan is linear in 1/d, so that one of the two
        is no above any plan between them."""
        if -(-self.microbatches // self.fewest) == self.rounds or self.fewest == self.most:
            return (self,)
        rows = []
        for data in (self.fewest, self.most):
            rows.append(replace(self, fewest=data, most=data, rounds=self.microbatches / data))
        return tuple(rows)


@dataclass(frozen=True, slots=True)
class FittingBlocks:
    """What fits in a row, whatever the chip: by stage number from the end and mode of the graph the
    most blocks, -1 for none at all; ``plain``: blocks that fit without recomputing."""

    blocks: NDArray[np.int64]
    plain: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The least synchronisation of a row and bytes of its optimizer step, for each size that some
    stage has, and ZeRO's collectives of each distinct layer, forward and backward, of plans whose
    boundaries cross no level beyond one."""

    seconds: Floats
    step_bytes: Floats
    gathers: tuple[Floats, Floats]


@dataclass(slots=True)
class GraphParts:
    """What the plans of a graph have in common, whatever configuration and memory: ``simple``:
    equal blocks in a row, ``cut``: plans can be evaluated one by one, ``ends``: calls stand in a
    chain, of which the first and the last alone share parameters; ``carried``: the least bytes
    over a boundary, ``around``: those around the pipeline, ``arriving``: the least that a stage of
    a chain waits for at its first call; ``unsplit``: calls that a stage of one device can hold."""

    graph: PlanGraph
    job: Job
    simple: bool = field(init=False)
    cut: bool = field(init=False)
    ends: bool = field(init=False)
    carried: float = field(init=False)
    around: float = field(init=False)
    arriving: float = field(init=False)
    unsplit: int = field(init=False)
    _stages: dict[tuple[str, int], StageBytes] = field(default_factory=dict)
    _sets: list[StageSets | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph, last, chain = self.graph, len(self.graph.calls) - 1, is_chain(self.graph)
        self.ends = chain and all(set(tie.calls) == {0, last} for tie in graph.ties)
        self.simple, self.cut = self._equal_blocks(), self.ends or not graph.ties
        self.carried, self.around = min(crossing(graph), default=0.0), around_bytes(graph)
        next_calls = [size for tail, head, size in graph.edges if head == tail + 1]
        self.arriving = min(next_calls, default=0.0) if chain else 0.0
        whole = [call for call in graph.calls if not graph.layers[call].sharded]
        self.unsplit = len(whole) if self.job.stack.unsplit and graph.width > 1 else 0

    def _equal_blocks(self) -> bool:
        """Equal blocks in a row, as much entering each and crossing every boundary, with at most
        one call before and one after them, and no ties of theirs."""
        graph = self.graph
        blocks = [call for call, is_block in enumerate(graph.block) if is_block]
        entering = {sum(size for _, head, size in graph.edges if head == call) for call in blocks}
        tied = any(graph.block[call] for tie in graph.ties for call in tie.calls)
        short = blocks[0] <= 1 and blocks[-1] >= len(graph.calls) - 2
        return (
            graph.equal
            and short
            and not tied
            and len(entering) <= 1
            and len(set(crossing(graph))) <= 1
        )

    @property
    def sets(self) -> StageSets | None:
        """The stages of its plans; None where they cannot be evaluated one by one."""
        if not self._sets:
            self._sets.append(stage_sets(self.graph, self.job) if self.cut else None)
        return self._sets[0]

    def stages(self, part: str, mode: int) -> StageBytes:
        """Stages of 0, 1, 2 ... blocks with what lies before them (``first``), after them
        (``last``), or both."""
        if (part, mode) not in self._stages:
            graph = self.graph
            blocks = [call for call, is_block in enumerate(graph.block) if is_block]
            before = list(range(blocks[0])) if part in ("first", "only") else []
            after = (
                list(range(blocks[-1] + 1, len(graph.calls))) if part in ("last", "only") else []
            )
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
    """The rows of one configuration of a model: its modes of recompute, its stages of ZeRO, a
    memory. ``moved``: by row the bytes that are sent, and the parameters stepped, at least."""

    parts: GraphParts
    modes: tuple[int, ...]
    zeros: tuple[int, ...]
    hbm_bytes: float
    shard: int = 0
    held: dict[Row, FittingBlocks | None] = field(default_factory=dict)
    ends: dict[tuple[object, ...], dict[int, Ends]] = field(default_factory=dict)
    moved: dict[Row, tuple[float, float]] = field(default_factory=dict)

    @property
    def graph(self) -> PlanGraph:
        return self.parts.graph

    @property
    def job(self) -> Job:
        return self.parts.job

    @property
    def microbatches(self) -> int:
        return self.job.microbatches(self.graph.microbatch)

    @property
    def ends_alone(self) -> bool:
        """Whether replicas change nothing but the end of a batch, which is that of the first stage
        over one link: no transfers, bytes or microbatches in flight."""
        stack = self.job.stack
        published = stack.families == (PUBLISHED,)
        alike = self.graph.group == 1 and set(self.zeros) == {0}
        return stack.flat and published and alike

    def least_devices(self, stages: int, unsplit: int) -> int:
        """Devices of a replica of so many stages, of which so many take one device."""
        return self.graph.width * (stages - unsplit) + unsplit

    def most_replicas(self, stages: int, unsplit: int) -> int:
        """Replicas that the devices allow and the microbatches can use."""
        return min(self.microbatches, self.job.devices // self.least_devices(stages, unsplit))

    def rows(
        self, seconds: float, longest: float, goal: float, by_joules: bool = False
    ) -> Iterator[Row]:
        """Rows that a chip with these seconds of all layers and of the longest may bring below the
        goal; ``by_joules``: more replicas of as many microbatches may take more of them."""
        total = self.microbatches
        orders = ("",) if self.job.stack.arriving else ORDERS
        for family in allowed_families(self.graph, self.job):
            for stages in range(1, self._deepest(family) + 1):
                most = self.most_replicas(stages, min(self.parts.unsplit, stages))
                while most >= 1:
                    rounds = -(-total // most)
                    together = self.ends_alone and not by_joules
                    fewest = 1 if together else -(-total // rounds)
                    filled = 0.0 if family.split else family.share(stages) * seconds
                    if (
                        family.laps(rounds, stages) * max(seconds / stages, longest) + filled
                        >= goal
                    ):
                        break
                    if family.runs(rounds, stages):
                        for zero in self.zeros:
                            yield Row(stages, family, rounds, fewest, most, zero, total, orders)
                    most = fewest - 1

    def roomiest_rows(self) -> Iterator[Row]:
        """The rows with the most replicas, whether a family runs so few microbatches or not."""
        total = self.microbatches
        orders = ("",) if self.job.stack.arriving else ORDERS
        for family in allowed_families(self.graph, self.job):
            for stages in range(1, self._deepest(family) + 1):
                most = self.most_replicas(stages, min(self.parts.unsplit, stages))
                for zero in self.zeros if most else ():
                    yield Row(stages, family, -(-total // most), most, most, zero, total, orders)

    def _deepest(self, family: Family) -> int:
        """The most stages of a family."""
        blocks, chunks = sum(self.graph.block), family.chunks
        deepest = len(self.graph.calls)
        if chunks > 1:
            deepest = blocks // chunks if blocks % chunks == 0 else 0
        return min(1, deepest) if family.alone else deepest

    def modes_at(self, family: Family, number: int) -> tuple[int, ...]:
        """The modes that the stage of a number from the end may run in."""
        if number == 1 and not self.job.stack.last_recomputes:
            return (0,)
        names, stack = self.graph.names, self.job.stack
        return tuple(
            mode
            for mode in self.modes
            if (mode == 0 or not family.split) and stack.keeps(names[mode], self.graph.group)
        )

    def shape(self, row: Row, data: int, order: str) -> Shape:
        graph = self.graph
        degrees = graph.context, graph.group, self.shard
        return Shape(graph.tensor, row.stages, data, order, row.family, row.zero, *degrees)

    def what_fits(self, row: Row) -> FittingBlocks | None:
        """The most blocks by stage number and mode; None where nothing fits."""
        if row not in self.held:
            self.held[row] = self._fitting(row) if self.modes_at(row.family, row.stages) else None
        return self.held[row]

    def _fitting(self, row: Row) -> FittingBlocks | None:
        graph, room, family = self.graph, self.job.room(self.hbm_bytes), row.family
        shape, count, blocks = self.shape(row, row.most, "data"), len(graph.calls), sum(graph.block)
        fitting = np.full((row.stages, len(graph.names)), -1)
        if row.stages == 1:
            flying = family.flying(row.rounds, 1, 1)
            for mode in self.modes_at(family, 1):
                need = stage_bytes(graph, self.job, range(count), mode).needed(
                    self.job, shape, flying
                )
                fitting[0, mode] = blocks if need <= room else -1
            return FittingBlocks(fitting, int(fitting.max())) if (fitting >= 0).any() else None
        if not self.parts.simple:
            return FittingBlocks(np.full_like(fitting, count), count)
        chunks, least = family.chunks, np.full(row.stages, family.chunks)
        if chunks == 1:
            least[0], least[-1] = int(graph.block[-1]), int(graph.block[0])
        numbers = range(1, row.stages + 1)
        flying_at = np.array([family.flying(row.rounds, number, row.stages) for number in numbers])[
            :, None
        ]
        for part, places in (
            ("last", slice(0, 1)),
            ("inner", slice(1, -1)),
            ("first", slice(-1, None)),
        ):
            for mode in self.modes_at(family, 1 if part == "last" else row.stages):
                need = self.parts.stages(part, mode).needed(self.job, shape, flying_at[places])
                most = ((need <= room).sum(axis=1) - 1) // chunks * chunks
                fitting[places, mode] = np.where(most >= least[places], most, -1)
        most_of = fitting.max(axis=1)
        if (most_of < 0).any() or int(most_of.sum()) < blocks:
            return None
        return FittingBlocks(fitting, int(np.maximum(fitting[:, 0], 0).sum()))

    def end(self, row: Row, links: float) -> dict[int, Ends]:
        """The least ends over all replicas of a row by the outermost level that its boundaries
        cross, on a network with these innermost links; none where no replicas can share out the
        experts."""
        key = row.stages, row.fewest, row.most, row.zero, row.orders, links
        if key not in self.ends:
            self.ends[key] = self._ends(row, self.job if links == 0 else self.job.at_links(links))
        return self.ends[key]

    def _sizes(self, row: Row) -> Size:
        """Bytes of which some stage has no less: its share of each kind, the largest layer, and of
        equal blocks those of the stage that has most."""
        graph, sent = self.graph, self.job.held.sent
        kinds = [graph.layers[kind] for kind in graph.calls]
        if self.job.stack.first_end:
            return self._first_sizes(row)
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

    def _first_sizes(self, row: Row) -> Size:
        """Bytes of which the first stage has no less: it holds all calls, or one that nothing leads
        to."""
        graph, sent = self.graph, self.job.held.sent
        heads = {head for _, head, _ in graph.edges}
        sources = [call for call in range(len(graph.calls)) if call not in heads]
        stages = [[call] for call in sources] if row.stages > 1 else [range(len(graph.calls))]
        bytes_of = [stage_bytes(graph, self.job, calls, 0) for calls in stages]
        parameters = min(float(stage.parameters - stage.experts) for stage in bytes_of)
        experts = min(float(stage.experts) for stage in bytes_of)
        return np.array([sent * parameters]), np.array([sent * experts])

    def _ends(self, row: Row, job: Job) -> dict[int, Ends]:
        graph = self.graph
        block = reduced_block(graph, job)
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
                least = ends.get(
                    level, Ends(nothing, nothing, (np.full(len(graph.layers), np.inf),) * 2)
                )
                steps = np.minimum(least.step_bytes, step_bytes(job, shape, size))
                whole = replicas_by_level(job.network, shape), experts_by_level(job.network, shape)
                members = (level, *whole, *sharers_by_level(job.network, shape))
                if members in seen:
                    ends[level] = Ends(least.seconds, steps, least.gathers)
                    continue
                seen.add(members)
                seconds = synchronised(job, shape, size, graph.low, block) + job.stack.pause
                ahead, behind = map(np.minimum, least.gathers, gathered(graph, job, shape))
                ends[level] = Ends(np.minimum(least.seconds, seconds), steps, (ahead, behind))
        return ends

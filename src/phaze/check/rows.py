"""The rows of a configuration under rules cluster: shapes of plans that differ in replicas alone, what of them fits,
and the least that the end of a batch takes. Nothing here depends on a chip's times."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .job import Job, Shape, replicas_by_level, step_bytes, synchronised
from .layers import RunGraph
from .network import collective
from .plans import StageBytes, allowed_chunks, in_flight, stage_bytes
from .stages import SENT_BYTES

Floats = NDArray[np.float64]
ORDERS = ("pipeline", "data")


def crossing(graph: RunGraph) -> list[float]:
    """Bytes over every boundary that there can be."""
    return [sum(s for a, b, s in graph.edges if a <= at < b) for at in range(len(graph.calls) - 1)]


@dataclass(frozen=True, slots=True)
class Row:
    """Plans of S stages with v chunks and m microbatches a replica, d from ``fewest`` to ``most``, at a ZeRO stage."""

    stages: int
    chunks: int
    rounds: int
    fewest: int
    most: int
    zero: int


@dataclass(frozen=True, slots=True)
class Held:
    """What fits in a row, whatever the chip: by stage number from the end and mode the most blocks, -1 for none at
    all; ``plain``: blocks that fit without recomputing."""

    blocks: NDArray[np.int64]
    plain: int


@dataclass(frozen=True, slots=True)
class Ends:
    """The least synchronisation of a row, bytes of its optimizer step, and a gather of each distinct layer."""

    seconds: float
    step_bytes: float
    gathers: Floats


@dataclass(slots=True)
class Space:
    """The rows of one configuration of a model: a graph, its modes of recompute, its stages of ZeRO, a memory."""

    graph: RunGraph
    job: Job
    modes: tuple[int, ...]
    zeros: tuple[int, ...]
    hbm_bytes: float
    held: dict[Row, Held | None] = field(default_factory=dict)
    ends: dict[tuple[Row, float], Ends] = field(default_factory=dict)
    parts: dict[tuple[str, int], StageBytes] = field(default_factory=dict)

    @property
    def simple(self) -> bool:
        """Equal blocks in a row, as much entering each and crossing every boundary, with at most one call before and
        one after them, and no ties of theirs."""
        graph = self.graph
        blocks = [at for at, own in enumerate(graph.block) if own]
        entering = {sum(size for _, head, size in graph.edges if head == at) for at in blocks}
        tied = any(graph.block[call] for tie in graph.ties for call in tie.calls)
        short = blocks[0] <= 1 and blocks[-1] >= len(graph.calls) - 2
        return graph.equal and short and not tied and len(entering) <= 1 and len(set(crossing(graph))) <= 1

    @property
    def microbatches(self) -> int:
        return self.job.microbatches(self.graph.microbatch)

    def rows(self, seconds: float, longest: float, goal: float) -> Iterator[Row]:
        """Rows that a chip with these seconds of all layers and of the longest may bring below the goal."""
        t, blocks, total = self.graph.width, sum(self.graph.block), self.microbatches
        # ZeRO 1 needs no more memory and no more time than ZeRO 0.
        zeros = [zero for zero in self.zeros if zero or 1 not in self.zeros]
        for v in sorted(allowed_chunks(self.graph, self.job)):
            deepest = len(self.graph.calls) if v == 1 else (blocks // v if blocks % v == 0 else 0)
            for stages in range(1, min(deepest, self.job.devices // t) + 1):
                most = min(total, self.job.devices // (t * stages))
                while most >= 1:
                    rounds = -(-total // most)
                    fewest = -(-total // rounds)
                    if (rounds - 1 / v) * max(seconds / stages, longest) + seconds / v >= goal:
                        break
                    if v == 1 or rounds % stages == 0:
                        for zero in zeros:
                            yield Row(stages, v, rounds, fewest, most, zero)
                    most = fewest - 1

    def shape(self, row: Row, data: int, order: str) -> Shape:
        return Shape(self.graph.width, row.stages, data, order, row.chunks, row.zero)

    def what_fits(self, row: Row) -> Held | None:
        """The most blocks by stage number and mode; None where nothing fits."""
        if row not in self.held:
            self.held[row] = self._fitting(row)
        return self.held[row]

    def _fitting(self, row: Row) -> Held | None:
        graph, room = self.graph, self.job.room(self.hbm_bytes)
        shape, count = self.shape(row, row.most, "data"), len(graph.calls)
        if row.stages == 1:
            need = [stage_bytes(graph, range(count), mode).needed(self.job, shape, 1.0) for mode in self.modes]
            fits = np.where(np.array(need) <= room, sum(graph.block), -1)
            return Held(fits[None, :], int(fits.max())) if (fits >= 0).any() else None
        if not self.simple:
            every = np.full((row.stages, len(self.modes)), count)
            return Held(every, count)
        v, numbers = row.chunks, np.arange(1, row.stages + 1)
        flying = np.array([in_flight(shape, row.rounds, int(number)) for number in numbers])[:, None]
        found = np.full((row.stages, len(self.modes)), -1)
        for at, mode in enumerate(self.modes):
            for part, own in (("inner", slice(1, -1)), ("last", slice(0, 1)), ("first", slice(-1, None))):
                held = self.stages(part, mode).needed(self.job, shape, flying[own])
                found[own, at] = (held <= room).sum(axis=1) - 1
        least = np.full(row.stages, v)
        if v == 1:
            least[0], least[-1] = int(graph.block[-1]), int(graph.block[0])
        found = found // v * v
        found = np.where(found >= least[:, None], found, -1)
        most = found.max(axis=1)
        if (most < 0).any() or int(most.sum()) < sum(graph.block):
            return None
        plain = int(np.maximum(found[:, self.modes.index(0)], 0).sum()) if 0 in self.modes else 0
        return Held(found, plain)

    def stages(self, part: str, mode: int) -> StageBytes:
        """Stages of 0, 1, 2 ... blocks with what lies before them (``first``), after them (``last``), or both."""
        if (part, mode) not in self.parts:
            graph = self.graph
            blocks = [at for at, own in enumerate(graph.block) if own]
            before, after = list(range(blocks[0])), list(range(blocks[-1] + 1, len(graph.calls)))
            calls = {"first": before, "last": after, "inner": [], "only": [*before, *after]}[part]
            rows = [stage_bytes(graph, [*calls, *blocks[:k]], mode) for k in range(0 if calls else 1, len(blocks) + 1)]
            columns = [[float(getattr(row, name)) for row in rows] for name in StageBytes.__slots__]
            if not calls:
                columns = [[0.0, *column] for column in columns]
            self.parts[part, mode] = StageBytes(*map(np.array, columns))
        return self.parts[part, mode]

    def end(self, row: Row, links: float) -> Ends:
        """The least ends over all replicas of a row, on a network with these innermost links."""
        if (row, links) not in self.ends:
            self.ends[row, links] = self._ends(row, self.job if links == 0 else self.job.at_links(links))
        return self.ends[row, links]

    def _ends(self, row: Row, job: Job) -> Ends:
        sizes = np.array([SENT_BYTES * layer.parameters for layer in self.graph.layers])
        ties = sum(SENT_BYTES * tie.elements * (len(tie.calls) - 1) for tie in self.graph.ties)
        whole = float(sum(sizes[kind] for kind in self.graph.calls)) - ties
        share = np.array([max(whole / row.stages, float(sizes.max()))])
        block = (
            float(sizes[self.graph.calls[self.graph.block.index(True)]])
            if self.graph.equal
            else (float(sum(sizes[kind] for kind in self.graph.calls)) / len(self.graph.calls))
        )
        seconds, gathers = np.inf, np.full(len(sizes), np.inf)
        seen = set[Any]()
        for data in range(row.fewest, row.most + 1):
            for order in ORDERS[: 1 if row.stages == 1 else 2]:
                members = replicas_by_level(job.network, self.shape(row, data, order))
                if members in seen:
                    continue
                seen.add(members)
                seconds = min(seconds, float(synchronised(job, members, row.zero, share, (block, np.inf))[0]))
                if row.zero >= 2:
                    gathers = np.minimum(gathers, collective(job.network, "all_gather", members, sizes))
        if row.zero < 2:
            gathers = np.zeros(len(sizes))
        return Ends(seconds, float(step_bytes(job, row.most, row.zero, share)[0]), gathers)

"""What no plan of a graph undercuts under rules cluster, on many chips at once (docs/placement.md, Rules cluster).

A *row* is all plans of S stages with v chunks at a stage of ZeRO whose replicas run m microbatches: d from ceil(M/m) to
the most that the devices allow. With C the seconds of all layers and T the greatest stage, none of them takes less than

    (m - 1/v) T + C / v + E,     T >= max( C / S, the longest layer )                                   (:func:`floors`)

where C counts transfers over the fastest level, what of ZeRO's collectives is exposed, and the least that must be
recomputed: where at most k blocks fit without it, B - k are. E is that of a stage with its share of the parameters.

For models of equal blocks, T is sharper (:func:`closed`): to beat a goal every stage must end within
t = (goal - E - C / v) / (m - 1/v), so the stage of number s has room for at most a_s blocks, by time and memory in the
mode that gives it most; if they do not add up to all blocks, no plan of the row beats the goal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .job import Job, Shape, replicas_by_level, step_bytes, synchronised
from .layers import LayerSeconds, RunGraph
from .network import collective, transfer
from .plans import GATHERS, StageBytes, allowed_chunks, in_flight, stage_bytes
from .stages import SENT_BYTES

Floats = NDArray[np.float64]
ORDERS = ("pipeline", "data")
NEAR = 1e-9


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
        return graph.equal and short and not tied and len(entering) <= 1 and len(set(_crossing(graph))) <= 1

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


@dataclass(frozen=True, slots=True)
class Chipwise:
    """Seconds of a graph on some chips that share a network: of layers, of a whole pass, of what recomputing adds to a
    block by mode; ``rate``: HBM bytes a second that vector work reaches, ``links``: of the innermost level."""

    times: LayerSeconds
    rate: Floats
    links: float

    def taken(self, index: NDArray[np.int64]) -> "Chipwise":
        own = self.times
        times = LayerSeconds(own.forward[:, index], own.backward[:, index], own.again[:, :, index])
        return Chipwise(times, self.rate[index], self.links)


Exact = Callable[[Space, Row, Chipwise, float], float]
"""The least batch time of the plans of a row on one chip, as far as it is below a goal."""


@dataclass(frozen=True, slots=True)
class _Costs:
    """A row on some chips: all layers, the longest, ends, and for models of equal blocks what a stage is made of."""

    whole: Floats
    longest: Floats
    ends: Floats
    block: Floats
    around: tuple[Floats, Floats]
    stage: float
    boundary: float


def _costs(space: Space, row: Row, held: Held, chips: Chipwise) -> _Costs:
    graph, job = space.graph, space.job if chips.links == 0 else space.job.at_links(chips.links)
    ends = space.end(row, chips.links)
    both = chips.times.forward + chips.times.backward
    both = both + ((1 - job.stack.hidden) * sum(GATHERS.get(row.zero, (0, 0))) * ends.gathers)[:, None]
    often = np.bincount(np.array(graph.calls), minlength=len(graph.layers)).astype(float)
    called = both[np.unique(np.array(graph.calls))]
    covered = row.chunks > 1 and job.stack.overlapped
    sent = [size for a, b, size in graph.edges] if row.stages > 1 and not covered else []
    lanes = graph.width if job.stack.scatters else 1
    crossing = min(_crossing(graph)) / lanes if sent else 0.0
    levels = range(len(job.network.levels))
    boundary = row.chunks * min(float(transfer(job.network, level, np.array([crossing]))[0]) for level in levels)
    stage = 2 * (row.chunks - 1) * job.stack.chunk_start
    blocks = sum(graph.block)
    kind = graph.calls[graph.block.index(True)]
    more = [mode for mode in space.modes if mode]
    again = np.min([chips.times.again[mode, kind] for mode in more], axis=0) if more else np.zeros(both.shape[1])
    if row.stages == 1:
        fitting = [mode for at, mode in enumerate(space.modes) if held.blocks[0, at] >= 0]
        kinds = [graph.calls[at] for at, own in enumerate(graph.block) if own]
        recomputed = np.min([sum(chips.times.again[mode, k] for k in kinds) for mode in fitting], axis=0)
    else:
        recomputed = max(0, blocks - held.plain) * again if space.simple else np.zeros(both.shape[1])
    whole = often @ both + recomputed + row.stages * stage + 2 * (row.stages - 1) * boundary
    first = both[graph.calls[0]] if not graph.block[0] else np.zeros(both.shape[1])
    last = both[graph.calls[-1]] if not graph.block[-1] else np.zeros(both.shape[1])
    end = ends.seconds + ends.step_bytes / chips.rate
    return _Costs(whole, called.max(axis=0), end, both[kind], (last, first), stage, boundary)


def _crossing(graph: RunGraph) -> list[float]:
    """Bytes over every boundary that there can be."""
    return [sum(s for a, b, s in graph.edges if a <= at < b) for at in range(len(graph.calls) - 1)]


def _floor(row: Row, costs: _Costs) -> Floats:
    pace = np.maximum(costs.whole / row.stages, costs.longest)
    return np.asarray((row.rounds - 1 / row.chunks) * pace + costs.whole / row.chunks + costs.ends)


def _closed(space: Space, row: Row, held: Held, chips: Chipwise, costs: _Costs, goal: Floats) -> NDArray[np.bool_]:
    """Chips on which no plan of a row beats the goal."""
    laps = row.rounds - 1 / row.chunks
    if row.stages == 1 or laps == 0 or not space.simple:
        return _floor(row, costs) >= goal
    longest = (goal - costs.ends - costs.whole / row.chunks) / laps
    kind = space.graph.calls[space.graph.block.index(True)]
    room, never = np.zeros(len(goal)), longest <= 0
    for number in range(1, row.stages + 1):
        end = number in (1, row.stages)
        fixed = costs.stage + costs.boundary * (1 if end else 2)
        left = longest - fixed - (costs.around[number == row.stages] if end else 0.0)
        most = np.full(len(goal), -1.0)
        for at, mode in enumerate(space.modes):
            if held.blocks[number - 1, at] >= 0:
                each = costs.block + chips.times.again[mode, kind]
                fits = np.floor(left / each * (1 + NEAR) + NEAR)
                fits = fits // row.chunks * row.chunks if row.chunks > 1 else fits
                most = np.maximum(most, np.minimum(fits, held.blocks[number - 1, at]))
        never |= most < 0
        room += np.maximum(most, 0.0)
    return np.asarray(never | (room < sum(space.graph.block)))


def least_batches(
    spaces: Sequence[Space], chips: Chipwise, goal: Floats, known: Floats, sharp: bool, exact: Exact | None = None
) -> Floats:
    """What no plan of each configuration undercuts, [configurations, chips], as far as it is below the goal;
    ``sharp``: stages of equal blocks, too; ``exact``: their plans, on one chip at a time."""
    found = np.zeros(known.shape)
    for at, space in enumerate(spaces):
        index = np.flatnonzero(known[at] < goal)
        if not len(index):
            continue
        own = chips.taken(index)
        often = np.bincount(np.array(space.graph.calls), minlength=len(space.graph.layers)).astype(float)
        both = own.times.forward + own.times.backward
        whole, longest = often @ both, both[np.unique(np.array(space.graph.calls))].max(axis=0)
        # M t / K microbatches of all layers fall to every device, however they are placed.
        least = space.microbatches * space.graph.width * whole / space.job.devices
        best = np.where(least >= goal[index], least, np.inf)
        there = np.flatnonzero(least < goal[index])
        if len(there):
            most = float(goal[index][there].max())
            some = own.taken(there)
            for row in space.rows(float(whole[there].min()), float(longest[there].min()), most):
                best[there] = np.minimum(best[there], row_bound(space, row, some, goal[index][there], sharp, exact))
        # Rows that none brings below the goal are not looked at, so more than it is not shown.
        found[at, index] = np.minimum(best, goal[index])
    return found


def row_bound(space: Space, row: Row, chips: Chipwise, goal: Floats, sharp: bool, exact: Exact | None = None) -> Floats:
    """What no plan of a row undercuts on every chip."""
    held = space.what_fits(row)
    if held is None:
        return np.full(len(goal), np.inf)
    costs = _costs(space, row, held, chips)
    found = _floor(row, costs)
    if sharp and (found < goal).any():
        found = np.where(_closed(space, row, held, chips, costs, goal), np.maximum(found, goal), found)
    if exact is not None and space.simple:
        for at in np.flatnonzero(found < goal).tolist():
            found[at] = exact(space, row, chips.taken(np.array([at])), float(goal[at]))
    return found

"""What no placement of a graph undercuts, on many chips at once (docs/placement.md, rules icml24).

A set of layers is *closed* if it holds all successors of its layers: what a pipeline still has to do. With
g(U, q, s) the least greatest stage time over all cuts of a closed set U into s stages, q of them unsplit,

    g(U, q, 1) = T(U),     g(U, q, s) = min over closed U' in U of max( T(U - U'), g(U', q - [unsplit], s - 1) )

and the first stage tried apart, because its parameters decide the synchronisation. The table is filled for arrays of
chips. Before it, chips are left out that no plan of S stages brings below their goal (:func:`_floors`): one stage holds
a share of all layers, and of every kind a whole number of them.

Over the data degree d, with T the greatest stage and W = 4 w / B, a batch takes T (ceil(M/d) + S - 1) + W (1 - 1/d),
at least T (S - 1) + W + (T M - W)/d: where T M > W that falls with d, so degrees are tried from the most that the
devices allow until no lesser one can be below the goal (:func:`_over_degrees`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .families import Family
from .job import Job, Shape
from .plan_graph import PlanGraph
from .plans import StageBytes, stage_bytes
from .reading import cover
from .stages import Stage, stage_of, stage_passes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
PUBLISHED = Family("icml24")
MOST_CLOSED = 2_000
"""Closed sets of a layer graph: tables over more take minutes."""
ROOM = 12_000_000
"""Numbers that a table may hold at once; more chips than fit are taken in turn."""


@dataclass(frozen=True, slots=True)
class StageCut:
    """A stage of the table: from one closed set to another, and the numbers at which each mode fits."""

    before: int
    after: int
    stage: int
    plain_until: int
    again_until: int


@dataclass(frozen=True, slots=True)
class Cuts:
    """What of a graph's placement depends on no chip."""

    graph: PlanGraph
    job: Job
    modes: tuple[bool, bool]
    stages: tuple[Stage, ...]
    firsts: tuple[StageCut, ...]
    inner: tuple[tuple[StageCut, ...], ...]
    sizes: tuple[int, ...]
    unsplit: int

    @property
    def microbatches(self) -> int:
        return self.job.microbatches(self.graph.microbatch)

    def devices(self, stages: int, unsplit: int) -> int:
        """Devices of a replica."""
        return self.graph.width * (stages - unsplit) + unsplit

    def most_replicas(self, stages: int, unsplit: int) -> int:
        """Replicas that the devices allow and the microbatches can use."""
        return min(self.job.devices // self.devices(stages, unsplit), self.microbatches)


def _closed(graph: PlanGraph) -> list[int]:
    """Every closed set as bits, by size."""
    count = len(graph.calls)
    preds = [0] * count
    for tail, head, _ in graph.edges:
        preds[head] |= 1 << tail
    found, layer = set[int](), {(1 << count) - 1}
    while layer:
        found |= layer
        cover(len(found) <= MOST_CLOSED, f"layer graphs of more than {MOST_CLOSED} closed sets")
        layer = {
            left & ~(1 << at)
            for left in layer
            for at in range(count)
            if left >> at & 1 and not preds[at] & left
        } - found  # fmt: skip
    return sorted(found, key=lambda left: (left.bit_count(), left))


@dataclass(frozen=True, slots=True)
class Stages:
    """Every stage of every closed set of a graph, [from, to, stage], equal ones once, with the bytes of each, plain and
    recomputing."""

    graph: PlanGraph
    sizes: tuple[int, ...]
    stages: tuple[Stage, ...]
    held: tuple[tuple[StageBytes, StageBytes], ...]
    rows: tuple[tuple[int, int, int], ...]


def stages_of(graph: PlanGraph, job: Job) -> Stages:
    """The stages of a graph, whatever fits."""
    closed, numbers, rows = _closed(graph), dict[Stage, int](), list[tuple[int, int, int]]()
    held = list[tuple[StageBytes, StageBytes]]()
    for at, left in enumerate(closed[1:], 1):
        for to in range(at):
            if not closed[to] & ~left:
                inside = left & ~closed[to]
                members = tuple(call for call in range(len(graph.calls)) if inside >> call & 1)
                stage = stage_of(graph, members)
                if stage not in numbers:
                    numbers[stage] = len(held)
                    held.append((stage_bytes(graph, job, members, 0), stage_bytes(graph, job, members, 1)))
                rows.append((at, to, numbers[stage]))
    return Stages(graph, tuple(left.bit_count() for left in closed), tuple(numbers), tuple(held), tuple(rows))


def _last_number(held: StageBytes, job: Job, most: int, hbm_bytes: float) -> int:
    """The greatest number, from the end, up to ``most``, at which a stage fits; 0 where it never does."""
    need = held.needed(job, Shape(1, 1, 1, "", PUBLISHED, 0), np.arange(1.0, most + 1))
    return int((need <= job.room(hbm_bytes)).sum())


def cuts_of(found: Stages, job: Job, modes: tuple[bool, bool], hbm_bytes: float) -> Cuts:
    """The stages that fit somewhere; ``modes``: whether they may keep all, and recompute. The last one keeps all."""
    graph, fits = found.graph, list[tuple[int, int]]()
    most = len(graph.calls)
    for held in found.held:
        plain = _last_number(held[0], job, most, hbm_bytes)
        again = _last_number(held[1], job, most, hbm_bytes) if modes[1] else 0
        fits.append((plain if modes[0] else min(plain, 1), again))
    inner: list[list[StageCut]] = [[] for _ in found.sizes]
    for at, to, number in found.rows:
        if max(fits[number]) > 0:
            inner[at].append(StageCut(at, to, number, *fits[number]))
    unsplit = 0 if graph.width == 1 else sum(not graph.layers[kind].sharded for kind in graph.calls)
    firsts, every = tuple(inner[-1]), tuple(map(tuple, inner))
    return Cuts(graph, job, modes, found.stages, firsts, every, found.sizes, unsplit)


def _floors(cuts: Cuts, forward: Floats, backward: Floats) -> Floats:
    """For each number of stages, from 1, what no plan of so many undercuts, [stages, chips]."""
    graph, count = cuts.graph, len(cuts.graph.calls)
    often = np.bincount(np.array(graph.calls), minlength=len(graph.layers)).astype(float)
    both = forward + backward
    whole, again = often @ both, 1.0
    if not cuts.modes[0]:
        with np.errstate(divide="ignore", invalid="ignore"):
            again = np.nan_to_num(1.0 + forward / both, nan=1.0)[often > 0].min(axis=0)
    first = min(cuts.job.held.sent * cuts.stages[cut.stage].parameters for cut in cuts.firsts) if cuts.firsts else 0.0
    wait = 4.0 * first / cuts.job.stack.link
    found = np.full((count, both.shape[1]), np.inf)
    for stages in range(1, count + 1):
        most = max((cuts.most_replicas(stages, q) for q in range(min(cuts.unsplit, stages) + 1)), default=0)
        if most < 1:
            continue
        slowest = whole / (1.0 + (stages - 1) / again)
        for kind, times in enumerate(often):
            slowest = np.maximum(slowest, np.ceil(times / stages) * both[kind])
        found[stages - 1] = _relaxed(slowest, np.full(1, wait), stages, float(most), cuts.microbatches)
    return found


def _relaxed(slowest: Floats, wait: Floats, stages: Floats | int, most: Floats | float, microbatches: int) -> Floats:
    """What no data degree up to ``most`` undercuts."""
    work = slowest * microbatches
    falls = slowest * (stages - 1) + wait + (work - wait) / most
    return np.where(work > wait, falls, slowest * (stages - 1) + work)


def _over_degrees(
    slowest: Floats, wait: float, stages: Floats, most: Floats, microbatches: int, goal: Floats
) -> Floats:
    """The least batch time over data degrees, [chips], as far as it is below ``goal``; slowest is [stages, chips]."""
    best = np.full(slowest.shape[1], np.inf)
    while len(stages):
        rounds = np.ceil(microbatches / most)
        degree = np.ceil(microbatches / rounds)
        seconds = slowest * (rounds + stages - 1)[:, None] + (wait * (1 - 1 / degree))[:, None]
        best = np.minimum(best, seconds.min(axis=0))
        most = degree - 1
        more = most >= 1
        slowest, stages, most = slowest[more], stages[more], most[more]
        if not len(stages):
            break
        rest = _relaxed(slowest, np.full(1, wait), stages[:, None], most[:, None], microbatches)
        still = (rest < np.minimum(goal, best)).any(axis=1)
        slowest, stages, most = slowest[still], stages[still], most[still]
    return best


def _seconds(cuts: Cuts, forward: Floats, backward: Floats) -> tuple[list[Floats], list[Floats]]:
    """Every stage on every chip, plain and recomputing."""
    link = cuts.job.stack.link
    plain = [np.add(*stage_passes(stage, forward, backward, None, link)) for stage in cuts.stages]
    if not cuts.modes[1]:
        return plain, plain
    return plain, [np.add(*stage_passes(stage, forward, backward, forward, link)) for stage in cuts.stages]


def _spans(cut: StageCut, most: int) -> Iterator[tuple[bool, int, int]]:
    """(recomputes, first number, last number) of a cut, from number 2 on: plain, which is faster, where it fits."""
    if cut.plain_until >= 2:
        yield False, 2, min(cut.plain_until, most)
    start = max(cut.plain_until + 1, 2)
    if cut.again_until >= start:
        yield True, start, min(cut.again_until, most)


def _table(cuts: Cuts, seconds: tuple[list[Floats], list[Floats]], most: int, chips: int) -> Floats:
    """g as [closed set, unsplit, number of stages - 1, chips], up to ``most`` stages."""
    g = np.full((len(cuts.sizes), cuts.unsplit + 1, max(most, 1), chips), np.inf)
    for at, own in enumerate(cuts.inner[:-1]):
        for cut in own:
            stage = cuts.stages[cut.stage]
            bare = int(cuts.unsplit > 0 and not stage.split)
            if cut.after == 0:
                if cut.plain_until >= 1:
                    g[at, bare, 0] = np.minimum(g[at, bare, 0], seconds[0][cut.stage])
                continue
            rest = g[cut.after, : cuts.unsplit + 1 - bare]
            for again, first, last in _spans(cut, min(most, cuts.sizes[cut.after] + 1)):
                if first <= last:
                    slower = np.maximum(rest[:, first - 2 : last - 1], seconds[again][cut.stage])
                    np.minimum(g[at, bare:, first - 1 : last], slower, out=g[at, bare:, first - 1 : last])
    return g


def _best(cuts: Cuts, forward: Floats, backward: Floats, most: int, goal: Floats) -> Floats:
    """The least batch time of some chips, over plans of at most ``most`` stages, as far as it is below the goal."""
    seconds = _seconds(cuts, forward, backward)
    g = _table(cuts, seconds, most - 1, forward.shape[1])
    best, m = np.full(forward.shape[1], np.inf), cuts.microbatches
    for cut in cuts.firsts:
        stage = cuts.stages[cut.stage]
        wait = 4.0 * cuts.job.held.sent * stage.parameters / cuts.job.stack.link
        bare = int(cuts.unsplit > 0 and not stage.split)
        if cut.after == 0:
            if cut.plain_until >= 1 and (replicas := cuts.most_replicas(1, bare)) >= 1:
                alone, one = seconds[0][cut.stage][None, :], np.ones(1)
                best = np.minimum(best, _over_degrees(alone, wait, one, one * replicas, m, goal))
            continue
        for q in range(cuts.unsplit + 1 - bare):
            for again, first, last in _spans(cut, min(most, cuts.sizes[cut.after] + 1)):
                numbers = [s for s in range(first, last + 1) if q + bare <= s and cuts.most_replicas(s, q + bare) >= 1]
                if not numbers:
                    continue
                slowest = np.maximum(g[cut.after, q, [s - 2 for s in numbers]], seconds[again][cut.stage])
                replicas_of = np.array([cuts.most_replicas(s, q + bare) for s in numbers], float)
                there = np.isfinite(slowest).any(axis=1)
                if there.any():
                    own = _over_degrees(slowest[there], wait, np.array(numbers, float)[there], replicas_of[there],
                                        m, np.minimum(goal, best))  # fmt: skip
                    best = np.minimum(best, own)
    return best


def least_batch(cuts: Cuts, forward: Floats, backward: Floats, goal: Floats, cheap: bool = False) -> Floats:
    """What no plan undercuts on every chip, in seconds; where it is below ``goal`` it is the best plan's own time.

    ``cheap``: without the table."""
    floors = _floors(cuts, forward, backward)
    found = floors.min(axis=0)
    index = np.flatnonzero(found < goal)
    if cheap or not len(index) or not cuts.firsts:
        return found if cuts.firsts else np.full(len(found), np.inf)
    below = floors[:, index] < goal[index]
    depth = len(floors) - np.argmax(below[::-1], axis=0)
    order = np.argsort(depth, kind="stable")
    index, depth, start = index[order], depth[order], 0
    while start < len(index):
        end = start + 1
        size = len(cuts.sizes) * (cuts.unsplit + 1)
        while end < len(index) and (end + 1 - start) * size * int(depth[end]) <= ROOM:
            end += 1
        own, most = index[start:end], int(depth[end - 1])
        outside = np.where(np.arange(len(floors))[:, None] < most, np.inf, floors[:, own]).min(axis=0)
        exact = _best(cuts, forward[:, own], backward[:, own], most, goal[own])
        # Degrees that cannot come below the goal are not tried, so more than the goal is not shown.
        found[own] = np.maximum(found[own], np.minimum(np.minimum(exact, outside), goal[own]))
        start = end
    return np.asarray(found)

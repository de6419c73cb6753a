"""The stages that plans of a graph can have: each lies between two closed sets of calls
(docs/placement.md).

A set of calls is *closed* if it holds every successor of its calls: what a pipeline still has to
run. A stage takes some calls off such a set and leaves a smaller one. In a chain of calls the
closed sets are its ends, one for every cut. Stages that are alike call by call are evaluated once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .job import Job, Shape
from .plan_graph import PlanGraph
from .plans import StageBytes, layer_bytes, stage_bytes
from .stages import Stage, stage_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
MOST_SETS = 2_000
"""Closed sets of a graph whose plans are evaluated one by one: tables over more take minutes."""


@dataclass(frozen=True, slots=True)
class StageSets:
    """The closed sets of a graph, from the empty one to that of all calls, and the steps from one
    to a smaller one.

    ``calls`` of every set, and the bytes that ``enter`` it from all other calls. Of every step, in
    the order of the sets that it starts ``before``: the set ``after`` it and the number of its
    ``stage``; ``first_step`` of every set. Of every distinct stage: ``blocks``, calls of each layer
    (``counts``) and those that recompute (``reruns``), bytes by mode, whether tensor parallelism
    leaves it whole (``unsplit``), and what of its edges counts while it runs.
    """

    calls: Integers
    enter: Floats
    before: Integers
    after: Integers
    stage: Integers
    first_step: Integers
    blocks: Integers
    counts: Floats
    reruns: Floats
    bytes_of: tuple[StageBytes, ...]
    unsplit: Flags
    edges: tuple[Stage, ...]

    def steps_from(self, closed_set: int) -> slice:
        """The steps of a set."""
        last = (
            len(self.after)
            if closed_set == len(self.calls) - 1
            else int(self.first_step[closed_set + 1])
        )
        return slice(int(self.first_step[closed_set]), last)

    @property
    def first_stages(self) -> slice:
        """The steps of a first stage."""
        return self.steps_from(len(self.calls) - 1)


def is_chain(graph: PlanGraph) -> bool:
    """Whether calls can run in one order alone."""
    follows = {(tail, head) for tail, head, _ in graph.edges}
    return all((call, call + 1) in follows for call in range(len(graph.calls) - 1))


def closed_sets(graph: PlanGraph) -> list[int] | None:
    """Every closed set as bits, by size; None if they are too many."""
    count = len(graph.calls)
    before = [0] * count
    for tail, head, _ in graph.edges:
        before[head] |= 1 << tail
    every = (1 << count) - 1
    seen = {every}
    waiting = [every]
    while waiting:
        closed_set = waiting.pop()
        for call in range(count):
            inside = closed_set >> call & 1
            smaller = closed_set & ~(1 << call)
            if inside and not before[call] & closed_set and smaller not in seen:
                seen.add(smaller)
                waiting.append(smaller)
        if len(seen) > MOST_SETS:
            return None
    return sorted(seen, key=lambda closed_set: (closed_set.bit_count(), closed_set))


def _kinds_of_calls(graph: PlanGraph) -> list[int]:
    """For every call a number that it has in common with those that a stage can have in its
    place."""
    tied = {call for tie in (*graph.ties, *graph.still) for call in tie.calls}
    numbers = dict[tuple[object, ...], int]()
    kinds = []
    for call, layer in enumerate(graph.calls):
        entering = tuple(size for _, head, size in graph.edges if head == call)
        kind = (layer, graph.block[call], entering, call if call in tied else -1)
        kinds.append(numbers.setdefault(kind, len(numbers)))
    return kinds


def _members(calls: int) -> list[int]:
    """The calls of a set of bits."""
    return [call for call in range(calls.bit_length()) if calls >> call & 1]


def _bytes_by_mode(
    graph: PlanGraph, job: Job, kinds: Sequence[int], stages: Sequence[Sequence[int]]
) -> list[StageBytes]:
    """The bytes of stages, an array for each field, in every mode."""
    by_mode = list[StageBytes]()
    for mode in range(len(graph.names)):
        if mode and not job.stack.arriving:
            # A mode changes what each call keeps and holds beside it, and nothing else.
            own = [layer_bytes(graph, kinds.index(kind), mode) for kind in range(max(kinds) + 1)]
            kept, live = [], []
            for calls in stages:
                rows = [own[kinds[call]] for call in calls]
                kept.append(sum(size for size, _ in rows))
                live.append(max(size for _, size in rows))
            by_mode.append(replace(by_mode[0], kept=np.array(kept), live=np.array(live)))
            continue
        every = [stage_bytes(graph, job, calls, mode) for calls in stages]
        columns = [
            np.array([float(getattr(row, name)) for row in every]) for name in StageBytes.__slots__
        ]
        by_mode.append(StageBytes(*columns))
    return by_mode


def stage_sets(graph: PlanGraph, job: Job) -> StageSets | None:
    """Every stage of a graph; None if they are too many."""
    sets, kinds = closed_sets(graph), _kinds_of_calls(graph)
    if sets is None:
        return None
    numbers = dict[tuple[object, ...], int]()
    stages, edges = list[list[int]](), list[Stage]()
    before, after, stage_of_step = list[int](), list[int](), list[int]()
    for place, larger in enumerate(sets):
        for rest, smaller in enumerate(sets[:place]):
            if smaller & ~larger:
                continue
            calls = _members(larger & ~smaller)
            key: tuple[object, ...] = tuple([kinds[call] for call in calls])
            if job.stack.arriving:
                stage = stage_of(graph, calls)
                key = (key, stage)
            if key not in numbers:
                numbers[key] = len(stages)
                stages.append(calls)
                if job.stack.arriving:
                    edges.append(stage)
            before.append(place)
            after.append(rest)
            stage_of_step.append(numbers[key])
    counts, reruns = (
        np.zeros((len(stages), len(graph.layers))),
        np.zeros((len(stages), len(graph.layers))),
    )
    blocks, unsplit = np.zeros(len(stages), np.int64), np.zeros(len(stages), bool)
    for number, calls in enumerate(stages):
        for call in calls:
            counts[number, graph.calls[call]] += 1
            reruns[number, graph.calls[call]] += graph.recomputes(call)
            blocks[number] += graph.block[call]
        sharded = any(graph.layers[graph.calls[call]].sharded for call in calls)
        unsplit[number] = job.stack.unsplit and graph.width > 1 and not sharded
    enter = []
    for closed_set in sets:
        inside = [
            size
            for tail, head, size in graph.edges
            if closed_set >> head & 1 and not closed_set >> tail & 1
        ]
        enter.append(sum(inside))
    return StageSets(
        calls=np.array([closed_set.bit_count() for closed_set in sets]),
        enter=np.array(enter, np.float64),
        before=np.array(before, np.int64),
        after=np.array(after, np.int64),
        stage=np.array(stage_of_step, np.int64),
        first_step=np.searchsorted(np.array(before), np.arange(len(sets))),
        blocks=blocks,
        counts=counts,
        reruns=reruns,
        bytes_of=tuple(_bytes_by_mode(graph, job, kinds, stages)),
        unsplit=unsplit,
        edges=tuple(edges),
    )


def even_chunks(sets: StageSets, shape: Shape) -> Flags:
    """Which stages the chunks of a shape divide."""
    chunks = shape.family.chunks
    if chunks == 1:
        return np.ones(len(sets.blocks), bool)
    return np.asarray((sets.blocks > 0) & (sets.blocks % chunks == 0))

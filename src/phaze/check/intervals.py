"""The stages of a chain of calls: each lies between two cuts; those alike call by call are looked at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .job import Job, Shape
from .plan_graph import PlanGraph
from .plans import StageBytes, layer_bytes, stage_bytes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Intervals:
    """The distinct stages of a chain: ``at`` [cuts, cuts] names that between two cuts, -1 where there is none; how many
    blocks and calls of each layer it has, of those that recompute too; its bytes in every mode."""

    at: Integers
    blocks: Integers
    counts: Floats
    again: Floats
    held: tuple[StageBytes, ...]


def is_chain(graph: PlanGraph) -> bool:
    """Whether calls can run in one order alone, and trained parameters are shared, if at all, by its two ends."""
    follows = {(tail, head) for tail, head, _ in graph.edges}
    last = len(graph.calls) - 1
    ends = all(set(tie.calls) == {0, last} for tie in graph.ties)
    return ends and all((call, call + 1) in follows for call in range(last))


def _kinds_of_calls(graph: PlanGraph) -> list[tuple[object, ...]]:
    """For every call what it has in common with those that a stage can have in its place."""
    tied = {call for tie in (*graph.ties, *graph.still) for call in tie.calls}
    kinds = list[tuple[object, ...]]()
    for call, layer in enumerate(graph.calls):
        entering = tuple(size for _, head, size in graph.edges if head == call)
        kinds.append((layer, graph.block[call], entering, call if call in tied else -1))
    return kinds


def _distinct(alike: list[tuple[object, ...]]) -> tuple[Integers, list[range]]:
    """The number of the stage between two cuts, [cuts, cuts], -1 where there is none, and the calls of each."""
    count, numbers, stages = len(alike), dict[tuple[object, ...], int](), list[range]()
    at = np.full((count + 1, count + 1), -1)
    for first in range(count):
        for end in range(first + 1, count + 1):
            number = numbers.setdefault(tuple(alike[first:end]), len(stages))
            at[first, end] = number
            if number == len(stages):
                stages.append(range(first, end))
    return at, stages


def intervals_of(graph: PlanGraph, job: Job) -> Intervals:
    """Every stage of a chain."""
    alike = _kinds_of_calls(graph)
    at, stages = _distinct(alike)
    counts, again = np.zeros((len(stages), len(graph.layers))), np.zeros((len(stages), len(graph.layers)))
    blocks = np.zeros(len(stages), np.int64)
    for number, calls in enumerate(stages):
        for call in calls:
            counts[number, graph.calls[call]] += 1
            again[number, graph.calls[call]] += graph.block[call]
            blocks[number] += graph.block[call]
    # Of stages alike in the calls that they hold, a mode changes what each call keeps and holds beside it.
    sorts = list(dict.fromkeys(alike))
    often = np.zeros((len(stages), len(sorts)))
    for number, calls in enumerate(stages):
        for call in calls:
            often[number, sorts.index(alike[call])] += 1
    rows = [stage_bytes(graph, job, calls, 0) for calls in stages]
    columns = {name: np.array([float(getattr(row, name)) for row in rows]) for name in StageBytes.__slots__}
    held = []
    for mode in range(len(graph.names)):
        kept, live = np.array([layer_bytes(graph, alike.index(sort), mode) for sort in sorts]).T
        most = np.where(often > 0, live, 0.0).max(axis=1)
        held.append(StageBytes(**{**columns, "kept": often @ kept, "live": most}))
    return Intervals(at, blocks, counts, again, tuple(held))


def something_fits(own: Intervals, modes: tuple[int, ...], room: float, job: Job, shape: Shape, rounds: int) -> bool:
    """Whether some cut into the stages of a shape fits into memory."""
    reached: NDArray[np.bool_] = np.zeros(len(own.at), bool)
    reached[0] = True
    allowed, kept = even(own, shape), np.array([own.held[mode].kept for mode in modes])
    rest = np.array([own.held[mode].needed(job, shape, 0.0) for mode in modes])
    for place in range(shape.stages):
        flying = shape.family.flying(rounds, shape.stages - place, shape.stages)
        fits = allowed & (rest + flying * kept <= room).any(axis=0)
        reached = np.asarray((reached[:, None] & np.where(own.at >= 0, fits[own.at], False)).any(axis=0))
    return bool(reached[-1])


def even(own: Intervals, shape: Shape) -> NDArray[np.bool_]:
    """Which stages the chunks of a shape divide."""
    chunks = shape.family.chunks
    return (own.blocks > 0) & (own.blocks % chunks == 0) if chunks > 1 else np.ones(len(own.blocks), bool)

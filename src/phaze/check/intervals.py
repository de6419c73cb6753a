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


def intervals_of(graph: PlanGraph, job: Job) -> Intervals:
    """Every stage of a chain."""
    count, kinds = len(graph.calls), len(graph.layers)
    tied = {call for tie in (*graph.ties, *graph.still) for call in tie.calls}
    entering = [tuple(size for _, head, size in graph.edges if head == call) for call in range(count)]
    alike = [(graph.calls[c], graph.block[c], entering[c], c if c in tied else -1) for c in range(count)]
    at, known = np.full((count + 1, count + 1), -1), dict[tuple[object, ...], int]()
    calls = list[range]()
    for i in range(count):
        for j in range(i + 1, count + 1):
            at[i, j] = known.setdefault(tuple(alike[i:j]), len(known))
            if at[i, j] == len(calls):
                calls.append(range(i, j))
    counts, again = np.zeros((len(calls), kinds)), np.zeros((len(calls), kinds))
    for number, own in enumerate(calls):
        for call in own:
            counts[number, graph.calls[call]] += 1
            again[number, graph.calls[call]] += graph.block[call]
    # Of stages alike in the calls that they hold, a mode changes what each call keeps and holds beside it.
    sorts = list(dict.fromkeys(alike))
    often = np.array([[alike[own.start : own.stop].count(sort) for sort in sorts] for own in calls], float)
    every = [stage_bytes(graph, job, own, 0) for own in calls]
    columns = {n: np.array([float(getattr(row, n)) for row in every]) for n in StageBytes.__slots__}
    held = []
    for mode in range(len(graph.names)):
        kept, live = np.array([layer_bytes(graph, alike.index(sort), mode) for sort in sorts]).T
        most = np.where(often > 0, live, 0.0).max(axis=1)
        held.append(StageBytes(**{**columns, "kept": often @ kept, "live": most}))
    blocks = np.array([sum(graph.block[call] for call in own) for own in calls])
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

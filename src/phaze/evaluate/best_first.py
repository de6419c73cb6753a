"""Best first: of all candidates the one with the least lower bound is examined next, until none
left can matter.

    bound <= value             of every candidate; both in what is minimised, seconds or the
                               objective's unit
    examined                   a candidate is answered, or gives candidates with sharper bounds in
                               its place
    least bound left           what no candidate that was not examined to its end undercuts

Everything that chooses among the plans of one chip does so by it: ``phaze plan``
(:mod:`phaze.evaluate.plan_order`), a search about an evaluated chip
(:mod:`phaze.search.evaluation`), ``compare``, baselines and the reference path
(:mod:`phaze.search.reference`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf


@dataclass(frozen=True, slots=True, order=True)
class BoundedCandidate:
    """A candidate by its bound, of equals by its place; ``examine`` answers it, or gives those with
    sharper bounds."""

    bound: float
    place: tuple[int, ...]
    examine: Callable[[float], Iterable["BoundedCandidate"]] = field(compare=False)


def best_first(candidates: Iterable[BoundedCandidate], stop: Callable[[float], bool]) -> float:
    """Examine candidates until ``stop`` says that their least bound cannot matter; the least bound
    that is left."""
    heap = list(candidates)
    heapify(heap)
    while heap:
        candidate = heappop(heap)
        if stop(candidate.bound):
            return candidate.bound
        for sharper in candidate.examine(candidate.bound):
            heappush(heap, sharper)
    return inf

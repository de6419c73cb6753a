"""Best first: of all candidates the one with the least lower bound is examined next, until none
left can matter.

    bound <= value             of every candidate; both in what is minimised, seconds or the
                               objective's unit
    examined                   a candidate is answered, or gives candidates with sharper bounds in
                               its place
    least bound left           what no candidate that was not examined to its end undercuts

What is dear to solve is solved for answers below a limit a little above its bound, or the best
answer so far, and comes back with that limit as its bound where it has none (:func:`in_steps`).

Everything that chooses among the plans of one chip does so by it: ``phaze plan``
(:mod:`phaze.evaluate.plan_order`), a search about an evaluated chip
(:mod:`phaze.search.evaluation`), ``compare``, baselines and the reference path
(:mod:`phaze.search.reference`).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import inf

# A candidate is solved for answers below these factors of its bound, or of the best answer, one
# after another: the first finds most, and the last says that there is none.
STEPS = (1.1, 1.25, 1.5, 2.0, 3.0, inf)


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


def in_steps(
    bound: float,
    place: tuple[int, ...],
    limits: Callable[[], tuple[float, float]],
    solve: Callable[[float], bool],
    step: int = 0,
) -> BoundedCandidate:
    """A candidate that is solved below limits which grow; ``limits`` are the best value so far
    (infinite if none) and the last one that matters, ``solve`` says whether there is an answer
    below a limit."""

    def examine(bound: float) -> Iterator[BoundedCandidate]:
        best, last = limits()
        limit = min(last, STEPS[step] * (bound if best == inf else max(bound, best)))
        if not solve(limit) and limit < last:
            yield in_steps(limit, place, limits, solve, step + 1)

    return BoundedCandidate(bound, place, examine)

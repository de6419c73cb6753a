"""Precedence as bit masks: topological order, free operators contracted, and the parts that run in
series.

An operator's mask ``below[i]`` holds every operator that must end before i starts, directly or not.
Dropping a free operator f from all masks keeps the rest of the relation, because i -> f -> j is
already i -> j in the closure.

Series parts. Two operators are incomparable when neither must precede the other. Between two
connected components of the incomparability graph every pair is comparable, and always in the same
direction: if a -> x for one pair and y -> b for another with a, b in A and x, y in X, then along a
path of incomparable pairs in A (and one in X) the direction would have to turn, and at the turn two
operators u, v of A incomparable to each other stand on either side of one x: u -> x -> v, which
makes them comparable. So the components are linearly ordered, every operator of one ends before the
next one starts, and the least makespan is the sum of the least makespans of the components, under
any rules. In a topological order the components are intervals, and position k is a boundary exactly
when every operator from k on has all of the first k below it (:func:`series`).
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from phaze.schedule.problem import ScheduleProblem


@dataclass(frozen=True, slots=True)
class Order:
    """The operators that cost something, by their position in the problem, in topological order,
    and their masks."""

    operators: tuple[int, ...]
    below: tuple[int, ...]


def topological(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Every operator after those before it; among the ready ones, the first of the problem."""
    after: list[set[int]] = [set() for _ in range(count)]
    for first, then in edges:
        after[first].add(then)
    waiting = [0] * count
    for nexts in after:
        for then in nexts:
            waiting[then] += 1
    ready = [i for i in range(count) if waiting[i] == 0]
    order = []
    while ready:
        first = heapq.heappop(ready)
        order.append(first)
        for then in sorted(after[first]):
            waiting[then] -= 1
            if waiting[then] == 0:
                heapq.heappush(ready, then)
    return order


def closure(problem: ScheduleProblem) -> list[int]:
    """For every operator of the problem the mask of those that must end before it starts."""
    count = len(problem.operators)
    before: list[list[int]] = [[] for _ in range(count)]
    for first, then in problem.edges:
        before[then].append(first)
    masks = [0] * count
    for i in topological(count, problem.edges):
        for first in before[i]:
            masks[i] |= masks[first] | 1 << first
    return masks


def contract(problem: ScheduleProblem) -> Order:
    """The operators with cost, and the precedence among them that the whole graph implies."""
    masks = closure(problem)
    costly = [i for i in topological(len(masks), problem.edges) if not problem.operators[i].free]
    return Order(tuple(costly), tuple(restrict(masks, costly)))


def restrict(masks: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """The masks of ``chosen``, renumbered by position in it."""
    place = {i: index for index, i in enumerate(chosen)}
    return [sum(1 << place[k] for k in bits(masks[i]) if k in place) for i in chosen]


def bits(mask: int) -> list[int]:
    """The positions of the ones in ``mask``, lowest first."""
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def series(order: Order) -> list[Order]:
    """The components of the incomparability graph, in the order in which they run."""
    count = len(order.operators)
    cuts, common = [], (1 << count) - 1
    for k in range(count - 1, 0, -1):
        common &= order.below[k]
        prefix = (1 << k) - 1
        if common & prefix == prefix:
            cuts.append(k)
    bounds = [0, *reversed(cuts), count] if count else []
    parts = []
    for start, end in pairwise(bounds):
        inside = (1 << (end - start)) - 1
        below = tuple((order.below[k] >> start) & inside for k in range(start, end))
        parts.append(Order(order.operators[start:end], below))
    return parts


def mirrored(below: Sequence[int]) -> list[int]:
    """``above[i]``: the mask of the operators that have i below them."""
    above = [0] * len(below)
    for j, mask in enumerate(below):
        for i in bits(mask):
            above[i] |= 1 << j
    return above


def strong_components(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For every node the number of its strong component: two nodes share one where each can be
    reached from the other.

    Two depth-first walks (Kosaraju), along the edges and, in the order of leaving, against them.
    """
    steps: tuple[list[list[int]], list[list[int]]] = (
        [[] for _ in range(count)],
        [[] for _ in range(count)],
    )
    for first, then in edges:
        steps[0][first].append(then)
        steps[1][then].append(first)
    left = _leaving(count, steps[0])
    components = [-1] * count
    for root in reversed(left):
        stack = [root] if components[root] < 0 else []
        while stack:
            node = stack.pop()
            if components[node] < 0:
                components[node] = root
                stack += [other for other in steps[1][node] if components[other] < 0]
    return components


def _leaving(count: int, steps: Sequence[Sequence[int]]) -> list[int]:
    """Nodes in the order in which a depth-first walk leaves them."""
    seen, left = [False] * count, []
    for root in range(count):
        stack = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                left.append(node)
            elif not seen[node]:
                seen[node] = True
                stack.append((node, True))
                stack += [(other, False) for other in steps[node] if not seen[other]]
    return left

"""Operators put into groups, with a test of each merge: the groups of a graph must stay without a
cycle.

Let a -> b say that b reads what a writes, and D(a), A(a) be what is reached from a and what reaches
a. Two groups become one without a cycle exactly when no third one lies between them:

    mergeable(a, b)  <=>  D(a) & A(b) = {} and D(b) & A(a) = {}
                     (:meth:`FusionPartition.mergeable`)

A merge keeps every path: what reached a or b now reaches all that a or b reached
(:meth:`FusionPartition.merge`). Sets are bits of one integer, so a merge costs a few operations for
each group that it touches.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from phaze.graph.ir import Operator, OperatorGraph


def bits(mask: int) -> Iterator[int]:
    """Positions of the ones of ``mask``, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(slots=True)
class FusionPartition:
    """Groups of the operators of one graph, named by the place of their first member in its
    order."""

    operators: tuple[Operator, ...]
    members: dict[int, list[int]] = field(default_factory=dict)
    group: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    above: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, graph: OperatorGraph) -> "FusionPartition":
        """Every operator a group of its own."""
        count = len(graph.operators)
        place = {op.id: i for i, op in enumerate(graph.operators)}
        after, before, below, above = ([0] * count for _ in range(4))
        for source, target in graph.edges():
            after[place[source]] |= 1 << place[target]
            before[place[target]] |= 1 << place[source]
        for i in reversed(range(count)):
            below[i] = after[i]
            for j in bits(after[i]):
                below[i] |= below[j]
        for i in range(count):
            above[i] = before[i]
            for j in bits(before[i]):
                above[i] |= above[j]
        groups = {i: [i] for i in range(count)}
        return cls(graph.operators, groups, list(range(count)), after, before, below, above)

    def groups(self) -> list[int]:
        return sorted(self.members)

    def mergeable(self, a: int, b: int) -> bool:
        """Whether ``a`` and ``b`` can be one group: nothing lies between them."""
        return (
            a != b and not (self.below[a] & self.above[b]) and not (self.below[b] & self.above[a])
        )

    def merge(self, a: int, b: int) -> int:
        """Put the two groups together; the name of the result is the smaller one."""
        if not self.mergeable(a, b):
            raise ValueError("merging these groups would make a cycle")
        keep, drop = (a, b) if a < b else (b, a)
        for place in self.members[drop]:
            self.group[place] = keep
        self.members[keep] = sorted(self.members[keep] + self.members.pop(drop))
        both, name, gone = (1 << keep) | (1 << drop), 1 << keep, ~(1 << drop)
        for near in (self.after, self.before, self.below, self.above):
            near[keep] = (near[keep] | near[drop]) & ~both
        for other in bits(self.above[keep]):
            self.below[other] = (self.below[other] | self.below[keep] | name) & gone
            if self.after[other] & both:
                self.after[other] = (self.after[other] | name) & gone
        for other in bits(self.below[keep]):
            self.above[other] = (self.above[other] | self.above[keep] | name) & gone
            if self.before[other] & both:
                self.before[other] = (self.before[other] | name) & gone
        return keep

    def first(self, group: int) -> Operator:
        return self.operators[group]

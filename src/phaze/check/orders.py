"""Orders of operators as bits: what leads to what, and which of them run in series."""

from collections.abc import Sequence
from dataclasses import dataclass


def led_to(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For every node the bits of all that it leads to, itself included."""
    reached = [1 << node for node in range(count)]
    changed = True
    while changed:
        changed = False
        for tail, head in edges:
            more = reached[tail] | reached[head]
            changed |= more != reached[tail]
            reached[tail] = more
    return reached


@dataclass(frozen=True, slots=True)
class UnitOrder:
    """The units of a pass: the kinds of core that each holds, whether the network, and the bits of
    all that must end before it."""

    kinds: tuple[tuple[str, ...], ...]
    network: tuple[bool, ...]
    before: tuple[int, ...]

    def follows(self, first: int, then: int) -> bool:
        """Whether ``first`` ends before ``then`` starts in every schedule."""
        return bool(self.before[then] >> first & 1)

    def ordered(self, a: int, b: int) -> bool:
        """Whether two units run at once in no schedule because one leads to the other."""
        return self.follows(a, b) or self.follows(b, a)

    def edges(self) -> list[tuple[int, int]]:
        """All that must end before what."""
        count = len(self.before)
        return [(a, b) for b in range(count) for a in range(count) if self.follows(a, b)]

    def components(self) -> list[list[int]]:
        """Units that hold anything, all of one component before all of the next."""
        busy = [unit for unit, held in enumerate(self.kinds) if held or self.network[unit]]
        busy.sort(key=lambda unit: self.before[unit].bit_count())
        return in_series(busy, self.before)


def in_series(nodes: Sequence[int], before: Sequence[int]) -> list[list[int]]:
    """Nodes, in an order that can run, in components: all of one must end before any of the next
    starts.

    ``before``: for every node the bits of all that must end before it.
    """
    components, current, seen = list[list[int]](), list[int](), 0
    for position, node in enumerate(nodes):
        current.append(node)
        seen |= 1 << node
        if all(before[later] & seen == seen for later in nodes[position + 1 :]):
            components.append(current)
            current = []
    return components

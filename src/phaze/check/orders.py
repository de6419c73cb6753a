"""Orders of operators as bits: what leads to what, and which of them run in series."""

from collections.abc import Sequence


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

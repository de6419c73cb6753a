r"""The fewest bytes from which everything wanted can be made again: a minimum cut.

Tensors are the nodes of a network; a tensor w that may be made again has an edge from every tensor
that its operator reads. *Sources* are there once, whether anybody keeps them or not; *wanted* are
those that backward reads. A set K of kept tensors is enough exactly when every path from a source
to a wanted tensor, both ends included, meets K (a tensor that is not kept is made from all that its
operator read, so each of them must be made or kept). Hence

    least bytes kept = minimum cut between sources and wanted tensors, the capacity of a tensor
    being its bytes

and by max-flow min-cut the flow that is found proves it. Tensors that are both source and wanted
are in every K: they are taken first and then cost nothing. Of equal cuts the one nearest to what is
wanted is taken: least is made again.
"""

from collections import deque
from collections.abc import Collection, Mapping
from itertools import pairwise
from math import inf

# The ends of the network.
_SOURCE, _SINK = -1, -2


def least_kept(
    wanted: Collection[int],
    sources: Collection[int],
    made_from: Mapping[int, Collection[int]],
    size: Mapping[int, int],
) -> frozenset[int]:
    """A set of least bytes that meets every path from ``sources`` to ``wanted``.

    ``made_from`` are the tensors that a tensor is made from; one that is neither a source nor made
    from others comes from nothing (parameters, constants, what all layers share) and costs
    nothing."""
    wanted_sources = {tensor for tensor in wanted if tensor in sources}
    rest = _Network(wanted_sources)
    rest.reached.update(dict.fromkeys(wanted_sources, False))
    for tensor in sorted(set(wanted) - wanted_sources):
        rest.want(tensor, sources, made_from, size)
    return frozenset(wanted_sources | rest.cut())


class _Network:
    """Residual capacities of the split network: tensor t enters at node 2 t and leaves at 2 t +
    1."""

    def __init__(self, saved: Collection[int]) -> None:
        self.saved = saved
        self.left: dict[int, dict[int, float]] = {_SOURCE: {}, _SINK: {}}
        self.reached: dict[int, bool] = {}

    def _join(self, tail: int, head: int, capacity: float) -> None:
        self.left.setdefault(tail, {})[head] = capacity
        self.left.setdefault(head, {}).setdefault(tail, 0.0)

    def want(
        self,
        tensor: int,
        sources: Collection[int],
        made_from: Mapping[int, Collection[int]],
        size: Mapping[int, int],
    ) -> None:
        """Add a wanted tensor with all that leads to it."""
        if self._add(tensor, sources, made_from, size):
            self._join(2 * tensor + 1, _SINK, inf)

    def _add(
        self,
        first: int,
        sources: Collection[int],
        made_from: Mapping[int, Collection[int]],
        size: Mapping[int, int],
    ) -> bool:
        """Add a tensor and its ancestors, operands first; whether a source that costs something
        leads to it."""
        stack = [(first, False)]
        while stack:
            tensor, done = stack.pop()
            if tensor in self.reached and not done:
                continue
            operands = (
                ()
                if tensor in sources or tensor in self.saved
                else tuple(made_from.get(tensor, ()))
            )
            if not done:
                self.reached[tensor] = False
                stack.append((tensor, True))
                stack.extend((operand, False) for operand in operands)
                continue
            paths = [operand for operand in operands if self.reached[operand]]
            self.reached[tensor] = (tensor in sources and tensor not in self.saved) or bool(paths)
            if self.reached[tensor]:
                self._join(2 * tensor, 2 * tensor + 1, float(size[tensor]))
                for operand in paths:
                    self._join(2 * operand + 1, 2 * tensor, inf)
                if tensor in sources:
                    self._join(_SOURCE, 2 * tensor, inf)
        return self.reached[first]

    def _path(self) -> list[int]:
        """A shortest path from source to sink with capacity left; empty if there is none."""
        before, waiting = {_SOURCE: _SOURCE}, deque([_SOURCE])
        while waiting:
            node = waiting.popleft()
            for head, left in self.left[node].items():
                if left > 0 and head not in before:
                    before[head] = node
                    if head == _SINK:
                        path = [_SINK]
                        while path[-1] != _SOURCE:
                            path.append(before[path[-1]])
                        return path[::-1]
                    waiting.append(head)
        return []

    def cut(self) -> set[int]:
        """The tensors of the minimum cut nearest to the sink."""
        while path := self._path():
            steps = list(pairwise(path))
            pushed = min(self.left[tail][head] for tail, head in steps)
            for tail, head in steps:
                self.left[tail][head] -= pushed
                self.left[head][tail] += pushed
        # Backwards from the sink: what can still reach it lies behind the cut.
        behind, waiting = {_SINK}, deque([_SINK])
        while waiting:
            node = waiting.popleft()
            for tail in self.left[node]:
                if tail not in behind and self.left[tail][node] > 0:
                    behind.add(tail)
                    waiting.append(tail)
        return {
            tensor
            for tensor, leads in self.reached.items()
            if leads and 2 * tensor + 1 in behind and 2 * tensor not in behind
        }

"""The same model with more equal layers: a run of equal calls, as long as wanted.

A model with two calls r0, r1 of each repeated layer shows how its calls are connected. With n calls
r0 ... r(n-1):

    r0 -> r1                 becomes  r0 -> r1 -> ... -> r(n-1)
    x -> r0 alone            stays;   x -> r0 and x -> r1  becomes  x -> r0 and x -> r1, ..., x ->
                             r(n-1)
    r1 -> y alone            becomes  r(n-1) -> y;   r0 -> y and r1 -> y  becomes  r0 -> y, ...,
                             r(n-1) -> y

Ties follow in the same way. Layers stay as they are. Layers that take turns, x a b a b y, are
continued likewise (:func:`alternated`): each hands its result to the next.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from phaze.graph.ir import Call, Edge, Model


@dataclass(frozen=True, slots=True)
class _Places:
    """Where each old call stands among the new ones: one place, or all places of its run."""

    new: tuple[tuple[int, ...], ...]
    run_of: tuple[int | None, ...]

    def is_first(self, call: int) -> bool:
        run = self.run_of[call]
        return run is not None and self.run_of[call + 1 : call + 2] == (run,)


def runs(model: Model) -> tuple[int, ...]:
    """The layers that two or more calls in a row are of, in order of their first call."""
    repeated = [
        a.layer for a, b in zip(model.calls, model.calls[1:], strict=False) if a.layer == b.layer
    ]
    return tuple(dict.fromkeys(repeated))


def _places(model: Model, lengths: Mapping[int, int]) -> _Places:
    new: list[tuple[int, ...]] = []
    run_of: list[int | None] = []
    start = 0
    for place, call in enumerate(model.calls):
        length = lengths.get(call.layer)
        run_of.append(call.layer if length is not None else None)
        if length is None:
            new.append((start,))
            start += 1
        elif place and run_of[place - 1] == call.layer:
            new.append(tuple(range(start - length + 1, start)))
        else:
            new.append((start,))
            start += length
    return _Places(tuple(new), tuple(run_of))


def _modules(first: str, second: str, count: int) -> list[str]:
    """``h.0`` and ``h.1`` continued: the step of the path in which they differ counts up."""
    left, right = first.split("."), second.split(".")
    place = next((i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b), None)
    if place is None:
        return [first] * count
    start, step = int(left[place]), int(right[place]) - int(left[place])
    return [
        ".".join([*left[:place], str(start + step * i), *left[place + 1 :]]) for i in range(count)
    ]


def _edges(model: Model, places: _Places) -> tuple[Edge, ...]:
    joined_calls = {(edge.source, edge.target) for edge in model.edges}
    edges: dict[tuple[int, int], Edge] = {}

    def add(edge: Edge, source: int, target: int) -> None:
        edges[source, target] = replace(edge, source=source, target=target)

    for edge in model.edges:
        sources, targets = places.new[edge.source], places.new[edge.target]
        run = places.run_of[edge.source]
        if run is not None and run == places.run_of[edge.target]:
            for target in targets:
                add(edge, target - 1, target)
            continue
        if (
            run is not None
            and not places.is_first(edge.source)
            and (edge.source - 1, edge.target) not in joined_calls
        ):
            sources = (max(places.new[edge.source - 1] + sources),)
        for source in sources:
            for target in targets:
                add(edge, source, target)
    return tuple(edges[key] for key in sorted(edges))


def _turns(model: Model) -> int:
    """Where two pairs of layers that take turns begin; -1 if there are none, or edges that are no
    chain of them."""
    kinds = [call.layer for call in model.calls]
    for start in range(len(kinds) - 3):
        a, b, *rest = kinds[start : start + 4]
        chain = {(edge.source, edge.target) for edge in model.edges} == set(
            pairwise(range(len(kinds)))
        )
        if a != b and rest == [a, b] and chain:
            return start
    return -1


def alternates(model: Model) -> bool:
    """Whether two layers take turns in it, twice, in a chain."""
    return _turns(model) >= 0


def alternated(model: Model, pairs: int) -> Model:
    """``model`` with its two layers that take turns so many times."""
    start = _turns(model)
    if start < 0 or pairs < 1:
        raise ValueError("two layers that take turns twice become one or more pairs")
    block, after = model.calls[start : start + 4], model.calls[start + 4 :]
    turns = [
        Call(call.layer, name)
        for names in zip(
            _modules(block[0].module, block[2].module, pairs),
            _modules(block[1].module, block[3].module, pairs),
            strict=True,
        )
        for call, name in zip(block[:2], names, strict=True)
    ]
    calls = (*model.calls[:start], *turns, *after)
    edge_from = {edge.source: edge for edge in model.edges}
    # The edge into a pair, inside one, from one to the next, and behind the last.
    end, edges = start + 2 * pairs, []
    for source in range(len(calls) - 1):
        inside = start <= source < end - 1
        old = (
            start + (source - start) % 2
            if inside
            else source
            if source < start
            else source - 2 * pairs + 4
        )
        edges.append(replace(edge_from[old], source=source, target=source + 1))
    ties = tuple(
        replace(
            tie, calls=tuple(call if call < start else call + 2 * pairs - 4 for call in tie.calls)
        )
        for tie in model.ties
    )
    if any(start <= call < start + 4 for tie in model.ties for call in tie.calls):
        raise ValueError("layers that take turns share no parameter with others")
    return replace(model, calls=calls, edges=tuple(edges), ties=ties)


def deepen(model: Model, lengths: Sequence[int]) -> Model:
    """``model`` with its runs of two as long as ``lengths`` say, in order; every length is at least
    one."""
    repeated = runs(model)
    sizes = dict(zip(repeated, lengths, strict=True))
    if any(model.count(layer) != 2 or length < 1 for layer, length in sizes.items()):
        raise ValueError("runs of two calls become runs of one or more")
    places = _places(model, sizes)
    calls: list[Call] = []
    for place, call in enumerate(model.calls):
        if places.run_of[place] is None:
            calls.append(call)
        elif places.is_first(place):
            second = model.calls[place + 1]
            calls.extend(
                Call(call.layer, name)
                for name in _modules(call.module, second.module, sizes[call.layer])
            )
    ties = tuple(
        replace(tie, calls=tuple(sorted(new for call in tie.calls for new in places.new[call])))
        for tie in model.ties
    )
    return replace(model, calls=tuple(calls), edges=_edges(model, places), ties=ties)

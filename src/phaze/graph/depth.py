"""The same model with more equal layers: a run of equal calls, as long as wanted.

A model with two calls r0, r1 of each repeated layer shows how its calls are connected. With n calls r0 ... r(n-1):

    r0 -> r1                 becomes  r0 -> r1 -> ... -> r(n-1)
    x -> r0 alone            stays;   x -> r0 and x -> r1  becomes  x -> r0 and x -> r1, ..., x -> r(n-1)
    r1 -> y alone            becomes  r(n-1) -> y;   r0 -> y and r1 -> y  becomes  r0 -> y, ..., r(n-1) -> y

Ties follow in the same way. Layers stay as they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    found = [a.layer for a, b in zip(model.calls, model.calls[1:], strict=False) if a.layer == b.layer]
    return tuple(dict.fromkeys(found))


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
    return [".".join([*left[:place], str(start + step * i), *left[place + 1 :]]) for i in range(count)]


def _edges(model: Model, places: _Places) -> tuple[Edge, ...]:
    known = {(edge.source, edge.target) for edge in model.edges}
    found: dict[tuple[int, int], Edge] = {}

    def add(edge: Edge, source: int, target: int) -> None:
        found[source, target] = replace(edge, source=source, target=target)

    for edge in model.edges:
        sources, targets = places.new[edge.source], places.new[edge.target]
        run = places.run_of[edge.source]
        if run is not None and run == places.run_of[edge.target]:
            for target in targets:
                add(edge, target - 1, target)
            continue
        if run is not None and not places.is_first(edge.source) and (edge.source - 1, edge.target) not in known:
            sources = (max(places.new[edge.source - 1] + sources),)
        for source in sources:
            for target in targets:
                add(edge, source, target)
    return tuple(found[key] for key in sorted(found))


def deepen(model: Model, lengths: Sequence[int]) -> Model:
    """``model`` with its runs of two as long as ``lengths`` say, in order; every length is at least one."""
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
            calls.extend(Call(call.layer, name) for name in _modules(call.module, second.module, sizes[call.layer]))
    ties = tuple(
        replace(tie, calls=tuple(sorted(new for call in tie.calls for new in places.new[call]))) for tie in model.ties
    )
    return replace(model, calls=tuple(calls), edges=_edges(model, places), ties=ties)

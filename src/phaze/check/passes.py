"""The seconds of a pass under the schedule rules serial and companions (docs/schedule.md, docs/cost.md): a formula.

Operators run one after another, so a pass takes the sum of its units. A collective c of a stack that cuts it into n
pieces (n ranks) is one unit with the products p beside it and all that lies between them:

    max(c, p) + min(c, p) / n + what lies between                                        (:meth:`TimedPass.seconds`)

Beside a collective stand the products that make a scatter's pieces or work on a gather's, and under companions in a
backward pass those of weight gradients: they neither lead to it nor follow from it and read what the last products
before it read. Where nothing is cut, companions take min(c, p) off the sum for each collective that the others leave
room for. With the host the pass takes (device^3 + (operators x host time)^3)^(1/3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .graphs import Pass
from .network import Network, collective, neighbours

Floats = NDArray[np.float64]
PRODUCTS = ("tensor", "both")


@dataclass(frozen=True, slots=True)
class Cut:
    """A collective in ``pieces``, and the places of the products beside it."""

    place: int
    pieces: int
    products: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TimedPass:
    """A pass as units of places, each with what is cut inside it; ``beside``: units that a unit's collective hides."""

    own: Pass
    units: tuple[tuple[tuple[int, ...], tuple[Cut, ...]], ...]
    beside: tuple[tuple[int, tuple[int, ...]], ...]
    host: float

    def waits(self, network: Network) -> Floats:
        """Seconds of the collectives by place, 0 for others."""
        found = np.zeros(len(self.own.works))
        for at, work in enumerate(self.own.works):
            if work.collective is not None:
                kind, size, group = work.collective
                members = neighbours(network, group)
                found[at] = float(collective(network, kind, members, np.array([float(size)]), group)[0])
        return found

    def seconds(self, spread: Floats, waits: Floats) -> Floats:
        """Seconds on every chip, from those of operators [works, chips]."""
        if not len(self.own.works):
            return np.zeros(spread.shape[1])
        alone = spread + waits[:, None]
        found = []
        for places, cuts in self.units:
            total, inside = np.zeros(spread.shape[1]), set[int]()
            for cut in cuts:
                inside |= {cut.place, *cut.products}
                products, wait = spread[list(cut.products)].sum(axis=0), waits[cut.place]
                total = total + np.maximum(wait, products) + np.minimum(wait, products) / cut.pieces
            for place in places:
                if place not in inside:
                    total = total + alone[place]
            found.append(total)
        device = np.sum(found, axis=0)
        for unit, others in self.beside:
            device = device - np.minimum(found[unit], np.sum([found[other] for other in others], axis=0))
        return np.asarray(device if self.host == 0 else (device**3 + self.host**3) ** (1 / 3))


def _reached(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """For every node the bits of all that it leads to, itself included."""
    found = [1 << at for at in range(count)]
    changed = True
    while changed:
        changed = False
        for tail, head in edges:
            more = found[tail] | found[head]
            changed |= more != found[tail]
            found[tail] = more
    return found


def _walk(start: int, edges: Sequence[tuple[int, int]], forward: bool) -> set[int]:
    """All that can be reached along, or against, some edges."""
    found, stack = {start}, [start]
    while stack:
        node = stack.pop()
        for tail, head in edges:
            here, there = (tail, head) if forward else (head, tail)
            if here == node and there not in found:
                found.add(there)
                stack.append(there)
    return found


def _companions(own: Pass, edges: Sequence[tuple[int, int]], pieces: bool, weights: bool) -> dict[int, tuple[int, ...]]:
    """For the place of every collective the places of the products beside it, each product once."""
    products = [at for at, op in enumerate(own.operators) if op.core in PRODUCTS]
    matrix, taken, found = set(products), set[int](), dict[int, tuple[int, ...]]()
    reads = [{tensor for tensor, _ in op.reads} for op in own.operators]
    for at, op in enumerate(own.operators):
        if op.core != "network":
            continue
        joined = _walk(at, edges, False) | _walk(at, edges, True)
        last = _walk(at, [edge for edge in edges if edge[1] not in matrix], False) & matrix
        near = set[int]()
        if pieces and op.kind == "reduce_scatter":
            near = last
        elif pieces and op.kind == "all_gather":
            near = _walk(at, [edge for edge in edges if edge[0] not in matrix], True) & matrix
        inputs = set().union(*(reads[product] for product in last)) if weights else set()
        found[at] = tuple(
            one for one in products
            if one not in taken and (one in near or (one not in joined and inputs & reads[one]))
        )  # fmt: skip
        taken.update(found[at])
    return found


def _in_turn(count: int, edges: Sequence[tuple[int, int]], groups: Mapping[int, Sequence[int]]) -> bool:
    """Whether collectives with what they name can run one group after another."""
    head = list(range(count))
    for at, others in groups.items():
        for other in others:
            head[other] = at
    if any(head[a] == head[b] and head[a] in (a, b) for a, b in edges):
        return False
    merged = sorted({(head[a], head[b]) for a, b in edges if head[a] != head[b]})
    reached = _reached(count, merged)
    return not any(reached[b] >> a & 1 for a, b in merged)


def timed(own: Pass, named_only: bool, pieces: bool, backward: bool, host_s: float) -> TimedPass:
    """A fused pass under companions (``named_only``) or serial; ``pieces``: the stack cuts collectives."""
    count, edges = len(own.operators), [(a, at) for at, before in enumerate(own.waits) for a in sorted(before)]
    hides = backward and named_only
    beside = _companions(own, edges, pieces, hides) if hides or pieces else {}
    cuts = [
        Cut(at, own.operators[at].size("group"), others)
        for at, others in beside.items()
        if pieces and others and (named_only or own.operators[at].kind != "all_reduce")
    ]
    back = [pair for cut in cuts for i in cut.products for pair in ((cut.place, i), (i, cut.place))]
    reached = _reached(count, [*edges, *back])
    unit_of, units = dict[int, int](), list[tuple[int, ...]]()
    for at in range(count):
        if at not in unit_of:
            places = tuple(o for o in range(count) if reached[at] >> o & 1 and reached[o] >> at & 1)
            unit_of |= dict.fromkeys(places, len(units))
            units.append(places)
    merged = sorted({(unit_of[a], unit_of[b]) for a, b in edges if unit_of[a] != unit_of[b]})
    named = dict[int, tuple[int, ...]]()
    if hides and not pieces:
        for at, others in beside.items():
            more = {**named, unit_of[at]: tuple(unit_of[o] for o in others)}
            if others and _in_turn(len(units), merged, more):
                named = more
    host = host_s * sum(op.core != "none" for op in own.operators)
    inside = [tuple(cut for cut in cuts if cut.place in places) for places in units]
    return TimedPass(own, tuple(zip(units, inside, strict=True)), tuple(named.items()), host)

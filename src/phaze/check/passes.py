"""The seconds of a pass under the schedule rules serial and companions, a formula, and links, a schedule or what none
undercuts (docs/schedule.md, docs/cost.md).

Operators run one after another, so a pass takes the sum of its units. A collective c of a stack that cuts it into n
pieces (n ranks) is one unit with the products p beside it and all that lies between them:

    max(c, p) + min(c, p) / n + what lies between                                        (:meth:`TimedPass.seconds`)

Beside a collective stand the products that make a scatter's pieces or work on a gather's, and under companions in a
backward pass those of weight gradients: they neither lead to it nor follow from it and read what the last products
before it read. Where nothing is cut, companions take min(c, p) off the sum for each collective that the others leave
room for. A ring of n ranks runs behind the attention A that reads what comes round: A + max(0, c - (n - 1)/n A). Of the
exchanges of experts x_u, less what is hidden of them by now, a stack may hide what products of shared experts take
beside them, and of the rest a share; the device takes no less than all of them. With the host the pass takes (device^3
+ (operators x host time)^3)^(1/3).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graphs import Pass
from .network import Network, collective, exchange, neighbours
from .queues import Queues
from .reading import require
from .works import EXCHANGES, Operator

Floats = NDArray[np.float64]
PRODUCTS = ("tensor", "both")


@dataclass(frozen=True, slots=True)
class Cut:
    """A collective in ``pieces``, and the places of the products beside it; or a ring and its attention."""

    place: int
    pieces: int
    products: tuple[int, ...]
    ring: bool = False

    def seconds(self, wait: float, products: Floats) -> Floats:
        """Both together."""
        if self.ring:
            return products + np.maximum(0.0, wait - (self.pieces - 1) / self.pieces * products)
        return np.maximum(wait, products) + np.minimum(wait, products) / self.pieces


@dataclass(frozen=True, slots=True)
class Exchanging:
    """How a stack hides exchanges of experts: a share of them, behind shared experts; whether a token goes to a node
    once."""

    share: float = 0.0
    shared: bool = False
    once: bool = False


@dataclass(frozen=True, slots=True)
class TimedPass:
    """A pass as units of places, each with what is cut inside it; ``beside``: units that a unit's collective hides,
    ``exchanges``: units of exchanges of experts with those of the shared experts beside them; ``queues``: of the rule
    links."""

    own: Pass
    units: tuple[tuple[tuple[int, ...], tuple[Cut, ...]], ...]
    beside: tuple[tuple[int, tuple[int, ...]], ...]
    host: float
    hides: Exchanging = Exchanging()
    exchanges: tuple[tuple[int, tuple[int, ...]], ...] = ()
    queues: Queues | None = None

    def waits(self, network: Network) -> Floats:
        """Seconds of the collectives by place, 0 for others."""
        found = np.zeros(len(self.own.works))
        for at, work in enumerate(self.own.works):
            if work.collective is not None:
                kind, size, group, *_ = work.collective
                if kind in EXCHANGES:
                    found[at] = exchange(network, work.collective, self.hides.once)
                    continue
                members = neighbours(network, group)
                found[at] = float(collective(network, kind, members, np.array([float(size)]), group)[0])
        return found

    def scheduled(self, spread: Floats, waits: Floats, starts: Any, where: str) -> Floats:
        """Seconds on one chip as a schedule has it, which is checked; none where a formula gives them."""
        if self.queues is None or not len(self.own.works):
            require(starts == [], f"{where}: there is nothing to schedule")
            return self.seconds(spread, waits)
        own = np.array(self._units(spread, waits))[:, 0]
        return self._with_host(np.array([self.queues.makespan(starts, own, where)]))

    def _with_host(self, device: Floats) -> Floats:
        return np.asarray(device if self.host == 0 else (device**3 + self.host**3) ** (1 / 3))

    def _units(self, spread: Floats, waits: Floats) -> list[Floats]:
        """Seconds of every unit."""
        alone = spread + waits[:, None]
        found = []
        for places, cuts in self.units:
            total, inside = np.zeros(spread.shape[1]), set[int]()
            for cut in cuts:
                inside |= {cut.place, *cut.products}
                total = total + cut.seconds(float(waits[cut.place]), spread[list(cut.products)].sum(axis=0))
            for place in places:
                if place not in inside:
                    total = total + alone[place]
            found.append(total)
        return found

    def seconds(self, spread: Floats, waits: Floats) -> Floats:
        """Seconds on every chip, from those of operators [works, chips]; under links what no schedule undercuts."""
        if not len(self.own.works):
            return np.zeros(spread.shape[1])
        found = self._units(spread, waits)
        if self.queues is not None:
            return self._with_host(self.queues.least(np.array(found)))
        device, hidden = np.sum(found, axis=0), dict[int, Floats]()
        for unit, others in self.beside:
            hidden[unit] = np.minimum(found[unit], np.sum([found[other] for other in others], axis=0))
            device = device - hidden[unit]
        if self.exchanges:
            left, busy = np.zeros_like(device), np.zeros_like(device)
            for unit, others in self.exchanges:
                exposed = found[unit] - hidden.get(unit, 0.0)
                covered = np.minimum(exposed, sum((found[other] for other in others), np.zeros_like(device)))
                device, left, busy = device - covered, left + exposed - covered, busy + found[unit]
            device = np.maximum(device - self.hides.share * left, busy)
        return self._with_host(device)


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
        if op.core != "network" or op.kind in EXCHANGES:
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


def _exchanges(own: Pass, edges: Sequence[tuple[int, int]], unit_of: Mapping[int, int], hides: Exchanging) -> list[
    tuple[int, tuple[int, ...]]
]:  # fmt: skip
    """The exchanges of experts by unit, each with the units of shared experts that neither lead to it nor follow."""
    places = [at for at, op in enumerate(own.operators) if op.kind == "all_to_all" and op.size("copies") > 1]
    if not (hides.share or hides.shared):
        return []
    shared = {
        at for at, op in enumerate(own.operators)
        if hides.shared and op.core in PRODUCTS and any("shared" in module for module in own.modules[at])
    }  # fmt: skip
    found = []
    for at in places:
        free = shared - _walk(at, edges, True) - _walk(at, edges, False)
        shared -= free
        found.append((unit_of[at], tuple(sorted({unit_of[other] for other in free} - {unit_of[at]}))))
    return found


def _queues(own: Pass, units: Sequence[tuple[int, ...]], merged: Sequence[tuple[int, int]]) -> Queues:
    """The units of a pass as queues."""
    kinds = [{own.works[at].core for at in places} for places in units]
    reached = _reached(len(units), merged)
    before = [
        sum(1 << other for other in range(len(units)) if other != at and reached[other] >> at & 1)
        for at in range(len(units))
    ]
    return Queues(
        tuple(bool(kind - {"none", "network"}) for kind in kinds), tuple("network" in kind for kind in kinds),
        tuple(before),
    )  # fmt: skip


def _launched(op: Operator) -> int:
    """Kernels that the host launches for an operator."""
    return int(op.core != "none") + sum(part.sizes.get("kernels", 1) - 1 for part in op.parts or (op,))


def timed(own: Pass, rule: str, pieces: bool, backward: bool, host_s: float, exchanging: Exchanging) -> TimedPass:
    """A fused pass under the rule serial, companions or links; ``pieces``: the stack cuts collectives."""
    named_only, links = rule == "companions", rule == "links"
    count, edges = len(own.operators), [(a, at) for at, before in enumerate(own.waits) for a in sorted(before)]
    hides = backward and named_only
    beside = _companions(own, edges, pieces, hides or (links and backward)) if hides or pieces else {}
    cuts = [
        Cut(at, own.operators[at].size("group"), others)
        for at, others in beside.items()
        if pieces and others and (named_only or own.operators[at].kind != "all_reduce")
    ]
    for at, op in enumerate(own.operators):
        if op.kind == "ring":
            made = {tensor for tensor, _ in op.writes}
            readers = (i for i, one in enumerate(own.operators) if made & {tensor for tensor, _ in one.reads})
            cuts.append(Cut(at, op.size("group"), tuple(readers), True))
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
    host = host_s * sum(map(_launched, own.operators))
    inside = [tuple(cut for cut in cuts if cut.place in places) for places in units]
    exchanges = tuple(_exchanges(own, edges, unit_of, exchanging))
    timing = tuple(zip(units, inside, strict=True)), tuple(named.items())
    if links:
        return TimedPass(own, *timing, host, queues=_queues(own, units, merged))
    return TimedPass(own, *timing, host, exchanging, exchanges)

"""Which operators of a pass run as one unit: collectives that a stack cuts, with the products
beside them.

Beside a collective stand the products that make a scatter's pieces or work on a gather's, and under
companions in a backward pass those of weight gradients: they neither lead to it nor follow from it
and read what the last products before it read. What a unit takes: :mod:`.passes`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .graphs import Pass
from .orders import UnitOrder, led_to
from .passes import CutCollective, Exchanging, TimedPass
from .queues import Queues
from .schedules import core_schedules
from .slots import KINDS, RULES
from .stack import Stack
from .works import EXCHANGES, Operator

Edges = Sequence[tuple[int, int]]
PRODUCTS = ("tensor", "both")


def _walk(start: int, edges: Edges, forward: bool) -> set[int]:
    """All that can be reached along, or against, some edges."""
    seen, stack = {start}, [start]
    while stack:
        node = stack.pop()
        for tail, head in edges:
            here, there = (tail, head) if forward else (head, tail)
            if here == node and there not in seen:
                seen.add(there)
                stack.append(there)
    return seen


def _pieces(kind: str, place: int, edges: Edges, matrix: set[int]) -> set[int]:
    """The products that make a scatter's pieces, or that work on a gather's."""
    if kind == "reduce_scatter":
        into = [edge for edge in edges if edge[1] not in matrix]
        return _walk(place, into, False) & matrix
    if kind == "all_gather":
        out_of = [edge for edge in edges if edge[0] not in matrix]
        return _walk(place, out_of, True) & matrix
    return set()


def _of_weights(place: int, edges: Edges, reads: Sequence[set[int]], matrix: set[int]) -> set[int]:
    """The products that neither lead to a collective nor follow from it, and read what the last
    ones before it read."""
    into = [edge for edge in edges if edge[1] not in matrix]
    last = _walk(place, into, False) & matrix
    inputs = set[int]().union(*(reads[product] for product in last))
    joined = _walk(place, edges, False) | _walk(place, edges, True)
    return {product for product in matrix - joined if inputs & reads[product]}


def _companions(own: Pass, edges: Edges, pieces: bool, weights: bool) -> dict[int, tuple[int, ...]]:
    """For the place of every collective the places of the products beside it, each product once."""
    matrix = {place for place, op in enumerate(own.operators) if op.core in PRODUCTS}
    reads = [{tensor for tensor, _ in op.reads} for op in own.operators]
    taken, companions = set[int](), dict[int, tuple[int, ...]]()
    for place, op in enumerate(own.operators):
        if op.core != "network" or op.kind in EXCHANGES:
            continue
        near = _pieces(op.kind, place, edges, matrix) if pieces else set()
        if weights:
            near |= _of_weights(place, edges, reads, matrix)
        companions[place] = tuple(sorted(near - taken))
        taken |= near
    return companions


def _cuts(
    own: Pass, companions: Mapping[int, tuple[int, ...]], all_reduces: bool
) -> list[CutCollective]:
    """The collectives that a stack cuts, each with its products."""
    cuts = []
    for place, products in companions.items():
        op = own.operators[place]
        if products and (all_reduces or op.kind != "all_reduce"):
            cuts.append(CutCollective(place, op.size("group"), products))
    return cuts


def _rings(own: Pass) -> list[CutCollective]:
    """Rings, each with the attention that reads what comes round."""
    rings = []
    for place, op in enumerate(own.operators):
        if op.kind != "ring":
            continue
        sent, readers = {tensor for tensor, _ in op.writes}, []
        for reader, other in enumerate(own.operators):
            if any(tensor in sent for tensor, _ in other.reads):
                readers.append(reader)
        rings.append(CutCollective(place, op.size("group"), tuple(readers), True))
    return rings


@dataclass(frozen=True, slots=True)
class _Units:
    """Operators that run as one: the places of each unit, the unit of each place, and the edges
    between units."""

    places: list[tuple[int, ...]]
    unit_of: dict[int, int]
    edges: list[tuple[int, int]]


def _units_of(count: int, edges: Edges, cuts: Sequence[CutCollective]) -> _Units:
    """What is cut with what is beside it, and with all that lies between the two."""
    both_ways = list(edges)
    for cut in cuts:
        for product in cut.products:
            both_ways += [(cut.place, product), (product, cut.place)]
    reached = led_to(count, both_ways)
    unit_of, units = dict[int, int](), list[tuple[int, ...]]()
    for place in range(count):
        if place in unit_of:
            continue
        circle = [
            other
            for other in range(count)
            if reached[place] >> other & 1 and reached[other] >> place & 1
        ]
        unit_of |= dict.fromkeys(circle, len(units))
        units.append(tuple(circle))
    between = {(unit_of[tail], unit_of[head]) for tail, head in edges}
    return _Units(units, unit_of, sorted(edge for edge in between if edge[0] != edge[1]))


def _in_turn(count: int, edges: Edges, groups: Mapping[int, Sequence[int]]) -> bool:
    """Whether collectives with what they name can run one group after another."""
    head = list(range(count))
    for unit, others in groups.items():
        for other in others:
            head[other] = unit
    if any(head[a] == head[b] and head[a] in (a, b) for a, b in edges):
        return False
    merged = sorted({(head[a], head[b]) for a, b in edges if head[a] != head[b]})
    reached = led_to(count, merged)
    return not any(reached[b] >> a & 1 for a, b in merged)


def _named(units: _Units, companions: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    """For units of collectives those of the products that they hide, as far as all of it can run in
    turn."""
    named = dict[int, tuple[int, ...]]()
    for place, products in companions.items():
        more = {
            **named,
            units.unit_of[place]: tuple(units.unit_of[product] for product in products),
        }
        if products and _in_turn(len(units.places), units.edges, more):
            named = more
    return named


def _exchanges(
    own: Pass, edges: Edges, units: _Units, hides: Exchanging
) -> list[tuple[int, tuple[int, ...]]]:
    """The exchanges of experts by unit, each with the units of shared experts that neither lead to
    it nor follow."""
    if not (hides.share or hides.shared):
        return []
    shared, exchanges = set[int](), []
    for place, op in enumerate(own.operators):
        if (
            hides.shared
            and op.core in PRODUCTS
            and any("shared" in module for module in own.modules[place])
        ):
            shared.add(place)
    for place, op in enumerate(own.operators):
        if op.kind == "all_to_all" and op.size("copies") > 1:
            free = shared - _walk(place, edges, True) - _walk(place, edges, False)
            shared -= free
            unit = units.unit_of[place]
            beside = {units.unit_of[other] for other in free} - {unit}
            exchanges.append((unit, tuple(sorted(beside))))
    return exchanges


def _order(own: Pass, units: _Units) -> UnitOrder:
    """What the units of a pass hold, and what must end before each."""
    count = len(units.places)
    kinds, network, before = list[tuple[str, ...]](), list[bool](), [0] * count
    for places in units.places:
        cores = {own.works[place].core for place in places}
        kinds.append(tuple(kind for kind in KINDS if {kind, "both"} & cores))
        network.append("network" in cores)
    for first, reached in enumerate(led_to(count, units.edges)):
        for then in range(count):
            if then != first and reached >> then & 1:
                before[then] |= 1 << first
    return UnitOrder(tuple(kinds), tuple(network), tuple(before))


def _launched(op: Operator) -> int:
    """Kernels that the host launches for an operator."""
    return int(op.core != "none") + sum(
        part.sizes.get("kernels", 1) - 1 for part in op.parts or (op,)
    )


def timed(own: Pass, stack: Stack, backward: bool, multipliers: Sequence[Any] = ()) -> TimedPass:
    """A fused pass as a stack runs it; ``multipliers`` that a certificate has of its schedules."""
    rule = RULES[stack.rule]
    edges = [(before, place) for place, waits in enumerate(own.waits) for before in sorted(waits)]
    hides = backward and rule.named
    companions = dict[int, tuple[int, ...]]()
    if hides or stack.pieces:
        beside_weights = hides or (backward and not rule.alone)
        companions = _companions(own, edges, stack.pieces, beside_weights)
    cuts = _rings(own)
    if stack.pieces:
        cuts = [*_cuts(own, companions, rule.named), *cuts]
    units = _units_of(len(own.operators), edges, cuts)
    inside = []
    for places in units.places:
        inside.append((places, tuple(cut for cut in cuts if cut.place in places)))
    host = stack.host * sum(_launched(op) for op in own.operators)
    order = _order(own, units)
    if rule.one_core:
        placed = core_schedules(order, rule, multipliers)
        return TimedPass(own, tuple(inside), (), host, placed=placed)
    if not (rule.queue or rule.named):
        return TimedPass(own, tuple(inside), (), host, queues=Queues(order))
    named = _named(units, companions) if hides and not stack.pieces else {}
    exchanges = _exchanges(own, edges, units, stack.exchanging)
    return TimedPass(
        own, tuple(inside), tuple(named.items()), host, stack.exchanging, tuple(exchanges)
    )

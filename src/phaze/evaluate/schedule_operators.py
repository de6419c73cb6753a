"""The units of a pass: operators alone, and collectives in pieces with the products beside them, as
one each.

c in n pieces   max(c, p) + min(c, p) / n                      p the products' time
                (in_pieces)
a ring          A + max(0, c - (n - 1)/n A), of n ranks        A the attention's time
                (in_ring)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.work import Work
from phaze.graph.ir import OperatorGraph
from phaze.schedule.order import strong_components
from phaze.schedule.problem import Core
from phaze.schedule.rules import groups_in_turn

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pieces:
    """A collective cut into ``count`` pieces, and the products that work on one piece while the
    next is on its way."""

    collective: int
    count: int
    products: tuple[int, ...]
    ring: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """One operator of the schedule: its places in the graph, and which of them run in pieces beside
    each other."""

    places: tuple[int, ...]
    core: Core
    network: bool
    cut: tuple[Pieces, ...] = ()


def in_pieces(collective_s: Floats, products_s: Floats, pieces: int) -> Floats:
    """A collective cut into pieces beside products: ``max(c, p) + min(c, p) / n``; of the shorter
    one piece is seen."""
    return np.asarray(
        np.maximum(collective_s, products_s) + np.minimum(collective_s, products_s) / pieces
    )


def in_ring(collective_s: Floats, products_s: Floats, ranks: int) -> Floats:
    """A ring of c - 1 steps x behind c blocks of attention of A in all: ``A + (c - 1) max(0, x - A
    / c)``."""
    return np.asarray(products_s + np.maximum(0.0, collective_s - (ranks - 1) / ranks * products_s))


def rings_of(graph: OperatorGraph) -> list[Pieces]:
    """Rings of keys and values with the attention that reads what comes round."""
    rings = []
    for index, ring in enumerate(graph.operators):
        if ring.kind == "ring":
            written = {access.tensor for access in ring.writes}
            readers = (
                i
                for i, op in enumerate(graph.operators)
                if written & {access.tensor for access in op.reads}
            )
            rings.append(Pieces(index, ring.size("group"), tuple(readers), ring=True))
    return rings


def named_beside(
    count: int, edges: Sequence[tuple[int, int]], beside: Mapping[int, Sequence[int]]
) -> tuple[tuple[int, int], ...]:
    """The pairs of all collectives that can stand beside what they name with the groups one after
    another."""
    pairs: tuple[tuple[int, int], ...] = ()
    for place, others in beside.items():
        more = (*pairs, *((place, other) for other in others))
        if groups_in_turn(count, edges, more) is not None:
            pairs = more
    return pairs


def units_of(
    works: Sequence[Work], edges: Sequence[tuple[int, int]], joined: Sequence[Pieces]
) -> tuple[tuple[Unit, ...], list[int]]:
    """The units in the order of their first places, and the unit of each place.

    What runs in pieces is one unit, with all that lies between its members: the strong components
    of the graph in which members of a group lead to each other.
    """
    back = [
        (a, b)
        for cut in joined
        for i in cut.products
        for a, b in ((cut.collective, i), (i, cut.collective))
    ]
    of = strong_components(len(works), [*edges, *back])
    places: dict[int, list[int]] = {}
    for place, number in enumerate(of):
        places.setdefault(number, []).append(place)
    units = []
    for members in places.values():
        cuts = tuple(cut for cut in joined if cut.collective in members)
        cores: set[Core] = {
            "none" if (c := works[place].core) == "network" else c for place in members
        }
        some = sorted(cores - {"none"})
        core: Core = "none" if not some else "both" if len(some) > 1 else some[0]
        units.append(
            Unit(
                tuple(members), core, any(works[place].core == "network" for place in members), cuts
            )
        )
    order = {number: index for index, number in enumerate(places)}
    return tuple(units), [order[number] for number in of]

"""How far a stack hides the exchanges of experts in a pass whose operators run one after another.

With x_u the seconds of exchange u, h_u what is hidden of it already, p_u the products of shared
experts beside it, each beside one exchange alone, and e_u what is left of it,

    beside shared experts            e_u = x_u - h_u - min(x_u - h_u, p_u),  device = total - sum of
                                     (x_u - h_u - e_u)
    behind another microbatch        e_u = x_u - h_u,  device = max( total - (1 - sigma) sum of e_u,
                                     sum of x_u )

Where plans run them behind another microbatch they are not beside shared experts as well. The
latter is what a pass takes where it has such work beside it; where it has none it takes ``total``
(:mod:`phaze.placement.stage_pace`). It never falls when an exchange or other work takes longer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.graph.ir import Operator, OperatorGraph
from phaze.graph.recompute import closure
from phaze.hardware.stack import Stack

Floats = NDArray[np.float64]
# What modules of shared experts are called.
SHARED = "shared"


@dataclass(frozen=True, slots=True)
class ExchangeOverlap:
    """The exchanges of a pass by unit, each with the units of the products beside it, and the
    stack's share."""

    beside: tuple[tuple[int, tuple[int, ...]], ...] = ()
    share: float = 0.0

    def overlapped(self, total: Floats, units_s: Floats, hidden: Mapping[int, Floats]) -> Floats:
        """Device seconds with so much of the exchanges hidden; ``hidden`` is by unit, taken off
        ``total`` already."""
        if not self.beside:
            return total
        left, busy = np.zeros_like(total), np.zeros_like(total)
        for unit, products in self.beside:
            exposed = units_s[unit] - hidden.get(unit, 0.0)
            covered = np.minimum(
                exposed, sum((units_s[other] for other in products), np.zeros_like(total))
            )
            total, left, busy = total - covered, left + exposed - covered, busy + units_s[unit]
        return np.asarray(np.maximum(total - self.share * left, busy))


NO_OVERLAP = ExchangeOverlap()


def is_exchange_of_experts(op: Operator) -> bool:
    """Whether an operator sends the rows of tokens, each several times, to their experts or
    back."""
    return op.kind == "all_to_all" and op.size("copies") > 1


def exchange_overlap(graph: OperatorGraph, unit_of: Sequence[int], stack: Stack) -> ExchangeOverlap:
    """The exchanges of a (fused) pass, as far as a stack hides them; ``unit_of`` is by place."""
    exchanges = [
        (place, op) for place, op in enumerate(graph.operators) if is_exchange_of_experts(op)
    ]
    if not exchanges or not (stack.hidden_exchange or stack.overlaps_shared_experts):
        return NO_OVERLAP
    edges, used = list(graph.edges()), set[int]()
    beside = stack.overlaps_shared_experts and not stack.hidden_exchange
    places = {op.id: place for place, op in enumerate(graph.operators)}
    shared = {
        op.id
        for op in graph.operators
        if op.core in ("tensor", "both") and any(SHARED in part for part in _paths(op))
    }
    hidden = []
    for place, exchange in exchanges:
        around = closure(edges, {exchange.id}, True) | closure(edges, {exchange.id}, False)
        free = shared - around - used if beside else set[int]()
        used |= free
        hidden.append(
            (
                unit_of[place],
                tuple(sorted({unit_of[places[id_]] for id_ in free} - {unit_of[place]})),
            )
        )
    return ExchangeOverlap(tuple(hidden), stack.hidden_exchange)


def _paths(op: Operator) -> list[str]:
    return [part.module for part in (op, *op.parts)]

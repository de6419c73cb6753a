"""Which operands are still on the chip when an operator asks for them.

The rule is a function of a pair of operators, the one that touched the tensor last and the one that
touches it now, in the order of the graph. With ``between`` the bytes of all other tensors touched
from the one to the other,

    need(operand) = bytes(operand) + between;     no HBM trip when need <= G / 2

that is, the global buffer keeps the most recently touched half of its size and leaves the other
half to tiles. A result need not be written to HBM when it is no output of the graph and every read
of it, the last too, finds it on the chip:

    need(result) = max over its reads of need(read);   infinite for outputs and for what nobody
                                                       reads

With ``residency=False`` every need is infinite: each operand comes from HBM and each result goes
there.
"""

from dataclasses import dataclass

from phaze.cost.mapping import NEVER
from phaze.graph.ir import OperatorGraph


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes that half of the global buffer must hold, for each access of one operator in the order
    of its lists."""

    reads: tuple[float, ...]
    writes: tuple[float, ...]


def needs_of(graph: OperatorGraph, residency: bool = True) -> tuple[Needs, ...]:
    """The needs of every operator of ``graph``, in its order."""
    if not residency:
        return tuple(
            Needs((NEVER,) * len(op.reads), (NEVER,) * len(op.writes)) for op in graph.operators
        )
    recent: dict[int, int] = {}
    reads: list[tuple[float, ...]] = []
    worst: dict[int, float] = {}
    for op in graph.operators:
        found = tuple([_distance(recent, access.tensor) for access in op.reads])
        reads.append(found)
        for access, need in zip(op.reads, found, strict=True):
            if need > worst.get(access.tensor, -1.0):
                worst[access.tensor] = need
        for access in (*op.reads, *op.writes):
            recent.pop(access.tensor, None)
            recent[access.tensor] = access.bytes
    for tensor in graph.outputs:
        worst[tensor] = NEVER
    return tuple(
        [
            Needs(found, tuple([worst.get(access.tensor, NEVER) for access in op.writes]))
            for op, found in zip(graph.operators, reads, strict=True)
        ]
    )


def _distance(recent: dict[int, int], tensor: int) -> float:
    """Bytes touched since ``tensor`` was, itself included; ``recent`` has the last touched at its
    end."""
    if tensor not in recent:
        return NEVER
    total = 0
    for other in reversed(recent):
        total += recent[other]
        if other == tensor:
            break
    return float(total)

"""One rank of any model: what is asked of it, the rest as it is usual, or as a graph's file was
traced."""

from dataclasses import replace

from phaze.errors import InputError
from phaze.graph.ir import Model
from phaze.graph.supply.point import Rank, RankPoint
from phaze.graph.supply.supply import SuppliedGraph, Supply, supply_of
from phaze.graph.supply.tracing import Watch, silent


def point_of(rank: Rank, supply: Supply) -> RankPoint:
    """Where a model is asked for a rank."""
    for option, count in (("--tensor", rank.tensor), ("--microbatch", rank.microbatch)):
        if count is not None and count < 1:
            raise InputError(option, f"{count} is out of range", "it must be at least 1")
    length = supply.facts.length(rank.sequence)
    usual = (
        replace(supply.point, sequence=length)
        if isinstance(supply, SuppliedGraph)
        else RankPoint(1, 1, length)
    )
    point = replace(usual, **rank.stated())
    return replace(point, sequence_parallel=point.split)


def rank_of(model: str | Supply, rank: Rank, fresh: bool = False, watch: Watch = silent) -> Model:
    """A rank of what the caller names, whose code may run, or of a model that is there already;
    traced where it is not built in."""
    supply = supply_of(model, allow_code=True, fresh=fresh) if isinstance(model, str) else model
    point = point_of(rank, supply)
    for fault in supply.prepare([point], watch).values():
        raise fault
    return supply.model(point)

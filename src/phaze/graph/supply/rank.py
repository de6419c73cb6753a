"""One rank of any model: what is asked of it, the rest as it is usual, or as a graph's file was traced."""

from dataclasses import dataclass

from phaze.errors import InputError
from phaze.graph.ir import Attention, Model
from phaze.graph.supply.point import Point
from phaze.graph.supply.supply import GraphFile, Supply, supply_of
from phaze.graph.supply.tracing import Watch, silent


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank that is asked for; None: width 1, microbatch 1, the model's own sequence, eager attention, and no sequence
    parallelism, or all as the file of a graph has it."""

    tensor: int | None = None
    microbatch: int | None = None
    sequence: int | None = None
    attention: Attention | None = None
    sequence_parallel: bool | None = None

    def point(self, supply: Supply) -> Point:
        """Where a model is asked for it."""
        for option, count in (("--tensor", self.tensor), ("--microbatch", self.microbatch)):
            if count is not None and count < 1:
                raise InputError(option, f"{count} is out of range", "it must be at least 1")
        usual = Point(1, 1, supply.facts.length(self.sequence), "eager", False)
        if isinstance(supply, GraphFile):
            own = supply.graph
            usual = Point(own.tensor, own.microbatch, usual.sequence, own.attention, own.sequence_parallel)
        tensor = usual.tensor if self.tensor is None else self.tensor
        spread = usual.sequence_parallel if self.sequence_parallel is None else self.sequence_parallel
        return Point(
            tensor,
            usual.microbatch if self.microbatch is None else self.microbatch,
            usual.sequence,
            self.attention or usual.attention,
            spread and tensor > 1,
        )


def rank_of(model: str | Supply, rank: Rank, fresh: bool = False, watch: Watch = silent) -> Model:
    """A rank of what the caller names, whose code may run, or of a model that is there already; traced where it is not
    built in."""
    supply = supply_of(model, allow_code=True, fresh=fresh) if isinstance(model, str) else model
    point = rank.point(supply)
    for fault in supply.prepare([point], watch).values():
        raise fault
    return supply.model(point)

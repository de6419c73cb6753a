"""One rank of a model under tensor, context and expert parallelism, from traces of whole layers.

load at s / c positions        :func:`phaze.graph.fold_experts.folded_model` where t > 1 and experts are shared out,
                               with the trace at width 1 and s / (c t) positions
share out the experts          :func:`phaze.graph.split_experts.expert_parallel`
let attention see all keys     :func:`phaze.graph.split_context.context_parallel`
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from phaze.cost.ranks import Degrees, Divided, require_divided
from phaze.errors import InputError
from phaze.graph.fold_experts import folded_model
from phaze.graph.ir import Attention, Model
from phaze.graph.split_context import Way, context_parallel
from phaze.graph.split_experts import expert_parallel
from phaze.graph.supply.point import Point
from phaze.graph.supply.supply import Supply
from phaze.graph.zoo import load_family
from phaze.placement.sharing import Sharing

# The trace at (tensor width, sequence, sequence parallel).
LoadAt = Callable[[int, int, bool], Model]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Degrees beyond tensor parallelism; without ``expert_tensor`` experts are cut as the rest is, by ``tensor``."""

    tensor: int
    context: int = 1
    expert: int = 1
    expert_tensor: int | None = None
    way: Way = "ring"

    @property
    def sharing(self) -> Sharing:
        """What placement asks: experts that are not shared out are cut and replicated as all else."""
        if self.expert == 1:
            if self.expert_tensor not in (None, self.tensor):
                raise InputError(
                    "expert_tensor",
                    f"{self.expert_tensor} beside tensor {self.tensor} needs experts that ranks share out",
                    "leave it out, or use expert 2 or more",
                )
            return Sharing(self.context)
        return Sharing(self.context, self.expert, self.expert_tensor or self.tensor)


def parallels(width: int, contexts: Iterable[int], experts: Iterable[int]) -> Iterator[Parallel]:
    """Every further degree to try at a width; experts are cut as the rest is, or not at all."""
    degrees = tuple(experts)
    for context in contexts:
        for expert in degrees:
            for cut in sorted({1, width}) if expert > 1 else (None,):
                yield Parallel(width, context, expert, cut)


class Refusals:
    """Which degrees the choices of a job refused, and why; degrees that none of them has are a fault of the job."""

    def __init__(self) -> None:
        self._faults: dict[tuple[int, int], InputError | None] = {}

    def attempted(self, parallel: Parallel, build: Callable[[], Model]) -> Model | None:
        """What ``build`` gives, or None where it refuses degrees that other choices may have."""
        degrees = (parallel.context, parallel.expert)
        try:
            model = build()
        except InputError as fault:
            if degrees == (1, 1):
                raise
            self._faults.setdefault(degrees, fault)
            return None
        self._faults[degrees] = None
        return model

    def require(self) -> None:
        """Raise the fault of degrees that no choice can have."""
        for fault in self._faults.values():
            if fault is not None:
                raise fault


def parallel_rank(load: LoadAt, asked: Parallel, sequence: int, sequence_parallel: bool) -> Model:
    """One rank; refused, with the degree that is wrong, where the model cannot be divided so."""
    sharing = asked.sharing
    if (asked.context, asked.expert) == (1, 1):
        return load(asked.tensor, sequence, sequence_parallel)
    require_divided(Degrees(asked.tensor, asked.context), Divided(sequence), sequence_parallel)
    own = sequence // asked.context
    if asked.expert > 1 and own % asked.tensor:
        raise InputError("tensor", f"{own} positions do not divide by {asked.tensor}", "use another degree")
    model = load(asked.tensor, own, sequence_parallel)
    if asked.expert > 1:
        if asked.tensor > 1:
            model = folded_model(model, load(1, own // asked.tensor, False))
        model = expert_parallel(model, sharing.expert, sharing.expert_tensor)
    return context_parallel(model, asked.context, asked.way)


def family_at(family: str, sizes: Mapping[str, Any], microbatch: int, attention: Attention) -> LoadAt:
    """A family by its sizes, to be loaded at any width and sequence."""
    return lambda tensor, sequence, spread: load_family(
        family,
        sizes,
        tensor=tensor,
        microbatch=microbatch,
        sequence=sequence,
        attention=attention,
        sequence_parallel=spread,
    )


def supply_at(supply: Supply, microbatch: int, attention: Attention) -> LoadAt:
    """A model that is named, to be loaded at any width and sequence."""
    return lambda tensor, sequence, spread: supply.model(Point(tensor, microbatch, sequence, attention, spread))

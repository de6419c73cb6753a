"""What a source of a model hands to the trace: a way to build it, and what is known about its
sizes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from phaze.errors import InputError
from phaze.graph.torch.plans import ShardingPlan


@dataclass(frozen=True, slots=True)
class TracedProgram:
    """A module and one call of it: ``step()`` runs it on ``inputs`` and returns the loss, or all
    its results."""

    module: nn.Module
    inputs: Any
    step: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class TensorShape:
    """What a model is built for; ``fused``: by fused attention."""

    microbatch: int
    sequence: int
    fused: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """A model that can be built at any shape.

    ``longest`` is the number of positions it has (None: any); ``fixed`` says that the sequence is
    the model's own (images). ``plan`` splits it over tensor-parallel ranks (None: it cannot be, and
    ``plan_fault`` may say why). ``vocabulary`` is the number of tokens that embedding and head are
    split over (0: none), and ``token_modules`` finds the two in a built module: what has as many
    rows may be a table of positions. ``notes`` become approximations of the graph. ``rotary``:
    positions beyond ``longest`` are extended.
    """

    name: str
    build: Callable[[TensorShape], TracedProgram]
    sequence: int
    longest: int | None
    fixed: bool
    plan: ShardingPlan | None
    vocabulary: int = 0
    token_modules: Callable[[nn.Module], Sequence[nn.Module | None]] = lambda module: ()
    notes: tuple[str, ...] = ()
    plan_fault: InputError | None = None
    rotary: bool = False

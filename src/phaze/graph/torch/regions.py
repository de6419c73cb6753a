"""The regions that a pass is cut into, and what happens at their borders."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

Value = tuple[int, int]
Border = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Argument:
    """A result of a block that is one of its arguments, by place."""

    place: int


@dataclass(slots=True)
class TracedRegion:
    """A block call (``module`` set) or a part between; values are (storage, version) of what
    crosses its border. ``taken_values`` are the values of ``takes``; ``arguments`` is what a block
    was called with, each tensor once: the first of ``takes`` stand for them, further ones for what
    it read and was not given."""

    number: int
    path: str
    module: nn.Module | None
    folds: int | None = None
    takes: list[torch.Tensor] = field(default_factory=list)
    taken_values: list[Value] = field(default_factory=list)
    arguments: list[torch.Tensor] = field(default_factory=list)
    gives: list[torch.Tensor] = field(default_factory=list)
    inputs: dict[Value, bool] = field(default_factory=dict)
    outputs: dict[Value, bool] = field(default_factory=dict)
    gradients: list[Value] = field(default_factory=list)
    output_gradients: list[Value] = field(default_factory=list)
    pattern: tuple[Any, list[Any]] | None = None
    results: set[Value] = field(default_factory=set)

    @property
    def ran(self) -> bool:
        """Whether its code ran; the others repeat what an equal block did."""
        return self.module is None or self.pattern is not None


@dataclass(frozen=True, slots=True)
class Borders:
    """What tensor parallelism does around blocks: ``region`` is entered while one runs; with
    ``shards`` the sequence of what ``is_whole`` is cut where a block takes it from outside, and of
    what ``is_shard`` gathered where others take it from a block."""

    region: Callable[[], AbstractContextManager[None]]
    enter: Border
    leave: Border
    shards: bool
    is_whole: Callable[[torch.Tensor], bool]
    is_shard: Callable[[torch.Tensor], bool]


def same_view(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors are the same view of the same storage."""
    return (
        left.untyped_storage()._cdata == right.untyped_storage()._cdata
        and left.shape == right.shape
        and left.stride() == right.stride()
        and left.storage_offset() == right.storage_offset()
    )

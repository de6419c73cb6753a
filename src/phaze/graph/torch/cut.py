"""Cuts autograd between the parts of a model that lie before, between and after its blocks."""

from typing import Any, Protocol

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from phaze.graph.torch.record import tensors_in


class Cuts(Protocol):
    """What drives a pass: whether a block is running, and what becomes of tensors that cross a border."""

    inside: bool

    def local(self, tensor: torch.Tensor) -> torch.Tensor: ...

    def own(self, tensor: torch.Tensor) -> None: ...


QUESTIONS = frozenset(
    [
        "__get__",
        "__set__",
        "size",
        "dim",
        "stride",
        "numel",
        "untyped_storage",
        "storage_offset",
        "element_size",
        "is_floating_point",
    ]
)
"""Functions that ask for a tensor's shape or place and read none of its values."""


class Cut(TorchFunctionMode):
    """Replaces, outside blocks, tensors that an earlier region made by leaves of the current one."""

    def __init__(self, walk: "Cuts") -> None:
        super().__init__()
        self.walk = walk

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        if self.walk.inside or getattr(func, "__name__", "") in QUESTIONS:
            return func(*args, **named)
        values, shape = tree_flatten((args, named))
        local = [self.walk.local(v) if isinstance(v, torch.Tensor) else v for v in values]
        args, named = tree_unflatten(local, shape)
        result = func(*args, **named)
        for tensor in tensors_in(result):
            self.walk.own(tensor)
        return result

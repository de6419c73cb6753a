"""Cuts autograd between the regions of a model, where their code reads what others made."""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from phaze.graph.torch.record import tensors_in
from phaze.graph.torch.tensor_owner import TensorOwner

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
    """Replaces tensors that another region made by what the running one sees of them."""

    def __init__(self, owner: TensorOwner) -> None:
        super().__init__()
        self.owner = owner

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        name = getattr(func, "__name__", "")
        if self.owner.paused or name in QUESTIONS:
            result = func(*args, **named)
            if name == "__get__" and isinstance(result, torch.Tensor) and not self.owner.paused:
                with self.owner.aside():
                    self.owner.inherit(result, args[0])  # a view by attribute, as .T
            return result
        if any(self.owner.foreign(tensor) for tensor in tensors_in((args, named))):
            values, shape = tree_flatten((args, named))
            with self.owner.aside():
                local = [self.owner.local(v) if isinstance(v, torch.Tensor) else v for v in values]
            args, named = tree_unflatten(local, shape)
        result = func(*args, **named)
        with self.owner.aside():
            for tensor in tensors_in(
                (result, args, named)
            ):  # what is changed in place is an argument
                self.owner.claim(tensor)
        return result

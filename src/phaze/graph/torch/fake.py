"""Tensors with shapes and no memory, and what little must have values while somebody's module is built."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

from phaze.graph.torch.record import tensors_in

SERIES = frozenset({"aten.linspace.default", "aten.arange.default", "aten.arange.start", "aten.arange.start_step"})


@contextmanager
def without_weights() -> Iterator[None]:
    """Tensors have shapes and no memory, and are 16 bit wide unless a model says otherwise."""
    dtype = torch.get_default_dtype()
    chatter = logging.getLogger("torch._subclasses.fake_tensor")
    level = chatter.level
    chatter.setLevel(logging.CRITICAL)
    torch.set_default_dtype(torch.bfloat16)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        torch.set_default_dtype(dtype)
        chatter.setLevel(level)


class Building(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While a module is built, series of numbers and what is computed from them alone have values (a rate for each
    layer is often read from one), and a question about random weights (is one out of range?) is answered: no."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named, name = kwargs or {}, str(func)
        given = (*tensors_in(args), *tensors_in(named))
        if name in SERIES or (given and not any(isinstance(tensor, FakeTensor) for tensor in given)):
            with unset_fake_temporarily():
                return func(*args, **named)
        if name == "aten._local_scalar_dense.default":
            return False if args[0].dtype == torch.bool else 1
        return func(*args, **named)


def forget_values(module: nn.Module) -> None:
    """Let the series that ``module`` keeps (numbers of positions, frequencies) have shapes only, like all else; where
    tensors have memory, nothing is forgotten."""
    if not isinstance(torch.empty(0), FakeTensor):
        return
    known: dict[int, torch.Tensor] = {}
    for part in module.modules():
        for held in (part._buffers, part.__dict__):
            for name, value in held.items():
                if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
                    held[name] = known.setdefault(id(value), torch.empty_like(value))

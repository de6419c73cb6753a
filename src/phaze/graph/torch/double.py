"""All numbers in 64 bit, whatever precision a model's code asks for: what it rounds on the way is
then no difference between two ranks and one, and code that mixes precisions runs."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map


def doubled_type(dtype: Any) -> Any:
    """The 64-bit type in place of a narrower one; numbers of integers and all else stay as they
    are."""
    if not isinstance(dtype, torch.dtype):
        return dtype
    return (
        torch.float64
        if dtype.is_floating_point
        else torch.complex128
        if dtype.is_complex
        else dtype
    )


def _doubled(value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return doubled_type(value)
    if isinstance(value, Tensor) and value.dtype != doubled_type(value.dtype):
        return value.to(doubled_type(value.dtype))
    return value


class Double(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators are given tensors of 64 bit and asked for no others."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        args, named = tree_map(_doubled, (args, kwargs or {}))
        return tree_map(_doubled, func(*args, **named))


def double_module(module: nn.Module) -> None:
    """Give every parameter and buffer of a module without memory its 64-bit type; what is tied
    stays tied."""
    doubled: dict[int, Tensor] = {}
    for part in module.modules():
        for name, weight in part._parameters.items():
            if weight is not None and weight.is_floating_point():
                if id(weight) not in doubled:
                    doubled[id(weight)] = nn.Parameter(
                        weight.detach().to(torch.float64), weight.requires_grad
                    )
                part._parameters[name] = doubled[id(weight)]  # type: ignore[assignment]
        for name, buffer in part._buffers.items():
            part._buffers[name] = (
                None if buffer is None else doubled.setdefault(id(buffer), _doubled(buffer))
            )

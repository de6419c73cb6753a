"""Tensors with shapes and no memory, and what little must have values while somebody's module is
built."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from phaze.graph.torch.record import tensors_in

META, CPU = torch.device("meta"), torch.device("cpu")
SERIES = frozenset(
    {"aten.linspace.default", "aten.arange.default", "aten.arange.start", "aten.arange.start_step"}
)

# Methods that change all values of a tensor and nothing else: without values they take a quarter of
# building's time.
_FILLS = frozenset(
    {torch.Tensor.uniform_, torch.Tensor.normal_, torch.Tensor.fill_, torch.Tensor.zero_}
)


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
    """While a module is built, series of numbers and what is computed from them alone have values
    (a rate for each layer is often read from one), and a question about random weights (is one out
    of range?) is answered: no.

    What is made on the meta device is made on the CPU instead, without memory all the same: on the
    meta device a loss loses its backward pass without an error."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named, name = dict(kwargs or {}), str(func)
        if named.get("device") == META:
            named["device"] = CPU
        operands = (*tensors_in(args), *tensors_in(named))
        if name in SERIES or (
            operands and not any(isinstance(tensor, FakeTensor) for tensor in operands)
        ):
            with unset_fake_temporarily():
                return func(*args, **named)
        if name == "aten._local_scalar_dense.default":
            return False if args[0].dtype == torch.bool else 1
        return func(*args, **named)


class _Copies(TorchFunctionMode):
    """``copy.deepcopy`` of a tensor without memory is a new one of its kind; PyTorch's own copy has
    no storage that its views would share. What would fill it with random numbers
    (``torch.nn.init``) has nothing to do."""

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func in _FILLS and args and isinstance(args[0], FakeTensor) and args[0].constant is None:
            return args[0]
        if func is not torch.Tensor.__deepcopy__ or not isinstance(args[0], FakeTensor):
            return func(*args, **(kwargs or {}))
        old, memo = args
        if id(old) not in memo:
            with torch.no_grad():
                fresh = torch.empty_strided(old.shape, old.stride(), dtype=old.dtype)
            memo[id(old)] = (
                nn.Parameter(fresh, old.requires_grad) if isinstance(old, nn.Parameter) else fresh
            )
        return memo[id(old)]


@contextmanager
def building() -> Iterator[None]:
    """While somebody's module is built: values where they matter, copies of modules, and
    ``module.float()`` and its like, which would exchange tensors in place and cannot without
    memory. What was tied stays tied."""
    original: Callable[..., nn.Module] = nn.Module._apply

    def converted(
        self: nn.Module, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
    ) -> nn.Module:
        if not any(isinstance(parameter, FakeTensor) for parameter in self.parameters()):
            return original(self, fn, recurse)
        converted_parameters: dict[int, nn.Parameter] = {}
        originals: list[nn.Parameter] = []  # what is looked up by identity must not be freed
        for module in self.modules() if recurse else [self]:
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    if id(parameter) not in converted_parameters:
                        with torch.no_grad():
                            converted_parameters[id(parameter)] = nn.Parameter(
                                fn(parameter), parameter.requires_grad
                            )
                        originals.append(parameter)
                    module._parameters[name] = converted_parameters[id(parameter)]
            for name, buffer in module._buffers.items():
                module._buffers[name] = None if buffer is None else fn(buffer)
        return self

    nn.Module._apply = converted  # type: ignore[method-assign]
    try:
        with Building(), _Copies():
            yield
    finally:
        nn.Module._apply = original  # type: ignore[method-assign]


def forget_values(module: nn.Module) -> None:
    """Let the series that ``module`` keeps (numbers of positions, frequencies) have shapes only,
    like all else; where tensors have memory, nothing is forgotten."""
    if not isinstance(torch.empty(0), FakeTensor):
        return
    emptied: dict[int, torch.Tensor] = {}
    for part in module.modules():
        for attributes in (part._buffers, part.__dict__):
            for name, value in attributes.items():
                if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
                    attributes[name] = emptied.setdefault(id(value), torch.empty_like(value))

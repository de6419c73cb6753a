"""A built model with real numbers in it, of which one block of each kind runs: small enough to be
run and compared.

Repeated blocks hand on what they are given. Parameters get random values by their names, everything
else that has no values (buffers, what a loss compares with) by its shape, so that two copies of a
model are equal. All of them have 64 bit, also where the code of the model casts
(:mod:`phaze.graph.torch.double`).
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map

from phaze.graph.torch.blocks import find_blocks
from phaze.graph.torch.double import Double, double_module
from phaze.graph.torch.flow import MapRecorder
from phaze.graph.torch.follow import Sizes
from phaze.graph.torch.program import TracedProgram
from phaze.graph.torch.record import tensors_in
from phaze.graph.torch.regions import Borders

Shapes = Mapping[str, tuple[int, ...]]


def _dice(name: str) -> torch.Generator:
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def values(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Numbers of a kind and shape, the same for the same name. Of a mask every row says both yes
    and no."""
    if dtype == torch.bool:
        places = (
            torch.stack(torch.meshgrid(*(torch.arange(size) for size in shape[-2:]), indexing="ij"))
            if shape
            else None
        )
        return (
            torch.ones(shape, dtype=dtype)
            if places is None
            else (places.sum(0) % 2 == 0).expand(shape)
        )
    if dtype.is_complex:
        return torch.randn(shape, dtype=torch.complex128, generator=_dice(name))
    if not dtype.is_floating_point:
        return torch.randint(
            0,
            2**20,
            shape,
            dtype=dtype if dtype.itemsize > 2 else torch.int64,
            generator=_dice(name),
        )
    return torch.randn(shape, dtype=torch.float64, generator=_dice(name))


def weight_values(name: str, shape: tuple[int, ...]) -> Tensor:
    """A weight: of the size that keeps what it maps at its size; near one where it scales."""
    weight = values(name, shape, torch.float64)
    return weight * shape[-1] ** -0.5 if len(shape) > 1 else 1.0 + 0.2 * weight


class Real:
    """Gives tensors without memory their values, each once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, tree: Any) -> Any:
        return tree_map(self._value, tree)

    def _value(self, value: Any) -> Any:
        if not isinstance(value, FakeTensor):
            return value
        if id(value) not in self._known:
            shape = tuple(map(int, value.shape))
            self._known[id(value)] = value, values(f"{shape}", shape, value.dtype)
        return self._known[id(value)][1]


@dataclass(slots=True)
class Copy:
    """A built program of which one block of each kind runs; ``skipped`` are the paths of the
    others."""

    program: TracedProgram
    blocks: dict[str, nn.Module]
    skipped: dict[str, str]
    real: Real = field(default_factory=Real)
    results: dict[str, Any] = field(default_factory=dict)

    def fill(self, shapes: Shapes) -> None:
        """Give every parameter that runs its values, in another shape where ``shapes`` names
        one."""
        filled: dict[int, nn.Parameter] = {}
        for path, module in self.program.module.named_modules():
            for name, whole in list(module._parameters.items()):
                if whole is None:
                    continue
                weight_path = f"{path}.{name}" if path else name
                if id(whole) not in filled:
                    shape = shapes.get(weight_path, tuple(map(int, whole.shape)))
                    filled[id(whole)] = nn.Parameter(
                        weight_values(weight_path, shape), whole.requires_grad
                    )
                module._parameters[name] = filled[id(whole)]

    def run(
        self, sizes: Sizes, borders: Borders | None = None, flow: MapRecorder | None = None
    ) -> Any:
        """One step, its blocks one of each kind."""
        forwards = {path: module.forward for path, module in self.blocks.items()}
        try:
            for path, module in self.blocks.items():
                stands = self._skip if path in self.skipped else self._block
                module.forward = stands(path, forwards[path], sizes, borders, flow)
            with Double(), flow or nullcontext(), sizes:
                return self.program.step()
        finally:
            for module in self.blocks.values():
                module.__dict__.pop("forward", None)

    def _block(
        self,
        path: str,
        original: Callable[..., Any],
        sizes: Sizes,
        borders: Borders | None,
        flow: MapRecorder | None,
    ) -> Callable[..., Any]:
        region: Callable[[], AbstractContextManager[None]] = (
            nullcontext if borders is None else borders.region
        )
        shards = borders is not None and borders.shards

        def forward(*args: Any, **kwargs: Any) -> Any:
            with sizes.aside():
                args, kwargs = (
                    self.real((args, kwargs)) if sizes.real is not None else (args, kwargs)
                )
                if shards and borders is not None:
                    args, kwargs = tree_map(lambda v: _entering(v, borders), (args, kwargs))
                if flow is not None:
                    flow.enter((args, kwargs))
            with region(), sizes.within(path), nullcontext() if flow is None else flow.within(path):
                result = original(*args, **kwargs)
            with sizes.aside():
                if shards and borders is not None:
                    result = tree_map(lambda v: _leaving(v, borders), result)
                sizes.results(path, result)
                self.results[path] = result
            return result

        return forward

    def _skip(
        self,
        path: str,
        original: Callable[..., Any],
        sizes: Sizes,
        borders: Borders | None,
        flow: MapRecorder | None,
    ) -> Callable[..., Any]:
        def forward(*args: Any, **kwargs: Any) -> Any:
            with sizes.aside():
                arguments = list(tensors_in((args, kwargs)))

                def like(value: Any) -> Any:
                    if not isinstance(value, Tensor):
                        return value
                    same = (
                        x for x in arguments if x.shape == value.shape and x.dtype == value.dtype
                    )
                    argument = next(same, None)
                    return torch.zeros_like(value) if argument is None else argument

                return tree_map(like, self.results[self.skipped[path]])

        return forward


def _entering(value: Any, borders: Borders) -> Any:
    fits = isinstance(value, Tensor) and value.requires_grad and borders.is_whole(value)
    return borders.enter(value) if fits else value


def _leaving(value: Any, borders: Borders) -> Any:
    fits = isinstance(value, Tensor) and value.requires_grad and borders.is_shard(value)
    return borders.leave(value) if fits else value


def copy_of(program: TracedProgram) -> Copy:
    """A program with its repeated blocks found: the first of each class and sizes of parameters
    runs."""
    blocks = find_blocks(program.module)
    first: dict[Any, str] = {}
    skipped: dict[str, str] = {}
    for path, module in blocks.items():
        sizes = tuple((name, tuple(p.shape)) for name, p in module.named_parameters())
        key = type(module), sizes
        if key in first:
            skipped[path] = first[key]
        else:
            first[key] = path
    program.module.eval()
    double_module(program.module)
    _strip(program.module, tuple(skipped))
    return Copy(program, blocks, skipped)


def _strip(model: nn.Module, skipped: tuple[str, ...]) -> None:
    """Take the parameters out of blocks that do not run; what they share with others stays."""
    inside = tuple(f"{path}." for path in skipped)
    aside, running = list[nn.Module](), set[int]()
    for path, module in model.named_modules(remove_duplicate=False):
        if path in skipped or path.startswith(inside):
            aside.append(module)
        else:
            running.add(id(module))
    for module in aside:
        if id(module) not in running:
            module._parameters.clear()


@contextmanager
def restored(module: nn.Module) -> Iterator[None]:
    """Give every parameter of ``module`` back as it was."""
    before = {path: dict(part._parameters) for path, part in module.named_modules()}
    try:
        yield
    finally:
        for path, part in module.named_modules():
            part._parameters.update(before[path])

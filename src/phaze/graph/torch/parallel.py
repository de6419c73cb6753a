"""Layers of one tensor-parallel rank, and where they communicate.

Without sequence parallelism the input of a column-parallel map is the same on all ranks and passes
f (identity forward, all-reduce backward), once for each distinct input; a row-parallel map sums its
partial results (g).

With it, what lies between is a shard along the sequence: the *parent* of column-parallel maps
gathers its inputs (the models take lengths from what the parent is given), and the row-parallel map
reduces and scatters. As in Megatron the shard is kept for backward, and gathered again there:
:meth:`RankGroup.region` packs every saved view of a gathered tensor as its shard.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_map

from phaze.graph.torch import collectives

Takes = Literal["same", "shard", "gathered"]


class RankGroup:
    """The communication of one rank with the others; remembers what it gathered while a block
    runs."""

    def __init__(
        self, width: int, rank: int, sequence_parallel: bool, sequence_dim: int, length: int
    ) -> None:
        self.width, self.rank = width, rank
        self.sequence_parallel, self.dim, self.length = sequence_parallel, sequence_dim, length
        self._copies: dict[int, tuple[Tensor, Tensor]] = {}
        self._gathered: dict[int, tuple[Tensor, Tensor]] = {}
        self._again: dict[int, Tensor] = {}

    @contextmanager
    def region(self) -> Iterator[None]:
        """Around the forward pass of a block: nothing is remembered from the block before."""
        self._copies.clear()
        self._gathered.clear()
        self._again = {}
        if not self.sequence_parallel:
            yield
            return
        with torch.autograd.graph.saved_tensors_hooks(self._packer(), self._unpacker()):
            yield

    def copy(self, x: Tensor) -> Tensor:
        """f, once for each distinct input."""
        if id(x) not in self._copies:
            self._copies[id(x)] = x, collectives.copy_to(x, self.width)
        return self._copies[id(x)][1]

    def gather(self, x: Tensor) -> Tensor:
        """The whole sequence, once for each distinct shard."""
        if id(x) not in self._copies:
            whole = collectives.gather_from(x, self._dim(x), self.width)
            self._copies[id(x)] = x, whole
            self._gathered[whole.untyped_storage()._cdata] = x, whole
        return self._copies[id(x)][1]

    def reduce(self, x: Tensor) -> Tensor:
        """Sum partial results: all-reduce, or reduce-scatter along the sequence."""
        if self.sequence_parallel:
            return collectives.scatter_to(x, self._dim(x), self.width)
        return collectives.reduce_from(x, self.width)

    def shard(self, x: Tensor) -> Tensor:
        """Where the first block begins: this rank's part of the sequence."""
        return collectives.shard_of(x, self._dim(x), self.width)

    def whole(self, x: Tensor) -> Tensor:
        """Where the last block ends: the whole sequence on every rank."""
        return collectives.whole_of(x, self._dim(x), self.width, self.length)

    def is_whole(self, x: Tensor) -> bool:
        """Whether ``x`` is what blocks exchange: three dimensions, all positions along one of
        them."""
        return x.dim() == 3 and x.shape[self._dim(x)] == self.length

    def is_shard(self, x: Tensor) -> bool:
        """The same, this rank's positions; a table of all positions is none, however wide."""
        return x.dim() == 3 and x.shape[self._dim(x)] == math.ceil(self.length / self.width)

    def _dim(self, x: Tensor) -> int:
        return x.dim() - 2 if self.dim else 0

    def _packer(self) -> Any:
        gathered = dict[int, tuple[Tensor, Tensor]]()

        def pack(x: Tensor) -> Any:
            gathered.update(self._gathered)
            key = x.untyped_storage()._cdata
            if key not in gathered:
                return x
            return gathered[key][0].detach(), tuple(x.shape), x.stride(), x.storage_offset()

        return pack

    def _unpacker(self) -> Any:
        again = self._again

        def unpack(packed: Any) -> Tensor:
            if isinstance(packed, Tensor):
                return packed
            shard, shape, stride, offset = packed
            key = shard.untyped_storage()._cdata
            if key not in again:
                again[key] = collectives.all_gather(shard, self._dim(shard), self.width)
            return again[key].as_strided(shape, stride, offset)

        return unpack


class ColumnLinear(nn.Linear):
    """A linear map whose outputs are this rank's. Its input is ``same`` on all ranks (then it
    passes f), a ``shard`` of the sequence (then it is gathered), or was ``gathered`` by the
    parent."""

    def __init__(self, weight: Tensor, bias: Tensor | None, group: RankGroup, takes: Takes) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.weight = weight
        self.bias = bias  # type: ignore[assignment]
        self.group, self.takes = group, takes

    def forward(self, input: Tensor) -> Tensor:
        whole = input
        if self.takes == "same":
            whole = self.group.copy(input)
        elif self.takes == "shard":
            whole = self.group.gather(input)
        return functional.linear(whole, self.weight, self.bias)


class GatheredLinear(ColumnLinear):
    """The same, and all ranks' outputs side by side."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, group: RankGroup, takes: Takes, outputs: int
    ) -> None:
        super().__init__(weight, bias, group, takes)
        self.outputs = outputs

    def forward(self, input: Tensor) -> Tensor:
        part = super().forward(input)
        return collectives.whole_of(part, part.dim() - 1, self.group.width, self.outputs)


class RowLinear(nn.Linear):
    """A linear map whose inputs are this rank's; partial results are summed before the bias. With
    ``splits`` it is given the inputs of all ranks, and takes its part."""

    def __init__(
        self, weight: Tensor, bias: Tensor | None, group: RankGroup, splits: bool = False
    ) -> None:
        nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        self.weight = weight
        self.bias = bias  # type: ignore[assignment]
        self.group, self.splits = group, splits

    def forward(self, input: Tensor) -> Tensor:
        part = (
            collectives.shard_of(input, input.dim() - 1, self.group.width) if self.splits else input
        )
        summed = self.group.reduce(functional.linear(part, self.weight))
        return summed if self.bias is None else summed + self.bias


def gather_inputs(parent: nn.Module, group: RankGroup) -> None:
    """Let ``parent`` gather those of its arguments that are shards before it runs."""

    def whole(value: Any) -> Any:
        fits = isinstance(value, Tensor) and group.is_shard(value) and value.is_floating_point()
        return group.gather(value) if fits else value

    def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return tree_map(whole, args), tree_map(whole, kwargs)

    parent.register_forward_pre_hook(hook, with_kwargs=True)


def reduce_outputs(module: nn.Module, group: RankGroup) -> None:
    """Let ``module`` sum its partial results after it has run."""
    module.register_forward_hook(lambda m, args, result: group.reduce(result))


def copy_inputs(module: nn.Module, group: RankGroup) -> None:
    """Let every differentiable argument of ``module`` pass f."""

    def copied(value: Any) -> Any:
        return (
            group.copy(value) if isinstance(value, Tensor) and value.is_floating_point() else value
        )

    def hook(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return tree_map(copied, args), tree_map(copied, kwargs)

    module.register_forward_pre_hook(hook, with_kwargs=True)


def copy_weights(module: nn.Module, group: RankGroup) -> None:
    """Let every weight of ``module`` pass f when it is used: the gradients of all ranks are
    summed."""
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        weights = {
            name: weight for name, weight in module._parameters.items() if weight is not None
        }
        try:
            for name, weight in weights.items():
                del module._parameters[name]
                module.__dict__[name] = group.copy(weight)
            return original(*args, **kwargs)
        finally:
            for name, weight in weights.items():
                module.__dict__.pop(name, None)
                module._parameters[name] = weight

    module.forward = forward


def copy_tail(module: nn.Module, group: RankGroup, width: int) -> None:
    """Let the last ``width`` channels of what ``module`` gives pass f. Where the sequence is
    gathered before, the sum over ranks is made there."""
    if group.sequence_parallel:
        return

    def hook(m: nn.Module, args: Any, result: Tensor) -> Tensor:
        rest = result.shape[-1] - width
        return torch.cat(
            [result.narrow(-1, 0, rest), group.copy(result.narrow(-1, rest, width))], dim=-1
        )

    module.register_forward_hook(hook)

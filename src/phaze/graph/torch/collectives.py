"""Collective operators of a tensor-parallel group, as PyTorch operators that a trace sees and
nothing runs.

No process group: under a trace only shapes matter, and a numeric test gives the operators a meaning
of its own. The differentiable pairs are Megatron's:

    copy_to      (f)   forward identity          backward all-reduce
    reduce_from  (g)   forward all-reduce        backward identity
    gather_from        forward all-gather        backward reduce-scatter   along a dimension
    scatter_to         forward reduce-scatter    backward all-gather
    shard_of           forward own slice         backward all-gather
    whole_of           forward all-gather        backward own slice
"""

import math
from typing import Any

import torch
from torch import Tensor


def _no_group(name: str) -> RuntimeError:
    return RuntimeError(
        f"phaze::{name} is an operator of a trace; it has no process group to run on"
    )


@torch.library.custom_op("phaze::all_reduce", mutates_args=())
def all_reduce(x: Tensor, group: int) -> Tensor:
    raise _no_group("all_reduce")


@torch.library.custom_op("phaze::all_reduce_max", mutates_args=())
def all_reduce_max(x: Tensor, group: int) -> Tensor:
    raise _no_group("all_reduce_max")


@torch.library.custom_op("phaze::all_gather", mutates_args=())
def all_gather(x: Tensor, dim: int, group: int) -> Tensor:
    raise _no_group("all_gather")


@torch.library.custom_op("phaze::reduce_scatter", mutates_args=())
def reduce_scatter(x: Tensor, dim: int, group: int) -> Tensor:
    raise _no_group("reduce_scatter")


@torch.library.custom_op("phaze::shard", mutates_args=())
def shard(x: Tensor, dim: int, group: int) -> Tensor:
    raise _no_group("shard")


def _tensor(value: Any) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def _scaled(x: Tensor, dim: int, size: int) -> Tensor:
    shape = list(x.shape)
    shape[dim] = size
    return x.new_empty(shape)


@all_reduce.register_fake
def _(x: Tensor, group: int) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@all_reduce_max.register_fake
def _(x: Tensor, group: int) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


@all_gather.register_fake
def _(x: Tensor, dim: int, group: int) -> Tensor:
    return _scaled(x, dim, x.shape[dim] * group)


@reduce_scatter.register_fake
def _(x: Tensor, dim: int, group: int) -> Tensor:
    return _scaled(x, dim, math.ceil(x.shape[dim] / group))


@shard.register_fake
def _(x: Tensor, dim: int, group: int) -> Tensor:
    return _scaled(x, dim, math.ceil(x.shape[dim] / group))


class _CopyTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: int) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return all_reduce(grads[0], ctx.group), None


class _ReduceFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: int) -> Tensor:
        return _tensor(all_reduce(x, group))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0], None


class _GatherFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: int) -> Tensor:
        ctx.place = dim, group
        return _tensor(all_gather(x, dim, group))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return reduce_scatter(grads[0], *ctx.place), None, None


class _ScatterTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: int) -> Tensor:
        ctx.place = dim, group
        return _tensor(reduce_scatter(x, dim, group))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return all_gather(grads[0], *ctx.place), None, None


class _ShardOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: int) -> Tensor:
        ctx.place, ctx.size = (dim, group), x.shape[dim]
        return _tensor(shard(x, dim, group))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return all_gather(grads[0], *ctx.place).narrow(ctx.place[0], 0, ctx.size), None, None


class _WholeOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int, group: int, size: int) -> Tensor:
        ctx.place, ctx.padded = (dim, group), size != x.shape[dim] * group
        return _tensor(all_gather(x, dim, group)).narrow(dim, 0, size)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return shard(grads[0], *ctx.place), None, None, None


def applied(function: Any, *args: Any) -> Tensor:
    """The result of an autograd function."""
    result: Tensor = function.apply(*args)
    return result


def copy_to(x: Tensor, group: int) -> Tensor:
    return applied(_CopyTo, x, group)


def reduce_from(x: Tensor, group: int) -> Tensor:
    return applied(_ReduceFrom, x, group)


def gather_from(x: Tensor, dim: int, group: int) -> Tensor:
    return applied(_GatherFrom, x, dim, group)


def scatter_to(x: Tensor, dim: int, group: int) -> Tensor:
    return applied(_ScatterTo, x, dim, group)


def shard_of(x: Tensor, dim: int, group: int) -> Tensor:
    return applied(_ShardOf, x, dim, group)


def whole_of(x: Tensor, dim: int, group: int, size: int) -> Tensor:
    return applied(_WholeOf, x, dim, group, size)

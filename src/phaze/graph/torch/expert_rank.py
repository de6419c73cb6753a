r"""One rank of expert parallelism as PyTorch runs it: what :mod:`phaze.graph.split_experts` says,
on real tensors.

A module of experts holds ``gate_up_proj`` (E, 2f, h) and ``down_proj`` (E, h, f) and is called with
tokens, the experts of each and their weights. A rank of p keeps E / p experts and routes tokens of
its own:

    rows = tokens sorted by expert        dispatch: every rank gets the rows of its experts, sorted
                                          by expert, then rank
    rows of its experts through them      combine: every row goes back to where it came from; the
                                          inverse of dispatch
    rows, weighted, summed by token

The gradient of a dispatch is a combine and the other way round. Both are operators of a trace
without a process group; threads give them a meaning in tests (:mod:`phaze.graph.torch.ranks`).
"""

from typing import Any

import torch
from torch import Tensor, nn

from phaze.graph.torch.collectives import all_gather, applied


@torch.library.custom_op("phaze::dispatch", mutates_args=())
def dispatch(rows: Tensor, counts: Tensor, group: int, copies: int) -> Tensor:
    raise RuntimeError(
        "phaze::dispatch is an operator of a trace; it has no process group to run on"
    )


@torch.library.custom_op("phaze::combine", mutates_args=())
def combine(rows: Tensor, counts: Tensor, group: int, copies: int) -> Tensor:
    raise RuntimeError(
        "phaze::combine is an operator of a trace; it has no process group to run on"
    )


@dispatch.register_fake
def _(rows: Tensor, counts: Tensor, group: int, copies: int) -> Tensor:
    return torch.empty_like(rows, memory_format=torch.contiguous_format)


@combine.register_fake
def _(rows: Tensor, counts: Tensor, group: int, copies: int) -> Tensor:
    return torch.empty_like(rows, memory_format=torch.contiguous_format)


class _Dispatch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, counts: Tensor, group: int, copies: int) -> Any:
        ctx.place = counts, group, copies
        return dispatch(rows, counts, group, copies)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return combine(grads[0], *ctx.place), None, None, None


class _Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, counts: Tensor, group: int, copies: int) -> Any:
        ctx.place = counts, group, copies
        return combine(rows, counts, group, copies)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return dispatch(grads[0], *ctx.place), None, None, None


def _products(rows: Tensor, weights: Tensor, counts: Tensor, grouped: bool) -> Tensor:
    """Rows of each expert times its weights (out, in): as one grouped product, or one after
    another."""
    if grouped:
        offsets = torch.cumsum(counts, 0, dtype=torch.int32)
        return torch._grouped_mm(rows, weights.transpose(-2, -1), offs=offsets)
    pieces = torch.split(rows, [int(n) for n in counts])
    return torch.cat([piece @ weight.T for piece, weight in zip(pieces, weights, strict=True)])


def _forward(module: Any, group: int, rank: int, grouped: bool) -> Any:
    def forward(tokens: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        copies, owned = index.shape[-1], module.gate_up_proj.shape[0]
        experts, order = torch.sort(index.reshape(-1))
        rows, scales = tokens[order // copies], weights.reshape(-1)[order]
        counts = torch.histc(experts.float(), bins=owned * group, min=0, max=owned * group - 1)
        everywhere = all_gather(counts, 0, group).view(group, -1).sum(0)
        rank_counts = everywhere[rank * owned : (rank + 1) * owned]
        rows = applied(_Dispatch, rows, counts, group, copies)
        gate, up = _products(rows, module.gate_up_proj, rank_counts, grouped).chunk(2, -1)
        rows = _products(module.act_fn(gate) * up, module.down_proj, rank_counts, grouped)
        rows = applied(_Combine, rows, counts, group, copies) * scales.unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel())
        return rows[back].view(-1, copies, tokens.shape[-1]).sum(1).to(tokens.dtype)

    return forward


def spread_experts(
    model: nn.Module, group: int, rank: int = 0, grouped: bool = True
) -> frozenset[str]:
    """Let every module of experts in ``model`` be one rank of ``group``; the names of the weights
    that it shards.

    ``grouped``: experts run as one product, which the CPU has for 16 bits only."""
    split_weights: set[str] = set()
    for path, module in model.named_modules():
        first, second = getattr(module, "gate_up_proj", None), getattr(module, "down_proj", None)
        if not (
            isinstance(first, nn.Parameter)
            and isinstance(second, nn.Parameter)
            and first.dim() == 3
        ):
            continue
        for name in ("gate_up_proj", "down_proj"):
            whole = getattr(module, name)
            setattr(module, name, nn.Parameter(whole.detach().chunk(group, 0)[rank].clone()))
            split_weights.add(f"{path}.{name}")
        module.forward = _forward(module, group, rank, grouped)
    return frozenset(split_weights)

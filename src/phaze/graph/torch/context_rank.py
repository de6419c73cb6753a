"""One rank of context parallelism as PyTorch runs it: what :mod:`phaze.graph.split_context` says,
on real tensors.

A rank holds chunks i and 2c - 1 - i of 2c: :func:`positions` are theirs. While
:class:`SharedContext` is active every attention gathers keys and values of all ranks, and a query
sees the keys at positions up to its own; the gradients of keys and values are summed over ranks and
scattered back.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from phaze.graph.torch.collectives import gather_from


def positions(sequence: int, ranks: int, rank: int) -> Tensor:
    """The positions of a rank: an early chunk and a late one, so that all see as many keys."""
    chunks = torch.arange(sequence).chunk(2 * ranks)
    return torch.cat([chunks[rank], chunks[2 * ranks - 1 - rank]])


class SharedContext(TorchFunctionMode):
    """Attention of one rank over the keys of all; ``plain``: computed step by step, as the CPU can
    in 64 bits."""

    def __init__(self, sequence: int, ranks: int, rank: int, plain: bool = False) -> None:
        super().__init__()
        self.ranks, self.plain = ranks, plain
        self.rank_positions = positions(sequence, ranks, rank)
        self.all = torch.cat([positions(sequence, ranks, other) for other in range(ranks)])

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is not functional.scaled_dot_product_attention:
            return func(*args, **(kwargs or {}))
        query, key, value = args[:3]
        if key.shape[1] != query.shape[1]:
            key, value = (
                x.repeat_interleave(query.shape[1] // key.shape[1], 1) for x in (key, value)
            )
        key, value = (gather_from(x, 2, self.ranks) for x in (key, value))
        seen = self.rank_positions[:, None] >= self.all[None, :]
        if not self.plain:
            return functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
        scores = (
            query @ key.transpose(-2, -1) * (kwargs or {}).get("scale", query.shape[-1] ** -0.5)
        )
        return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ value

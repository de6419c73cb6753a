"""Embedding, head and loss split over the vocabulary, as Megatron does.

Rank r of t holds the rows r ceil(V/t) ... of the table. Embedding: tokens of other ranks are looked up as row 0 and
zeroed, then summed over ranks. Head: a column-parallel product, its logits stay split. Loss of a row with logits x
and target y, all sums over the whole vocabulary by all-reduce:

    loss = log sum_v exp(x_v - max x) - (x_y - max x)
"""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from phaze.graph.torch.collectives import all_reduce_max, reduce_from


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A vocabulary of ``size`` tokens over ``group`` ranks, seen from ``rank``."""

    size: int
    group: int
    rank: int = 0

    @property
    def local(self) -> int:
        return math.ceil(self.size / self.group)

    @property
    def first(self) -> int:
        return self.rank * self.local

    @property
    def owned(self) -> int:
        return max(0, min(self.local, self.size - self.first))

    def owns(self, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Whether the logits of a cross entropy are split over this vocabulary."""
        logits = args[0] if args else named.get("input")
        return isinstance(logits, Tensor) and logits.dim() == 2 and logits.shape[-1] == self.owned


class ParallelEmbedding(nn.Module):
    """An embedding whose table is already this rank's rows."""

    def __init__(self, whole: nn.Embedding, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.weight, self.vocabulary = whole.weight, vocabulary
        self.num_embeddings, self.embedding_dim = vocabulary.owned, whole.embedding_dim
        padding = -1 if whole.padding_idx is None else whole.padding_idx - vocabulary.first
        self.padding_idx = padding if 0 <= padding < vocabulary.owned else None

    def forward(self, tokens: Tensor) -> Tensor:
        local = tokens - self.vocabulary.first
        elsewhere = (local < 0) | (local >= self.vocabulary.owned)
        rows = functional.embedding(local.masked_fill(elsewhere, 0), self.weight, self.padding_idx)
        return reduce_from(rows.masked_fill(elsewhere.unsqueeze(-1), 0.0), self.vocabulary.group)


def parallel_cross_entropy(
    vocabulary: Vocabulary,
    input: Tensor,
    target: Tensor,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    **unused: Any,
) -> Tensor:
    """Cross entropy of logits whose last dimension is split over ``vocabulary``."""
    group = vocabulary.group
    highest = all_reduce_max(input.detach().amax(dim=-1, keepdim=True), group)
    shifted = input - highest
    total = reduce_from(shifted.exp().sum(dim=-1), group)
    local = target - vocabulary.first
    elsewhere = (local < 0) | (local >= vocabulary.owned)
    own = shifted.gather(-1, local.masked_fill(elsewhere, 0).unsqueeze(-1)).squeeze(-1)
    chosen = reduce_from(own.masked_fill(elsewhere, 0.0), group)
    counted = target != ignore_index
    losses = (total.log() - chosen).masked_fill(~counted, 0.0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / counted.sum()

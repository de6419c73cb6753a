"""Embedding, head and loss split over the vocabulary, as Megatron does.

Rank r of t holds the rows r ceil(V/t) ... of the table. Embedding: tokens of other ranks are looked
up as row 0 and zeroed, then summed over ranks. Head: a column-parallel product, its logits stay
split. Loss of a row with logits x and target y, all sums over the whole vocabulary by all-reduce:

    loss = log sum_v exp(x_v - max x) - (x_y - max x)
"""

import math
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from phaze.errors import InputError
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


def lookup(vocabulary: Vocabulary, tokens: Tensor, weight: Tensor, padding: int | None) -> Tensor:
    """Rows of a table of which this rank has a part: other ranks' are zero here, and summed."""
    local = tokens - vocabulary.first
    elsewhere = (local < 0) | (local >= vocabulary.owned)
    rows = functional.embedding(local.masked_fill(elsewhere, 0), weight, padding)
    return reduce_from(rows.masked_fill(elsewhere.unsqueeze(-1), 0.0), vocabulary.group)


def _padding(whole: nn.Embedding, vocabulary: Vocabulary) -> int | None:
    place = -1 if whole.padding_idx is None else whole.padding_idx - vocabulary.first
    return place if 0 <= place < vocabulary.owned else None


class ParallelEmbedding(nn.Module):
    """An embedding whose table is already this rank's rows."""

    def __init__(self, whole: nn.Embedding, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.weight, self.vocabulary = whole.weight, vocabulary
        self.num_embeddings, self.embedding_dim = vocabulary.owned, whole.embedding_dim
        self.padding_idx = _padding(whole, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        return lookup(self.vocabulary, tokens, self.weight, self.padding_idx)


class _Lookups(TorchFunctionMode):
    """While it is active, look-ups in one table are this rank's."""

    def __init__(self, whole: nn.Embedding, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.whole, self.vocabulary, self.replaced = whole, vocabulary, False

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is functional.embedding and args[1] is self.whole.weight:
            self.replaced = True
            return lookup(self.vocabulary, args[0], args[1], _padding(self.whole, self.vocabulary))
        return func(*args, **(kwargs or {}))


def split_lookups(whole: nn.Embedding, vocabulary: Vocabulary) -> None:
    """Let an embedding that does more than look up (it scales, say) look up in this rank's rows."""
    original = whole.forward

    def forward(tokens: Tensor) -> Tensor:
        with _Lookups(whole, vocabulary) as lookups:
            result: Tensor = original(tokens)
        if not lookups.replaced:
            name = type(whole).__name__
            raise InputError(
                name,
                "it looks tokens up in a custom way and cannot be split over ranks",
                "use tensor 1",
            )
        return result

    whole.__dict__["forward"] = forward
    whole.num_embeddings = vocabulary.owned


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
    target_logits = shifted.gather(-1, local.masked_fill(elsewhere, 0).unsqueeze(-1)).squeeze(-1)
    chosen = reduce_from(target_logits.masked_fill(elsewhere, 0.0), group)
    counted = target != ignore_index
    losses = (total.log() - chosen).masked_fill(~counted, 0.0)
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / counted.sum()

"""What an accelerator's library runs where PyTorch's CPU path would do something else.

Dropout becomes ``aten.native_dropout`` (a mask of one byte an element; the CPU keeps noise of the
data's own type). RMS norm is one operator. Fused attention becomes the operator pair of
:mod:`phaze.graph.torch.attention`. The loss over a vocabulary that is split over ranks becomes
:func:`phaze.graph.torch.vocabulary.parallel_cross_entropy`.
"""

from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from phaze.graph.torch.attention import fused_attention
from phaze.graph.torch.vocabulary import Vocabulary, parallel_cross_entropy


def _dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    if not training or p == 0:
        return input
    return torch.native_dropout(input, p, True)[0]


def _rms_norm(
    input: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None = None,
    eps: float | None = None,
) -> torch.Tensor:
    result: torch.Tensor = torch.ops.aten._fused_rms_norm(
        input, list(normalized_shape), weight, eps
    )[0]
    return result


class KernelReplacement(TorchFunctionMode):
    """Substitutes kernels while it is active; ``fused`` replaces scaled dot-product attention
    too."""

    def __init__(self, fused: bool, vocabulary: Vocabulary | None = None) -> None:
        super().__init__()
        self.fused, self.vocabulary = fused, vocabulary

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in (functional.dropout, torch.dropout):
            return _dropout(*args, **named)
        if func is functional.rms_norm:
            return _rms_norm(*args, **named)
        if self.fused and func is functional.scaled_dot_product_attention:
            return fused_attention(*args, **named)
        if (
            self.vocabulary is not None
            and func is functional.cross_entropy
            and self.vocabulary.owns(args, named)
        ):
            return parallel_cross_entropy(self.vocabulary, *args, **named)
        return func(*args, **named)

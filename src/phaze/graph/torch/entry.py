"""How a region gets what another one made: a leaf for autograd, and the tensor that the model's
code sees instead."""

from collections.abc import Mapping
from typing import Any

import torch

from phaze.graph.torch.record import Recorder


class _Entry(torch.autograd.Function):
    """The same storage behind a tensor of its own, whose gradient is that of the leaf. No operator
    runs.

    Code may change what it was given in place, which autograd forbids for a leaf and for a view of
    one.
    """

    @staticmethod
    def forward(ctx: Any, leaf: torch.Tensor) -> torch.Tensor:
        fresh = torch.empty(0, dtype=leaf.dtype)
        return fresh.set_(leaf.untyped_storage(), leaf.storage_offset(), leaf.shape, leaf.stride())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0]


def enter(leaf: torch.Tensor, recorder: Recorder) -> torch.Tensor:
    """What code sees in the place of ``leaf``."""
    if not leaf.requires_grad:
        return leaf
    with recorder.unseen():
        seen: torch.Tensor = _Entry.apply(leaf)  # type: ignore[no-untyped-call]
    return seen


def hand_back(outer: Any, inner: Any, before: set[int]) -> None:
    """Put into the caller's lists and dictionaries, ``outer``, what a block left in its copies of
    them, ``inner``; ``before`` are the identities of what was in the copies before."""
    if isinstance(outer, dict) and isinstance(inner, Mapping):
        pairs = [(key, outer.get(key), value) for key, value in inner.items()]
    elif isinstance(outer, list) and isinstance(inner, list):
        outer.extend(inner[len(outer) :])
        pairs = [
            (place, old, new) for place, (old, new) in enumerate(zip(outer, inner, strict=True))
        ]
    elif isinstance(outer, tuple) and isinstance(inner, tuple):
        for old, new in zip(outer, inner, strict=True):
            hand_back(old, new, before)
        return
    else:
        return
    for key, old, new in pairs:
        if isinstance(old, dict | list | tuple) and type(old) is type(new):
            hand_back(old, new, before)
        elif id(new) not in before:
            outer[key] = new

"""Fused attention as one operator and its gradient: scores never leave the chip.

    out = dropout(softmax(scale q k^T + bias)) v,   lse = log sum exp of each row of scores, in 32
                                                    bit

Backward keeps q, k, v, bias, out and lse, and makes the scores again.
"""

from typing import Any

import torch
from torch import Tensor

from phaze.graph.torch.collectives import applied


def _no_kernel(name: str) -> RuntimeError:
    return RuntimeError(f"phaze::{name} is an operator of a trace; it computes nothing")


@torch.library.custom_op("phaze::attention", mutates_args=())
def attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, window: int
) -> tuple[Tensor, Tensor]:
    raise _no_kernel("attention")


@torch.library.custom_op("phaze::attention_backward", mutates_args=())
def attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    bias: Tensor | None,
    bias_grad: bool,
    causal: bool,
    window: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    raise _no_kernel("attention_backward")


@attention.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, window: int
) -> tuple[Tensor, Tensor]:
    # Dense, with the dimensions in the order in which the query has them in memory, as the usual
    # kernels do.
    order = sorted(range(q.dim()), key=lambda dim: -q.stride()[dim])
    shape = (*q.shape[:-1], v.shape[-1])
    out = q.new_empty([shape[dim] for dim in order]).permute(
        [order.index(dim) for dim in range(q.dim())]
    )
    return out, q.new_empty(q.shape[:-1], dtype=torch.float32)


@attention_backward.register_fake
def _(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    bias: Tensor | None,
    bias_grad: bool,
    causal: bool,
    window: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    back = torch.empty_like(bias) if bias is not None and bias_grad else q.new_empty((0,))
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), back


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, causal: bool, window: int
    ) -> Tensor:
        out: Tensor
        out, lse = attention(q, k, v, bias, causal, window)
        ctx.mask = causal, window
        ctx.save_for_backward(q, k, v, out, lse, *(() if bias is None else (bias,)))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        q, k, v, out, lse, *rest = ctx.saved_tensors
        bias = rest[0] if rest else None
        wants_bias = bias is not None and ctx.needs_input_grad[3]
        dq, dk, dv, db = attention_backward(
            grads[0], q, k, v, out, lse, bias, wants_bias, *ctx.mask
        )
        return dq, dk, dv, db if wants_bias else None, None, None


MASK = "phaze_mask"
"""The attribute of a query that says what its mask leaves, where a library knows it and its mask
does not show it."""


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *args: Any,
    **kwargs: Any,
) -> Tensor:
    """Stands in for ``scaled_dot_product_attention``. A boolean mask says which positions may look
    where; the kernel knows that from the positions. The dropout mask comes from a counter and is
    not kept. The scale changes no shape.

    Skipped pairs: those of ``is_causal``, or of what the query carries (:data:`MASK`: causal,
    window); where values are added to the scores, or a mask is the model's own, the kernel works on
    all of them.
    """
    bias = None if attn_mask is None or attn_mask.dtype == torch.bool else attn_mask
    causal, window = (
        getattr(query, MASK, (is_causal and attn_mask is None, 0)) if bias is None else (False, 0)
    )
    return applied(_Attention, query, key, value, bias, bool(causal), int(window))

"""The code behind ``nn.MultiheadAttention``, which is one function to PyTorch, as functions that
can be followed.

The same maps and the same attention; weights of heads, which few read, are not handed out.
"""

from typing import Any

from torch import Tensor
from torch.nn import functional

from phaze.graph.torch.reshaping import Unsplit

NAME = "multi_head_attention_forward"


def plain_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    **rest: Any,
) -> tuple[Tensor, None]:
    """Attention of (tokens, batch, features) with itself; anything rarer is not split."""
    rare = (bias_k, bias_v, key_padding_mask)
    if (
        in_proj_weight is None
        or query is not key
        or key is not value
        or any(x is not None for x in rare)
    ):
        raise Unsplit("nn.MultiheadAttention with other keys than queries, or a padding mask")
    tokens, batch, features = query.shape
    maps = functional.linear(query, in_proj_weight, in_proj_bias).chunk(3, dim=-1)
    q, k, v = (
        x.view(tokens, batch, num_heads, features // num_heads).permute(1, 2, 0, 3) for x in maps
    )
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.view(batch, num_heads, tokens, tokens)
    dropout = dropout_p if training else 0.0
    causal = is_causal and attn_mask is None
    y = functional.scaled_dot_product_attention(q, k, v, attn_mask, dropout, causal)
    y = y.permute(2, 0, 1, 3).reshape(tokens, batch, features)
    return functional.linear(y, out_proj_weight, out_proj_bias), None

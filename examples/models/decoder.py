"""A decoder in plain PyTorch: rotary positions, grouped queries, a gated MLP, tied embeddings; 1.2
billion weights.

phaze plan --model examples/models/decoder.py:build --chip h100 --devices 64 --batch 512
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, HIDDEN, LAYERS, HEADS, KV_HEADS, MLP = 128256, 2048, 16, 32, 8, 8192
Built = tuple[nn.Module, Tensor, Callable[[Tensor], Tensor]]


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn pairs of channels by their positions."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Every key and value serves four queries."""

    def __init__(self) -> None:
        super().__init__()
        self.head_dim = HIDDEN // HEADS
        self.q = nn.Linear(HIDDEN, HEADS * self.head_dim, bias=False)
        self.k = nn.Linear(HIDDEN, KV_HEADS * self.head_dim, bias=False)
        self.v = nn.Linear(HIDDEN, KV_HEADS * self.head_dim, bias=False)
        self.o = nn.Linear(HEADS * self.head_dim, HIDDEN, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, s, h = x.shape
        q = self.q(x).view(b, s, HEADS, self.head_dim).transpose(1, 2)
        k = self.k(x).view(b, s, KV_HEADS, self.head_dim).transpose(1, 2)
        v = self.v(x).view(b, s, KV_HEADS, self.head_dim).transpose(1, 2)
        k = rotate(k, cos, sin).repeat_interleave(HEADS // KV_HEADS, dim=1)
        v = v.repeat_interleave(HEADS // KV_HEADS, dim=1)
        y = functional.scaled_dot_product_attention(rotate(q, cos, sin), k, v, is_causal=True)
        result: Tensor = self.o(y.transpose(1, 2).reshape(b, s, h))
        return result


class Block(nn.Module):
    """Attention and MLP, each with its norm before and its residual after."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.RMSNorm(HIDDEN), Attention(), nn.RMSNorm(HIDDEN)
        self.gate, self.up = nn.Linear(HIDDEN, MLP, bias=False), nn.Linear(HIDDEN, MLP, bias=False)
        self.down = nn.Linear(MLP, HIDDEN, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), cos, sin)
        y = self.norm2(x)
        result: Tensor = x + self.down(functional.silu(self.gate(y)) * self.up(y))
        return result


class Decoder(nn.Module):
    """Embedding, blocks, norm, and a head that is the embedding again."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(VOCABULARY, HIDDEN), nn.RMSNorm(HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        width = HIDDEN // HEADS
        rates = 500000.0 ** (-torch.arange(0, width, 2, device=tokens.device) / width)
        turns = (
            torch.outer(torch.arange(tokens.shape[1], device=tokens.device), rates)
            .repeat(1, 2)
            .to(x.dtype)
        )
        cos, sin = turns.cos(), turns.sin()
        for block in self.blocks:
            x = block(x, cos, sin)
        return functional.linear(self.norm(x), self.embedding.weight)


def build(microbatch: int = 1, sequence: int = 4096) -> Built:
    """The model, its inputs, and the loss."""
    tokens = torch.zeros(microbatch, sequence, dtype=torch.long)
    return (
        Decoder(),
        tokens,
        lambda logits: functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()),
    )


def on_meta(microbatch: int = 1, sequence: int = 4096) -> Built:
    """The same, built on the meta device."""
    with torch.device("meta"):
        return build(microbatch, sequence)

"""A mixture of experts in plain PyTorch: every token goes to 2 of 8 experts, each of which has room
for its share.

The room of an expert is fixed, tokens x 2 / 8, so no shape depends on data. 6.5 billion weights.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

VOCABULARY, HIDDEN, LAYERS, HEADS, EXPERTS, CHOSEN, MLP = 32000, 2048, 24, 16, 8, 2, 5504
Built = tuple[nn.Module, Tensor, Callable[[Tensor], Tensor]]


class Experts(nn.Module):
    """A router, and gated MLPs as stacked weights."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.gate_up = nn.Parameter(torch.empty(EXPERTS, HIDDEN, 2 * MLP))
        self.down = nn.Parameter(torch.empty(EXPERTS, MLP, HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, HIDDEN)
        chances, chosen = self.router(tokens).softmax(dim=-1).topk(CHOSEN, dim=-1)
        order = chosen.flatten().argsort()  # by expert; equal shares are taken as each one's room
        room = tokens.shape[0] * CHOSEN // EXPERTS
        rows = (order // CHOSEN).view(EXPERTS, room)
        gate, up = torch.bmm(tokens[rows], self.gate_up).chunk(2, dim=-1)
        made = torch.bmm(functional.silu(gate) * up, self.down)
        made = made * chances.flatten()[order].view(EXPERTS, room, 1)
        result = torch.zeros_like(tokens).index_add_(0, rows.flatten(), made.reshape(-1, HIDDEN))
        return result.view(x.shape)


class Block(nn.Module):
    """Attention with one map for query, key and value; then the experts."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out, self.experts = (
            nn.Linear(HIDDEN, 3 * HIDDEN),
            nn.Linear(HIDDEN, HIDDEN),
            Experts(),
        )

    def forward(self, x: Tensor) -> Tensor:
        b, s, h = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, HEADS, h // HEADS).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, h))
        result: Tensor = x + self.experts(self.norm2(x))
        return result


class Decoder(nn.Module):
    """Embedding, blocks and head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(VOCABULARY, HIDDEN), nn.LayerNorm(HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits


def build(microbatch: int = 1, sequence: int = 2048) -> Built:
    """The model, its inputs, and the loss."""
    tokens = torch.zeros(microbatch, sequence, dtype=torch.long)
    return (
        Decoder(),
        tokens,
        lambda logits: functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()),
    )

"""Blocks as people write them, none with a tensor-parallel plan: small, and each with a loss."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TOKENS, HIDDEN, HEADS, WIDTH = 96, 32, 4, 8


class Net(nn.Module):
    """Embedding, equal blocks, head and loss."""

    def __init__(self, block: Callable[[], nn.Module], tied: bool) -> None:
        super().__init__()
        self.table, self.positions = nn.Embedding(TOKENS, HIDDEN), nn.Embedding(64, HIDDEN)
        self.blocks = nn.ModuleList(block() for _ in range(3))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, TOKENS, bias=not tied)
        if tied:
            self.head.weight = self.table.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.table(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


def _made(
    block: Callable[[], nn.Module], tied: bool = False, device: str = "cpu"
) -> Callable[..., Any]:
    def build(microbatch: int = 2, sequence: int = 16) -> Any:
        with torch.device(device):
            tokens = torch.zeros(microbatch, sequence, dtype=torch.long)
            return Net(block, tied), (tokens, tokens.clone())

    return build


class Mlp(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, width), nn.Linear(width, HIDDEN)

    def forward(self, x: Tensor) -> Any:
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Plain(Mlp):
    """One map for query, key and value, split by size; a causal mask in a buffer; the hidden size
    in views."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.LayerNorm(HIDDEN)
        self.qkv, self.out, self.drop = (
            nn.Linear(HIDDEN, 3 * HIDDEN),
            nn.Linear(HIDDEN, HIDDEN),
            nn.Dropout(0.1),
        )
        self.register_buffer("mask", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))

    def forward(self, x: Tensor) -> Any:
        b, s, h = x.size()
        q, k, v = (
            part.view(b, s, HEADS, h // HEADS).transpose(1, 2)
            for part in self.qkv(self.first(x)).split(h, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        assert isinstance(self.mask, Tensor)
        scores = scores.masked_fill(self.mask[:, :, :s, :s] == 0, float("-inf")).softmax(dim=-1)
        y = (self.drop(scores) @ v).transpose(1, 2).contiguous().view(b, s, h)
        return super().forward(x + self.drop(self.out(y)))


class Stacked(nn.Module):
    """Query, key and value stand one after the other (3, heads, width), or head by head (heads, 3,
    width)."""

    def __init__(self, by_head: bool) -> None:
        super().__init__()
        self.by_head, self.norm = by_head, nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.gated, self.down = nn.Linear(HIDDEN, 96), nn.Linear(48, HIDDEN)

    def forward(self, x: Tensor) -> Any:
        b, s, h = x.shape
        order = (HEADS, 3) if self.by_head else (3, HEADS)
        y = self.qkv(self.norm(x)).view(b, s, *order, WIDTH)
        q, k, v = y.permute(3, 0, 2, 1, 4) if self.by_head else y.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, h))
        gate, up = self.gated(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Grouped(Mlp):
    """Two heads of keys and values for four of queries; a norm of each head, or over all of
    them."""

    def __init__(self, over_all: bool = False) -> None:
        super().__init__()
        self.over_all, self.query_norm = over_all, nn.RMSNorm(HIDDEN if over_all else WIDTH)
        self.q, self.kv, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Any:
        b, s, _ = x.shape
        y = self.norm(x)
        q = (
            self.query_norm(self.q(y)).view(b, s, HEADS, -1)
            if self.over_all
            else self.q(y).view(b, s, HEADS, -1)
        )
        q = q if self.over_all else self.query_norm(q)
        k, v = self.kv(y).view(b, s, 2, 2, WIDTH).unbind(2)
        k = k[:, :, :, None, :].expand(b, s, 2, 2, WIDTH).reshape(b, s, HEADS, WIDTH)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k).div(WIDTH**0.5).softmax(-1)
        y = torch.einsum("bhqk,bkhd->bqhd", scores, v.repeat_interleave(2, dim=2)).flatten(2)
        return super().forward(x + self.o(y))


class Raw(nn.Module):
    """Weights without modules; a learned slope for each head; an output bias."""

    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv = (
            nn.Parameter(torch.randn(HIDDEN, HEADS, WIDTH)) for _ in range(3)
        )
        self.wo, self.slopes = (
            nn.Parameter(torch.randn(HEADS, WIDTH, HIDDEN)),
            nn.Parameter(torch.randn(HEADS, 1, 1)),
        )
        self.w1, self.b1 = nn.Parameter(torch.randn(HIDDEN, 48)), nn.Parameter(torch.randn(48))
        self.w2, self.b2 = nn.Parameter(torch.randn(48, HIDDEN)), nn.Parameter(torch.randn(HIDDEN))

    def forward(self, x: Tensor) -> Any:
        y = F.layer_norm(x, (HIDDEN,))
        q, k, v = (
            torch.einsum("bsd,dhk->bhsk", y, weight) for weight in (self.wq, self.wk, self.wv)
        )
        slopes = self.slopes * torch.arange(x.shape[1]).to(x.dtype)
        y = (q @ k.transpose(-1, -2) + slopes).softmax(-1) @ v
        x = x + torch.einsum("bhsk,hkd->bsd", y, self.wo)
        return x + torch.relu(F.layer_norm(x, (HIDDEN,)) @ self.w1 + self.b1) @ self.w2 + self.b2


class Latent(nn.Module):
    """Queries and keys from a narrow latent, a rotary key shared by all heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q_down, self.q_up = nn.Linear(HIDDEN, 12), nn.Linear(12, HEADS * 12)
        self.kv_down, self.kv_up = nn.Linear(HIDDEN, 20), nn.Linear(16, HEADS * 16)
        self.norm, self.q_norm, self.kv_norm = nn.RMSNorm(HIDDEN), nn.RMSNorm(12), nn.RMSNorm(16)
        self.o = nn.Linear(HEADS * WIDTH, HIDDEN)

    def forward(self, x: Tensor) -> Any:
        b, s, _ = x.shape
        y = self.norm(x)
        q = self.q_up(self.q_norm(self.q_down(y))).view(b, s, HEADS, 12).transpose(1, 2)
        latent, shared = self.kv_down(y).split([16, 4], dim=-1)
        k, v = (
            self.kv_up(self.kv_norm(latent))
            .view(b, s, HEADS, 16)
            .transpose(1, 2)
            .split([8, 8], dim=-1)
        )
        k = torch.cat([k, shared.view(b, 1, s, 4).expand(b, HEADS, s, 4)], dim=-1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.o(y.transpose(1, 2).reshape(b, s, HEADS * WIDTH))


class Experts(nn.Module):
    """Four experts as stacked weights, each with room for its share of the tokens, beside one that
    all tokens take."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.norm = nn.Linear(HIDDEN, 4, bias=False), nn.LayerNorm(HIDDEN)
        self.w1, self.w2 = (
            nn.Parameter(torch.randn(4, HIDDEN, 48)),
            nn.Parameter(torch.randn(4, 24, HIDDEN)),
        )
        self.shared = nn.Sequential(nn.Linear(HIDDEN, 48), nn.GELU(), nn.Linear(48, HIDDEN))

    def forward(self, x: Tensor) -> Any:
        b, s, h = x.shape
        y = self.norm(x).reshape(b * s, h)
        chances, chosen = self.router(y).softmax(-1).topk(2, dim=-1)
        room = b * s * 2 // 4
        order = chosen.flatten().argsort()
        rows = (order // 2).view(4, room)
        gate, up = torch.bmm(y[rows], self.w1).chunk(2, dim=-1)
        made = torch.bmm(F.silu(gate) * up, self.w2) * chances.flatten()[order].view(4, room, 1)
        out = torch.zeros_like(y).index_add_(0, rows.flatten(), made.reshape(-1, h))
        return x + (out + self.shared(y)).view(b, s, h)


class Lists(nn.Module):
    """Experts as modules, all run on all tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = nn.Linear(HIDDEN, 3), nn.ModuleList(Mlp() for _ in range(3))

    def forward(self, x: Tensor) -> Any:
        chances = self.router(x).softmax(-1)
        for number, expert in enumerate(self.experts):
            x = x + chances[..., number : number + 1] * expert(x)
        return x


class OneKey(Mlp):
    """One key and value for all heads."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (
            nn.Linear(HIDDEN, HIDDEN),
            nn.Linear(HIDDEN, WIDTH),
            nn.Linear(HIDDEN, WIDTH),
        )
        self.o = nn.Linear(HIDDEN, HIDDEN)

    def forward(self, x: Tensor) -> Any:
        b, s, _ = x.shape
        y = self.norm(x)
        q = self.q(y).view(b, s, HEADS, WIDTH).transpose(1, 2)
        k, v = (one(y).unsqueeze(1).expand(b, HEADS, s, WIDTH) for one in (self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v)
        return super().forward(x + self.o(y.transpose(1, 2).reshape(b, s, HIDDEN)))


class Library(nn.Module):
    """PyTorch's own layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, 48, batch_first=True)

    def forward(self, x: Tensor) -> Any:
        return self.layer(x)


class Rotary(Mlp):
    """Rotary positions in 32 bit, from a table of angles that is made anew, and cast to 16 bit
    (``bfloat16``), to what came in (``like``), or not at all (``wide`` with values cast too,
    ``mixed`` without)."""

    def __init__(self, back: str) -> None:
        super().__init__()
        self.back = back
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))

    def turned(self, x: Tensor) -> Tensor:
        """``x`` (batch, head, sequence, width) with every pair of features turned by its
        position."""
        rates = 1e4 ** -torch.linspace(0, 1, WIDTH // 2, dtype=torch.float32, device=x.device)
        angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float32, device=x.device), rates)
        even, odd = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
        y = torch.stack(
            (even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()), -1
        )
        y = y.flatten(-2)
        return (
            y.to(torch.bfloat16)
            if self.back == "bfloat16"
            else y.type_as(x)
            if self.back == "like"
            else y
        )

    def forward(self, x: Tensor) -> Any:
        b, s, h = x.shape
        y = self.norm(x)
        q, k, v = (
            one(y).view(b, s, HEADS, WIDTH).transpose(1, 2) for one in (self.q, self.k, self.v)
        )
        q, k = self.turned(q), self.turned(k)
        v = (
            v.to(torch.bfloat16)
            if self.back == "bfloat16"
            else v.float()
            if self.back == "wide"
            else v
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).to(x.dtype)
        return super().forward(x + self.o(y.transpose(1, 2).reshape(b, s, h)))


library = _made(Library)
rotary, rotary_wide = _made(lambda: Rotary("bfloat16")), _made(lambda: Rotary("wide"))
rotary_like, rotary_mixed = _made(lambda: Rotary("like")), _made(lambda: Rotary("mixed"))
plain, on_meta = _made(Plain, tied=True), _made(Plain, tied=True, device="meta")
stacked, by_head = _made(lambda: Stacked(False)), _made(lambda: Stacked(True))
grouped, over_all = _made(Grouped), _made(lambda: Grouped(over_all=True))
raw, latent, experts, lists, one_key = (
    _made(Raw),
    _made(Latent),
    _made(Experts),
    _made(Lists),
    _made(OneKey),
)

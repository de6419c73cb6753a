"""Three families of decoders by their sizes, written as accelerators run them and traced like any
other module.

``gpt``: Megatron's decoder. Learned positions, layer norm before each part, query, key and value of
a head side by side in one projection, GELU as one operator, a multi-layer perceptron of 4h,
dropout, embedding tied to the head. ``llama``: RMS norm as one operator, rotary positions, grouped
queries, a gated perceptron (or a squared ReLU's), no dropout. ``moe``: a llama whose perceptrons
are experts behind a router, as grouped products, with a shared one beside them if it has any; every
expert is taken to get as many tokens.

Activations are (sequence, batch, channel): heads are then views, and a shard of the sequence is
contiguous.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Gpt:
    """Sizes of the ``gpt`` family; the perceptron has 4 ``hidden`` channels."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int
    sequence: int
    dropout: float = 0.1


@dataclass(frozen=True, slots=True)
class Llama:
    """Sizes of the ``llama`` family."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    vocabulary: int
    sequence: int
    tied: bool = False
    gated: bool = True


@dataclass(frozen=True, slots=True)
class Moe(Llama):
    """Sizes of the ``moe`` family; ``shared_mlp`` 0: no expert is shared."""

    experts: int = 2
    active: int = 1
    expert_mlp: int = 1
    shared_mlp: int = 0


def causal_mask(length: int) -> Tensor:
    """Zero where a position may look, minus infinity after it."""
    return torch.full((length, length), -math.inf).triu(1)


def attend(qkv: tuple[Tensor, Tensor, Tensor], mask: Tensor, fused: bool, dropout: float) -> Tensor:
    """Attention of (sequence, batch, head, width) tensors, as (sequence, batch, head x width)."""
    q, k, v = qkv
    length, batch, heads, width = q.shape
    if fused:
        q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
        context = functional.scaled_dot_product_attention(
            q, k, v, dropout_p=dropout, is_causal=True
        )
        return context.permute(2, 0, 1, 3).reshape(length, batch, heads * v.shape[-1])
    q, k, v = (x.reshape(length, batch * heads, x.shape[-1]).transpose(0, 1) for x in (q, k, v))
    scores = torch.baddbmm(mask.unsqueeze(0), q, k.transpose(1, 2), alpha=1 / math.sqrt(width))
    weights = functional.dropout(scores.softmax(dim=-1), dropout)
    context = torch.bmm(weights, v).view(batch, heads, length, v.shape[-1])
    return context.permute(2, 0, 1, 3).reshape(length, batch, -1)


class GptAttention(nn.Module):
    """Self-attention with one projection for query, key and value."""

    def __init__(self, sizes: Gpt, fused: bool) -> None:
        super().__init__()
        self.heads, self.head_dim = sizes.heads, sizes.hidden // sizes.heads
        self.qkv_width = 3 * self.head_dim
        self.fused, self.dropout = fused, sizes.dropout
        self.qkv = nn.Linear(sizes.hidden, 3 * sizes.hidden)
        self.out = nn.Linear(sizes.hidden, sizes.hidden)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        projected = self.qkv(x)
        q, k, v = projected.view(*projected.shape[:2], self.heads, self.qkv_width).chunk(3, dim=-1)
        result: Tensor = self.out(
            attend((q, k, v), mask, self.fused, self.dropout if self.training else 0.0)
        )
        return result


class GptMlp(nn.Module):
    def __init__(self, sizes: Gpt) -> None:
        super().__init__()
        self.up = nn.Linear(sizes.hidden, 4 * sizes.hidden)
        self.down = nn.Linear(4 * sizes.hidden, sizes.hidden)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(functional.gelu(self.up(x)))
        return result


class GptBlock(nn.Module):
    def __init__(self, sizes: Gpt, fused: bool) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(sizes.hidden), nn.LayerNorm(sizes.hidden)
        self.attention, self.mlp = GptAttention(sizes, fused), GptMlp(sizes)
        self.dropout = nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm_attention(x), mask))
        x = x + self.dropout(self.mlp(self.norm_mlp(x)))
        return x


class GptModel(nn.Module):
    """A decoder and its loss; tokens and targets are (sequence, batch)."""

    def __init__(self, sizes: Gpt, fused: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.positions = nn.Embedding(sizes.sequence, sizes.hidden)
        self.dropout = nn.Dropout(sizes.dropout)
        self.blocks = nn.ModuleList(GptBlock(sizes, fused) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.hidden)
        self.head = nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[0]).unsqueeze(1)
        x = self.dropout(self.embedding(tokens) + self.positions(places))
        mask = causal_mask(tokens.shape[0])
        for block in self.blocks:
            x = block(x, mask)
        return token_loss(self.head(self.norm(x)), targets)


def token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross entropy in 32 bit."""
    return functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), targets.view(-1))


def rotary_tables(length: int, width: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of position times frequency, (sequence, 1, 1, width)."""
    frequencies = 1.0 / 500000 ** (torch.arange(0, width, 2).float() / width)
    angles = torch.arange(length).float().unsqueeze(1) * frequencies
    angles = torch.cat((angles, angles), dim=-1).view(length, 1, 1, width)
    return angles.cos().to(torch.get_default_dtype()), angles.sin().to(torch.get_default_dtype())


def rotate(x: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary positions of (sequence, batch, head, width)."""
    left, right = x.chunk(2, dim=-1)
    return x * tables[0] + torch.cat((-right, left), dim=-1) * tables[1]


class LlamaAttention(nn.Module):
    """Self-attention with rotary positions; several query heads share a key."""

    def __init__(self, sizes: Llama, fused: bool) -> None:
        super().__init__()
        self.head_dim, self.shared_by = sizes.head_dim, sizes.heads // sizes.kv_heads
        self.fused = fused
        self.q = nn.Linear(sizes.hidden, sizes.heads * sizes.head_dim, bias=False)
        self.k = nn.Linear(sizes.hidden, sizes.kv_heads * sizes.head_dim, bias=False)
        self.v = nn.Linear(sizes.hidden, sizes.kv_heads * sizes.head_dim, bias=False)
        self.out = nn.Linear(sizes.heads * sizes.head_dim, sizes.hidden, bias=False)

    def forward(self, x: Tensor, mask: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        q, k, v = (
            y.view(*y.shape[:2], -1, self.head_dim) for y in (self.q(x), self.k(x), self.v(x))
        )
        q, k = rotate(q, tables), rotate(k, tables)
        if self.shared_by > 1:
            k, v = (y.repeat_interleave(self.shared_by, dim=2) for y in (k, v))
        result: Tensor = self.out(attend((q, k, v), mask, self.fused, 0.0))
        return result


class SquaredReluMlp(nn.Module):
    """A perceptron without a gate, as Nemotron's."""

    def __init__(self, sizes: Llama) -> None:
        super().__init__()
        self.up = nn.Linear(sizes.hidden, sizes.mlp, bias=False)
        self.down = nn.Linear(sizes.mlp, sizes.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = functional.relu(self.up(x))
        result: Tensor = self.down(active * active)
        return result


class LlamaMlp(nn.Module):
    def __init__(self, sizes: Llama) -> None:
        super().__init__()
        self.gate = nn.Linear(sizes.hidden, sizes.mlp, bias=False)
        self.up = nn.Linear(sizes.hidden, sizes.mlp, bias=False)
        self.down = nn.Linear(sizes.mlp, sizes.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(functional.silu(self.gate(x)) * self.up(x))
        return result


class Experts(nn.Module):
    """Gated perceptrons of tokens sorted by expert: weights (expert, out, in), each pass one
    grouped product."""

    def __init__(self, sizes: Moe) -> None:
        super().__init__()
        count, hidden, width = sizes.experts, sizes.hidden, sizes.expert_mlp
        self.gate_up_proj = nn.Parameter(torch.empty(count, 2 * width, hidden))
        self.down_proj = nn.Parameter(torch.empty(count, hidden, width))
        self.act_fn = nn.SiLU()

    def forward(self, tokens: Tensor, index: Tensor, weights: Tensor) -> Tensor:
        """Tokens (tokens, hidden), the experts of each (tokens, active) and their weights, to their
        weighted sum."""
        copies, count = index.shape[-1], self.gate_up_proj.shape[0]
        experts, order = torch.sort(index.reshape(-1))
        counts = torch.histc(experts.float(), bins=count, min=0, max=count - 1)
        offsets = torch.cumsum(counts, 0, dtype=torch.int32)
        rows = tokens[order // copies]
        gate, up = torch._grouped_mm(rows, self.gate_up_proj.transpose(-2, -1), offs=offsets).chunk(
            2, -1
        )
        rows = torch._grouped_mm(
            self.act_fn(gate) * up, self.down_proj.transpose(-2, -1), offs=offsets
        )
        rows = rows * weights.reshape(-1)[order].unsqueeze(-1)
        back = torch.empty_like(order)
        back[order] = torch.arange(order.numel())
        return rows[back].view(-1, copies, tokens.shape[-1]).sum(1).to(tokens.dtype)


class MoeMlp(nn.Module):
    """Router, experts, and a perceptron for all tokens beside them where the sizes have one."""

    def __init__(self, sizes: Moe) -> None:
        super().__init__()
        self.active = sizes.active
        self.router = nn.Linear(sizes.hidden, sizes.experts, bias=False)
        self.experts = Experts(sizes)
        self.shared = LlamaMlp(replace(sizes, mlp=sizes.shared_mlp)) if sizes.shared_mlp else None

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.reshape(-1, x.shape[-1])
        weights, index = (
            self.router(tokens).softmax(dim=-1, dtype=torch.float).topk(self.active, dim=-1)
        )
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        result: Tensor = self.experts(tokens, index, weights)
        if self.shared is not None:
            result = result + self.shared(tokens)
        return result.view(x.shape)


class LlamaBlock(nn.Module):
    def __init__(self, sizes: Llama, fused: bool) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.RMSNorm(sizes.hidden), nn.RMSNorm(sizes.hidden)
        self.attention = LlamaAttention(sizes, fused)
        plain = LlamaMlp if sizes.gated else SquaredReluMlp
        self.mlp = MoeMlp(sizes) if isinstance(sizes, Moe) else plain(sizes)

    def forward(self, x: Tensor, mask: Tensor, tables: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.attention(self.norm_attention(x), mask, tables)
        x = x + self.mlp(self.norm_mlp(x))
        return x


class LlamaModel(nn.Module):
    """A decoder and its loss; tokens and targets are (sequence, batch)."""

    def __init__(self, sizes: Llama, fused: bool) -> None:
        super().__init__()
        self.head_dim = sizes.head_dim
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.hidden)
        self.blocks = nn.ModuleList(LlamaBlock(sizes, fused) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.hidden)
        self.head = nn.Linear(sizes.hidden, sizes.vocabulary, bias=False)
        if sizes.tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(tokens)
        mask, tables = causal_mask(tokens.shape[0]), rotary_tables(tokens.shape[0], self.head_dim)
        for block in self.blocks:
            x = block(x, mask, tables)
        return token_loss(self.head(self.norm(x)), targets)

"""How the weights of a block are split over tensor-parallel ranks, as data.

A :class:`TensorSplit` names modules by a pattern on their path in the model and says how their
weight is cut:

    column    by outputs: the input is the same on all ranks (f), the output is a shard
    row       by inputs: the input is a shard, partial outputs are summed over ranks (g), then the
              bias is added
    packed    by outputs, each of ``parts`` stacked matrices on its own (query, key and value in
              one)
    table     an embedding by columns (a bias of each head): no communication
    gather    column, and the shards of the output are gathered: what follows is done by every rank
    split     row, of an input that all ranks hold alike: each takes its part first
    summed    a weight that every rank holds whole and uses on its part (a norm of its heads): its
              gradient is summed
    tail      a map that every rank holds whole; the last ``unit`` channels of its output go into
              each rank's heads as they are, so their gradient is summed (f)
    experts   a module with weights (expert, out, in): what it takes is the same on all ranks (f),
              what it gives is summed (g); ``weights`` lists its weights as (name, dimension,
              stacked parts)

``unit`` names an attribute of a module around, whose value must not be cut (the width of a head),
or for ``tail`` is its width; ``divide`` lists attributes to be divided by the width (numbers of
heads).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

Style = Literal["column", "row", "packed", "table", "experts", "gather", "split", "summed", "tail"]


@dataclass(frozen=True, slots=True)
class TensorSplit:
    """One kind of module and its cut."""

    pattern: str
    style: Style
    unit: str = ""
    parts: int = 1
    weights: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Divide:
    """An attribute of some modules that counts what is cut, in multiples of the attribute
    ``unit``."""

    pattern: str
    attribute: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class ShardCut:
    """A weight that is cut along ``dim``: parameters whose path in the model fits ``pattern``.

    ``unit`` elements stay together (the width of a head); ``parts`` are the sizes of matrices that
    are stacked along that dimension, each cut on its own (none: one). ``tokens`` says that its rows
    are those of the vocabulary."""

    pattern: str
    dim: int
    unit: int = 1
    parts: tuple[int, ...] = ()
    tokens: bool = False


@dataclass(frozen=True, slots=True)
class ShardingPlan:
    """All cuts of a model. ``cuts`` say only which weights are cut: the code then runs as it is
    written, and where its ranks communicate follows from what it does
    (:mod:`phaze.graph.torch.partition`). ``shards`` says whether that also holds for tokens that
    are split along the sequence. ``sequence_dim`` is where tokens lie in what blocks exchange
    (batch, sequence, channel or sequence, batch, channel). ``pads`` says that a sequence which the
    width does not divide may be padded."""

    splits: tuple[TensorSplit, ...] = ()
    divide: tuple[Divide, ...] = ()
    sequence_dim: int = 1
    pads: bool = False
    cuts: tuple[ShardCut, ...] = ()
    shards: bool = True


def _attention_and_mlp(
    column: str, row: str, unit: str, mlp_column: str, mlp_row: str
) -> tuple[TensorSplit, ...]:
    return (
        *(TensorSplit(pattern, "column", unit) for pattern in column.split()),
        *(TensorSplit(pattern, "row", unit) for pattern in row.split()),
        *(TensorSplit(pattern, "column") for pattern in mlp_column.split()),
        *(TensorSplit(pattern, "row") for pattern in mlp_row.split()),
    )


_BERT = ShardingPlan(
    _attention_and_mlp(
        "*.attention.self.query *.attention.self.key *.attention.self.value",
        "*.attention.output.dense",
        "attention_head_size",
        "*.intermediate.dense",
        "*.layer.*.output.dense",
    )
)

_LLAMA_FAMILY = ShardingPlan(
    (
        TensorSplit("blocks.*.attention.q", "column", "head_dim"),
        TensorSplit("blocks.*.attention.k", "column", "head_dim"),
        TensorSplit("blocks.*.attention.v", "column", "head_dim"),
        TensorSplit("blocks.*.attention.out", "row", "head_dim"),
        TensorSplit("blocks.*.mlp.gate", "column"),
        TensorSplit("blocks.*.mlp.up", "column"),
        TensorSplit("blocks.*.mlp.down", "row"),
    ),
    sequence_dim=0,
)
_EXPERTS = TensorSplit(
    "blocks.*.mlp.experts", "experts", weights=(("gate_up_proj", 1, 2), ("down_proj", 2, 1))
)
_SHARED = (
    TensorSplit("blocks.*.mlp.shared.gate", "column"),
    TensorSplit("blocks.*.mlp.shared.up", "column"),
    TensorSplit("blocks.*.mlp.shared.down", "row"),
)

PLANS: Mapping[str, ShardingPlan] = MappingProxyType(
    {
        "bert": _BERT,
        "roberta": _BERT,
        "megatron-bert": replace(
            _BERT, divide=(Divide("*.attention.self", "all_head_size", "attention_head_size"),)
        ),
        "gpt2": ShardingPlan(
            (
                TensorSplit("*.attn.c_attn", "packed", "head_dim", 3),
                TensorSplit("*.attn.c_proj", "row", "head_dim"),
                TensorSplit("*.mlp.c_fc", "column"),
                TensorSplit("*.mlp.c_proj", "row"),
            ),
            (Divide("*.attn", "num_heads"), Divide("*.attn", "split_size", "head_dim")),
        ),
        "opt": ShardingPlan(
            _attention_and_mlp(
                "*.self_attn.q_proj *.self_attn.k_proj *.self_attn.v_proj",
                "*.self_attn.out_proj",
                "head_dim",
                "*.layers.*.fc1",
                "*.layers.*.fc2",
            ),
            (Divide("*.self_attn", "num_heads"),),
        ),
        "t5": ShardingPlan(
            (
                *_attention_and_mlp(
                    "*Attention.q *Attention.k *Attention.v",
                    "*Attention.o",
                    "key_value_proj_dim",
                    "*.DenseReluDense.wi *.DenseReluDense.wi_0 *.DenseReluDense.wi_1",
                    "*.DenseReluDense.wo",
                ),
                TensorSplit("*Attention.relative_attention_bias", "table"),
            ),
            (Divide("*Attention", "n_heads"),),
        ),
        "vit": ShardingPlan(
            _attention_and_mlp(
                "*.attention.q_proj *.attention.k_proj *.attention.v_proj",
                "*.attention.o_proj",
                "head_dim",
                "*.mlp.fc1",
                "*.mlp.fc2",
            ),
            pads=True,
        ),
        "gpt": ShardingPlan(
            (
                TensorSplit("blocks.*.attention.qkv", "column", "qkv_width"),
                TensorSplit("blocks.*.attention.out", "row", "head_dim"),
                TensorSplit("blocks.*.mlp.up", "column"),
                TensorSplit("blocks.*.mlp.down", "row"),
            ),
            (Divide("blocks.*.attention", "heads"),),
            sequence_dim=0,
        ),
        "llama-family": _LLAMA_FAMILY,
        "moe-family": replace(_LLAMA_FAMILY, splits=(*_LLAMA_FAMILY.splits[:4], _EXPERTS)),
        "moe-family-shared": replace(
            _LLAMA_FAMILY, splits=(*_LLAMA_FAMILY.splits[:4], _EXPERTS, *_SHARED)
        ),
        "llama-ungated": replace(
            _LLAMA_FAMILY,
            splits=tuple(cut for cut in _LLAMA_FAMILY.splits if not cut.pattern.endswith("gate")),
        ),
    }
)
"""Our plans, by the ``model_type`` of a configuration or the name of a family."""

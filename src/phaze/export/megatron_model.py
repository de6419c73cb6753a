"""What Megatron-LM must be told of a model itself: its sizes and its kind, by Megatron Core 0.19.2,
both ways."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from phaze.export.flag import SAME, Condition, Flag, when, with_others
from phaze.export.source import PlannedSplit
from phaze.export.values import Values

GPT, BERT = "pretrain_gpt.py", "pretrain_bert.py"
SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("gpt", "gpt2-xl", "gpt3-175b", "megatron-gpt2-54", "megatron-gpt2-72"), GPT
        ),
        **dict.fromkeys(("bert-large", "megatron-bert-large"), BERT),
    }
)
"""The script that trains a model which is no llama."""
# The blocks of DeepSeek-V3 and of Kimi K2, which has more experts, fewer heads and one group of
# experts.
LATENT: Mapping[str, int] = MappingProxyType(
    {"mlp": 18432, "expert_mlp": 2048, "shared_mlp": 2048, "active": 8, "latent": 1, "qk_norm": 1}
)
# What a named llama's sizes are beyond those that phaze models lists, by its published
# configuration.
LLAMAS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "llama": {},
        "moe": {},
        "llama2-7b": {"mlp": 11008, "kv_heads": 32},
        "llama3-8b": {"mlp": 14336, "kv_heads": 8, "rotary_base": 500000},
        "llama3-70b": {"mlp": 28672, "kv_heads": 8, "rotary_base": 500000},
        "mixtral-8x7b": {
            "mlp": 14336,
            "kv_heads": 8,
            "rotary_base": 1000000,
            "experts": 8,
            "active": 2,
        },
        "mixtral-8x22b": {
            "mlp": 16384,
            "kv_heads": 8,
            "rotary_base": 1000000,
            "experts": 8,
            "active": 2,
        },
        "llama3.1-405b": {"mlp": 53248, "kv_heads": 8, "rotary_base": 500000},
        "nemotron-4-340b": {"mlp": 73728, "kv_heads": 8, "gated": 0, "layer_norm": 1},
        "qwen3-30b-a3b": {"mlp": 6144, "kv_heads": 4, "head_dim": 128, "rotary_base": 1000000}
        | {"experts": 128, "active": 8, "expert_mlp": 768, "qk_norm": 1},
        "qwen3-235b-a22b": {"mlp": 12288, "kv_heads": 4, "head_dim": 128, "rotary_base": 1000000}
        | {"experts": 128, "active": 8, "expert_mlp": 1536, "qk_norm": 1},
        "deepseek-v3": {
            **LATENT,
            "experts": 256,
            "dense_layers": 3,
            "groups": 8,
            "active_groups": 4,
        },
        "kimi-k2": {**LATENT, "experts": 384, "dense_layers": 1},
    }
)
SPLIT_EXPERTS = "its experts are split by tensor parallelism alone, expert 1"
NOT_THERE: Mapping[str, str] = MappingProxyType(
    {
        "t5-large": "its pipeline layouts know no encoders",
        "vit-large": "its pipeline layouts are for language models",
        **{name: SPLIT_EXPERTS for name, sizes in LLAMAS.items() if "experts" in sizes},
        "opt-350m": "it has no blocks with the norm behind and projections around them",
        "gemma-2-27b": "it has no blocks with norms before and behind each part and capped scores",
        "grok-1": "it has no experts with a gated GELU, and no norms behind each part",
        "gpt-oss-120b": (
            "it is planned with attention sinks and windows in every second block, which "
            "flags do not tell"
        ),
    }
)
USUAL_ACTIVE = 2
"""Experts of a token by Megatron-LM's own default."""
DENSE_FIRST = re.compile(r"\(\[0\]\*([0-9]{1,4})\+\[1\]\*([0-9]{1,4})\)")


def sizes_of(split: PlannedSplit) -> dict[str, int]:
    """The sizes of the plan's model, with those of its published configuration."""
    return {**split.sizes, **LLAMAS.get(split.model, {})}


def script_of(split: PlannedSplit) -> str:
    """The script that trains the model."""
    return GPT if split.model in LLAMAS else SCRIPTS.get(split.model, "your pretraining script")


def has_experts(split: PlannedSplit) -> bool:
    """Whether the model is a mixture of experts."""
    return "experts" in sizes_of(split)


def is_not_there(split: PlannedSplit) -> bool:
    """Whether Megatron-LM does not have the model in this form."""
    shares_experts = (split.expert > 1 or split.tensor == 1) and split.model in LLAMAS
    return split.model in NOT_THERE and not shares_experts


def _llama(condition: Callable[[Mapping[str, int]], Any]) -> Condition:
    """Whether the model is of the llama kind and its sizes meet a condition."""
    return lambda split: split.model in LLAMAS and bool(condition(sizes_of(split)))


def _has(*names: str) -> Condition:
    """Whether the model is of the llama kind and has sizes that are not 0."""
    return _llama(lambda sizes: all(sizes.get(name) for name in names))


def _lacks(name: str, usual: int) -> Condition:
    return _llama(lambda sizes: not sizes.get(name, usual))


def _shares_keys(sizes: Mapping[str, int]) -> bool:
    return sizes.get("kv_heads", sizes.get("heads")) != sizes.get("heads")


def _widens_heads(sizes: Mapping[str, int]) -> bool:
    return sizes.get("head_dim", 0) * sizes.get("heads", 0) not in (0, sizes.get("hidden"))


def _layers_with_experts(split: PlannedSplit) -> str:
    sizes = sizes_of(split)
    return f"'([0]*{sizes['dense_layers']}+[1]*{sizes['layers'] - sizes['dense_layers']})'"


def _perceptron(split: PlannedSplit) -> int | None:
    """The width of the MLP; of a mixture without a dense layer that of an expert."""
    sizes = sizes_of(split)
    return sizes.get("mlp", sizes.get("expert_mlp"))


def _size(
    name: str, size: str, reason: str = "of the model", needed: Condition = lambda split: True
) -> Flag:
    """A flag that states a size of the model, where it has it."""
    return Flag(
        name,
        f"sizes.{size}",
        lambda split: sizes_of(split).get(size),
        reason,
        with_others,
        needed=needed,
    )


IS_LLAMA, HAS_LAYER_NORM = _llama(lambda sizes: True), _has("layer_norm")
SIZES = (
    _size("--num-layers", "layers"),
    _size("--hidden-size", "hidden"),
    _size("--num-attention-heads", "heads"),
    Flag("--ffn-hidden-size", "sizes.mlp", _perceptron, "of the model"),
    Flag("--vocab-size", "sizes.vocabulary"),
    Flag("--group-query-attention", "model", True, "heads share keys and values",
    needed=_llama(_shares_keys)),
    _size("--num-query-groups", "kv_heads", needed=_llama(_shares_keys)),
    _size("--kv-channels", "head_dim", "size of a head", _llama(_widens_heads)),
)  # fmt: skip
BLOCKS = (
    Flag(
        "--swiglu", "model", True, "gated MLP", needed=_llama(lambda sizes: sizes.get("gated", 1))
    ),
    Flag("--squared-relu", "model", True, "no gate", needed=_lacks("gated", 1)),
    *when(
        HAS_LAYER_NORM,
        Flag("--normalization", "model", "LayerNorm", "of the model; priced as RMSNorm"),
        Flag("--apply-layernorm-1p", "", True, "of the model"),
        Flag("--rotary-percent", "", "0.5", "of the model; priced as on whole heads"),
    ),
    Flag("--normalization", "model", "RMSNorm", "of the model", needed=_lacks("layer_norm", 0)),
    Flag("--qk-layernorm", "", True, "norms of queries and keys", needed=_has("qk_norm")),
    *when(
        IS_LLAMA,
        Flag("--position-embedding-type", "model", "rope", "rotary positions"),
        Flag("--disable-bias-linear", "", True, "of the model"),
        Flag("--attention-dropout", "", "0.0", "the model has no dropout"),
        Flag("--hidden-dropout", "", "0.0", "the model has no dropout"),
        Flag("--rotary-base", "", lambda split: sizes_of(split).get("rotary_base"), "of the model"),
    ),
    # Multi-head latent attention as published: ranks of the compressed queries, keys and values,
    # widths of a head.
    *when(
        _has("latent"),
        Flag("--multi-latent-attention", "", True, "of the model"),
        Flag("--q-lora-rank", "", "1536", "of the model"),
        Flag("--kv-lora-rank", "", "512", "of the model"),
        Flag("--qk-head-dim", "", "128", "of the model"),
        Flag("--qk-pos-emb-head-dim", "", "64", "of the model"),
        Flag("--v-head-dim", "", "128", "of the model"),
    ),
)
EXPERTS = (
    *when(
        _has("experts"),
        _size("--num-experts", "experts"),
        _size("--moe-router-topk", "active", "experts of a token"),
        _size("--moe-ffn-hidden-size", "expert_mlp", "width of an expert"),
    ),
    _size("--moe-shared-expert-intermediate-size", "shared_mlp",
    needed=_has("experts", "shared_mlp")),
    Flag("--moe-layer-freq", "sizes.dense_layers", _layers_with_experts, (
        "the first layers have "
        "no experts"
    ),
         needed=_has("experts", "dense_layers")),
    *when(
        _has("experts", "latent"),
        Flag("--moe-router-score-function", "", "sigmoid", "of the model"),
        Flag("--moe-router-enable-expert-bias", "", True, "of the model"),
    ),
    *when(
        _llama(lambda sizes: "experts" in sizes and sizes.get("groups", 1) > 1),
        Flag("--moe-router-num-groups", "", lambda split: sizes_of(split)["groups"],
        "groups of experts"),
        Flag("--moe-router-group-topk", "", lambda split: sizes_of(split)["active_groups"],
        "groups of a token"),
    ),
)  # fmt: skip
MODEL = (
    *SIZES,
    *BLOCKS,
    *EXPERTS,
    Flag("--untie-embeddings-and-output-weights", "model", True, "of the model",
    needed=_lacks("tied", 0)),
    Flag("--seq-length", "sequence", SAME, "positions of a sequence"),
    Flag("--max-position-embeddings", "",
    lambda split: max(split.sequence, sizes_of(split).get("positions", 0)),
         "positions that the model knows", needed=lambda split: split.sequence is not None),
)  # fmt: skip
"""Sizes and kind of the model."""


def stated_sizes(values: Values) -> dict[str, int]:
    """The sizes that a file states; of a mixture of experts also those that follow from them."""
    names = {
        flag.name: flag.field.removeprefix("sizes.")
        for flag in MODEL
        if flag.field.startswith("sizes.")
    }
    pattern = "--moe-layer-freq"
    experts = {flag.name for flag in EXPERTS}
    counts = {
        size: values.count(name)
        for name, size in names.items()
        if name != pattern and (name not in experts or "--num-experts" in values)
    }
    sizes = {size: number for size, number in counts.items() if number is not None}
    if "experts" not in sizes:
        return sizes
    sizes = {"active": USUAL_ACTIVE, **sizes}
    if "mlp" in sizes:
        sizes.setdefault("expert_mlp", sizes["mlp"])
    if values.value(pattern) not in (None, "1"):
        match = DENSE_FIRST.fullmatch(values.word(pattern))
        if match is None or int(match[1]) + int(match[2]) != sizes.get("layers"):
            seen = f"'{values.word(pattern)}' is not a number of dense layers before all others"
            raise values.fault(pattern, seen, "phaze prices ([0]*3+[1]*58), dense layers first")
        sizes["dense_layers"] = int(match[1])
    return sizes


def stated_model(values: Values, sizes: Mapping[str, int]) -> dict[str, Any]:
    """The model by its sizes where the flags state all of them, else nothing."""
    needed, sequence = ("layers", "hidden", "heads", "vocabulary"), values.count("--seq-length")
    if sequence is None or any(size not in sizes for size in needed):
        return {}
    if (
        "--multi-latent-attention" in values or "--qk-layernorm" in values
    ):  # neither family has these
        return {}
    whole = {
        **sizes,
        "sequence": sequence,
        "tied": "--untie-embeddings-and-output-weights" not in values,
    }
    gated = "--swiglu" in values
    if "experts" in sizes:
        return {"moe": whole} if gated else {}
    if gated or "--squared-relu" in values:
        return {"llama": whole | ({} if gated else {"gated": False})} if "mlp" in sizes else {}
    if sizes.get("mlp", 4 * sizes["hidden"]) != 4 * sizes["hidden"] or "kv_heads" in sizes:
        return {}
    return {"gpt": {size: sizes[size] for size in needed} | {"sequence": sequence}}

"""What Megatron-LM must be told of a model itself: its sizes and its kind, by Megatron Core 0.19.2."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.errors import InputError
from phaze.export.flags import Choice
from phaze.export.source import Split

GPT, BERT = "pretrain_gpt.py", "pretrain_bert.py"
SCRIPTS: Mapping[str, str] = MappingProxyType(
    {
        "gpt": GPT,
        "llama": GPT,
        "moe": GPT,
        "gpt2-xl": GPT,
        "gpt3-175b": GPT,
        "megatron-gpt2-54": GPT,
        "megatron-gpt2-72": GPT,
        "llama2-7b": GPT,
        "llama3-8b": GPT,
        "llama3-70b": GPT,
        "mixtral-8x7b": GPT,
        "mixtral-8x22b": GPT,
        "llama3.1-405b": GPT,
        "nemotron-4-340b": GPT,
        "qwen3-30b-a3b": GPT,
        "qwen3-235b-a22b": GPT,
        "deepseek-v3": GPT,
        "kimi-k2": GPT,
        "bert-large": BERT,
        "megatron-bert-large": BERT,
    }
)
# The blocks of DeepSeek-V3 and of Kimi K2, which has more experts, fewer heads and one group of experts.
LATENT: Mapping[str, int] = MappingProxyType(
    {"mlp": 18432, "expert_mlp": 2048, "shared_mlp": 2048, "active": 8, "latent": 1, "qk_norm": 1}
)
# What a named llama's sizes are beyond those that phaze models lists, by its published configuration.
LLAMAS: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "llama": {},
        "moe": {},
        "llama2-7b": {"mlp": 11008, "kv_heads": 32},
        "llama3-8b": {"mlp": 14336, "kv_heads": 8, "rotary_base": 500000},
        "llama3-70b": {"mlp": 28672, "kv_heads": 8, "rotary_base": 500000},
        "mixtral-8x7b": {"mlp": 14336, "kv_heads": 8, "rotary_base": 1000000, "experts": 8, "active": 2},
        "mixtral-8x22b": {"mlp": 16384, "kv_heads": 8, "rotary_base": 1000000, "experts": 8, "active": 2},
        "llama3.1-405b": {"mlp": 53248, "kv_heads": 8, "rotary_base": 500000},
        "nemotron-4-340b": {"mlp": 73728, "kv_heads": 8, "gated": 0, "layer_norm": 1},
        "qwen3-30b-a3b": {"mlp": 6144, "kv_heads": 4, "head_dim": 128, "rotary_base": 1000000}
        | {"experts": 128, "active": 8, "expert_mlp": 768, "qk_norm": 1},
        "qwen3-235b-a22b": {"mlp": 12288, "kv_heads": 4, "head_dim": 128, "rotary_base": 1000000}
        | {"experts": 128, "active": 8, "expert_mlp": 1536, "qk_norm": 1},
        "deepseek-v3": {**LATENT, "experts": 256, "dense_layers": 3, "groups": 8, "active_groups": 4},
        "kimi-k2": {**LATENT, "experts": 384, "dense_layers": 1},
    }
)
# Multi-head latent attention as published: ranks of the compressed queries, keys and values, widths of a head.
LATENT_ATTENTION = (
    ("--q-lora-rank", "1536"),
    ("--kv-lora-rank", "512"),
    ("--qk-head-dim", "128"),
    ("--qk-pos-emb-head-dim", "64"),
    ("--v-head-dim", "128"),
)
NOT_THERE: Mapping[str, str] = MappingProxyType(
    {
        "t5-large": "its pipeline layouts know no encoders",
        "vit-large": "its pipeline layouts are for language models",
        "mixtral-8x7b": "its experts are split by tensor parallelism alone, expert 1",
        "mixtral-8x22b": "its experts are split by tensor parallelism alone, expert 1",
        "qwen3-30b-a3b": "its experts are split by tensor parallelism alone, expert 1",
        "qwen3-235b-a22b": "its experts are split by tensor parallelism alone, expert 1",
        "deepseek-v3": "its experts are split by tensor parallelism alone, expert 1",
        "kimi-k2": "its experts are split by tensor parallelism alone, expert 1",
        "opt-350m": "it has no blocks with the norm behind and projections around them",
        "gemma-2-27b": "it has no blocks with norms before and behind each part and capped scores",
        "grok-1": "it has no experts with a gated GELU, and no norms behind each part",
        "gpt-oss-120b": "it is planned with attention sinks and windows in every second block, which flags do not tell",
    }
)


def has_experts(split: Split) -> bool:
    """Whether the model is a mixture of experts."""
    return "experts" in {**split.sizes, **LLAMAS.get(split.model, {})}


def require_there(split: Split) -> None:
    """Refuse a model that Megatron-LM does not have in this form."""
    shared = (split.expert > 1 or split.tensor == 1) and split.model in LLAMAS
    if split.model in NOT_THERE and not shared:
        raise InputError(split.model, "Megatron-LM cannot run this plan", NOT_THERE[split.model])


def _llama(sizes: Mapping[str, int]) -> list[Choice]:
    found = []
    if sizes.get("kv_heads", sizes.get("heads")) != sizes.get("heads"):
        found.append(Choice("--group-query-attention", None, "heads share keys and values"))
        found.append(Choice("--num-query-groups", str(sizes["kv_heads"]), "of the model"))
    if sizes.get("head_dim", 0) * sizes.get("heads", 0) not in (0, sizes.get("hidden")):
        found.append(Choice("--kv-channels", str(sizes["head_dim"]), "size of a head"))
    found += [
        Choice("--swiglu", None, "gated MLP") if sizes.get("gated", 1) else Choice("--squared-relu", None, "no gate"),
        *_norms(sizes),
        Choice("--position-embedding-type", "rope", "rotary positions"),
        Choice("--disable-bias-linear", None, "of the model"),
        Choice("--attention-dropout", "0.0", "the model has no dropout"),
        Choice("--hidden-dropout", "0.0", "the model has no dropout"),
    ]
    if "rotary_base" in sizes:
        found.append(Choice("--rotary-base", str(sizes["rotary_base"]), "of the model"))
    if sizes.get("latent"):
        found.append(Choice("--multi-latent-attention", None, "of the model"))
        found += [Choice(flag, value, "of the model") for flag, value in LATENT_ATTENTION]
    if "experts" in sizes:
        found.append(Choice("--num-experts", str(sizes["experts"]), "of the model"))
        found.append(Choice("--moe-router-topk", str(sizes["active"]), "experts of a token"))
        found += _widths_of_experts(sizes)
    if not sizes.get("tied", 0):
        found.append(Choice("--untie-embeddings-and-output-weights", None, "of the model"))
    return found


def _norms(sizes: Mapping[str, int]) -> list[Choice]:
    """Norms, and how far rotary positions go where they are not on whole heads."""
    if sizes.get("layer_norm"):
        return [
            Choice("--normalization", "LayerNorm", "of the model; priced as RMSNorm"),
            Choice("--apply-layernorm-1p", None, "of the model"),
            Choice("--rotary-percent", "0.5", "of the model; priced as on whole heads"),
        ]
    found = [Choice("--normalization", "RMSNorm", "of the model")]
    return [*found, Choice("--qk-layernorm", None, "norms of queries and keys")] if sizes.get("qk_norm") else found


def _widths_of_experts(sizes: Mapping[str, int]) -> list[Choice]:
    """Where experts are not as wide as the MLP, some are shared, or the first layers have none."""
    found = []
    if "expert_mlp" in sizes:
        found.append(Choice("--moe-ffn-hidden-size", str(sizes["expert_mlp"]), "width of an expert"))
    if sizes.get("shared_mlp"):
        found.append(Choice("--moe-shared-expert-intermediate-size", str(sizes["shared_mlp"]), "of the model"))
    if sizes.get("dense_layers"):
        dense, rest = sizes["dense_layers"], sizes["layers"] - sizes["dense_layers"]
        found.append(Choice("--moe-layer-freq", f"'([0]*{dense}+[1]*{rest})'", "the first layers have no experts"))
    if sizes.get("latent"):
        found += [
            Choice("--moe-router-score-function", "sigmoid", "of the model"),
            Choice("--moe-router-enable-expert-bias", None, "of the model"),
        ]
    if sizes.get("groups", 1) > 1:
        found += [
            Choice("--moe-router-num-groups", str(sizes["groups"]), "groups of experts"),
            Choice("--moe-router-group-topk", str(sizes["active_groups"]), "groups of a token"),
        ]
    return found


def model_choices(split: Split) -> list[Choice]:
    """Sizes and kind of the model."""
    sizes = {**split.sizes, **LLAMAS.get(split.model, {})}
    named = (
        ("--num-layers", "layers"),
        ("--hidden-size", "hidden"),
        ("--num-attention-heads", "heads"),
        ("--ffn-hidden-size", "mlp"),
    )
    if "mlp" not in sizes and "expert_mlp" in sizes:
        sizes = {**sizes, "mlp": sizes["expert_mlp"]}
    found = [Choice(flag, str(sizes[key]), "of the model") for flag, key in named if key in sizes]
    if split.model in LLAMAS:
        found += _llama(sizes)
    if split.sequence is not None:
        positions = max(split.sequence, sizes.get("positions", 0))
        found.append(Choice("--seq-length", str(split.sequence), "positions of a sequence"))
        found.append(Choice("--max-position-embeddings", str(positions), "positions that the model knows"))
    return found

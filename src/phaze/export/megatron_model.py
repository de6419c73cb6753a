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
        "bert-large": BERT,
        "megatron-bert-large": BERT,
    }
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
    }
)
NOT_THERE: Mapping[str, str] = MappingProxyType(
    {
        "t5-large": "its pipeline layouts know no encoders",
        "vit-large": "its pipeline layouts are for language models",
        "mixtral-8x7b": "experts that are not shared out over ranks, expert 1",
        "mixtral-8x22b": "experts that are not shared out over ranks, expert 1",
        "opt-350m": "it has no blocks with the norm behind and projections around them",
    }
)


def require_there(split: Split) -> None:
    """Refuse a model that Megatron-LM does not have in this form."""
    shared = split.expert > 1 and split.model in LLAMAS
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
        Choice("--normalization", "RMSNorm", "of the model"),
        Choice("--position-embedding-type", "rope", "rotary positions"),
        Choice("--disable-bias-linear", None, "of the model"),
        Choice("--attention-dropout", "0.0", "the model has no dropout"),
        Choice("--hidden-dropout", "0.0", "the model has no dropout"),
    ]
    if "rotary_base" in sizes:
        found.append(Choice("--rotary-base", str(sizes["rotary_base"]), "of the model"))
    if "experts" in sizes:
        found.append(Choice("--num-experts", str(sizes["experts"]), "of the model"))
        found.append(Choice("--moe-router-topk", str(sizes["active"]), "experts of a token"))
        found += _widths_of_experts(sizes)
    if not sizes.get("tied", 0):
        found.append(Choice("--untie-embeddings-and-output-weights", None, "of the model"))
    return found


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

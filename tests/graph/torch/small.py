"""Small models of the named architectures: the same operators, sizes that run in milliseconds."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.graph.torch.families import Gpt, Llama
from phaze.graph.torch.hf import hf_config, hf_source
from phaze.graph.torch.program import Source
from phaze.graph.torch.source import gpt_source, llama_source, named_source

_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 48,
    "max_position_embeddings": 16,
}
_LLAMA = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "vocab_size": 48,
    "max_position_embeddings": 64,
}
CHANGES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "bert-large": _BERT,
        "megatron-bert-large": _BERT,
        "gpt2-xl": {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 16, "vocab_size": 48},
        "opt-350m": {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "ffn_dim": 64,
            "word_embed_proj_dim": 16,
            "vocab_size": 48,
            "max_position_embeddings": 16,
        },
        "llama3-8b": _LLAMA,
        "mixtral-8x7b": {**_LLAMA, "num_local_experts": 4},
        "t5-large": {
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 64,
            "num_layers": 2,
            "num_decoder_layers": 2,
            "num_heads": 4,
            "vocab_size": 48,
        },
        "vit-large": {
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "image_size": 12,
            "patch_size": 4,
            "num_labels": 6,
        },
    }
)


OTHERS: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "qwen3": ("Qwen3ForCausalLM", {**_LLAMA, "head_dim": 8}),
        "olmo2": ("Olmo2ForCausalLM", _LLAMA),
        "gpt_neox": ("GPTNeoXForCausalLM", _BERT),
        "glm4": ("Glm4ForCausalLM", {**_LLAMA, "head_dim": 8, "pad_token_id": 0}),
        "gemma2": ("Gemma2ForCausalLM", {**_LLAMA, "head_dim": 8}),
        "deepseek_v2": (
            "DeepseekV2ForCausalLM",
            {
                **_LLAMA,
                "num_key_value_heads": 4,
                "q_lora_rank": 12,
                "kv_lora_rank": 16,
                "qk_rope_head_dim": 4,
                "qk_nope_head_dim": 8,
                "v_head_dim": 8,
                "first_k_dense_replace": 1,
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 16,
                "n_shared_experts": 1,
                "n_group": 1,
                "topk_group": 1,
            },
        ),
    }
)
"""Architectures whose plan comes with the library, one for each style that no named model has."""


def small(name: str, **more: Any) -> Source:
    """A small model of the architecture of a named one, or of a family."""
    if name == "gpt":
        return gpt_source(
            Gpt(**{"hidden": 32, "layers": 3, "heads": 4, "vocabulary": 48, "sequence": 16, **more})
        )
    if name == "llama":
        sizes = {"hidden": 32, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 8, "mlp": 48}
        return llama_source(Llama(**{**sizes, "vocabulary": 48, "sequence": 16, **more}))
    if name in OTHERS:
        kind, changes = OTHERS[name]
        return hf_source(
            name, hf_config({"model_type": name, "architectures": [kind], **changes, **more}, name)
        )
    return named_source(name, **{**CHANGES[name], **more})


EVERY = (*CHANGES, "gpt", "llama")

"""The named models: which configuration of which class, by public model cards; sequence as they are
trained here."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Named:
    """A transformers class and its configuration, or a family (``gpt``, ``llama``) and its
    sizes."""

    kind: str
    sequence: int
    sizes: Mapping[str, Any]
    architecture: str = ""


def _hf(model_type: str, architecture: str, sequence: int, **sizes: Any) -> Named:
    return Named(model_type, sequence, MappingProxyType(sizes), architecture)


def _gpt(hidden: int, layers: int, heads: int, sequence: int) -> Named:
    sizes = {
        "hidden": hidden,
        "layers": layers,
        "heads": heads,
        "vocabulary": 51200,
        "sequence": sequence,
    }
    return Named("gpt", sequence, MappingProxyType(sizes))


def _llama(usual: int, **sizes: Any) -> Named:
    """A family's sizes, with the sequence that it is trained on here."""
    return Named("llama", usual, MappingProxyType(sizes))


def _qwen3_moe(hidden: int, layers: int, heads: int, expert_mlp: int) -> Named:
    return _hf(
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        4096,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=4,
        head_dim=128,
        intermediate_size=3 * hidden,
        moe_intermediate_size=expert_mlp,
        num_experts=128,
        num_experts_per_tok=8,
        norm_topk_prob=True,
        vocab_size=151936,
        max_position_embeddings=40960,
    )


def _deepseek_v3(
    vocabulary: int, layers: int, heads: int, experts: int, dense: int, **groups: int
) -> Named:
    return _hf(
        "deepseek_v3",
        "DeepseekV3ForCausalLM",
        4096,
        hidden_size=7168,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        intermediate_size=18432,
        moe_intermediate_size=2048,
        n_routed_experts=experts,
        num_local_experts=experts,
        num_experts_per_tok=8,
        n_shared_experts=1,
        first_k_dense_replace=dense,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        vocab_size=vocabulary,
        max_position_embeddings=131072,
        **groups,
    )


_BERT: Mapping[str, int] = MappingProxyType(
    {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "max_position_embeddings": 512,
    }
)

NAMED: Mapping[str, Named] = MappingProxyType(
    {
        "bert-large": _hf("bert", "BertForPreTraining", 512, vocab_size=30522, **_BERT),
        "gpt2-xl": _hf(
            "gpt2",
            "GPT2LMHeadModel",
            1024,
            n_embd=1600,
            n_layer=48,
            n_head=25,
            n_positions=1024,
            vocab_size=50257,
        ),
        "opt-350m": _hf(
            "opt",
            "OPTForCausalLM",
            2048,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            ffn_dim=4096,
            word_embed_proj_dim=512,
            do_layer_norm_before=False,
            vocab_size=50272,
            max_position_embeddings=2048,
        ),
        "llama2-7b": _hf(
            "llama",
            "LlamaForCausalLM",
            4096,
            hidden_size=4096,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=32,
            intermediate_size=11008,
            vocab_size=32000,
            max_position_embeddings=4096,
        ),
        "megatron-bert-large": _hf(
            "megatron-bert", "MegatronBertForPreTraining", 512, vocab_size=29056, **_BERT
        ),
        "megatron-gpt2-54": _gpt(1920, 54, 20, 1024),
        "megatron-gpt2-72": _gpt(3072, 72, 24, 1024),
        "gpt3-175b": _gpt(12288, 96, 96, 2048),
        "llama3-8b": _hf(
            "llama",
            "LlamaForCausalLM",
            8192,
            hidden_size=4096,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            intermediate_size=14336,
            vocab_size=128256,
            max_position_embeddings=8192,
            rope_theta=500000.0,
        ),
        "llama3-70b": _hf(
            "llama",
            "LlamaForCausalLM",
            8192,
            hidden_size=8192,
            num_hidden_layers=80,
            num_attention_heads=64,
            num_key_value_heads=8,
            intermediate_size=28672,
            vocab_size=128256,
            max_position_embeddings=8192,
            rope_theta=500000.0,
        ),
        # The Llama 3 Herd of Models, Table 3; trained on 8,192 tokens at first, 131,072 positions
        # in the end.
        "llama3.1-405b": _llama(
            8192,
            hidden=16384,
            layers=126,
            heads=128,
            kv_heads=8,
            head_dim=128,
            mlp=53248,
            vocabulary=128256,
            sequence=131072,
            tied=False,
        ),
        # model_config.yaml of huggingface.co/nvidia/Nemotron-4-340B-Instruct; its layer norms and
        # rotary positions on half of a head are counted as a llama's.
        "nemotron-4-340b": _llama(
            4096,
            hidden=18432,
            layers=96,
            heads=96,
            kv_heads=8,
            head_dim=192,
            mlp=73728,
            vocabulary=256000,
            sequence=4096,
            tied=False,
            gated=False,
        ),
        # github.com/AI-Hypercomputer/maxtext
        # MaxText/utils/ckpt_conversion/utils/hf_model_configs.py
        "gemma-2-27b": _hf(
            "gemma2",
            "Gemma2ForCausalLM",
            8192,
            hidden_size=4608,
            num_hidden_layers=46,
            num_attention_heads=32,
            num_key_value_heads=16,
            head_dim=128,
            intermediate_size=36864,
            vocab_size=256000,
            max_position_embeddings=8192,
            sliding_window=4096,
            query_pre_attn_scalar=144,
            attn_logit_softcapping=50.0,
            final_logit_softcapping=30.0,
            tie_word_embeddings=True,
        ),
        "mixtral-8x7b": _hf(
            "mixtral",
            "MixtralForCausalLM",
            4096,
            hidden_size=4096,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            intermediate_size=14336,
            num_local_experts=8,
            num_experts_per_tok=2,
            vocab_size=32000,
            max_position_embeddings=32768,
        ),
        "mixtral-8x22b": _hf(
            "mixtral",
            "MixtralForCausalLM",
            4096,
            hidden_size=6144,
            num_hidden_layers=56,
            num_attention_heads=48,
            num_key_value_heads=8,
            intermediate_size=16384,
            num_local_experts=8,
            num_experts_per_tok=2,
            vocab_size=32768,
            max_position_embeddings=65536,
            rope_theta=1000000.0,
        ),
        "grok-1": _hf(
            "mixtral",
            "MixtralForCausalLM",
            8192,
            hidden_size=6144,
            num_hidden_layers=64,
            num_attention_heads=48,
            num_key_value_heads=8,
            head_dim=128,
            intermediate_size=32768,
            hidden_act="gelu",
            num_local_experts=8,
            num_experts_per_tok=2,
            vocab_size=131072,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
        ),
        "qwen3-30b-a3b": _qwen3_moe(2048, 48, 32, 768),
        "qwen3-235b-a22b": _qwen3_moe(4096, 94, 64, 1536),
        "deepseek-v3": _deepseek_v3(129280, 61, 128, 256, 3, n_group=8, topk_group=4),
        # huggingface.co/moonshotai/Kimi-K2-Instruct config.json: the blocks of DeepSeek-V3, experts
        # in one group
        "kimi-k2": _deepseek_v3(163840, 61, 64, 384, 1, n_group=1, topk_group=1),
        # huggingface.co/openai/gpt-oss-120b config.json: windows of 128 in every second layer
        "gpt-oss-120b": _hf(
            "gpt_oss",
            "GptOssForCausalLM",
            4096,
            hidden_size=2880,
            num_hidden_layers=36,
            num_attention_heads=64,
            num_key_value_heads=8,
            head_dim=64,
            intermediate_size=2880,
            num_local_experts=128,
            num_experts_per_tok=4,
            sliding_window=128,
            attention_bias=True,
            vocab_size=201088,
            max_position_embeddings=131072,
        ),
        "t5-large": _hf(
            "t5",
            "T5ForConditionalGeneration",
            512,
            d_model=1024,
            d_kv=64,
            d_ff=4096,
            num_layers=24,
            num_decoder_layers=24,
            num_heads=16,
            vocab_size=32128,
            decoder_start_token_id=0,
        ),
        "vit-large": _hf(
            "vit",
            "ViTForImageClassification",
            197,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            image_size=224,
            patch_size=16,
            num_labels=1000,
        ),
    }
)
"""Every name with its row; a longer sequence than the model has positions is refused."""

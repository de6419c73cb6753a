"""Plans of every kind that launch files can tell: for the tests, and for the frameworks' own
checks."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from phaze.export.source import PlannedSplit
from phaze.hardware.stack import StateBytes

MIXTURE = {
    "layers": 16, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "vocabulary": 51200,
    "sequence": 8192,
    "experts": 64, "active": 8, "expert_mlp": 1024, "shared_mlp": 0, "dense_layers": 0, "tied": 0,
}  # fmt: skip
LLAMA = {"layers": 16, "hidden": 4096, "heads": 32}
GPT = {"layers": 16, "hidden": 1024, "heads": 16, "vocabulary": 51200}
EVEN = ((4, True, False), (4, False, False), (4, False, False), (4, False, True))
ONE: dict[str, Any] = {
    "pipeline": 1,
    "stages": ((16, True, True),),
    "recompute": ("none",),
    "devices": (2,),
}
ALONE: dict[str, Any] = {**ONE, "tensor": 1, "devices": (1,), "sequence_parallel": False}


# Mixtures of experts without a pipeline, on one rank a stage and on two.
SPREAD: dict[str, Any] = {
    "pipeline": 1,
    "recompute": ("none",),
    "attention": "fused",
    "expert_tensor": 1,
}


def experts(layers: int, **changes: Any) -> PlannedSplit:
    """A mixture of so many blocks on 2 x 16 devices, its experts over 8 ranks."""
    wanted = {**SPREAD, "data": 16, "expert": 8, "devices": (2,), "stages": ((layers, True, True),)}
    return split(**wanted | changes)


def split(**changes: Any) -> PlannedSplit:
    """A llama of 16 blocks on 2 x 4 x 8 devices, its stages uneven."""
    plain = PlannedSplit(
        model="llama3-8b", chip="h100", tensor=2, pipeline=4, data=8, chunks=1, microbatch=2,
        batch=256, sequence=8192,
        sequence_parallel=True, optimizer="adam", precision="bf16", zero=1, order="data",
        attention="eager",
        hides_synchronisation=True, recompute=("full",) * 4, devices=(2,) * 4,
        stages=((3, True, False), (5, False, False), (5, False, False), (3, False, True)),
        sizes=LLAMA,
    )  # fmt: skip
    return replace(plain, **changes)


MEGATRON: Mapping[str, PlannedSplit] = MappingProxyType(
    {
        "hierarchical contexts": split(
            **{**ONE, "stages": ((16, True, True),)},
            context=8,
            context_way="hierarchical",
            attention="fused",
        ),
        "uneven": split(),
        "even": split(stages=EVEN),
        "embedding alone": split(
            stages=((0, True, False), (8, False, False), (8, False, False), (0, False, True)),
            zero=0,
        ),
        "interleaved": split(stages=EVEN, chunks=2, recompute=("none",) * 4),
        "interleaved, uneven": split(
            chunks=2,
            stages=((2, True, False), (6, False, False), (6, False, False), (2, False, True)),
        ),
        "interleaved, two ranks": split(
            pipeline=2,
            chunks=4,
            stages=((8, True, False), (8, False, True)),
            devices=(2, 2),
            recompute=("none",) * 2,
        ),
        "stages side by side": split(order="pipeline"),
        "selective": split(recompute=("selective",) * 4),
        "modules": split(recompute=("layernorm+mlp",) * 4),
        "one device": split(**ALONE, data=1, batch=4, zero=0),
        "copies": split(**ALONE, zero=0),
        "ZeRO 1": split(**ALONE),
        "ZeRO 2": split(**ALONE, zero=2),
        "ZeRO 3": split(**ONE, zero=3),
        "ZeRO 3, nothing hidden": split(**ALONE, zero=3, hides_synchronisation=False),
        "fp32": split(**ALONE, precision="fp32"),
        "fp8": split(precision="fp8"),
        "fp8, weights too": split(precision="fp8-delayed", low_precision_weights=True),
        "fp8, scale of now": split(precision="fp8-tensorwise"),
        "fp8 by block": split(precision="fp8-block"),
        "mxfp8": split(precision="mxfp8"),
        "nvfp4": split(precision="nvfp4"),
        "hybrid sharding": split(shard=4),
        "hybrid sharding, ZeRO 3": split(**ONE, zero=3, shard=4),
        "precision-aware": split(
            state=StateBytes(main_weight=2.0, gradient=2.0, first_moment=1.0, second_moment=2.0)
        ),
        "offload": split(**ONE | {"recompute": ("offload",)}),
        "offload, a pipeline": split(recompute=("offload",) * 4),
        "sgd": split(optimizer="sgd", zero=0),
        "fused attention": split(attention="fused"),
        "not sequence parallel": split(sequence_parallel=False),
        "gpt": split(model="gpt", sizes=GPT, sequence=1024),
        "llama by sizes": split(
            model="llama", sizes={**LLAMA, "mlp": 11008, "kv_heads": 4, "head_dim": 96, "tied": 1}
        ),
        "without a gate": split(
            model="llama", sizes={**LLAMA, "mlp": 16384, "kv_heads": 8, "head_dim": 128, "gated": 0}
        ),
        "nemotron": split(
            model="nemotron-4-340b",
            sizes={"layers": 96, "hidden": 18432, "heads": 96},
            stages=((24, True, False), (24, False, False), (24, False, False), (24, False, True)),
            sequence=4096,
        ),
        "405b": split(
            model="llama3.1-405b",
            sizes={"layers": 126, "hidden": 16384, "heads": 128},
            stages=((31, True, False), (32, False, False), (32, False, False), (31, False, True)),
        ),
        "context, ring": split(context=2, data=4, attention="fused"),
        "context, all_gather": split(
            context=2, data=4, context_way="all_gather", attention="fused"
        ),
        "context, ulysses": split(context=2, data=4, context_way="ulysses", attention="fused"),
        "context, hybrid sharding": split(context=2, data=4, shard=4, attention="fused"),
        "mixture": experts(16, model="moe", sizes=MIXTURE),
        "mixture, dense layers first": experts(
            16, model="moe", sizes={**MIXTURE, "dense_layers": 2, "mlp": 8192, "shared_mlp": 1024}
        ),
        "mixture, a pipeline": experts(
            16,
            model="moe",
            sizes=MIXTURE,
            pipeline=4,
            data=8,
            stages=EVEN,
            devices=(2,) * 4,
            recompute=("full",) * 4,
        ),
        "mixture, context": experts(16, model="moe", sizes=MIXTURE, context=2, data=8),
        "mixture, fp8": experts(16, model="moe", sizes=MIXTURE, precision="fp8-block"),
        "mixture, tokens once a node": experts(
            16, model="moe", sizes=MIXTURE, deduplicated_exchange=True
        ),
        "mixture, experts recomputed": experts(16, model="moe", sizes=MIXTURE, recompute=("moe",)),
        "mixture, exchange hidden": experts(16, model="moe", sizes=MIXTURE, hidden_exchange=0.5),
        "mixtral": experts(
            32,
            model="mixtral-8x7b",
            sizes={"layers": 32, "hidden": 4096, "heads": 32},
            sequence=4096,
        ),
        "mixtral, experts split": experts(
            32,
            model="mixtral-8x7b",
            sizes={"layers": 32, "hidden": 4096, "heads": 32},
            sequence=4096,
            expert=4,
            expert_tensor=2,
        ),
        "mixtral, no experts shared out": experts(
            32,
            model="mixtral-8x7b",
            sizes={"layers": 32, "hidden": 4096, "heads": 32},
            sequence=4096,
            expert=1,
            tensor=1,
            devices=(1,),
            sequence_parallel=False,
        ),
        "qwen3": experts(
            48,
            model="qwen3-30b-a3b",
            sizes={"layers": 48, "hidden": 2048, "heads": 32},
            sequence=4096,
            expert=16,
        ),
        "deepseek-v3": experts(
            61,
            model="deepseek-v3",
            sizes={"layers": 61, "hidden": 7168, "heads": 128},
            sequence=4096,
            tensor=1,
            expert=16,
            devices=(1,),
            sequence_parallel=False,
        ),
        "bert": split(
            model="bert-large", sizes={**GPT, "positions": 512}, sequence=512, stages=EVEN
        ),
    }
)
TORCHTITAN: Mapping[str, PlannedSplit] = MappingProxyType(
    {
        "uneven": split(),
        "even": split(stages=EVEN),
        "interleaved": split(stages=EVEN, chunks=2, recompute=("none",) * 4),
        "gpipe": split(stages=EVEN, family="gpipe"),
        "zero bubble": split(
            stages=EVEN, chunks=2, recompute=("none",) * 4, family="zb-interleaved"
        ),
        "zero bubble in a V": split(stages=EVEN, chunks=2, recompute=("none",) * 4, family="zb-v"),
        "DualPipeV": split(stages=EVEN, chunks=2, recompute=("none",) * 4, family="dualpipe-v"),
        "stages side by side": split(order="pipeline"),
        "selective": split(recompute=("selective",) * 4),
        "every second block": split(recompute=("alternate",) * 4),
        "one device": split(**ALONE, data=1, batch=4, zero=0),
        "copies": split(**ALONE, zero=0),
        "ZeRO 1": split(**ALONE),
        "ZeRO 2": split(zero=2),
        "ZeRO 3": split(zero=3),
        "hybrid sharding": split(zero=3, shard=4),
        "fp32": split(precision="fp32", data=1),
        "fp8, scale of now": split(precision="fp8-tensorwise", low_precision_weights=True),
        "mxfp8": split(precision="mxfp8"),
        "llama by sizes": split(
            model="llama",
            sizes={
                **LLAMA,
                "kv_heads": 4,
                "head_dim": 128,
                "mlp": 11009,
                "vocabulary": 50000,
                "tied": 0,
                "gated": 1,
            },
        ),
        "llama2-7b": split(model="llama2-7b", **{**ONE, "stages": ((32, True, True),)}),
        "405b": split(
            model="llama3.1-405b",
            sizes={"layers": 126, "hidden": 16384, "heads": 128},
            stages=((31, True, False), (32, False, False), (32, False, False), (31, False, True)),
        ),
        "context, ring": split(context=2, data=4, zero=3),
        "context, all_gather": split(context=2, data=4, zero=3, context_way="all_gather"),
        "context, hybrid sharding": split(context=2, data=4, zero=3, shard=4),
        "qwen3": experts(
            48,
            model="qwen3-30b-a3b",
            sizes={"layers": 48, "hidden": 2048, "heads": 32},
            sequence=4096,
            zero=3,
        ),
        "qwen3, experts split": experts(
            48,
            model="qwen3-30b-a3b",
            sizes={"layers": 48, "hidden": 2048, "heads": 32},
            zero=3,
            expert_tensor=2,
        ),
        "qwen3, context": experts(
            94,
            model="qwen3-235b-a22b",
            sizes={"layers": 94, "hidden": 4096, "heads": 64},
            zero=3,
            context=2,
            data=8,
        ),
        "qwen3, mxfp8": experts(
            48,
            model="qwen3-30b-a3b",
            sizes={"layers": 48, "hidden": 2048, "heads": 32},
            zero=3,
            precision="mxfp8",
        ),
        "deepseek-v3, DualPipeV": experts(
            60,
            model="deepseek-v3",
            sizes={"layers": 61, "hidden": 7168, "heads": 128},
            tensor=1,
            pipeline=2,
            data=8,
            stages=((30, True, False), (30, False, True)),
            devices=(1, 1),
            recompute=("none",) * 2,
            chunks=2,
            family="dualpipe-v",
            sequence_parallel=False,
            zero=2,
        ),
        "gpt-oss": experts(
            36,
            model="gpt-oss-120b",
            sizes={"layers": 36, "hidden": 2880, "heads": 64},
            tensor=1,
            devices=(1,),
            sequence_parallel=False,
            zero=3,
            deduplicated_exchange=True,
        ),
    }
)
DEEPSPEED: Mapping[str, PlannedSplit] = MappingProxyType(
    {
        **{f"zero {zero}": split(**ALONE, zero=zero, data=16, batch=64) for zero in range(4)},
        "tensor": split(**ONE, zero=1),
        "tensor, zero 2": split(**ONE, zero=2, sequence_parallel=False),
        "sequences": split(**ALONE, zero=3, context=2, context_way="ulysses", data=8),
        "recompute": split(**{**ALONE, "recompute": ("full",)}, zero=3),
        "fp32": split(**ALONE, zero=1, precision="fp32"),
    }
)
